'use strict'

// Columns of TypeORM that hold ids.

const { invalidArgument, mustBe, optionsOf } = require('./lib/arguments.js')
const { formOf } = require('./lib/form.js')
const { encodeString, RandflakeError } = require('./index.js')

const DECIMAL = /^-?\d{1,19}$/
// Texts of ids that a driver could have read as another number, which are 1 in 3.7 million. Shorter
// texts are of small numbers.
const DIGITS = /^\d{12,13}$/

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
    typeof value === 'string' ? DECIMAL.test(value) : ['number', 'bigint'].includes(typeof value)
  const id = isInteger ? BigInt(value) : undefined
  if (id === undefined || BigInt.asIntN(64, id) !== id) {
    throw invalidId('the driver returned no valid id; its column must be a signed BIGINT')
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
  // TypeORM passes what it has read again, and would take a code of digits for another number.
  if (form.pattern.startsWith('^[')) {
    throw invalidArgument(
      "codes need a prefix with TypeORM: new TextForm({ prefix: 'order', codes })",
    )
  }
  const isText = (value) => !asBigint && typeof value === 'string'
  const shown = new Set()
  /** Whether `from` has returned it: TypeORM passes what it reads again after an INSERT twice. */
  const isOwn = (value) => {
    if (!isText(value) || (DECIMAL.test(value) && !shown.has(value))) return false
    try {
      return form.decode(value) !== undefined
    } catch {
      return false
    }
  }
  const transformer = {
    to(value) {
      if (value == null) return value
      // Conditions of update() and delete() in TypeORM 0.3.20. Newer ones do this by themselves.
      if (typeof value.transformValue === 'function') {
        value.transformValue(transformer)
        return value
      }
      // For a column that is an array, and for Any() and ArrayContains() in PostgreSQL.
      if (Array.isArray(value)) return value.map(transformer.to)
      return checkId(isText(value) ? form.decode(value) : value)
    },
    from(value) {
      if (value == null || isOwn(value)) return value
      if (Array.isArray(value)) return value.map(transformer.from)
      const read = readId(value)
      if (asBigint) return read
      const text = form.encode(read)
      if (DIGITS.test(text)) {
        if (shown.size === 1000) shown.clear() // a save comes back to it soon, or never
        shown.add(text)
      }
      return text
    },
  }
  return { type: 'bigint', transformer }
}

const prepared = new WeakSet()

function loadByQueries(source) {
  if (typeof source?.relationIdLoader?.loadManyToManyRelationIdsAndGroup !== 'function') {
    throw mustBe('source', 'a DataSource of TypeORM', source)
  }
  const loader = Object.getPrototypeOf(source.relationIdLoader) // of all queries of this copy
  if (prepared.has(loader)) return
  prepared.add(loader)
  const { loadManyToManyRelationIdsAndGroup: group } = loader
  loader.loadManyToManyRelationIdsAndGroup = function (relation, entities, related, builder) {
    const hasKey = !relation.isOneToMany && !relation.isOneToOneNotOwner
    return hasKey || related
      ? group.call(this, relation, entities, related, builder)
      : groupByKeys(this, relation, entities, builder)
  }
}

/** Returns what belongs to each entity, by the keys that are loaded anyway: TypeORM would ask again. */
async function groupByKeys(loader, relation, entities, builder) {
  const { relationLoader } = loader.dataSource ?? loader.connection // as newer and older ones have it
  const { queryRunner, loadEagerRelations } = loader
  const rows = await relationLoader.load(
    relation,
    entities,
    queryRunner,
    builder,
    loadEagerRelations,
  )
  const keys = relation.inverseRelation.joinColumns
  const belongs = (row, entity) =>
    keys.every((key) => {
      const value = key.getEntityValue(row)
      if (value === undefined) {
        throw invalidArgument(`select ${key.propertyPath}, too: it leads to what is loaded with it`)
      }
      return key.referencedColumn.compareEntityValue(entity, value)
    })
  return [entities].flat().map((entity) => {
    const own = rows.filter((row) => belongs(row, entity))
    return { entity, related: relation.isOneToMany ? own : own[0] }
  })
}

module.exports = { id, loadByQueries }
