// Codes that people type.

import { atIndex, isMany, isU32, unicode, warnIfWeak, withSecret } from './arguments.mjs'
import {
  answered,
  call,
  describe,
  forgetTexts,
  handlesOf,
  mustBe,
  onlyWithNew,
  optionsOf,
  RandflakeError,
  write,
} from './core.mjs'

const codes = handlesOf('Codes')

const invalidId = (message) => new RandflakeError('INVALID_ID', message)

function encode(handle, number) {
  if (typeof number !== 'bigint' || BigInt.asUintN(64, number) !== number) {
    const form = 'the number of a code must be a bigint, 0n to capacity - 1n'
    throw invalidId(`${form}, got ${describe(number)}`)
  }
  call('encode_code', handle, number)
  return answered()
}

function decode(handle, code) {
  if (typeof code !== 'string') throw invalidId(`a code must be a string, got ${describe(code)}`)
  return BigInt.asUintN(64, call('decode_code', handle, ...write(code)))
}

function sizeOf(name, size, form) {
  if (isU32(size)) return size
  throw mustBe(name, form, size)
}

/** Makes the codes, and returns their handle. */
function make(secret, label, options) {
  const { length = 8, alphabet = 'digits', check = 0 } = options
  const [secretLength, isText, ...lengths] = withSecret(secret, () => [
    unicode('the label', label),
    unicode('alphabet', alphabet),
  ])
  let sizes
  try {
    sizes = [
      sizeOf('length', length, 'a whole number, 4 to 24'),
      sizeOf('check', check, 'a whole number, 0 or more, below the length'),
    ]
  } catch (error) {
    forgetTexts()
    throw error
  }
  return call('make_codes', secretLength, isText, ...lengths, ...sizes)
}

export const Codes = onlyWithNew(
  class Codes {
    constructor(secret, label, options) {
      const handle = make(secret, label, optionsOf(options, 'length', 'alphabet', 'check'))
      codes.set(this, handle)
      warnIfWeak()
      call('describe_codes', handle)
      const [length, alphabet, check, capacity, pattern] = answered().split('\n')
      const sizes = { length: Number(length), check: Number(check), capacity: BigInt(capacity) }
      Object.freeze(Object.assign(this, { ...sizes, alphabet, pattern }))
    }

    encode(number) {
      return encode(codes.of(this), number)
    }

    encodeMany(numbers) {
      const handle = codes.of(this)
      if (!isMany(numbers)) {
        throw mustBe('numbers', 'an array of bigints, a BigInt64Array or a BigUint64Array', numbers)
      }
      return Array.from(numbers, (number, index) => atIndex(index, () => encode(handle, number)))
    }

    decode(code) {
      return decode(codes.of(this), code)
    }

    decodeMany(texts) {
      const handle = codes.of(this)
      if (!Array.isArray(texts)) throw mustBe('codes', 'an array of strings', texts)
      return Array.from(texts, (code, index) => atIndex(index, () => decode(handle, code)))
    }
  },
)
