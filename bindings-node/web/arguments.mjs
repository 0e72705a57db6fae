// Checks what callers pass: numbers are whole, ids are bigints or texts. The core checks the values.

import { answered, call, describe, mustBe, refuse, typeName, write } from './core.mjs'

const { asIntN, asUintN } = BigInt

/** The name of the kind of an array, also of another realm; `undefined` for anything else. */
const kindOf = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
).get

const isKind = (value, kind) => kindOf.call(value) === kind

/** Whether the memory of an array can change, or is gone, while it is read. */
function isUnsteady({ buffer }) {
  if (Object.prototype.toString.call(buffer) === '[object SharedArrayBuffer]') return true
  try {
    return !new Uint8Array(buffer)
  } catch {
    return true // it was transferred
  }
}

/** Whether this is an array, of any kind that holds 64-bit numbers. */
export const isMany = (values) =>
  Array.isArray(values) || isKind(values, 'BigInt64Array') || isKind(values, 'BigUint64Array')

const isSteady = (value, kind) => isKind(value, kind) && !isUnsteady(value)

/** Writes a secret, and the texts that go with it once it is one, for the next call. */
export function withSecret(secret, texts) {
  const isText = typeof secret === 'string'
  if (!isText && !isSteady(secret, 'Uint8Array')) refuse('refuse_secret', typeName(secret))
  const [length, ...others] = write(secret, ...texts())
  return [length, isText, ...others]
}

let hasWarned = false

/** Warns of the first secret that looks like a password. */
export function warnIfWeak() {
  if (!call('weakness') || hasWarned) return
  hasWarned = true
  console.warn(`RANDFLAKE_WEAK_SECRET: ${answered()}`)
}

/** Takes a string without lone surrogates. */
export function unicode(what, text) {
  if (typeof text === 'string' && !/\p{Surrogate}/u.test(text)) return text
  throw mustBe(what, 'a string of Unicode text', text)
}

/** Says what is not a 64-bit number, with a hint for a bigint. */
function not64Bits(value, hint) {
  if (typeof value === 'bigint') return `a bigint out of that range${hint}`
  if (typeof value === 'number') return 'a number, which cannot hold 64 bits; pass a bigint'
  return describe(value)
}

/** Takes an id as a bigint or as text. */
export function idOf(value) {
  if (typeof value === 'string') {
    // As many characters as show that it is too long.
    return call('id_of_text', ...write(value.slice(0, 1024)))
  }
  return numericIdOf(value)
}

export function numericIdOf(value) {
  if (typeof value === 'bigint' && asIntN(64, value) === value) return value
  const hint = '; BigInt.asIntN(64, id) makes an unsigned one signed'
  const isString = typeof value === 'string'
  const string = 'a string; BigInt(id) reads decimal digits, decodeString(id) the text of an id'
  return refuse('refuse_id', isString ? string : not64Bits(value, hint))
}

export function rawOf(value) {
  if (typeof value === 'bigint' && asUintN(64, value) === value) return value
  return refuse('refuse_raw', not64Bits(value, ''))
}

/** Takes the 64 bits of a raw id as an unsigned bigint, or as the signed one of a BIGINT column. */
export function rawOrSigned(value) {
  return typeof value === 'bigint' && asIntN(64, value) === value ? value : rawOf(value)
}

export const isU32 = (value) => Number.isInteger(value) && value >= 0 && value <= 0xffffffff

const NOT_SHARED = 'whose memory is not shared between threads and was not transferred'

/** Takes a `BigInt64Array`. */
export function idsInPlace(ids) {
  if (isSteady(ids, 'BigInt64Array')) return ids
  throw mustBe('ids', `a BigInt64Array ${NOT_SHARED}`, ids)
}

/** Reads an element, and says which one is wrong. */
export function atIndex(index, read, element) {
  try {
    return read(element)
  } catch (error) {
    error.message = `at index ${index}: ${error.message}`
    throw error
  }
}

/** Takes many numbers or texts, each of which `read` accepts, and returns 64 bits of each. */
function copied(what, values, read) {
  if (Array.isArray(values)) {
    // With holes, which are undefined.
    return BigInt64Array.from(values, (value, index) => atIndex(index, read, value))
  }
  if (isSteady(values, 'BigInt64Array') || isSteady(values, 'BigUint64Array')) return values
  const form = `an array, or a BigInt64Array or BigUint64Array ${NOT_SHARED}`
  throw mustBe(what, form, values)
}

/** Takes many raw values. */
export function rawsOf(raws) {
  const numbers = copied('raw values', raws, rawOf)
  if (isKind(raws, 'BigInt64Array')) {
    const index = raws.findIndex((raw) => raw < 0n)
    if (index >= 0) atIndex(index, () => refuse('refuse_raw', 'a negative one'))
  }
  return numbers
}

/** Takes many ids, or many texts, but not both. */
export function idsOf(ids) {
  if (isKind(ids, 'BigUint64Array')) {
    const numbers = copied('ids', ids)
    const index = numbers.findIndex((id) => asIntN(64, id) !== id)
    const got = 'a larger one; new BigInt64Array(ids.buffer) has signed ones'
    if (index >= 0) atIndex(index, () => refuse('refuse_id', got))
    return numbers
  }
  const areTexts = Array.isArray(ids) && typeof ids[0] === 'string'
  return copied('ids', ids, areTexts ? textIdOf : numericIdOf)
}

function textIdOf(text) {
  if (typeof text === 'string') return idOf(text)
  const error = mustBe('the text of an id', 'a string', text)
  error.code = 'INVALID_ID'
  throw error
}
