// On a phone, a table of three columns or more shows each row as a list: its cells, named by the head.
// One whose last column has numbers, to be compared with each other, stays a table. Names in code may
// be broken between their words: else they would take the width of the sentences beside them.

export function tables(md) {
  md.core.ruler.push('tables', ({ tokens }) => {
    let heads
    let isOfTasks
    let column
    for (const [index, { type }] of tokens.entries()) {
      if (type === 'table_open') {
        heads = headsOf(tokens, index)
        // A list of pages: what to read, and for what.
        isOfTasks = tokens[index + 4].content === 'to do this'
      } else if (type === 'tr_open') column = 0
      else if (type === 'td_open') {
        if (heads) tokens[index].attrSet('data-head', heads[column++])
        if (isOfTasks) tokens[index].attrSet('data-task', '')
        for (const child of tokens[index + 1].children) child.meta = { isInCell: true }
      }
    }
  })
  const code = md.renderer.rules.code_inline
  md.renderer.rules.code_inline = (tokens, index, ...others) => {
    const html = code(tokens, index, ...others)
    return tokens[index].meta?.isInCell ? html.replace(/(?<=\w[_.(])(?=[a-z])/gi, '<wbr>') : html
  }
}

/** The heads of the columns of a table that begins at a token, if its rows can be lists. */
function headsOf(tokens, start) {
  const end = tokens.findIndex(({ type }, index) => index > start && type === 'thead_close')
  const cells = tokens.slice(start, end)
  const isNumeric = cells.findLast(({ type }) => type === 'th_open').attrGet('style')
  const heads = cells
    .filter(({ type }) => type === 'inline')
    .map(({ content }) => content.replace(/[`*]/g, ''))
  return heads.length > 2 && !isNumeric ? heads : undefined
}
