// Each component of components/ can be used in every page, by the name of its file.
import DefaultTheme from 'vitepress/theme-without-fonts'
import Layout from './Layout.vue'
import './style.css'

const components = import.meta.glob('../../components/*.vue', { eager: true, import: 'default' })

export default {
  extends: DefaultTheme,
  Layout,
  enhanceApp({ app }) {
    for (const [path, component] of Object.entries(components)) {
      app.component(/(\w+)\.vue$/.exec(path)[1], component)
    }
  },
}
