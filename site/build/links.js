// Links between files of the repository, as a code host shows them, become links of the site.
import { posix, relative, sep } from 'node:path'
import { address, ROOT, read } from './pages.js'

/** The repository at its code host. */
export const HOST = JSON.parse(read('bindings-node/package.json')).repository.url.replace(
  /^git\+|\.git$/g,
  '',
)

/** The anchor of a heading, as code hosts make it. */
export const slug = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

/** The path of a file that is a page, from the root of the repository, as VitePress passes it. */
export const pathOf = (env) => relative(ROOT, env.realPath ?? env.path).replaceAll(sep, '/')

const isPage = (path) =>
  path.endsWith('.md') && (path === 'README.md' || /^(docs|site\/pages)\//.test(path))

/** What a link in a file is on the site, or at the code host if no page has it. */
export function target(file, link) {
  if (/^([a-z]+:|#|\/)/.test(link)) return link
  const [, path, anchor] = /^([^#]*)(.*)$/.exec(link)
  const full = posix.join(posix.dirname(file), path)
  return isPage(full) ? `/${address(full)}${anchor}` : `${HOST}/blob/main/${full}${anchor}`
}

/** Rewrites links before VitePress checks whether they are dead. Images stay files. */
export function links(md) {
  md.core.ruler.push('links_of_the_repository', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'link_open') {
        token.attrSet('href', target(pathOf(env), token.attrGet('href')))
      }
    }
  })
}
