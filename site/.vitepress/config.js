// The pages are the Markdown of the repository as it is: README.md is the home page, docs/ the rest.
// What is for the site alone, or generated before it is built, lies in pages/.
import { readdirSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { homePage, homeSettings } from '../build/home.js'
import { HOST, links, slug } from '../build/links.js'
import { writeForPrograms } from '../build/llms.js'
import { numbers } from '../build/numbers.js'
import { address, ROOT, read, sidebar } from '../build/pages.js'
import { plots } from '../build/plots.js'
import { rust } from '../build/rust.js'
import { tables } from '../build/tables.js'
import { tabs } from '../build/tabs.js'

const favicon = encodeURIComponent(read('site/components/logo.svg'))

const others = (folder, ...pages) =>
  readdirSync(`${ROOT}/${folder}`)
    .filter((name) => !pages.includes(name))
    .map((name) => `${folder}${name}{,/**}`)

// Pages lie outside of this folder, and use what is installed in it.
const packagesOfTheSite = {
  name: 'packages-of-the-site',
  enforce: 'pre',
  resolveId(id, importer, options) {
    if (/^vue($|\/)/.test(id) && importer?.endsWith('.md')) {
      return this.resolve(id, `${ROOT}/site/package.json`, options)
    }
  },
}

// The one part of the npm package's `randflake/web` that is not an ES module, as bundlers make it one.
const textOfThePackage = {
  name: 'text-of-the-package',
  transform(code, id) {
    if (!id.endsWith('/bindings-node/text.js')) return
    const named = code.replace(/^exports\.(\w+) = \1$/gm, 'export { $1 }')
    return { code: named.replace(/^exports\.(\w+) = /gm, 'export const $1 = '), map: null }
  },
}

export default defineConfig({
  title: 'Randflake',
  description: 'Unique 64-bit ids that outsiders cannot predict, order or count',
  lang: 'en',
  // Where the site is not at the root of its host: /randflake/.
  base: process.env.BASE ?? '/',
  srcDir: ROOT,
  srcExclude: [...others('', 'README.md', 'docs', 'site'), ...others('site/', 'pages')],
  rewrites: address,
  outDir: `${ROOT}/target/site`,
  cacheDir: `${ROOT}/target/site-cache`,
  cleanUrls: true,
  // A page that says it makes no request makes none.
  router: { prefetchLinks: false },
  head: [
    ['link', { rel: 'icon', href: `data:image/svg+xml,${favicon}` }],
    [
      'noscript',
      {},
      '<style>[role=tabpanel] { display: block !important } .VPSidebar .group { visibility: visible !important } .chooser details::details-content { content-visibility: visible; height: auto }</style>',
    ],
  ],
  markdown: {
    anchor: { slugify: slug },
    languageAlias: { cjs: 'js', mjs: 'js' },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: (md) =>
      md.use(links).use(tabs).use(plots).use(tables).use(numbers).use(rust).use(homePage),
  },
  transformPageData: homeSettings,
  buildEnd: writeForPrograms,
  vite: {
    plugins: [packagesOfTheSite, textOfThePackage],
    server: {
      watch: { ignored: others('', 'README.md', 'docs', 'site').map((name) => `${ROOT}/${name}`) },
    },
  },
  themeConfig: {
    nav: [
      { text: 'Tutorials', link: '/tutorials/fastapi', activeMatch: '^/tutorials/' },
      { text: 'Choose', link: '/chooser' },
      { text: 'Guides', link: '/contents', activeMatch: '^/(guides/|contents)' },
      { text: 'Concepts', link: '/concepts/how-it-works', activeMatch: '^/concepts/' },
      { text: 'Reference', link: '/reference/options', activeMatch: '^/(reference|api)/' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        // A word of a guide first, which explains what an interface names.
        miniSearch: { searchOptions: { boostDocument: (id) => (/\/api\//.test(id) ? 0.2 : 1) } },
      },
    },
    socialLinks: [{ icon: 'github', link: HOST }],
    editLink: { pattern: `${HOST}/edit/main/:path`, text: 'Edit this page' },
    footer: { message: 'Apache-2.0 or MIT, at your option' },
  },
})
