'use strict'

const { isBigInt64Array, isBigUint64Array } = require('node:util/types')
const { native } = require('./native.js')
const { mustBe, onlyWithNew, optionsOf, warnIfWeak, wrongThis } = require('./arguments.js')
const { faultOf } = require('./bulk.js')

let codesOf

/** Calls `change` with each element, and says which one is wrong. */
function each(elements, change) {
  try {
    return Array.from(elements, change)
  } catch {
    throw faultOf(elements, change)
  }
}

class Codes {
  #codes

  static {
    codesOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#codes in self)) throw wrongThis('Codes')
      return self.#codes
    }
  }

  constructor(secret, label, options) {
    this.#codes = native.createCodes(
      secret,
      label,
      optionsOf(options, 'length', 'alphabet', 'check'),
    )
    warnIfWeak(secret)
    const capacity = native.lastCoded(this.#codes) + 1n
    Object.freeze(Object.assign(this, native.codesProperties(this.#codes), { capacity }))
  }

  encode(number) {
    return native.encodeCode(codesOf(this), number)
  }

  encodeMany(numbers) {
    const codes = codesOf(this)
    if (!Array.isArray(numbers) && !isBigInt64Array(numbers) && !isBigUint64Array(numbers)) {
      throw mustBe('numbers', 'an array of bigints, a BigInt64Array or a BigUint64Array', numbers)
    }
    return each(numbers, (number) => native.encodeCode(codes, number))
  }

  decode(code) {
    return native.decodeCode(codesOf(this), code)
  }

  decodeMany(codes) {
    const own = codesOf(this)
    if (!Array.isArray(codes)) throw mustBe('codes', 'an array of strings', codes)
    return each(codes, (code) => native.decodeCode(own, code))
  }
}

module.exports.Codes = onlyWithNew(Codes)
