// Code blocks of several languages, one after the other, become tabs.
const LANGUAGES = [
  { name: 'Python', fences: ['python'] },
  { name: 'Node.js', fences: ['js', 'mjs', 'cjs', 'ts'] },
  { name: 'Rust', fences: ['rust'] },
]

/**
 * Has the site show as tabs what plain Markdown has as blocks of different languages, one after the
 * other. Each may have its output below it, in a block of `text`, and above it a paragraph that
 * begins in bold or with "In <language>". One that says the name of the language and no more becomes
 * the tab, and other ones are shown in it.
 */
export function tabs(md) {
  md.core.ruler.push('tabs', (state) => {
    state.tokens = grouped(state.tokens, state.Token)
  })
}

function grouped(tokens, Token) {
  const done = []
  let group = []
  const flush = () => {
    done.push(...(group.length > 1 ? tabGroup(group, Token) : group.flatMap((unit) => unit.tokens)))
    group = []
  }
  for (let at = 0; at < tokens.length; ) {
    const unit = unitAt(tokens, at)
    if (!unit) {
      flush()
      done.push(tokens[at++])
      continue
    }
    if (group.some(({ language }) => language === unit.language)) flush()
    group.push(unit)
    at += unit.tokens.length
  }
  flush()
  return done
}

/** What belongs to the code block of one language that begins here, if one does. */
function unitAt(tokens, start) {
  let at = start
  const lead = tokens[at].type === 'paragraph_open' ? tokens[at + 1] : undefined
  if (lead) {
    if (!/^(\*\*|In (Python|Node\.js|Rust)\b)/.test(lead.content)) return
    at += 3
  }
  const code = tokens[at]
  if (code?.type !== 'fence') return
  const [fence] = code.info.split(/[ ,]/)
  const language = LANGUAGES.findIndex(({ fences }) => fences.includes(fence))
  if (language < 0) return
  code.info = fence
  at += 1
  if (tokens[at]?.type === 'fence' && tokens[at].info === 'text') at += 1
  const { name } = LANGUAGES[language]
  const isName = lead && [name, `In ${name}`].includes(lead.content.replace(/\*\*|:$/g, ''))
  return {
    language,
    tokens: tokens.slice(start, at),
    shown: tokens.slice(isName ? start + 3 : start, at),
  }
}

function tabGroup(group, Token) {
  const html = (content) => Object.assign(new Token('html_block', '', 0), { content })
  const sorted = group.toSorted((one, other) => one.language - other.language)
  const names = sorted.map(({ language }) => LANGUAGES[language].name)
  return [
    html(`<LanguageTabs :names="${JSON.stringify(names).replaceAll('"', "'")}">\n`),
    ...sorted.flatMap(({ shown }, index) => [
      html(`<template #panel${index}>\n`),
      ...shown,
      html('</template>\n'),
    ]),
    html('</LanguageTabs>\n'),
  ]
}
