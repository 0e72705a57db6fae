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

class TextForm {
  #start
  #cloak

  constructor(options = {}) {
    // A Cloak in place of the options would be an object without any, and hide nothing.
    const {
      prefix,
      cloak = { hide: checkId, reveal: checkId },
      ...others
    } = options?.constructor === Object ? options : [options]
    this.#start = prefix === undefined ? '' : prefix?.concat?.('_')
    this.#cloak = cloak
    this.pattern = `^${this.#start}(0|[1-9a-v][0-9a-v]{0,11}|[1-9a-f][0-9a-v]{12})$`
    const isStart = /^([a-z]([a-z_]{0,61}[a-z])?_)?$/.test(this.#start)
    if (!isStart || !cloak?.hide || !cloak.reveal || Object.keys(others)[0]) {
      fail('INVALID_ARGUMENT', 'pass {prefix: 1-63 of a-z and inner _, cloak}')
    }
  }

  encode(id) {
    return this.#start + asUintN(64, checkId(this.#cloak.hide(checkId(id)))).toString(32)
  }

  decode(text) {
    const digits = typeof text === 'string' && text.match(this.pattern)?.[1]
    if (!digits) fail('INVALID_ID', `an id's text must match ${this.pattern}`)
    let id = 0n
    for (const digit of digits) id = id * 32n + BigInt(parseInt(digit, 32))
    return asIntN(64, this.#cloak.reveal(asIntN(64, id)))
  }
}

const plain = new TextForm()

exports.TextForm = TextForm
exports.encodeString = (id) => plain.encode(id)
exports.decodeString = (text) => plain.decode(text)
