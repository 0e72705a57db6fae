// Numbers are written with spaces, as 131 072 or ≤ 1.3 x: no line ends within one.
export function numbers(md) {
  md.core.ruler.push('numbers', ({ tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'text') {
        token.content = token.content.replace(
          /(?<=\d) (?=\d{3}(?!\d)|x(?!\w))|(?<=[≤≥]) (?=\d)/g,
          '\u00a0',
        )
      }
    }
  })
}
