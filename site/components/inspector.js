// The core in this page: WebAssembly, and the few lines that pass text to it and back.

/**
 * Returns a function that performs an operation of site/inspector, and returns the lines of its
 * answer: pairs of a name and a value. It throws an error with a `code`, as the packages do.
 */
export function inspectorOf(module) {
  const { memory, request, answer, answered } = new WebAssembly.Instance(module).exports
  return (...lines) => {
    const bytes = new TextEncoder().encode(lines.join('\n'))
    // The memory may grow, and move, with each call.
    const start = request(bytes.length)
    new Uint8Array(memory.buffer, start, bytes.length).set(bytes)
    const length = answer()
    const text = new TextDecoder().decode(new Uint8Array(memory.buffer, answered(), length))
    const pairs = text.trimEnd().split('\n').map(pair)
    if (pairs[0][0] === 'code') throw Object.assign(new Error(pairs[1][1]), { code: pairs[0][1] })
    return pairs
  }
}

function pair(line) {
  const end = line.indexOf(' ')
  return [line.slice(0, end), line.slice(end + 1)]
}

/** The parts of an id: the lines about it as an object, in which `fields` is a list. */
export function partsOf(pairs) {
  const fields = []
  const { bits, ...parts } = Object.fromEntries(pairs.filter(([name]) => name !== 'field'))
  for (const [name, value] of pairs) {
    if (name === 'field') fields.push(pair(value))
  }
  const unused = 64 - fields.reduce((sum, [, width]) => sum + Number(width), 0)
  if (unused > 0) fields.unshift(['unused', unused])
  let rest = bits
  parts.fields = fields.map(([name, width]) => {
    const own = rest.slice(0, width)
    rest = rest.slice(width)
    return { name, bits: own, value: String(BigInt(`0b${own}`)) }
  })
  return parts
}

/** The ids that were made: each as a number and as text. */
export function idsOf(pairs) {
  const values = (wanted) => pairs.filter(([name]) => name === wanted).map(([, value]) => value)
  const texts = values('text')
  return values('number').map((number, index) => ({ number, text: texts[index] }))
}

/** A secret of this page's own: 16 random bytes, in hex. */
export function randomSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
