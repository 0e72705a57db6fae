// Links between files of the repository, as a code host shows them, become links of the site.
import { posix, relative, sep } from 'node:path'
import { address, ROOT } from './pages.js'

/** The anchor of a heading, as code hosts make it. */
export const slug = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

const isPage = (path) =>
  path.endsWith('.md') && (path === 'README.md' || /^(docs|site\/pages)\//.test(path))

/** The address on the site of a link in a file, or at the code host if no page has it. */
function target(file, link, host) {
  if (/^([a-z]+:|#|\/)/.test(link)) return link
  const [, path, anchor] = /^([^#]*)(.*)$/.exec(link)
  const full = posix.join(posix.dirname(file), path)
  return isPage(full) ? `/${address(full)}${anchor}` : `${host}${full}${anchor}`
}

/** Rewrites links before VitePress checks whether they are dead. Images stay files. */
export function links(md, host) {
  md.core.ruler.push('links_of_the_repository', ({ tokens, env }) => {
    const file = relative(ROOT, env.realPath ?? env.path).replaceAll(sep, '/')
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          token.attrSet('href', target(file, token.attrGet('href'), host))
        }
      }
    }
  })
}
