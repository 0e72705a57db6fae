// What programs read: llms.txt, as https://llmstxt.org has it, each page as Markdown, and all in one.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { target } from './links.js'
import { address, contents, read } from './pages.js'

/** The Markdown of a file, with links that are those of the site, which lies at `base`. */
const markdown = (path, base) =>
  read(path).replace(
    /\]\(([^()\s]+)\)/g,
    (_, link) => `](${target(path, link).replace(/^\//, base)})`,
  )

/** Writes them when the site has been built. */
export function writeForPrograms({ outDir, site }) {
  const listed = contents().flatMap(({ title, groups }) => ({
    title,
    pages: groups.flatMap(({ pages }) => pages),
  }))
  const sections = [
    { title: 'Overview', pages: [{ title: 'Overview and quick start', path: 'README.md' }] },
    ...listed,
  ]
  const line = ({ title, path, note }) =>
    `- [${title}](${site.base}${address(path)})${note ? `: ${note}` : ''}`
  const list = sections.map(({ title, pages }) => `## ${title}\n\n${pages.map(line).join('\n')}\n`)
  const write = (name, text) => {
    mkdirSync(dirname(join(outDir, name)), { recursive: true })
    writeFileSync(join(outDir, name), text)
  }
  write('llms.txt', `# ${site.title}\n\n> ${site.description}\n\n${list.join('\n')}`)
  const paths = sections.flatMap(({ pages }) => pages.map(({ path }) => path))
  const linked = [...paths, 'docs/README.md']
  for (const path of linked) write(address(path), markdown(path, site.base))
  write('llms-full.txt', paths.map((path) => markdown(path, site.base)).join('\n'))
}
