// The tutorials, for the home page: what each is about, and where it is.
import { contents } from '../build/pages.js'

export default {
  load() {
    const { groups } = contents().find(({ title }) => title === 'Tutorials')
    return groups
      .flatMap(({ pages }) => pages)
      .map(({ title, path }) => ({ title, link: path.replace(/^docs|\.md$/g, '') }))
  },
}
