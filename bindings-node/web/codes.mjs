// Codes that people type.

import { isU32, rawOf, unicode, warnIfWeak, withSecret } from './arguments.mjs'
import {
  answered,
  call,
  handlesOf,
  mustBe,
  onlyWithNew,
  optionsOf,
  RandflakeError,
  write,
} from './core.mjs'

const codes = handlesOf('Codes')

/** Takes a number as a bigint, or as a number that holds it. */
const countOf = (number) => rawOf(Number.isSafeInteger(number) ? BigInt(number) : number)

function listed(what, values) {
  if (!Array.isArray(values)) throw mustBe(what, 'an array', values)
  return values
}

function each(values, change) {
  return Array.from(values, (value, index) => {
    try {
      return change(value)
    } catch (error) {
      error.message = `at index ${index}: ${error.message}`
      throw error
    }
  })
}

export const Codes = onlyWithNew(
  class Codes {
    constructor(secret, label, options) {
      const given = optionsOf(options, 'length', 'alphabet', 'check')
      const { length = 8, alphabet = 'digits', check = 0 } = given
      if (!isU32(length)) throw mustBe('length', 'a whole number of symbols', length)
      if (!isU32(check)) throw mustBe('check', 'a whole number of symbols', check)
      const texts = [unicode('the label', label), unicode('alphabet', alphabet)]
      const handle = call('make_codes', ...withSecret(secret, ...texts), length, check)
      codes.set(this, handle)
      warnIfWeak()
      call('describe_codes', handle)
      const [, symbols, , capacity, pattern] = answered().split('\n')
      const properties = { length, alphabet: symbols, check, capacity: BigInt(capacity), pattern }
      Object.freeze(Object.assign(this, properties))
    }

    encode(number) {
      call('encode_code', codes.of(this), countOf(number))
      return answered()
    }

    decode(code) {
      const handle = codes.of(this)
      if (typeof code !== 'string') {
        const { message } = mustBe('a code', 'a string', code)
        throw new RandflakeError('INVALID_ID', message)
      }
      // As many characters as show that it is too long.
      return BigInt.asUintN(64, call('decode_code', handle, ...write(code.slice(0, 1024))))
    }

    encodeMany(numbers) {
      return each(listed('numbers', numbers), (number) => this.encode(number))
    }

    decodeMany(texts) {
      return each(listed('codes', texts), (code) => this.decode(code))
    }
  },
)
