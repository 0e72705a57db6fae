// The home page is README.md: what comes before its first section is what a visitor sees first.
import { pathOf } from './links.js'

const HOME = 'README.md'

/** Puts the title, the first paragraph and the list of README.md into the component HomeHero. */
export function homePage(md) {
  md.core.ruler.push('home', ({ tokens, env, Token }) => {
    if (pathOf(env) !== HOME) return
    const html = (content) => Object.assign(new Token('html_block', '', 0), { content })
    const end = (type) => tokens.findIndex((token) => token.type === type) + 1
    tokens.splice(end('bullet_list_close'), 0, html('</template></HomeHero>\n'))
    tokens.splice(end('paragraph_close'), 0, html('</template><template #points>\n'))
    tokens.splice(end('heading_close'), 0, html('</template><template #lead>\n'))
    tokens.unshift(html('<HomeHero><template #title>\n'))
  })
}

/** The settings of the home page, which README.md does not have itself. */
export function homeSettings({ filePath }) {
  if (filePath === HOME) return { frontmatter: { layout: 'home' } }
}
