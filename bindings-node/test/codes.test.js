'use strict'

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { suite, test } = require('node:test')
const { inspect } = require('node:util')
const { Cloak, Codes, RandflakeError } = require('../index.js')
const { TextForm } = require('../text.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const file = join(__dirname, '../../tests/vectors/codes.json')
const vectors = JSON.parse(readFileSync(file, 'utf8'))

const orders = new Codes(SECRET, 'orders')
const vouchers = new Codes(SECRET, 'vouchers', { length: 10, alphabet: 'crockford', check: 3 })

const described = ({ secret = SECRET, label = 'orders', length, alphabet, check }) =>
  new Codes(secret, label, { length, alphabet, check })

const refused = (code) => (error) => {
  assert(error instanceof RandflakeError, inspect(error))
  assert.equal(error.code, code)
  return true
}

suite('codes.json', () => {
  for (const expected of vectors.cases) {
    test(expected.name, () => {
      const [codes, number] = [described(expected), BigInt(expected.number)]
      assert.equal(codes.encode(number), expected.code)
      assert.equal(codes.decode(expected.code), number)
      assert.deepEqual(codes.encodeMany([number]), [expected.code])
      assert.deepEqual(codes.encodeMany(BigUint64Array.of(number)), [expected.code])
      assert.deepEqual(codes.decodeMany([expected.code]), [number])
      assert.match(expected.code, new RegExp(codes.pattern))
      assert.deepEqual([codes.length, codes.check], [expected.length, expected.check])
    })
  }
  for (const expected of vectors.read) {
    test(expected.name, () => {
      assert.equal(described(expected).decode(expected.code), BigInt(expected.number))
    })
  }
  for (const { name, code, ...options } of vectors.invalid) {
    test(name, () => assert.throws(() => described(options).decode(code), refused('INVALID_ID')))
  }
  for (const { name, capacity, ...options } of vectors.capacities) {
    test(`the capacity of ${name}`, () => {
      const codes = described(options)
      assert.equal(codes.capacity, BigInt(capacity))
      assert.equal(codes.decode(codes.encode(codes.capacity - 1n)), codes.capacity - 1n)
      assert.throws(() => codes.encode(codes.capacity), refused('INVALID_ID'))
    })
  }
  for (const { name, ...options } of vectors.invalid_options) {
    test(name, () => assert.throws(() => described(options), refused('INVALID_ARGUMENT')))
  }
})

suite('what is refused', () => {
  for (const number of [-1n, 10n ** 8n, 2n ** 64n, -(2n ** 63n), 1, '1', null, undefined, {}]) {
    test(`the number ${inspect(number)}`, () => {
      assert.throws(() => orders.encode(number), refused('INVALID_ID'))
      assert.throws(() => orders.encodeMany([1n, number]), /at index 1: /)
    })
  }
  for (const code of [86483743n, 86483743, null, undefined, ['86483743'], new String('86483743')]) {
    test(`the code ${inspect(code)}`, () => {
      assert.throws(() => orders.decode(code), refused('INVALID_ID'))
      assert.throws(() => orders.decodeMany(['86483743', code]), refused('INVALID_ID'))
    })
  }
  for (const several of [undefined, null, 1, '123', {}, new Uint8Array(1), new Set([1n])]) {
    test(`many in ${inspect(several)}`, () => {
      assert.throws(() => orders.encodeMany(several), refused('INVALID_ARGUMENT'))
      assert.throws(() => orders.decodeMany(several), refused('INVALID_ARGUMENT'))
    })
  }
  for (const options of [
    { length: '8' },
    { length: 8.5 },
    { length: -1 },
    { length: 2 ** 40 },
    { check: 1n },
    { check: -1 },
    { alphabet: 10 },
    { alphabet: null },
    { size: 8 },
    8,
    'digits',
    [],
  ]) {
    test(`the options ${inspect(options)}`, () => {
      assert.throws(() => new Codes(SECRET, 'orders', options), refused('INVALID_ARGUMENT'))
    })
  }
  test('labels and secrets', () => {
    for (const label of [undefined, null, 1, {}]) {
      assert.throws(() => new Codes(SECRET, label), refused('INVALID_ARGUMENT'))
    }
    for (const secret of [undefined, '', SECRET.slice(1), Buffer.alloc(15)]) {
      assert.throws(() => new Codes(secret, 'orders'), refused('INVALID_SECRET'))
    }
  })
  test('a call without new, or without its object', () => {
    assert.throws(() => Codes(SECRET, 'orders'), refused('INVALID_ARGUMENT'))
    assert.throws(() => Codes.prototype.encode.call({}, 1n), refused('INVALID_ARGUMENT'))
    assert.throws(() => orders.decode.call(vouchers.encode), refused('INVALID_ARGUMENT'))
  })
})

test('properties are frozen, and show no secret', () => {
  assert.throws(() => {
    orders.check = 3
  }, TypeError)
  assert(!inspect(orders, { showHidden: true, depth: 9 }).includes(SECRET))
})

suite('codes as the form of ids', () => {
  const form = new TextForm({ prefix: 'voucher', codes: vouchers })
  test('in both directions', () => {
    const text = form.encode(7n)
    assert.equal(text, `voucher_${vouchers.encode(7n)}`)
    assert.equal(form.decode(text), 7n)
    assert.equal(form.decode(`voucher_${vouchers.encode(7n).toLowerCase()}`), 7n)
    assert.match(text, new RegExp(form.pattern))
    const all = new TextForm({
      codes: new Codes(SECRET, 'all', { length: 13, alphabet: 'crockford' }),
    })
    for (const id of [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      assert.equal(all.decode(all.encode(id)), id)
    }
  })
  test('what is refused', () => {
    for (const text of ['', 'voucher_', vouchers.encode(7n), 'voucher_0123456789', 7n, undefined]) {
      assert.throws(() => form.decode(text), { code: 'INVALID_ID' })
    }
    for (const id of [-1n, 32n ** 7n, 2n ** 63n, 1, undefined]) {
      assert.throws(() => form.encode(id), { code: 'INVALID_ID' })
    }
    const cloak = new Cloak(SECRET, 'orders')
    for (const options of [
      { codes: vouchers, cloak },
      { codes: {} },
      { codes: null },
      { codes: { encode() {}, decode() {}, pattern: 5 } },
      { codes: 0 },
      { codes: 'digits' },
      vouchers,
    ]) {
      assert.throws(() => new TextForm(options), { code: 'INVALID_ARGUMENT' })
    }
  })
})
