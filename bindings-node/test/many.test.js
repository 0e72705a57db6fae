'use strict'

// Many ids at once: the same as one by one, and the same refusals.

const assert = require('node:assert/strict')
const { suite, test } = require('node:test')
const {
  decodeStrings,
  encodeString,
  encodeStrings,
  Inspector,
  Randflake,
  RandflakeError,
} = require('../index.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const NOW = 1763640000
const make = (options) => new Randflake([1, 2], SECRET, { clock: () => NOW, ...options })
const READERS = [make(), new Inspector(SECRET)]

// Of all lengths of text, with both ends of the range.
const EDGES = [0n, 1n, 31n, 32n, -1n, 2n ** 60n, 2n ** 60n - 1n, 2n ** 63n - 1n, -(2n ** 63n)]
// Around how many are handled together.
const SIZES = [0, 1, 2, 63, 64, 65, 128, 1023, 1024, 1025, 5000]

function idsOf(size) {
  return BigInt64Array.from({ length: size }, (_, index) =>
    index < EDGES.length ? EDGES[index] : BigInt(index) * 0x9e3779b97f4a7c15n,
  )
}

function transferred() {
  const ids = new BigInt64Array(2)
  structuredClone(ids, { transfer: [ids.buffer] })
  return ids
}

for (const size of SIZES) {
  test(`${size} agree with single ones`, () => {
    const ids = idsOf(size)
    const given = Array.from(ids)
    const texts = given.map(encodeString)
    assert.deepEqual(encodeStrings(ids), texts)
    assert.deepEqual(encodeStrings(given), texts)
    assert.deepEqual(decodeStrings(texts), ids)
    for (const reader of READERS) {
      const raws = BigUint64Array.from(given, (id) => reader.decrypt(id))
      for (const same of [ids, given, texts]) assert.deepEqual(reader.decryptMany(same), raws)
      const signed = new BigInt64Array(raws.buffer)
      for (const same of [raws, Array.from(raws)]) assert.deepEqual(reader.encryptMany(same), ids)
      const numbers = ids.slice()
      assert.equal(reader.decryptInPlace(numbers), undefined)
      assert.deepEqual(numbers, signed)
      assert.equal(reader.encryptInPlace(numbers), undefined)
      assert.deepEqual(numbers, ids)
    }
    assert.deepEqual(Array.from(ids), given)
  })
}

test('numbers that are in range may be of the other sign', () => {
  const numbers = [0n, 1n, 2n ** 63n - 1n]
  assert.deepEqual(encodeStrings(BigUint64Array.from(numbers)), encodeStrings(numbers))
  for (const reader of READERS) {
    const raws = reader.decryptMany(numbers)
    assert.deepEqual(reader.decryptMany(BigUint64Array.from(numbers)), raws)
    assert.deepEqual(reader.encryptMany(BigInt64Array.from(numbers)), reader.encryptMany(numbers))
  }
})

test('a part of an array is read and changed alone', () => {
  const ids = idsOf(79)
  const inner = ids.subarray(1, 78)
  assert.deepEqual(encodeStrings(inner), Array.from(inner, encodeString))
  READERS[1].decryptInPlace(inner)
  assert.deepEqual([ids[0], ids[78]], [idsOf(79)[0], idsOf(79)[78]])
  READERS[1].encryptInPlace(inner)
  assert.deepEqual(ids, idsOf(79))
})

suite('generateStrings', () => {
  test('the ids of generateMany, as text', () => {
    for (const size of SIZES) {
      const texts = make().generateStrings(size)
      assert.deepEqual(texts, encodeStrings(make().generateMany(size)))
    }
    const texts = make().generateStrings(1000)
    assert.deepEqual(Object.keys(texts).length, 1000)
    assert.equal(new Set(texts).size, 1000)
    for (const [index, text] of texts.entries()) {
      assert.equal(READERS[1].inspect(text).sequence, index)
    }
  })

  test('all or an error', () => {
    const flake = make({ maxWaitMs: 0 })
    flake.generateStrings(131_072)
    assert.throws(() => flake.generateStrings(131_073), { code: 'SEQUENCE_EXHAUSTED' })
    assert.equal(flake.generateStrings(131_072).length, 131_072)
    flake.close()
    assert.throws(() => flake.generateStrings(1), { code: 'CLOSED' })
  })
})

const GOOD = '3vgoe12ccb8gh'
const NOT_MANY = {
  undefined,
  null: null,
  'a number': 3,
  'a bigint': 3n,
  'a text': GOOD,
  'a Set': new Set([1n]),
  'a Float64Array': new Float64Array(2),
  'a DataView': new DataView(new ArrayBuffer(16)),
  'shared memory': new BigInt64Array(new SharedArrayBuffer(16)),
  'transferred memory': transferred(),
  'something like it': { __proto__: BigInt64Array.prototype, length: 2 },
}
const NOT_IN_PLACE = { ...NOT_MANY, 'an array': [1n], 'unsigned numbers': new BigUint64Array(2) }
const NOT_TEXTS = { ...NOT_MANY, numbers: new BigInt64Array(2) }

/** [what is wrong, what to pass, the index of it]. */
const BAD_IDS = [
  ['a hole', new Array(3), 0],
  ['undefined', [1n, undefined], 1],
  ['a number', [1n, 2n, 3], 2],
  ['a text among bigints', [1n, GOOD], 1],
  ['2^63', [2n ** 63n], 0],
  ['below -2^63', [1n, -(2n ** 63n) - 1n, 'x'], 1],
  ['one among thousands', [...Array(2000).fill(1n), 2n ** 64n + 1n], 2000],
  ['a boxed bigint', [Object(1n)], 0],
  ['an unsigned number', BigUint64Array.of(1n, 2n ** 63n), 1],
]
const BAD_TEXTS = [
  ['a hole', new Array(2), 0],
  ['undefined', [undefined], 0],
  ['a bigint among texts', [GOOD, 1n], 1],
  ['a number', [GOOD, GOOD, 1], 2],
  ['a boxed text', [Object(GOOD)], 0],
  ['an empty text', [GOOD, ''], 1],
  ['two texts in one', [GOOD, `${GOOD},${GOOD}`], 1],
  ['a comma', [','], 0],
  ['upper case', [GOOD.toUpperCase()], 0],
  ['a leading zero', [GOOD, `0${GOOD}`], 1],
  ['a character whose low byte is a digit', ['\u0131'], 0],
  ['a Latin character', ['é'], 0],
  ['a lone surrogate', [GOOD, '\ud800'], 1],
  ['a zero byte', ['1\0'], 0],
  ['decimal text', ['4594531474933654033'], 0],
  ['more than 64 bits', ['g000000000000'], 0],
  ['one among thousands', [...Array(4000).fill(GOOD), 'w', GOOD], 4000],
]
const BAD_RAWS = [
  ['a hole', new Array(3), 0],
  ['undefined', [undefined], 0],
  ['a number', [1n, 2], 1],
  ['a text', [1n, 1n, GOOD], 2],
  ['-1', [-1n], 0],
  ['a negative number', BigInt64Array.of(1n, 2n, -1n), 2],
  ['2^64', [0n, 2n ** 64n], 1],
]

const isRefusal = (code, index) => (error) => {
  assert(error instanceof RandflakeError, String(error))
  assert.equal(error.code, code, error.message)
  const start = index === undefined ? '' : `at index ${index}: `
  assert.match(error.message, new RegExp(`^${start}[a-z]`))
  return true
}

for (const [name, call, notMany, bad] of [
  ['encodeStrings', encodeStrings, NOT_MANY, [...BAD_IDS, ['a text', [GOOD], 0]]],
  ['decodeStrings', decodeStrings, NOT_TEXTS, BAD_TEXTS],
  ...READERS.flatMap((reader) => {
    const { name } = reader.constructor
    return [
      [`decryptMany of ${name}`, (ids) => reader.decryptMany(ids), NOT_MANY, BAD_IDS],
      [`decryptMany of ${name}, texts`, (ids) => reader.decryptMany(ids), {}, BAD_TEXTS.slice(2)],
      [`encryptMany of ${name}`, (raws) => reader.encryptMany(raws), NOT_MANY, BAD_RAWS],
      [`decryptInPlace of ${name}`, (ids) => reader.decryptInPlace(ids), NOT_IN_PLACE, []],
      [`encryptInPlace of ${name}`, (raws) => reader.encryptInPlace(raws), NOT_IN_PLACE, []],
    ]
  }),
]) {
  suite(name, () => {
    for (const [what, given] of Object.entries(notMany)) {
      test(what, () => assert.throws(() => call(given), isRefusal('INVALID_ARGUMENT')))
    }
    for (const [what, given, index] of bad) {
      test(`${what}, in an array`, () => {
        assert.throws(() => call(given), isRefusal('INVALID_ID', index))
      })
    }
  })
}

for (const [what, bad] of Object.entries({
  undefined,
  'a string': '1',
  'a bigint': 1n,
  'a fraction': 1.5,
  NaN: Number.NaN,
  'a negative number': -1,
  'more than memory': 2 ** 50,
})) {
  test(`generateStrings: ${what}`, () => {
    assert.throws(() => make().generateStrings(bad), isRefusal('INVALID_ARGUMENT'))
  })
}

test('what a getter of an array throws is thrown on', () => {
  const thrown = new TypeError('mine')
  const hostile = Object.defineProperty([1n, 2n], 1, {
    get() {
      throw thrown
    },
  })
  for (const call of [encodeStrings, (ids) => READERS[1].decryptMany(ids)]) {
    assert.throws(
      () => call(hostile),
      (error) => error === thrown,
    )
  }
})

test('an array that changes while it is read is refused', () => {
  let reads = 0
  const fickle = Object.defineProperty(['1', '1'], 1, { get: () => (reads++ === 0 ? '?' : '1') })
  assert.throws(() => decodeStrings(fickle), isRefusal('INVALID_ARGUMENT'))
})
