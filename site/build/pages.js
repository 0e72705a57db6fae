// Where each file is on the site, and what its contents are.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The root of the repository, without a slash at the end. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '')

/** What a file of the repository is called on the site, such as guides/leases.md. */
export function address(path) {
  if (path === 'README.md') return 'index.md'
  if (path === 'docs/README.md') return 'contents.md'
  return path.replace(/^(docs|site\/pages)\//, '')
}

/** The text of a file of the repository. */
export const read = (path) => readFileSync(`${ROOT}/${path}`, 'utf8')

/** The pages of pages/api by language, which are generated: without them the site has none. */
const api = [
  ['Python', 'python'],
  ['Node.js', 'node'],
  ['Rust', 'rust'],
]
  .map(([title, name]) => ({ title, pages: apiPages(`site/pages/api/${name}`) }))
  .filter(({ pages }) => pages.length)

function apiPages(folder) {
  if (!existsSync(`${ROOT}/${folder}`)) return []
  const names = readdirSync(`${ROOT}/${folder}`).filter((name) => name !== 'index.md')
  return ['index.md', ...names.sort()].map((name) => {
    const path = `${folder}/${name}`
    // The group says the language.
    return { title: /^# (?:[\w.]+: )?(.+)$/m.exec(read(path))[1], path }
  })
}

/**
 * The sections of docs/README.md that name pages, each with its groups: a title, and pages with a
 * title, a note and a path.
 */
export function contents() {
  const sections = []
  for (const line of read('docs/README.md').split('\n')) {
    const [, level, title] = /^(##+) (.+)$/.exec(line) ?? []
    if (level === '##') sections.push({ title, groups: [{ title: '', pages: [] }] })
    else if (title) sections.at(-1).groups.push({ title, pages: [] })
    const page =
      /^(?:\| (?<before>.+) \| |- )\[(?<title>[^\]]+)\]\((?!\.\.)(?<path>[^)#]+\.md)\)(?:: (?<after>.+))?/
    const { before, title: name, path, after } = page.exec(line)?.groups ?? {}
    if (path) {
      const note = before ?? after?.replace(/\.$/, '')
      sections
        .at(-1)
        .groups.at(-1)
        .pages.push({ title: name, note, path: `docs/${path}` })
    }
  }
  const full = sections.filter(({ groups }) => groups.some(({ pages }) => pages.length))
  if (api.length) full.push({ title: 'API', groups: api })
  return full
}

/** What VitePress shows beside each page. */
export function sidebar() {
  const item = ({ title, path }) => ({
    text: title,
    link: `/${address(path).replace(/(index)?\.md$/, '')}`,
  })
  const sections = contents().map(({ title, groups }) => ({
    text: title,
    // What the open page is in unfolds.
    collapsed: title !== 'Tutorials',
    items: groups.flatMap((group) => {
      const items = group.pages.map(item)
      return group.title ? [{ text: group.title, collapsed: true, items }] : items
    }),
  }))
  return [{ items: [{ text: 'Overview', link: '/contents' }] }, ...sections]
}
