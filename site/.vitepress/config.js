// The pages are the Markdown of the repository as it is: README.md is the home page, docs/ the rest.
// What is for the site alone, or generated before it is built, lies in pages/.
import { readdirSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { homePage } from '../build/home.js'
import { links, slug } from '../build/links.js'
import { API, address, ROOT, sidebar } from '../build/pages.js'
import { tabs } from '../build/tabs.js'

const { repository } = JSON.parse(readFileSync(`${ROOT}/bindings-node/package.json`, 'utf8'))
const host = repository.url.replace(/^git\+|\.git$/g, '')
const favicon = encodeURIComponent(readFileSync(`${ROOT}/site/components/logo.svg`, 'utf8'))

const others = (folder, ...pages) =>
  readdirSync(`${ROOT}/${folder}`)
    .filter((name) => !pages.includes(name))
    .map((name) => `${folder}${name}{,/**}`)
const excluded = [...others('', 'README.md', 'docs', 'site'), ...others('site/', 'pages')]

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

export default defineConfig({
  title: 'Randflake',
  description: 'Unique 64-bit ids that outsiders cannot predict, order or count',
  lang: 'en',
  base: process.env.BASE ?? '/',
  srcDir: ROOT,
  srcExclude: excluded,
  rewrites: address,
  outDir: `${ROOT}/target/site`,
  cacheDir: `${ROOT}/target/site-cache`,
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${favicon}` }]],
  markdown: {
    languageAlias: { cjs: 'js', mjs: 'js' },
    anchor: { slugify: slug },
    config: (md) => md.use(links, `${host}/blob/main/`).use(tabs).use(homePage),
  },
  vite: { plugins: [packagesOfTheSite] },
  themeConfig: {
    nav: [
      { text: 'Guides', link: '/contents', activeMatch: '^/(guides|contents)' },
      { text: 'Concepts', link: '/concepts/how-it-works', activeMatch: '^/concepts/' },
      { text: 'Reference', link: '/reference/options', activeMatch: '^/reference/' },
      ...(API.length ? [{ text: 'API', link: API[0].link, activeMatch: '^/api/' }] : []),
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: host }],
    editLink: { pattern: `${host}/edit/main/:path`, text: 'Edit this page' },
    footer: { message: 'Apache-2.0 or MIT, at your option' },
  },
})
