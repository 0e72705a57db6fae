'use strict'

// Columns of TypeORM that hold ids.

const { invalidArgument, mustBe, optionsOf } = require('./arguments.js')
const { formOf } = require('./form.js')
const { encodeString, RandflakeError } = require('./index.js')

function invalidId(message) {
  return new RandflakeError('INVALID_ID', message)
}

/** Returns a bigint that is an id. */
function checkId(value) {
  if (typeof value === 'string') {
    throw invalidId(
      'an id in this entity must be a bigint, got a string; decodeString(text) reads the text of an id',
    )
  }
  encodeString(value)
  return value
}

/** Returns the id that a driver has read: decimal digits, a bigint, or a number if that is exact. */
function readId(value) {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw invalidId(
      'the driver has rounded an id to a number; have it return bigints or strings: ' +
        'defaultSafeIntegers() of better-sqlite3, supportBigNumbers of mysql2',
    )
  }
  const isInteger =
    typeof value === 'string'
      ? /^-?\d{1,19}$/.test(value)
      : ['number', 'bigint'].includes(typeof value)
  const id = isInteger ? BigInt(value) : undefined
  if (id === undefined || BigInt.asIntN(64, id) !== id) {
    throw invalidId('what the driver has read is no id; its column must be a signed BIGINT')
  }
  return id
}

function id(options) {
  const given = optionsOf(options, 'form', 'asBigint')
  // A Cloak in place of the options would be an object without any, and hide nothing.
  if (given.constructor !== Object) {
    throw invalidArgument('the options must be a plain object with form, asBigint')
  }
  const { asBigint = false, ...others } = given
  const form = formOf(others)
  if (typeof asBigint !== 'boolean') throw mustBe('asBigint', 'a boolean', asBigint)
  if (asBigint && others.form !== undefined) {
    throw invalidArgument('ids are bigints in an entity or have a form; leave out form or asBigint')
  }
  const isText = (value) => !asBigint && typeof value === 'string'
  const transformer = {
    to(value) {
      if (value == null) return value
      // Conditions of update() and delete() in TypeORM 0.3.20. Newer ones do this by themselves.
      if (typeof value.transformValue === 'function') {
        value.transformValue(transformer)
        return value
      }
      return checkId(isText(value) ? form.decode(value) : value)
    },
    from(value) {
      if (value == null) return value
      const read = readId(value)
      return asBigint ? read : form.encode(read)
    },
  }
  return { type: 'bigint', transformer }
}

module.exports.id = id
