// Lines that begin with # complete an example in Rust for its test: rustdoc does not show them either.

export function rust(md) {
  md.core.ruler.push('rust', ({ tokens }) => {
    for (const token of tokens) {
      if (token.type === 'fence' && token.info.startsWith('rust')) {
        token.content = token.content.replace(/^#( .*)?\n/gm, '')
      }
    }
  })
}
