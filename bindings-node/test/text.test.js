'use strict'

// The text of ids without the native half.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { suite, test } = require('node:test')
const native = require('../index.js')
const { decodeString, encodeString, TextForm } = require('../text.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const cloak = new native.Cloak(SECRET, 'orders.id')
const ALL_DIGITS = [native.decodeString('1234567890123'), '1234567890123']
const INVALID = { name: 'Error', code: 'INVALID_ID' }

const file = (name) => join(__dirname, '../../tests/vectors', `${name}.json`)
const vectors = (name) => JSON.parse(readFileSync(file(name), 'utf8'))

suite('text.json', () => {
  const { valid, invalid } = vectors('text')
  for (const { name, text, id } of valid) {
    test(name, () => {
      assert.equal(encodeString(BigInt(id)), text)
      assert.equal(decodeString(text), BigInt(id))
      assert.match(text, new RegExp(new TextForm().pattern))
    })
  }
  for (const { name, text } of invalid) {
    test(name, () => {
      assert.throws(() => decodeString(text), INVALID)
      assert.doesNotMatch(text, new RegExp(new TextForm().pattern))
    })
  }
})

suite('text_form.json', () => {
  const { forms: described, valid, invalid, bad_prefixes: badPrefixes } = vectors('text_form')
  const forms = {}
  for (const [name, { pattern, prefix, cloak: hides }] of Object.entries(described)) {
    const cloak = hides && new native.Cloak(hides.secret, hides.label)
    forms[name] = new TextForm({ prefix, cloak })
    test(`the pattern of ${name}`, () => assert.equal(forms[name].pattern, pattern))
  }
  for (const { name, form, id, text } of valid) {
    test(name, () => {
      assert.equal(forms[form].encode(BigInt(id)), text)
      assert.equal(forms[form].decode(text), BigInt(id))
      assert.match(text, new RegExp(forms[form].pattern))
    })
  }
  for (const { name, form, text } of invalid) {
    test(name, () => {
      assert.throws(() => forms[form].decode(text), INVALID)
      assert.doesNotMatch(text, new RegExp(forms[form].pattern))
    })
  }
  for (const { name, prefix } of badPrefixes) {
    test(name, () => {
      assert.throws(() => new TextForm({ prefix }), { name: 'Error', code: 'INVALID_ARGUMENT' })
    })
  }
})

test('ids have the text that the native half writes', () => {
  const flake = new native.Randflake(1, SECRET, { maxWaitMs: 1000 })
  const ids = [ALL_DIGITS[0], -1n, 0n, 2n ** 63n - 1n, -(2n ** 63n), ...flake.generateMany(1000)]
  for (let bits = 0n; bits < 64n; bits++) ids.push(BigInt.asIntN(64, 1n << bits))
  for (const id of ids) {
    const text = native.encodeString(id)
    assert.equal(encodeString(id), text)
    assert.equal(decodeString(text), id)
    assert.equal(new TextForm({ cloak }).encode(id), cloak.hideString(id))
    assert.equal(new TextForm({ cloak }).decode(cloak.hideString(id)), id)
  }
  assert.equal(encodeString(ALL_DIGITS[0]), ALL_DIGITS[1])
})

test('only signed 64-bit bigints have a text', () => {
  const wrong = [0, 1, -1, 1e300, Number.NaN, '0', null, undefined, true, [], {}, Symbol('a')]
  for (const id of [...wrong, 2n ** 63n, -(2n ** 63n) - 1n, 2n ** 64n, Object(1n)]) {
    for (const form of [new TextForm(), new TextForm({ prefix: 'user', cloak })]) {
      assert.throws(() => form.encode(id), INVALID)
    }
    assert.throws(() => encodeString(id), INVALID)
  }
  assert.throws(() => encodeString(5), /must be a bigint, -2\^63 to 2\^63-1, got number/)
})

test('only strings are texts', () => {
  for (const text of [5, 5n, null, undefined, true, ['10'], {}, Object('10'), Buffer.from('10')]) {
    assert.throws(() => decodeString(text), INVALID)
    assert.throws(() => new TextForm({ prefix: 'user' }).decode(text), INVALID)
  }
})

test('a prefix is read strictly', () => {
  const users = new TextForm({ prefix: 'user' })
  assert.equal(users.encode(-1n), 'user_fvvvvvvvvvvvv')
  assert.equal(users.decode('user_1234567890123'), ALL_DIGITS[0])
  const wrong = ['', '10', '_10', 'use_10', 'users_10', 'User_10', 'user10', 'user__10', 'user_']
  for (const text of [...wrong, ' user_10', 'user_10\n', 'user_010', 'user_user_10', 'user-10']) {
    assert.throws(() => users.decode(text), { ...INVALID, message: /match \^user_/ }, text)
    assert.doesNotMatch(text, new RegExp(users.pattern))
  }
  assert.equal(new TextForm({ prefix: 'a_b' }).decode('a_b_10'), 32n)
  assert.throws(() => new TextForm({ prefix: 'a' }).decode('a_b_10'), INVALID)
})

test('a cloak is anything that hides and reveals', () => {
  const hide = (number) => BigInt.asIntN(64, number ^ 0xffn)
  const form = new TextForm({ cloak: { hide, reveal: hide } })
  assert.equal(form.encode(0n), '7v')
  assert.equal(form.decode('7v'), 0n)
  // Its result is not a text, and not a number of 64 bits.
  const broken = new TextForm({ cloak: { hide: () => 5, reveal: () => 2n ** 64n - 1n } })
  assert.throws(() => broken.encode(0n), INVALID)
  assert.equal(broken.decode('0'), -1n)
})

test('a form of something else is refused', () => {
  const prefixes = [
    '',
    '_',
    '_a',
    'a_',
    'A',
    'user1',
    'ä',
    'a'.repeat(64),
    'a\n',
    5,
    null,
    true,
    [],
  ]
  const wrong = [...prefixes, ['user'], Symbol('a'), {}].map((prefix) => ({ prefix }))
  wrong.push(
    { prefx: 'user' },
    'user',
    null,
    5,
    true,
    ['user'],
    cloak,
    { cloak: null },
    { cloak: SECRET },
    { cloak: { hide() {} } },
  )
  for (const options of wrong) {
    assert.throws(() => new TextForm(options), { name: 'Error', code: 'INVALID_ARGUMENT' })
  }
  for (const prefix of ['a', 'a_b', 'a__b', 'a'.repeat(63), undefined]) new TextForm({ prefix })
})

test('a form shows nothing of its cloak', () => {
  const shown = require('node:util').inspect(new TextForm({ prefix: 'order', cloak }), { depth: 9 })
  assert.doesNotMatch(shown, /cloak|orders\.id|dffd/i)
})

test('import and require give the same, and load nothing else', async () => {
  const { default: whole, 'module.exports': _newer, ...named } = await import('randflake/text')
  assert.equal(whole, require('randflake/text'))
  assert.deepEqual(named, { decodeString, encodeString, TextForm })
  const loads = `require('randflake/text')
    console.log(Object.keys(require.cache).filter((file) => file.endsWith('.js')).length)`
  const options = { cwd: join(__dirname, '..'), encoding: 'utf8' }
  assert.equal(spawnSync(process.execPath, ['--eval', loads], options).stdout, '1\n')
})
