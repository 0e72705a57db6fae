'use strict'

// The WebAssembly of the core: what the vectors say, and what the native half says of the same.

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { before, test } = require('node:test')
const { setFlagsFromString } = require('node:v8')
const { runInNewContext } = require('node:vm')
const { gzipSync } = require('node:zlib')
const native = require('../index.js')
const text = require('../text.js')
const { skipOn } = require('./runtime.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const FOLDER = join(__dirname, '../web')
const vectors = (name) =>
  JSON.parse(readFileSync(join(__dirname, '../../tests/vectors', `${name}.json`), 'utf8'))

/** Of tests that make many objects and errors of the native half. */
const WITH_NATIVE = skipOn({
  deno: 'frees what the native half has made twice, at its end, after many errors',
})
const NO_GC = { bun: 'has no such flag', deno: 'has no such flag' }

let web

before(async () => {
  web = await import('randflake/web')
})

/** What a call returns or throws, of which error the code and the message are compared. */
function outcome(call, module) {
  try {
    return { value: call(module) }
  } catch (error) {
    assert.ok(error instanceof module.RandflakeError, error.stack)
    return { code: error.code, message: error.message }
  }
}

/** Compares the module with the native half, but for the messages of `codes` alone. */
function alike(call, note) {
  const [expected, found] = [native, web].map((module) => outcome(call, module))
  assert.deepEqual(found, expected, note)
  return found
}

test('it asks for nothing, and is small', () => {
  const bytes = readFileSync(join(FOLDER, 'randflake.wasm'))
  const module = new WebAssembly.Module(bytes)
  assert.deepEqual(WebAssembly.Module.imports(module), [])
  const { memory, ...functions } = new WebAssembly.Instance(module).exports
  assert.ok(memory instanceof WebAssembly.Memory)
  assert.ok(Object.keys(functions).length > 30)
  const inlined = readFileSync(join(FOLDER, 'inlined.mjs'))
  assert.ok(inlined.includes(bytes.toString('base64')), 'both are of the same build')
  // All that a browser gets, before any bundler has made it smaller.
  const files = 'api arguments codes core ids index inlined layout served'.split(' ')
  const all = files.map((name) => readFileSync(join(FOLDER, `${name}.mjs`)))
  all.push(readFileSync(join(__dirname, '../text.js')))
  const size = gzipSync(Buffer.concat(all)).length
  assert.ok(size < 120_000, `${size} bytes, compressed`)
})

test('the exports are those of the declarations', () => {
  const declared = readFileSync(join(__dirname, '../web.d.mts'), 'utf8')
  const classes = Array.from(declared.matchAll(/^export class (\w+)/gm), ([, name]) => name)
  const others = Array.from(declared.matchAll(/^export \{([^}]*)\}/gm), ([, names]) =>
    names.split(',').filter((name) => name.trim() && !/^\s*type /.test(name)),
  )
  const names = [...classes, ...others.flat().map((name) => name.trim())]
  assert.deepEqual(Object.keys(web).sort(), names.sort())
  for (const name of ['Inspector', 'Cloak', 'Codes', 'Layout']) {
    const methods = (type) => Object.getOwnPropertyNames(type.prototype).sort()
    assert.deepEqual(methods(web[name]), methods(native[name]), name)
  }
  assert.equal(web.TextForm, text.TextForm)
})

test('ids.json', () => {
  const { cases } = vectors('ids')
  assert.ok(cases.length > 100)
  for (const { name, secret, timestamp, node_id: nodeId, sequence, ...expected } of cases) {
    const [id, raw] = [BigInt(expected.id), BigInt(expected.raw)]
    for (const key of [secret, secret.toUpperCase(), Buffer.from(secret, 'hex')]) {
      const inspector = new web.Inspector(key)
      const parts = { timestamp, nodeId, sequence, date: new Date(timestamp * 1000) }
      assert.deepEqual(inspector.inspect(id), parts, name)
      assert.deepEqual(inspector.inspect(expected.text), parts, name)
      assert.equal(inspector.decrypt(id), raw, name)
      assert.equal(inspector.decrypt(expected.text), raw, name)
      assert.equal(inspector.encrypt(raw), id, name)
    }
    assert.equal(web.encodeString(id), expected.text)
    assert.equal(web.decodeString(expected.text), id)
  }
})

test('many ids', WITH_NATIVE, () => {
  const inspector = new web.Inspector(SECRET)
  const other = new native.Inspector(SECRET)
  const ids = new native.Randflake(11, SECRET, { maxWaitMs: 60_000 }).generateMany(5000)
  assert.deepEqual(inspector.inspectMany(ids), other.inspectMany(ids))
  const raws = inspector.decryptMany(ids)
  assert.deepEqual(raws, other.decryptMany(ids))
  assert.deepEqual(inspector.decryptMany(native.encodeStrings(ids)), raws)
  assert.deepEqual(inspector.decryptMany(Array.from(ids)), raws)
  for (const given of [raws, Array.from(raws)]) {
    assert.deepEqual(inspector.encryptMany(given), ids)
  }
  const changed = ids.slice()
  inspector.decryptInPlace(changed)
  assert.deepEqual(new BigUint64Array(changed.buffer), raws)
  inspector.encryptInPlace(changed)
  assert.deepEqual(changed, ids)
  const cloak = new web.Cloak(SECRET, 'orders.id')
  cloak.hideInPlace(changed)
  assert.equal(changed[7], cloak.hide(ids[7]))
  cloak.revealInPlace(changed)
  assert.deepEqual(changed, ids)
  for (const empty of [new BigInt64Array(), []]) {
    alike(({ Inspector }) => new Inspector(SECRET).encryptMany(empty))
    alike(({ Inspector }) => new Inspector(SECRET).decryptMany(empty))
  }
  alike(({ Inspector }) => new Inspector(SECRET).inspectMany(new BigInt64Array()))
})

test('cloak.json', () => {
  for (const { name, secret, label, number, hidden, text: digits } of vectors('cloak').cases) {
    const cloak = new web.Cloak(secret, label)
    assert.equal(cloak.hide(BigInt(number)), BigInt(hidden), name)
    assert.equal(cloak.hide(BigInt.asIntN(64, BigInt(number))), BigInt(hidden), name)
    assert.equal(cloak.hideString(BigInt(number)), digits, name)
    assert.equal(cloak.reveal(BigInt(hidden)), BigInt(number), name)
    assert.equal(cloak.reveal(digits), BigInt(number), name)
  }
})

/** Makes a layout from its description in a vector. */
function optionsOf({ fields, tick_ms: tickMs, epoch_ms: epochMs, sequence, ...rest }) {
  const unsigned = fields.reduce((sum, [, bits]) => sum + bits, 0) > 63
  const nodeSplit = rest.node_split?.map(([, bits]) => bits)
  return { fields, tickMs, epochMs, sequence, unsigned, nodeSplit }
}

test('layouts.json', () => {
  const { layouts, cases } = vectors('layouts')
  for (const [name, described] of Object.entries(layouts)) {
    alike(({ Layout }) => ({ ...new Layout(optionsOf(described)) }), name)
    alike(({ Layout }) => String(new Layout(optionsOf(described))), name)
  }
  assert.ok(cases.length >= 15)
  for (const { name, layout: of, unix_ms: unixMs, ...expected } of cases) {
    const layout = new web.Layout(optionsOf(layouts[of]))
    const { node_id: nodeId, sequence } = expected
    const parts = { unixMs, nodeId: nodeId ?? 0, sequence, date: new Date(unixMs) }
    const id = BigInt(expected.id)
    assert.deepEqual(layout.inspect(id), parts, name)
    assert.deepEqual(layout.inspect(BigInt.asIntN(64, id)), parts, name)
    assert.equal(layout.pack(unixMs, nodeId ?? 0, sequence), id, name)
    assert.equal(layout.pack(new Date(unixMs), nodeId ?? 0, sequence), id, name)
    if (layouts[of].fields[0][0] === 'time') {
      assert.equal(layout.firstIdAt(unixMs), BigInt(expected.first_id), name)
      assert.equal(layout.lastIdAt(new Date(unixMs)), BigInt(expected.last_id), name)
    }
    if (nodeId === null) continue
    const node = layouts[of].node_split ? expected.node_parts : null
    assert.deepEqual(layout.splitNode(nodeId), node, name)
    if (node) assert.equal(layout.joinNode(...node), nodeId, name)
  }
})

test('layout_texts.json', () => {
  const { layouts, refused } = vectors('layout_texts')
  for (const { text: described, written } of layouts) {
    alike(({ Layout }) => ({ ...new Layout(described) }), described)
    assert.equal(String(new web.Layout(described)), written)
  }
  for (const each of refused) {
    const described = each.text ?? each
    const { code } = alike(({ Layout }) => new Layout(described), described)
    assert.equal(code, 'INVALID_ARGUMENT', described)
  }
})

test('text.json', () => {
  const { valid, invalid } = vectors('text')
  const inspector = new web.Inspector(SECRET)
  for (const { name, text: digits, id } of valid) {
    assert.equal(web.encodeString(BigInt(id)), digits, name)
    assert.equal(web.decodeString(digits), BigInt(id), name)
    assert.equal(inspector.decrypt(digits), inspector.decrypt(BigInt(id)), name)
  }
  for (const { text: digits, name } of invalid) {
    assert.throws(() => web.decodeString(digits), { code: 'INVALID_ID' }, name)
    alike(({ Inspector }) => new Inspector(SECRET).inspect(digits), name)
  }
})

test('text_form.json', () => {
  const { forms: described, valid, invalid } = vectors('text_form')
  const forms = {}
  for (const [name, { pattern, prefix, cloak }] of Object.entries(described)) {
    forms[name] = new web.TextForm({
      prefix,
      cloak: cloak && new web.Cloak(cloak.secret, cloak.label),
    })
    assert.equal(forms[name].pattern, pattern)
  }
  for (const { name, form, id, text: written } of valid) {
    assert.equal(forms[form].encode(BigInt(id)), written, name)
    assert.equal(forms[form].decode(written), BigInt(id), name)
  }
  for (const { name, form, text: written } of invalid) {
    assert.throws(() => forms[form].decode(written), { code: 'INVALID_ID' }, name)
  }
})

const describe = (value) => require('node:util').inspect(value)

const SPECIAL = [
  0,
  1,
  -1,
  1.5,
  Number.NaN,
  2 ** 53,
  null,
  undefined,
  true,
  '',
  'x',
  Symbol('a'),
  {},
]
const STRANGE = [...SPECIAL, [], () => {}, Object(1n), new Map(), new Uint8Array(3)]
const BIGINTS = [2n ** 63n, -(2n ** 63n) - 1n, 2n ** 64n, -1n, 2n ** 64n - 1n, 0n]

test('what is no argument is refused as the native half refuses it', WITH_NATIVE, () => {
  const shared = new BigInt64Array(new SharedArrayBuffer(8))
  const transferred = new BigInt64Array(1)
  structuredClone(transferred, { transfer: [transferred.buffer] })
  const arrays = [shared, transferred, [1], [1n, 'x'], ['0', 1n], [2n ** 64n], [-1n], new Array(2)]
  arrays.push(BigInt64Array.of(5n, -5n), BigUint64Array.of(1n, 2n ** 63n))
  const given = [...STRANGE, ...BIGINTS, ...arrays]
  const calls = {
    secret: (module, value) => void new module.Inspector(value),
    label: (module, value) => new module.Cloak(SECRET, value).hide(1n),
    ...Object.fromEntries(
      'inspect decrypt encrypt inspectMany encryptMany decryptMany encryptInPlace decryptInPlace'
        .split(' ')
        .map((name) => [name, (module, value) => new module.Inspector(SECRET)[name](value)]),
    ),
    ...Object.fromEntries(
      'hide hideString reveal hideInPlace revealInPlace'
        .split(' ')
        .map((name) => [name, (module, value) => new module.Cloak(SECRET, 'a')[name](value)]),
    ),
    layout: (module, value) => ({ ...new module.Layout(value) }),
    epochMs: (module, value) => ({ ...new module.Layout('twitter', { epochMs: value }) }),
    starts: (module, value) => ({ ...new module.Layout('twitter', { sequence: value }) }),
    random: (module, value) => ({ ...new module.Layout('leaf').withSequence(['random', value]) }),
    withEpochMs: (module, value) => ({ ...new module.Layout('leaf').withEpochMs(value) }),
    options: (module, value) => ({ ...new module.Layout('leaf', value) }),
    inspectRaw: (module, value) => new module.Layout('twitter').inspect(value),
    time: (module, value) => new module.Layout('twitter').pack(value, 0, 0),
    date: (module) => new module.Layout('twitter').pack(new Date('x'), 0, 0),
    node: (module, value) => new module.Layout('twitter').pack(1.7e12, value, 0),
    sequence: (module, value) => new module.Layout('twitter').pack(1.7e12, 0, value),
    firstIdAt: (module, value) => new module.Layout('twitter').firstIdAt(value),
    datacenter: (module, value) => new module.Layout('twitter').joinNode(value, 0),
    worker: (module, value) => new module.Layout('twitter').joinNode(0, value),
    splitNode: (module, value) => new module.Layout('twitter').splitNode(value),
  }
  for (const [name, call] of Object.entries(calls)) {
    for (const value of given) {
      alike((module) => call(module, value), `${name} of ${describe(value)}`)
    }
  }
  for (const name of ['Inspector', 'Cloak', 'Layout']) {
    alike((module) => module[name](SECRET, 'a'), name)
    for (const self of [undefined, null, 5, {}]) {
      alike((module) => {
        const method = name === 'Cloak' ? 'hide' : 'inspect'
        module[name].prototype[method].call(self, 1n)
      }, name)
    }
  }
})

test('fields that are none are refused', () => {
  const wrong = [
    {},
    { fields: [] },
    {
      fields: [
        ['time', 41],
        ['time', 2],
      ],
    },
    { fields: [['node', 10]] },
    { fields: [['times', 41]] },
    { fields: [['twitter', 41]] },
    { fields: [['time', 0]] },
    { fields: [['time', 62]] },
    {
      fields: [
        ['time', 41],
        ['node', 33],
      ],
    },
    {
      fields: [
        ['time', 41],
        ['node', 10],
        ['sequence', 12],
        ['node', 1],
      ],
    },
    {
      fields: [
        ['time', 40],
        ['node', 12],
        ['sequence', 12],
      ],
    },
    { fields: [['time', 61]], tickMs: 86_400_000 },
  ]
  const fields = [
    ['time', 41],
    ['node', 10],
  ]
  for (const tickMs of [0, -1, 0.5, '1', 86_400_001]) wrong.push({ fields, tickMs })
  for (const epochMs of [-1, 0.5, '1', 2 ** 53]) wrong.push({ fields, epochMs })
  for (const unsigned of [0, 'true', null]) wrong.push({ fields, unsigned })
  for (const nodeSplit of [[5], [5, 6], '5:5', [5, 5, 0], [-1, 11]]) {
    wrong.push({ fields, nodeSplit })
  }
  const starts = ['random', ['random', 0], ['zero', 1], ['random', 2 ** 32], [], 'zero,epoch_ms=1']
  for (const sequence of starts) wrong.push({ fields, sequence })
  for (const described of wrong) {
    // Of a text the core says the same, but for names.
    const [expected, found] = [native, web].map(
      (module) => outcome(({ Layout }) => void new Layout(described), module).code,
    )
    assert.equal(expected, 'INVALID_ARGUMENT', JSON.stringify(described))
    assert.equal(found, expected, JSON.stringify(described))
  }
})

test('an object shows no secret', () => {
  assert.doesNotMatch(describe(new web.Inspector(SECRET)), /dffd/i)
  assert.doesNotMatch(describe(new web.Codes(SECRET, 'orders')), /dffd|orders/i)
})

test('the core forgets objects that are gone', skipOn(NO_GC), async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc')
  const { call, write } = await import('../web/core.mjs')
  const next = () => call('make_layout', ...write('twitter'))
  const begin = next()
  for (let made = 0; made < 1000; made++) new web.Cloak(SECRET, `label ${made}`)
  // Places are taken again, once the registry has been told.
  for (;;) {
    gc()
    await new Promise(setImmediate)
    if (next() < begin + 1000) break
  }
})

test('a weak secret has one warning', async (t) => {
  const warn = t.mock.method(console, 'warn', () => {})
  for (let time = 0; time < 2; time++) new web.Inspector('0'.repeat(32))
  const [{ arguments: said } = { arguments: [''] }] = warn.mock.calls
  assert.ok(warn.mock.calls.length <= 1, 'one in each process')
  assert.match(String(said[0] || 'RANDFLAKE_WEAK_SECRET'), /^RANDFLAKE_WEAK_SECRET/)
})

test('codes.json', () => {
  const { cases, read, invalid, capacities, invalid_options: wrong } = vectors('codes')
  const codesOf = ({ secret = SECRET, label = 'orders', length, alphabet, check }) =>
    new web.Codes(secret, label, { length, alphabet, check })
  assert.ok(cases.length > 20)
  for (const each of cases) {
    const [codes, number] = [codesOf(each), BigInt(each.number)]
    assert.equal(codes.encode(number), each.code, each.name)
    assert.equal(codes.decode(each.code), number, each.name)
    assert.deepEqual(codes.encodeMany(BigUint64Array.of(number)), [each.code])
    assert.deepEqual(codes.encodeMany([number, number]), [each.code, each.code])
    assert.deepEqual(codes.decodeMany([each.code]), [number])
    assert.match(each.code, new RegExp(codes.pattern))
    assert.equal(codes.length, each.length)
    assert.equal(codes.check, each.check)
  }
  for (const each of read) assert.equal(codesOf(each).decode(each.code), BigInt(each.number))
  for (const each of invalid) {
    assert.throws(() => codesOf(each).decode(each.code), { code: 'INVALID_ID' }, each.name)
  }
  for (const each of capacities) assert.equal(codesOf(each).capacity, BigInt(each.capacity))
  for (const each of wrong) {
    assert.throws(() => codesOf(each), { code: 'INVALID_ARGUMENT' }, each.name)
  }
})

test('too much at a time is refused, and everything goes on', () => {
  const codes = new web.Codes(SECRET, 'orders')
  const inspector = new web.Inspector(SECRET)
  const invalidSecret = { name: 'RandflakeError', code: 'INVALID_SECRET' }
  for (const secret of [new Uint8Array(2 ** 24), 'a'.repeat(2 ** 24)]) {
    assert.throws(() => new web.Inspector(secret), invalidSecret)
    assert.throws(() => new web.Codes(secret, 'orders'), invalidSecret)
  }
  const many = new BigInt64Array(2 ** 24 + 1)
  const invalid = { name: 'RandflakeError', code: 'INVALID_ARGUMENT' }
  assert.throws(() => inspector.encryptMany(many), invalid)
  assert.throws(() => codes.decode('1'.repeat(2 ** 24)), { code: 'INVALID_ID' })
  assert.equal(codes.decode(codes.encode(7n)), 7n)
  assert.equal(inspector.decrypt(inspector.encrypt(7n)), 7n)
})

test('what has no code is refused as the native half refuses it', WITH_NATIVE, () => {
  const numbers = [...STRANGE, ...BIGINTS, 10n ** 8n, 1n]
  const codes = [...STRANGE, '8648374', '8648374x', '86483743', '864837430', '8'.repeat(5000)]
  const made = ({ Codes }) => new Codes(SECRET, 'orders')
  for (const number of numbers) {
    alike((module) => made(module).encode(number), describe(number))
    alike((module) => made(module).encodeMany([1n, number]), describe(number))
    alike((module) => made(module).encodeMany(number), describe(number))
  }
  for (const code of codes) {
    alike((module) => made(module).decode(code), describe(code))
    alike((module) => made(module).decodeMany(['86483743', code]), describe(code))
    alike((module) => made(module).decodeMany(code), describe(code))
  }
  alike((module) => made(module).encodeMany(BigInt64Array.of(5n, -1n)))
  for (const value of [...STRANGE, 8, 25, 'digits', 'abc', 2 ** 32]) {
    for (const name of ['length', 'alphabet', 'check', 'size']) {
      const options = { [name]: value }
      alike(({ Codes }) => ({ ...new Codes(SECRET, 'a', options) }), describe(options))
    }
    alike(({ Codes }) => ({ ...new Codes(SECRET, 'a', value) }), describe(value))
    alike(({ Codes }) => ({ ...new Codes(value, 'a') }), describe(value))
    alike(({ Codes }) => ({ ...new Codes(SECRET, value) }), describe(value))
  }
})
