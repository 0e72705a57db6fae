'use strict'

// Layouts, generators over them, and cloaks: the published ids, and what they refuse.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { suite, test } = require('node:test')
const { inspect } = require('node:util')
const { Cloak, decodeString, encodeString, Layout, RandflakeError, Snowflake } = require('..')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const NOW = 1763640000
const vectors = (name) =>
  JSON.parse(readFileSync(join(__dirname, '../../tests/vectors', `${name}.json`), 'utf8'))

const { layouts, cases } = vectors('layouts')

/** Describes a layout of the vectors by its fields. */
function described({ fields, tick_ms: tickMs, epoch_ms: epochMs, sequence, node_split: split }) {
  const bits = fields.reduce((sum, [, width]) => sum + width, 0)
  const nodeSplit = split?.map(([, width]) => width)
  return new Layout({ fields, tickMs, epochMs, sequence, unsigned: bits === 64, nodeSplit })
}

/** Returns a generator on a clock that stands still, and the clock. */
function still(options, nodeId = 1) {
  const clock = { time: NOW, now: () => clock.time }
  return [new Snowflake(nodeId, { clock, ...options }), clock]
}

suite('layout_texts.json', () => {
  const { layouts: texts, refused } = vectors('layout_texts')
  for (const expected of texts) {
    test(expected.text, () => {
      const layout = new Layout(expected.text)
      assert.equal(String(layout), expected.written)
      assert.deepEqual(new Layout(expected.written), layout)
      assert.deepEqual({ ...layout, name: null }, { ...described(expected), name: null })
      assert.equal(layout.name, expected.name)
    })
  }

  test('refuses other texts', () => {
    for (const text of refused) {
      assert.throws(() => new Layout(text), { code: 'INVALID_ARGUMENT' }, text)
    }
  })
})

suite('layouts.json and peers.json', () => {
  for (const expected of [...cases, ...vectors('peers').cases]) {
    const { layout: name, unix_ms: unixMs, sequence } = expected
    const id = BigInt(expected.id)
    const both = [described(layouts[name])]
    if (!layouts[name].custom) both.push(new Layout(name))
    for (const layout of both) {
      test(`${expected.name}, ${layout.name}`, () => {
        const nodeId = expected.node_id ?? 0
        const parts = { unixMs, nodeId, sequence, date: new Date(unixMs) }
        assert.deepEqual(layout.inspect(id), parts)
        assert.equal(layout.nodeBits === 0, expected.node_id === null)
        assert.deepEqual(layout.splitNode(nodeId), expected.node_parts ?? null)
        if (expected.node_parts) assert.equal(layout.joinNode(...expected.node_parts), nodeId)
        for (const time of [unixMs, new Date(unixMs), unixMs + layout.tickMs - 1]) {
          assert.equal(layout.pack(time, nodeId, sequence), id)
          assert.equal(layout.firstIdAt(time), BigInt(expected.first_id))
          assert.equal(layout.lastIdAt(time), BigInt(expected.last_id))
        }
        assert.deepEqual(layout.sequence, layouts[name].sequence)
        assert.deepEqual(
          [layout.tickMs, layout.epochMs],
          [layouts[name].tick_ms, layouts[name].epoch_ms],
        )
      })
    }
    // Without node ids a tick has too many ids to begin with the first one.
    if (expected.node_id === null) continue
    test(`${expected.name}, generated`, () => {
      const layout = both[0].withSequence('zero')
      const flake = new Snowflake(expected.node_id, {
        layout,
        clock: () => unixMs / 1000 + layout.tickMs / 4000, // a float may be slightly below a tick
      })
      const ids = flake.generateMany(sequence + 1)
      assert.equal(BigInt.asUintN(64, ids[sequence]), id)
      assert.deepEqual(flake.inspect(id), layout.inspect(id))
    })
  }

  test('has a layout of every preset', () => {
    let message
    try {
      new Layout('none')
    } catch (error) {
      message = error.message
    }
    for (const [name, { custom }] of Object.entries(layouts)) {
      assert.equal(message.includes(name), !custom, name)
    }
  })
})

suite('layout', () => {
  test('shows what it is', () => {
    const leaf = new Layout('leaf')
    assert.deepEqual(
      { ...leaf },
      {
        name: 'leaf',
        timeBits: 41,
        nodeBits: 10,
        sequenceBits: 12,
        tickMs: 1,
        epochMs: 1288834974657,
        sequence: ['random', 100],
        unsigned: false,
        maxNodeId: 1023,
        maxSequence: 4095,
        endsAt: 1288834974657 + 2 ** 41,
        negativeFrom: null,
      },
    )
    assert.equal(new Layout('baidu').endsAt, 1732109056000)
    assert.equal(new Layout('simpleflake').negativeFrom, 2046214427776)
    assert(Object.isFrozen(leaf) && Object.isFrozen(leaf.sequence))
    assert.throws(() => {
      leaf.endsAt = 0
    }, TypeError)
  })

  test('bounds the ids of a day', () => {
    const layout = new Layout('twitter')
    const day = new Date('2025-11-20T00:00:00Z')
    const next = new Date('2025-11-21T00:00:00Z')
    const [first, last] = [layout.firstIdAt(day), layout.lastIdAt(next.getTime() - 1)]
    const noon = layout.pack(new Date('2025-11-20T12:00:00Z'), 5, 0)
    assert(first < noon && noon < last)
    assert.equal(last + 1n, layout.firstIdAt(next))
  })

  test('refuses bounds where the time is not on top', () => {
    const layout = new Layout({
      fields: [
        ['node', 10],
        ['time', 41],
      ],
    })
    assert.throws(() => layout.firstIdAt(NOW), { code: 'INVALID_ARGUMENT', message: /order/ })
    assert.throws(() => layout.lastIdAt(NOW), { code: 'INVALID_ARGUMENT', message: /order/ })
  })

  test('reads the signed numbers of a BIGINT column, where all bits are used', () => {
    const layout = new Layout('simpleflake')
    const id = layout.pack(layout.negativeFrom, 0, 7)
    assert.equal(id, 2n ** 63n + 7n)
    assert.deepEqual(layout.inspect(BigInt.asIntN(64, id)), layout.inspect(id))
    assert.throws(() => new Layout('twitter').inspect(-1n), { code: 'INVALID_ID' })
  })

  test('is the same when asked again', () => {
    const spread = new Layout('twitter').withSequence('continuing')
    assert.equal(spread.sequence, 'continuing')
    assert(spread instanceof Layout)
    assert.deepEqual(spread.inspect(1541815603606036480n).nodeId, 378)
  })
})

suite('cloak.json', () => {
  for (const expected of vectors('cloak').cases) {
    test(expected.name, () => {
      const [number, hidden] = [BigInt(expected.number), BigInt(expected.hidden)]
      for (const secret of [expected.secret, Buffer.from(expected.secret, 'hex')]) {
        const cloak = new Cloak(secret, expected.label)
        assert.equal(cloak.hide(number), hidden)
        assert.equal(cloak.hide(BigInt.asIntN(64, number)), hidden)
        assert.equal(cloak.hideString(number), expected.text)
        assert.equal(cloak.reveal(hidden), number)
        assert.equal(cloak.reveal(expected.text), number)
        assert.equal(encodeString(hidden), expected.text)
        assert.equal(decodeString(expected.text), hidden)
        // As many as a group of every way to encrypt, and some more.
        const many = new BigInt64Array(79).fill(BigInt.asIntN(64, number))
        const inner = many.subarray(1, 78)
        assert.equal(cloak.hideInPlace(inner), undefined)
        assert(inner.every((each) => each === hidden))
        cloak.revealInPlace(inner)
        assert(many.every((each) => each === BigInt.asIntN(64, number)))
      }
    })
  }
})

suite('generator', () => {
  test('a number shows the middle of each millisecond, and not always its begin', () => {
    const shown = (time) => {
      const [flake, clock] = still({})
      clock.time = time
      return flake.inspect(flake.generate()).unixMs
    }
    const milliseconds = Array.from({ length: 1000 }, (_, ms) => NOW * 1000 + ms)
    assert.deepEqual(
      milliseconds.map((unixMs) => shown((unixMs + 0.5) / 1000)),
      milliseconds,
    )
    const begins = new Set(milliseconds.map((unixMs) => shown(unixMs / 1000) - unixMs))
    assert.deepEqual(begins, new Set([0, -1]))
  })

  test('is in order, and goes on where single ids stopped', async () => {
    const [flake] = still()
    const ids = [flake.generate(), ...flake.generateMany(3)]
    const buffer = new BigInt64Array(2)
    flake.fill(buffer)
    ids.push(...buffer, ...(await flake.generateManyAsync(2)), flake.generate())
    assert.deepEqual(
      ids.map((id) => flake.inspect(id)),
      ids.map((_, sequence) => ({
        unixMs: NOW * 1000,
        nodeId: 1,
        sequence,
        date: new Date(NOW * 1000),
      })),
    )
  })

  test('of the machine repeats nothing, on threads, objects and in batches', async () => {
    const make = () => new Snowflake([300, 301], { layout: 'twitter', restartSafe: false })
    const [one, other] = [make(), make()]
    const batches = await Promise.all([one, other, one].map((f) => f.generateManyAsync(20_000)))
    const ids = new Set(batches.flatMap((batch) => [...batch]))
    for (let count = 0; count < 5000; count++) ids.add(one.generate()).add(other.generate())
    assert.equal(ids.size, 70_000)
    const sorted = one.generateMany(20_000)
    assert.deepEqual(sorted, sorted.slice().sort())
    assert(ids.isDisjointFrom?.(new Set(sorted)) ?? true)
  })

  test('takes layouts by name, by fields and as they are', () => {
    const fields = [
      ['time', 41],
      ['node', 10],
      ['sequence', 12],
    ]
    for (const layout of ['discord', new Layout('discord'), { fields, epochMs: 1420070400000 }]) {
      const [flake] = still({ layout })
      assert.equal(flake.generate(), (BigInt(NOW * 1000 - 1420070400000) << 22n) | (1n << 12n))
    }
    const [flake] = still()
    assert.equal(flake.layout.name, 'twitter')
    assert.throws(() => still({ layout: 'discord' }, 1024), { code: 'INVALID_NODE' })
  })

  test('needs no node id where the layout has none', () => {
    for (const nodeId of [undefined, [], 0]) {
      const flake = new Snowflake(nodeId, { layout: 'simpleflake', clock: () => NOW })
      assert.equal(flake.inspect(flake.generate()).unixMs, NOW * 1000)
      assert.deepEqual(flake.nodeIds, [0])
    }
  })

  test('is exhausted for a tick only, and says for how long', async () => {
    const [flake, clock] = still({ maxWaitMs: 0, layout: 'sonyflake2' })
    flake.generateMany(256)
    assert.throws(() => flake.generate(), { code: 'SEQUENCE_EXHAUSTED', retryAfterMs: 10 })
    let done = false
    const ready = flake.ready().then(() => {
      done = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(done, false)
    clock.time += 1 / 64
    await ready
    assert.equal(flake.inspect(flake.generate()).unixMs, NOW * 1000 + 10)
  })

  test('stays within its lease, and borrows ticks of it', () => {
    const lease = { start: NOW, endExclusive: NOW + 2 }
    const [flake, clock] = still({ lease, maxDriftSeconds: 1, maxWaitMs: 0 })
    const ids = flake.generateMany(4096 * 3)
    assert.equal(flake.inspect(ids.at(-1)).unixMs, NOW * 1000 + 2)
    assert.deepEqual(flake.lease, lease)
    clock.time = NOW + 2
    assert.throws(() => flake.generate(), { code: 'LEASE_EXPIRED' })
    flake.extendLease(NOW + 3)
    assert.equal(flake.inspect(flake.generate()).unixMs, NOW * 1000 + 2000)
  })

  test('refuses when its layout is over, and never wraps', () => {
    const layout = new Layout('baidu')
    assert.throws(() => new Snowflake(1, { layout }), { code: 'LIFETIME_OVER' })
    const clock = { time: layout.endsAt / 1000 - 1, now: () => clock.time }
    const flake = new Snowflake(1, { layout, clock })
    assert.equal(flake.inspect(flake.generate()).unixMs, layout.endsAt - 1000)
    clock.time++
    assert.throws(() => flake.generate(), { code: 'LIFETIME_OVER' })
  })

  test('warns once of a layout that ends soon', () => {
    const script = `const { Layout, Snowflake } = require('./index.js')
      const epochMs = Date.now() - 2 ** 40 + 86_400_000
      const layout = new Layout({ fields: [['time', 40], ['node', 4]], epochMs })
      new Snowflake(1, { layout })
      new Snowflake(2, { layout })
      new Snowflake(3)`
    const options = { cwd: join(__dirname, '..'), encoding: 'utf8' }
    const { status, stderr } = spawnSync(process.execPath, ['--eval', script], options)
    assert.equal(status, 0, stderr)
    assert.equal(stderr.match(/\[RANDFLAKE_LIFETIME\] LifetimeWarning: /g)?.length, 1, stderr)
  })

  test('of one node id and two layouts are two generators', () => {
    const make = (layout) => new Snowflake(310, { layout, restartSafe: false })
    const [one, other] = [make('twitter'), make('sonyflake2')]
    assert.notEqual(one.generate(), other.generate())
    assert.throws(() => new Snowflake([310, 311]), { code: 'NODE_IN_USE' })
  })

  for (const close of ['close', Symbol.dispose, Symbol.asyncDispose]) {
    test(`${String(close)} ends generating, not reading`, async () => {
      const [flake] = still()
      const id = flake.generate()
      assert.equal(await flake[close](), undefined)
      assert.equal(await flake[close](), undefined)
      assert.throws(() => flake.generate(), { code: 'CLOSED' })
      await assert.rejects(flake.generateManyAsync(1), { code: 'CLOSED' })
      await assert.rejects(flake.ready(), { code: 'CLOSED' })
      assert.equal(flake.inspect(id).nodeId, 1)
      assert.deepEqual([flake.nodeIds, flake.lease], [[], null])
    })
  }

  test('is shown, and not copied', () => {
    const [flake] = still()
    assert.equal(inspect(flake), "Snowflake { layout: 'twitter', nodeIds: [ 1 ] }")
    assert.equal(JSON.stringify(flake), '{"layout":"twitter","nodeIds":[1]}')
    assert.equal(typeof inspect(Snowflake.prototype), 'string')
    assert.throws(() => structuredClone(flake), { code: 'INVALID_ARGUMENT' })
  })

  test('passes on what its clock throws', () => {
    const thrown = { not: 'an error' }
    let calls = 0
    const clock = () => {
      if (calls++ > 0) throw thrown
      return NOW
    }
    const flake = new Snowflake(1, { clock })
    assert.throws(
      () => flake.generate(),
      (error) => error === thrown,
    )
  })
})

const NOT_AN_INTEGER = {
  'a string': '1',
  true: true,
  null: null,
  'a bigint': 1n,
  'a symbol': Symbol('1'),
  'an object': { valueOf: () => 1 },
  'a fraction': 1.5,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '1e300': 1e300,
}
const NOT_A_NODE_ID = { ...NOT_AN_INTEGER, undefined, '-1': -1, large: 1024, '2^32': 2 ** 32 }
const NOT_A_SEQUENCE = { ...NOT_AN_INTEGER, undefined, '-1': -1, large: 4096, '2^32': 2 ** 32 }
const NOT_A_TIME = {
  ...NOT_AN_INTEGER,
  undefined,
  'an invalid date': new Date(Number.NaN),
  'before the epoch': 1288834974656,
  'unix seconds': NOW,
  'the end': 1288834974657 + 2 ** 41,
  'a date past the end': new Date(1288834974657 + 2 ** 41),
}
const NOT_A_RAW = {
  undefined,
  null: null,
  true: true,
  'a number': 1,
  'a string': '1541815603606036480',
  '2^64': 2n ** 64n,
  '2^70': 2n ** 70n,
  'below -2^63': -(2n ** 63n) - 1n,
}
const NOT_NUMBERS = {
  undefined,
  'an array of bigints': [1n],
  'a BigUint64Array': new BigUint64Array(2),
  'a Float64Array': new Float64Array(2),
  'an ArrayBuffer': new ArrayBuffer(16),
  'shared memory': new BigInt64Array(new SharedArrayBuffer(16)),
  'a bigint': 1n,
}
const TIME = ['time', 41]
const NOT_A_LAYOUT = {
  undefined,
  null: null,
  'a number': 1,
  'a function': () => {},
  'an unknown name': 'mastodon',
  'another case': 'Twitter',
  'an empty name': '',
  'no fields': {},
  'an unknown option': { fields: [TIME], tick: 1 },
  'no array': { fields: { time: 41 } },
  'no pair': { fields: ['time'] },
  'a pair too short': { fields: [['time']] },
  'a pair too long': { fields: [['time', 41, 1]] },
  'an unknown field': { fields: [TIME, ['region', 5]] },
  'a field that is no text': { fields: [TIME, [1, 5]] },
  'a field twice': { fields: [TIME, TIME] },
  'four fields': { fields: [TIME, ['node', 1], ['sequence', 1], ['node', 1]] },
  'no time': { fields: [['node', 10]] },
  'a width that is a string': { fields: [['time', '41']] },
  'a negative width': { fields: [['time', -41]] },
  'a width of 2^32 + 41': { fields: [['time', 2 ** 32 + 41]] },
  'too wide a node': { fields: [TIME, ['node', 33]] },
  '64 bits that are not said to be': {
    fields: [
      ['time', 42],
      ['node', 10],
      ['sequence', 12],
    ],
  },
  '65 bits': {
    fields: [
      ['time', 43],
      ['node', 10],
      ['sequence', 12],
    ],
    unsigned: true,
  },
  'a tick of 0': { fields: [TIME], tickMs: 0 },
  'a tick of a fraction': { fields: [TIME], tickMs: 0.5 },
  'a tick longer than a day': { fields: [TIME], tickMs: 86_400_001 },
  'an epoch before 1970': { fields: [TIME], epochMs: -1 },
  'an epoch that is a date': { fields: [TIME], epochMs: new Date(0) },
  'an unknown sequence': { fields: [TIME], sequence: 'random' },
  'a sequence of no starts': { fields: [TIME, ['sequence', 3]], sequence: ['random', 0] },
  'a sequence of too many starts': { fields: [TIME, ['sequence', 3]], sequence: ['random', 9] },
  'a sequence that is a number': { fields: [TIME], sequence: 0 },
  'unsigned that is a number': { fields: [TIME], unsigned: 1 },
  'a split that does not fill': { fields: [TIME, ['node', 10]], nodeSplit: [5, 4] },
  'a split that is a number': { fields: [TIME, ['node', 10]], nodeSplit: 5 },
  'later than dates': { fields: [['time', 53]] },
}

const twitter = new Layout('twitter')
const cloak = new Cloak(SECRET, 'test')

/** [what is called, expected code, bad values by name, call]. */
test('a layout may be for reading alone', () => {
  // Mastodon's, whose time and sequence are too wide to be counted together.
  const fields = [
    ['time', 48],
    ['sequence', 16],
  ]
  const layout = new Layout({ fields, unsigned: true })
  assert.equal(layout.inspect(116_000_000_000_000_000n).unixMs, 1_770_019_531_250)
  const refused = { code: 'INVALID_ARGUMENT', message: /can be read, but not generated/ }
  assert.throws(() => new Snowflake(undefined, { layout }), refused)
  assert.throws(() => new Snowflake(0, { layout }), refused)
})

test('a preset may have another epoch', () => {
  const ours = new Layout('twitter').withEpochMs(1_735_689_600_000)
  assert.deepEqual([ours.epochMs, ours.name], [1_735_689_600_000, 'twitter'])
  assert.equal(ours.inspect(1n << 22n).unixMs, 1_735_689_600_001)
  assert.equal(ours.withSequence('continuing').epochMs, ours.epochMs)
  assert.equal(new Layout('twitter,epoch_ms=1735689600000').epochMs, ours.epochMs)
  const both = new Layout('twitter', { epochMs: 1_735_689_600_000, sequence: 'continuing' })
  assert.equal(String(both), 'twitter,epoch_ms=1735689600000,sequence=continuing')
  for (const bad of [{ epochMs: -1 }, { sequence: 'any' }, { tickMs: 1 }, null]) {
    assert.throws(() => new Layout('twitter', bad), { code: 'INVALID_ARGUMENT' })
  }
  for (const bad of [undefined, -1, 1.5, '1', 2 ** 53]) {
    assert.throws(() => ours.withEpochMs(bad), { code: 'INVALID_ARGUMENT' })
  }
})

const TABLE = [
  ['layout', 'INVALID_ARGUMENT', NOT_A_LAYOUT, (bad) => new Layout(bad)],
  ['inspect', 'INVALID_ID', NOT_A_RAW, (bad) => twitter.inspect(bad)],
  ['inspect of a generator', 'INVALID_ID', NOT_A_RAW, (bad) => still()[0].inspect(bad)],
  [
    'inspect, bits above the fields',
    'INVALID_ID',
    { '-1': -1n, '2^63': 2n ** 63n, '-2^63': -(2n ** 63n) },
    (bad) => twitter.inspect(bad),
  ],
  ['time to pack', 'INVALID_ARGUMENT', NOT_A_TIME, (bad) => twitter.pack(bad, 1, 1)],
  ['node id to pack', 'INVALID_NODE', NOT_A_NODE_ID, (bad) => twitter.pack(NOW * 1000, bad, 1)],
  [
    'sequence to pack',
    'INVALID_ARGUMENT',
    NOT_A_SEQUENCE,
    (bad) => twitter.pack(NOW * 1000, 1, bad),
  ],
  ['firstIdAt', 'INVALID_ARGUMENT', NOT_A_TIME, (bad) => twitter.firstIdAt(bad)],
  ['lastIdAt', 'INVALID_ARGUMENT', NOT_A_TIME, (bad) => twitter.lastIdAt(bad)],
  ['splitNode', 'INVALID_NODE', NOT_A_NODE_ID, (bad) => twitter.splitNode(bad)],
  ['datacenter', 'INVALID_NODE', { ...NOT_A_NODE_ID, 32: 32 }, (bad) => twitter.joinNode(bad, 1)],
  ['worker', 'INVALID_NODE', { ...NOT_A_NODE_ID, 32: 32 }, (bad) => twitter.joinNode(1, bad)],
  [
    'joinNode of a layout without parts',
    'INVALID_NODE',
    { 1: 1 },
    (bad) => new Layout('leaf').joinNode(bad, bad),
  ],
  [
    'withSequence',
    'INVALID_ARGUMENT',
    {
      ...NOT_AN_INTEGER,
      undefined,
      'only random': ['random'],
      'a fraction of starts': ['random', 1.5],
      'no starts': ['random', 0],
      'too many starts': ['random', 4097],
      'another name': ['zero', 1],
    },
    (bad) => twitter.withSequence(bad),
  ],
  ['node id', 'INVALID_NODE', NOT_A_NODE_ID, (bad) => new Snowflake(bad)],
  [
    'node ids',
    'INVALID_NODE',
    {
      none: [],
      'a hole': Array(3),
      twice: [7, 7],
      nested: [[1]],
      'a typed array': Uint32Array.of(1, 2),
      'too many': Array.from({ length: 1024 }, (_, index) => index),
    },
    (bad) => still({}, bad),
  ],
  [
    'options',
    'INVALID_ARGUMENT',
    { null: null, 'a number': 1, 'a string': 'discord', 'an unknown name': { secret: 1 } },
    (bad) => new Snowflake(1, bad),
  ],
  [
    'layout of a generator',
    'INVALID_ARGUMENT',
    Object.fromEntries(Object.entries(NOT_A_LAYOUT).filter(([, bad]) => bad !== undefined)),
    (layout) => still({ layout }),
  ],
  [
    'maxDriftSeconds without a lease',
    'INVALID_ARGUMENT',
    { 1: 1, 3600: 3600 },
    (maxDriftSeconds) => still({ maxDriftSeconds }),
  ],
  [
    'lease',
    'INVALID_LEASE',
    {
      null: null,
      'no end': { start: NOW },
      empty: { start: NOW, endExclusive: NOW },
      'before the epoch': { start: 1288834974, endExclusive: NOW },
      'past the lifetime': { start: NOW, endExclusive: 3487858230 },
    },
    (lease) => still({ lease }),
  ],
  [
    'generateMany',
    'INVALID_ARGUMENT',
    { ...NOT_AN_INTEGER, undefined, '-1': -1, 'more than memory': 2 ** 50 },
    (bad) => still()[0].generateMany(bad),
  ],
  ['fill', 'INVALID_ARGUMENT', NOT_NUMBERS, (bad) => still()[0].fill(bad)],
  [
    'fill, with the clock of the machine',
    'INVALID_ARGUMENT',
    NOT_NUMBERS,
    (bad) => new Snowflake(320, { restartSafe: false }).fill(bad),
  ],
  [
    'extendLease',
    'INVALID_LEASE',
    { ...NOT_AN_INTEGER, undefined, 'without a lease': NOW + 1 },
    (bad) => still()[0].extendLease(bad),
  ],
  [
    'secret of a cloak',
    'INVALID_SECRET',
    { undefined, null: null, 'a number': 1, '15 bytes': new Uint8Array(15), short: 'abc' },
    (bad) => new Cloak(bad, 'test'),
  ],
  [
    'label',
    'INVALID_ARGUMENT',
    { undefined, null: null, 'a number': 1, bytes: new Uint8Array(4), 'half a pair': 'a\ud800' },
    (bad) => new Cloak(SECRET, bad),
  ],
  ['hide', 'INVALID_ID', NOT_A_RAW, (bad) => cloak.hide(bad)],
  ['hideString', 'INVALID_ID', NOT_A_RAW, (bad) => cloak.hideString(bad)],
  [
    'reveal',
    'INVALID_ID',
    { ...NOT_A_RAW, '2^63': 2n ** 63n, 'upper case': '3VGOE12CCB8GH', empty: '' },
    (bad) => cloak.reveal(bad),
  ],
  ['hideInPlace', 'INVALID_ARGUMENT', NOT_NUMBERS, (bad) => cloak.hideInPlace(bad)],
  ['revealInPlace', 'INVALID_ARGUMENT', NOT_NUMBERS, (bad) => cloak.revealInPlace(bad)],
]

for (const [what, code, table, call] of TABLE) {
  suite(`bad ${what}`, () => {
    for (const [name, bad] of Object.entries(table)) {
      test(name, () => {
        assert.throws(
          () => call(bad),
          (error) => {
            assert(error instanceof RandflakeError, String(error))
            assert.equal(error.code, code, error.message)
            assert(!error.message.includes(SECRET))
            return true
          },
        )
      })
    }
  })
}

suite('wrong this', () => {
  for (const [type, good] of [
    [Layout, twitter],
    [Snowflake, still()[0]],
    [Cloak, cloak],
  ]) {
    for (const key of Reflect.ownKeys(type.prototype)) {
      if (key === 'constructor' || key === inspect.custom) continue
      const { value, get } = Object.getOwnPropertyDescriptor(type.prototype, key)
      test(`${type.name} ${String(key)}`, async () => {
        for (const self of [undefined, null, 1, {}, type.prototype, new Proxy(good, {})]) {
          await assert.rejects(async () => Reflect.apply(value ?? get, self, []), {
            name: 'RandflakeError',
            code: 'INVALID_ARGUMENT',
          })
        }
      })
    }
    test(`${type.name} without new`, () => {
      assert.throws(() => type('twitter'), { name: 'RandflakeError', code: 'INVALID_ARGUMENT' })
    })
  }
})

test('a secret is in no inspection of a cloak', () => {
  assert(!inspect(cloak, { showHidden: true, depth: 10 }).includes(SECRET))
  assert.equal(JSON.stringify(cloak), '{}')
})
