// Where each file is on the site, and what the sidebar shows.
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

const title = (path) => /^# (.+)$/m.exec(readFileSync(path, 'utf8'))[1]

/** The pages of pages/api, which are generated: without them the site has none. */
export const API = apiPages()

function apiPages() {
  const folder = `${ROOT}/site/pages/api`
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((name) => name.endsWith('.md'))
  return files.sort().map((name) => ({
    text: title(`${folder}/${name}`),
    link: `/api/${name.replace(/(index)?\.md$/, '')}`,
  }))
}

/** The contents of docs/README.md: each section that names pages, with its groups. */
export function sidebar() {
  const sections = [{ text: 'Start', items: [{ text: 'Overview', link: '/' }] }]
  let items = sections[0].items
  for (const line of readFileSync(`${ROOT}/docs/README.md`, 'utf8').split('\n')) {
    const [, level, heading] = /^(##+) (.+)$/.exec(line) ?? []
    if (heading) {
      items = []
      if (level === '##') sections.push({ text: heading, items })
      else sections.at(-1).items.push({ text: heading, collapsed: false, items })
    }
    for (const [, text, path] of line.matchAll(/\[([^\]]+)\]\((?!\.\.)([^)#]+)\.md\)/g)) {
      items.push({ text, link: `/${path}` })
    }
  }
  const full = sections.filter((section) => section.items.length)
  const api = API.length ? [{ text: 'API', items: API }] : []
  const before = full.findIndex((section) => section.text === 'Measurements')
  return full.toSpliced(before, 0, ...api)
}
