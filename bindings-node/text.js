'use strict'

// The text of ids without the native half, for browsers, where every byte counts. The native half
// says more precisely what is wrong with an id.

const { asIntN, asUintN } = BigInt

function fail(code, message) {
  throw Object.assign(Error(message), { code })
}

function checkId(id) {
  if (typeof id !== 'bigint' || asIntN(64, id) !== id) {
    fail('INVALID_ID', `an id must be a bigint, -2^63 to 2^63-1, got ${typeof id}`)
  }
  return id
}

const PLAIN = { hide: checkId, reveal: checkId }
const DIGITS = '(0|[1-9a-v][0-9a-v]{0,11}|[1-9a-f][0-9a-v]{12})'

class TextForm {
  #start
  #cloak
  #codes

  constructor(options = {}) {
    // A Cloak in place of the options would be an object without any, and hide nothing. The global
    // Object of Next's edge runtime is not that of an object.
    const isObject = options?.constructor === {}.constructor
    const { prefix, cloak = PLAIN, codes, ...others } = isObject ? options : [options]
    this.#start = prefix === undefined ? '' : prefix?.concat?.('_')
    this.#cloak = cloak
    this.#codes = codes
    const digits = codes?.pattern?.slice?.(1, -1) ?? DIGITS
    this.pattern = `^${this.#start}${digits}$`
    const isStart = /^([a-z]([a-z_]{0,61}[a-z])?_)?$/.test(this.#start)
    const isCodes = cloak === PLAIN && codes?.encode && codes.decode && digits !== DIGITS
    const isForm = isStart && cloak?.hide && cloak.reveal && (codes === undefined || isCodes)
    if (!isForm || Object.keys(others)[0]) {
      fail('INVALID_ARGUMENT', 'pass {prefix: 1-63 of a-z and inner _, cloak or codes}')
    }
  }

  encode(id) {
    if (this.#codes) return this.#start + this.#codes.encode(asUintN(64, checkId(id)))
    return this.#start + asUintN(64, checkId(this.#cloak.hide(checkId(id)))).toString(32)
  }

  decode(text) {
    if (typeof text !== 'string' || !text.match(this.pattern)) {
      fail('INVALID_ID', `an id's text must match ${this.pattern}`)
    }
    const digits = text.slice(this.#start.length)
    if (this.#codes) return asIntN(64, this.#codes.decode(digits))
    let id = 0n
    for (const digit of digits) id = id * 32n + BigInt(parseInt(digit, 32))
    return asIntN(64, this.#cloak.reveal(asIntN(64, id)))
  }
}

const plain = new TextForm()

exports.TextForm = TextForm
exports.encodeString = (id) => plain.encode(id)
exports.decodeString = (text) => plain.decode(text)
