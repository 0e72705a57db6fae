'use strict'

// Columns of Drizzle for ids: BIGINT in the database; a bigint, or a text, in rows and queries.

const { formOf } = require('./form.js')
const { encodeString } = require('../text.js')

/** Returns a bigint that is an id. */
function checked(id) {
  encodeString(id)
  return id
}

function invalidId(message) {
  return Object.assign(new Error(message), { code: 'INVALID_ID' })
}

/**
 * Returns the id that a driver has returned: decimal digits, a bigint, or a number if that is
 * exact.
 */
function fromDriver(value) {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw invalidId(
      `an id came as the number ${value}, which is rounded: have the driver return bigints or ` +
        'strings, and select with a join instead of a relational query of drizzle-orm before 1.0',
    )
  }
  // BigInt reads '', '0x7' and true as well.
  const isInteger =
    typeof value === 'string'
      ? /^-?\d{1,19}$/.test(value)
      : ['number', 'bigint'].includes(typeof value)
  if (!isInteger)
    throw invalidId('the driver returned no valid id; the column must be a signed BIGINT')
  return checked(BigInt(value))
}

/**
 * Returns a function that declares columns.
 *
 * @param customType the function of a dialect.
 * @param dataType the type for signed 64 bits there.
 * @param forJsonSelect the SQL of the id as text. JSON has numbers, which JSON.parse rounds.
 */
function idOf(customType, dataType, forJsonSelect) {
  return (first, second) => {
    const hasName = typeof first === 'string' || second !== undefined
    const [name, options] = hasName ? [first, second] : [undefined, first]
    const form = formOf(options)
    const isText = options?.form !== undefined
    const builder = customType({
      dataType: () => dataType,
      // Bigints, since MySQL compares a string with a column by rounding both.
      toDriver: isText ? (text) => form.decode(text) : checked,
      fromDriver: isText ? (value) => form.encode(fromDriver(value)) : fromDriver,
      forJsonSelect,
    })(name)
    // For a 'custom' column, drizzle-zod and its like make a schema that takes anything.
    builder.config.dataType = isText ? 'string' : 'bigint'
    return builder
  }
}

/** Returns the columns of each dialect, with its `customType`. */
module.exports = ({ pg, mysql, sqlite }) => ({
  pgId: idOf(pg, 'bigint', (column, sql, dimensions = 0) => {
    return sql`${column}::text${sql.raw('[]'.repeat(dimensions))}`
  }),
  mysqlId: idOf(mysql, 'bigint', (column, sql) => sql`cast(${column} as char)`),
  sqliteId: idOf(sqlite, 'integer', (column, sql) => sql`cast(${column} as text)`),
})
