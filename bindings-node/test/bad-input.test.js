'use strict'

// What callers must not pass: each value gets the documented error, and none is truncated.

const assert = require('node:assert/strict')
const { Console } = require('node:console')
const { PassThrough } = require('node:stream')
const { suite, test } = require('node:test')
const { inspect } = require('node:util')
const {
  Cloak,
  decodeString,
  encodeString,
  Inspector,
  Randflake,
  RandflakeError,
} = require('../index.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const clock = () => 1763640000
const make = (options, ...nodeId) =>
  new Randflake(nodeId.length === 0 ? 1 : nodeId[0], SECRET, { clock, ...options })
const lease = (start, endExclusive) => ({ lease: { start, endExclusive } })
const HELD = lease(1763640000, 1763640300)

function transferred(length) {
  const ids = new BigInt64Array(length)
  structuredClone(ids, { transfer: [ids.buffer] })
  return ids
}

const NOT_A_NUMBER = {
  'a string': '1',
  'an empty string': '',
  true: true,
  null: null,
  'a bigint': 1n,
  'a symbol': Symbol('1'),
  'an object': { valueOf: () => 1 },
  'a boxed number': Object(1),
  'a function': () => 1,
  'a date': new Date(1),
}
const NOT_AN_INTEGER = {
  ...NOT_A_NUMBER,
  'a fraction': 1.5,
  'a small fraction': 1e-9,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
  '2^53': 2 ** 53,
  '1e300': 1e300,
}
const NOT_A_NODE_ID = {
  ...NOT_AN_INTEGER,
  undefined,
  '-1': -1,
  'one too many': 131072,
  'above 32 bits': 2 ** 32 + 7,
  'below 32 bits': -(2 ** 32) + 7,
}
const NOT_AN_ID = {
  ...NOT_A_NUMBER,
  undefined,
  'an array': [1n],
  'a number': 1,
  'unsigned 2^63': 2n ** 63n,
  'unsigned 2^64 - 1': 2n ** 64n - 1n,
  '2^64': 2n ** 64n,
  '2^70': 2n ** 70n,
  'below -2^63': -(2n ** 63n) - 1n,
  'a lone surrogate': '\ud800',
  'decimal text': '4594531474933654033',
  'negative decimal text': '-1',
  'upper case': '3VGOE12CCB8GH',
  'a leading zero': '03vgoe12ccb8gh',
  'too long': '0'.repeat(100),
  'very long': 'v'.repeat(100_000),
}
delete NOT_AN_ID['a string'] // '1' is the text of an id
delete NOT_AN_ID['a bigint']
const NOT_IDS = {
  undefined,
  null: null,
  'a number': 3,
  'an array of bigints': [1n, 2n],
  'a BigUint64Array': new BigUint64Array(2),
  'a Float64Array': new Float64Array(2),
  'an Int32Array': new Int32Array(2),
  'a DataView': new DataView(new ArrayBuffer(16)),
  'an ArrayBuffer': new ArrayBuffer(16),
  'shared memory': new BigInt64Array(new SharedArrayBuffer(16)),
  'transferred memory': transferred(2),
  'something like it': { __proto__: BigInt64Array.prototype, length: 2 },
}
const NOT_A_SECRET = {
  undefined,
  null: null,
  'a number': 1,
  true: true,
  'an array': Array(16).fill(1),
  '15 bytes': new Uint8Array(15),
  '17 bytes': new Uint8Array(17),
  'no bytes': new Uint8Array(0),
  'other elements': new Uint16Array(16),
  'signed bytes': new Int8Array(16),
  'clamped bytes': new Uint8ClampedArray(16),
  'a view': new DataView(new ArrayBuffer(16)),
  'an ArrayBuffer': new ArrayBuffer(16),
  'shared bytes': new Uint8Array(new SharedArrayBuffer(16)),
  '31 digits': SECRET.slice(1),
  '33 digits': `${SECRET}0`,
  'another letter': `${SECRET.slice(1)}g`,
  'a lone surrogate': `${SECRET.slice(1)}\udfff`,
  'two bytes each': 'é'.repeat(16),
  '16 letters': 'super-secret-key',
}

/** [what is called, expected code, bad values by name, call]. */
const TABLE = [
  ['node id', 'INVALID_NODE', NOT_A_NODE_ID, (bad) => make({}, bad)],
  ['listed node id', 'INVALID_NODE', NOT_A_NODE_ID, (bad) => make({}, [5, bad])],
  [
    'node ids',
    'INVALID_NODE',
    {
      none: [],
      'a hole': Array(3),
      twice: [7, 7],
      nested: [[1]],
      'a typed array': Uint32Array.of(1, 2),
      'a set': new Set([1]),
      'too many': Array.from({ length: 16385 }, (_, index) => index),
      'very many': Array(100_000).fill(1),
    },
    (bad) => make({}, bad),
  ],
  ['secret', 'INVALID_SECRET', NOT_A_SECRET, (bad) => new Randflake(1, bad, { clock })],
  ['secret of an inspector', 'INVALID_SECRET', NOT_A_SECRET, (bad) => new Inspector(bad)],
  [
    'options',
    'INVALID_ARGUMENT',
    {
      null: null,
      'a number': 1,
      'a string': 'lease',
      'a function': () => {},
      'an unknown name': { maxWait: 1 },
      'another spelling': { max_wait: 1 },
      'an unknown name without a value': { ttl: undefined },
      'an array with elements': [1],
      'an empty array': [],
      'a map': new Map([['restartSafe', false]]),
    },
    (bad) => new Randflake(1, SECRET, bad),
  ],
  [
    'maxWaitMs',
    'INVALID_ARGUMENT',
    {
      ...NOT_A_NUMBER,
      NaN: Number.NaN,
      Infinity: Number.POSITIVE_INFINITY,
      '-1': -1,
      'a negative fraction': -0.25,
      '1e300': 1e300,
      'more than a day': 86_400_001,
    },
    (maxWaitMs) => make({ maxWaitMs }),
  ],
  [
    'maxDriftSeconds',
    'INVALID_ARGUMENT',
    { ...NOT_AN_INTEGER, '-1': -1, 'more than an hour': 3601, 'above 32 bits': 2 ** 32 + 7 },
    (maxDriftSeconds) => make({ ...HELD, maxDriftSeconds }),
  ],
  [
    'maxDriftSeconds without a lease',
    'INVALID_ARGUMENT',
    { 1: 1, 10: 10, 3600: 3600 },
    (maxDriftSeconds) => make({ maxDriftSeconds }),
  ],
  [
    'restartSafe',
    'INVALID_ARGUMENT',
    { 0: 0, 1: 1, null: null, 'a string': 'false', 'an object': {} },
    (restartSafe) => make({ restartSafe }),
  ],
  [
    'clock',
    'INVALID_ARGUMENT',
    {
      null: null,
      'a number': 1763640000,
      'a date': new Date(),
      'without now': { sleep() {} },
      'now is no function': { now: 1763640000 },
      'sleep is no function': { now: clock, sleep: 1 },
      'sleep is null': { now: clock, sleep: null },
    },
    (clock) => new Randflake(1, SECRET, { clock }),
  ],
  [
    'reading of a clock',
    'INVALID_ARGUMENT',
    {
      ...NOT_A_NUMBER,
      undefined,
      NaN: Number.NaN,
      Infinity: Number.POSITIVE_INFINITY,
      milliseconds: 1763640000000,
      'a promise': Promise.resolve(1763640000),
    },
    (reading) => new Randflake(1, SECRET, { clock: () => reading }).generate(),
  ],
  [
    'lease',
    'INVALID_LEASE',
    {
      null: null,
      'a number': 1,
      'an array': [1763640000, 1763640300],
      'no end': { start: 1763640000 },
      'no start': { endExclusive: 1763640300 },
      'an unknown name': { start: 1763640000, end: 1763640300 },
      'one name too many': { start: 1763640000, endExclusive: 1763640300, ttl: 1 },
      backwards: { start: 1763640300, endExclusive: 1763640000 },
      empty: { start: 1763640000, endExclusive: 1763640000 },
      'before the epoch': { start: 1729999999, endExclusive: 1763640000 },
      'past the lifetime': { start: 1763640000, endExclusive: 2803741825 },
    },
    (lease) => make({ lease }),
  ],
  ['start of a lease', 'INVALID_LEASE', NOT_AN_INTEGER, (bad) => make(lease(bad, 1763640300))],
  ['end of a lease', 'INVALID_LEASE', NOT_AN_INTEGER, (bad) => make(lease(1763640000, bad))],
  [
    'extendLease',
    'INVALID_LEASE',
    { ...NOT_AN_INTEGER, undefined, 0: 0, 'past the lifetime': 2803741825 },
    (bad) => make(HELD).extendLease(bad),
  ],
  [
    'extendLease without a lease',
    'INVALID_LEASE',
    { 'a good end': 1763640300 },
    (end) => make().extendLease(end),
  ],
  [
    'generateMany',
    'INVALID_ARGUMENT',
    { ...NOT_AN_INTEGER, undefined, '-1': -1, 'more than memory': 2 ** 50 },
    (bad) => make().generateMany(bad),
  ],
  ['fill', 'INVALID_ARGUMENT', NOT_IDS, (bad) => make().fill(bad)],
  [
    'fill, with the clock of the machine',
    'INVALID_ARGUMENT',
    NOT_IDS,
    (bad) => new Randflake(1000, SECRET, { restartSafe: false }).fill(bad),
  ],
  ['inspect', 'INVALID_ID', NOT_AN_ID, (bad) => make().inspect(bad)],
  ['decrypt', 'INVALID_ID', NOT_AN_ID, (bad) => make().decrypt(bad)],
  ['Inspector inspect', 'INVALID_ID', NOT_AN_ID, (bad) => new Inspector(SECRET).inspect(bad)],
  ['Inspector decrypt', 'INVALID_ID', NOT_AN_ID, (bad) => new Inspector(SECRET).decrypt(bad)],
  ['inspectMany', 'INVALID_ARGUMENT', NOT_IDS, (bad) => new Inspector(SECRET).inspectMany(bad)],
  ...[make(), new Inspector(SECRET)].map((reader) => [
    `encrypt of ${reader.constructor.name}`,
    'INVALID_ID',
    {
      undefined,
      null: null,
      true: true,
      'a number': 1,
      'a string': '1',
      '-1': -1n,
      '-2^63': -(2n ** 63n),
      '2^64': 2n ** 64n,
      '2^64 + 7': 2n ** 64n + 7n,
    },
    (bad) => reader.encrypt(bad),
  ]),
  [
    'encodeString',
    'INVALID_ID',
    { ...NOT_AN_ID, text: '3vgoe12ccb8gh' },
    (bad) => encodeString(bad),
  ],
  ['decodeString', 'INVALID_ID', { ...NOT_AN_ID, 'a bigint': 1n }, (bad) => decodeString(bad)],
]

for (const [what, code, table, call] of TABLE) {
  suite(what, () => {
    for (const [name, bad] of Object.entries(table)) {
      test(name, () => {
        assert.throws(
          () => call(bad),
          (error) => {
            assert(error instanceof RandflakeError, String(error))
            assert.equal(error.code, code, error.message)
            assert.equal(error.name, 'RandflakeError')
            assert.equal(error.retryAfterMs, undefined)
            assert.match(error.message, /^[a-z]/i)
            assert(!error.message.includes(SECRET))
            return true
          },
        )
      })
    }
  })
}

suite('generateManyAsync', () => {
  for (const options of [{ clock }, { restartSafe: false }]) {
    const flake = new Randflake(1001, SECRET, options)
    for (const [name, bad] of Object.entries({ ...NOT_AN_INTEGER, undefined, '-1': -1 })) {
      test(`${name}, ${Object.keys(options)}`, async () => {
        await assert.rejects(flake.generateManyAsync(bad), {
          name: 'RandflakeError',
          code: 'INVALID_ARGUMENT',
        })
      })
    }
    test(`more than memory, ${Object.keys(options)}`, async () => {
      await assert.rejects(flake.generateManyAsync(2 ** 52), { code: 'INVALID_ARGUMENT' })
    })
  }
})

suite('wrong this', () => {
  /** Also inherited ones, from the nearest class that has them. */
  const methods = (type) => {
    const found = new Map()
    let { prototype } = type
    for (; prototype !== Object.prototype; prototype = Object.getPrototypeOf(prototype)) {
      for (const key of Reflect.ownKeys(prototype)) {
        if (key === 'constructor' || key === inspect.custom || found.has(String(key))) continue
        found.set(String(key), Object.getOwnPropertyDescriptor(prototype, key))
      }
    }
    return found
  }
  const strangers = { undefined, null: null, 'a number': 1, 'an object': {} }
  for (const [type, good] of [
    [Randflake, make()],
    [Inspector, new Inspector(SECRET)],
  ]) {
    const stranger = type === Randflake ? new Inspector(SECRET) : make()
    for (const [name, { value, get }] of methods(type)) {
      for (const [kind, self] of Object.entries({
        ...strangers,
        'another class': stranger,
        'its prototype': type.prototype,
        'a proxy': new Proxy(good, {}),
        'an heir': Object.create(good),
      })) {
        test(`${type.name} ${name} of ${kind}`, async () => {
          await assert.rejects(async () => Reflect.apply(value ?? get, self, []), {
            name: 'RandflakeError',
            code: 'INVALID_ARGUMENT',
          })
        })
      }
    }
  }
})

test('classes are called with new', () => {
  for (const type of [Randflake, Inspector]) {
    for (const call of [type, (...args) => Reflect.apply(type, {}, args)]) {
      assert.throws(() => call(1, SECRET), { name: 'RandflakeError', code: 'INVALID_ARGUMENT' })
    }
  }
})

test('generators are not copied', () => {
  const refused = { name: 'RandflakeError', code: 'INVALID_ARGUMENT' }
  const flake = make()
  assert.throws(() => structuredClone(flake), refused)
  assert.throws(() => structuredClone({ nested: [flake] }), refused)
  assert.throws(() => structuredClone({ ...flake }), refused)
  const { port1 } = new MessageChannel()
  assert.throws(() => port1.postMessage(flake), refused)
  port1.close()
})

test('generators can be listed, compared and shown', () => {
  const flake = make()
  assert.deepEqual(Object.entries(flake), Object.entries({ ...flake }))
  assert.deepEqual(flake, make())
  const stream = new PassThrough()
  new Console(stream).table(flake)
  assert.match(String(stream.read()), /uncloneable/)
})

test('a secret that was read as a number is in no message', () => {
  const secret = 1234567890123456
  for (const use of [
    () => new Inspector(secret),
    () => new Cloak(secret, 'orders'),
    () => new Randflake(1, secret),
    () => Randflake.lazy('ids.db', secret).generate(),
  ]) {
    assert.throws(use, { code: 'INVALID_SECRET', message: /got a number$/ })
  }
})

test('a secret is in no message, inspection or JSON', () => {
  const options = { showHidden: true, depth: 10, getters: false }
  for (const holder of [make(), new Inspector(SECRET)]) {
    assert(!inspect(holder, options).includes(SECRET))
    assert(!JSON.stringify(holder).includes(SECRET))
    assert(!String(holder).includes(SECRET))
  }
  assert.equal(typeof inspect(Randflake.prototype), 'string')
  assert.equal(inspect(make({}, [7, 8])), 'Randflake { nodeIds: [ 7, 8 ] }')
  assert.equal(JSON.stringify(make({}, [7, 8])), '{"nodeIds":[7,8]}')
  for (const swapped of [() => new Randflake(SECRET, 1), () => make().extendLease(SECRET)]) {
    assert.throws(swapped, (error) => !error.message.includes(SECRET))
  }
})

test('what a getter of the options throws is thrown on', () => {
  const thrown = new TypeError('mine')
  const hostile = {
    get maxWaitMs() {
      throw thrown
    },
  }
  assert.throws(
    () => new Randflake(1, SECRET, hostile),
    (error) => error === thrown,
  )
  const nodeIds = Object.defineProperty(
    [1],
    0,
    Object.getOwnPropertyDescriptor(hostile, 'maxWaitMs'),
  )
  assert.throws(
    () => make({}, nodeIds),
    (error) => error === thrown,
  )
})

test('a string of decimal digits, as drivers return it, is refused with what to do', () => {
  for (const digits of ['4594531474933654033', '-5', '1234567890123']) {
    assert.throws(() => encodeString(digits), { code: 'INVALID_ID', message: /BigInt\(id\)/ })
  }
})
