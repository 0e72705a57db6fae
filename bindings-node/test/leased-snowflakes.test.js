'use strict'

// Snowflakes with leased node ids: what differs from Randflake; everything else is the same.

const assert = require('node:assert/strict')
const { existsSync } = require('node:fs')
const { suite, test } = require('node:test')
const { Layout, Randflake, RandflakeError, Snowflake } = require('../index.js')
const { heldIn, newStore, run, SECRET, until } = require('./store.js')

/** Renewed after two seconds. */
const SHORT = { ttlSeconds: 6, maxSkewSeconds: 0 }

/** Ticks that second boundaries split. */
const CUT = {
  fields: [
    ['time', 39],
    ['sequence', 8],
    ['node', 16],
  ],
  tickMs: 7,
  epochMs: 1735689600003,
}

/** Asserts that it rejects, and does not throw, with an error of this package. */
async function refused(lease, code, pattern = /./) {
  let leasing
  assert.doesNotThrow(() => {
    leasing = lease()
  })
  await assert.rejects(leasing, (error) => {
    assert(error instanceof RandflakeError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, pattern)
    return true
  })
}

const LAYOUTS = {
  randflake: 'randflake',
  twitter: 'twitter',
  discord: 'discord',
  leaf: new Layout('leaf'),
  sonyflake: 'sonyflake',
  sonyflake2: 'sonyflake2',
  instagram: 'instagram',
  'ticks that seconds cut in two': CUT,
}
for (const [name, layout] of Object.entries(LAYOUTS)) {
  test(`ids rise and lie in the lease: ${name}`, async (t) => {
    const flake = await Snowflake.leased(newStore(t), { layout })
    const array = new BigInt64Array(300)
    const ids = [flake.generate(), ...flake.generateMany(300)]
    ids.push(...(await flake.generateManyAsync(300)))
    flake.fill(array)
    await flake.ready()
    ids.push(...array, flake.generate())
    assert(ids.every((id, index) => index === 0 || ids[index - 1] < id))
    const { start, endExclusive, nodeIds, state } = flake.lease
    assert.deepEqual([state, nodeIds], ['holding', flake.nodeIds])
    for (const { unixMs, nodeId } of ids.map((id) => flake.inspect(id))) {
      assert.equal(nodeId, nodeIds[0])
      assert(start * 1000 <= unixMs && unixMs + flake.layout.tickMs <= endExclusive * 1000)
    }
    await flake[Symbol.asyncDispose]()
  })
}

test('twitter unless another layout is set', async (t) => {
  const flake = await Snowflake.leased(newStore(t))
  assert.equal(flake.layout.name, 'twitter')
  assert.deepEqual(JSON.parse(JSON.stringify(flake)), { layout: 'twitter', nodeIds: flake.nodeIds })
  assert.throws(() => structuredClone(flake), { code: 'INVALID_ARGUMENT' })
  flake.close()
})

test('a namespace has one layout', async (t) => {
  const store = newStore(t)
  const same = ['twitter', 'leaf'] // the same ids by two names
  const flakes = await Promise.all(same.map((layout) => Snowflake.leased(store, { layout })))
  assert.notDeepEqual(flakes[0].nodeIds, flakes[1].nodeIds)
  const other = /has the layout twitter, not .*name another namespace/
  for (const layout of ['discord', CUT]) {
    await refused(() => Snowflake.leased(store, { layout }), 'INVALID_ARGUMENT', other)
  }
  await refused(() => Randflake.leased(store, SECRET), 'INVALID_ARGUMENT', other)
  flakes.push(await Snowflake.leased(store, { layout: 'discord', namespace: 'other' }))
  for (const flake of flakes) flake.close()
})

suite('what is refused', () => {
  const minutes = { fields: [['time', 31], ...CUT.fields.slice(1)], tickMs: 60_000 }
  const cases = {
    'a layout without node ids': [{ layout: 'simpleflake' }, /has no node ids/],
    'a layout that there is not': [{ layout: 'mastodon' }, /there is no layout/],
    'a layout of null': [{ layout: null }],
    'too many node ids': [{ nodeCount: 1024 }, /1 to 1023 node ids, got 1024/],
    'too much drift': [{ maxDriftSeconds: 101 }, /a third of the ttl/],
    'a short lease': [{ ttlSeconds: 29 }, /six times/],
    'a lease shorter than six ticks': [{ layout: minutes }, /at least 360 seconds/],
    'a clock': [{ clock: () => 1763640000 }, /can only have the names layout, nodeCount/],
    'a secret': [SECRET],
    null: [null],
  }
  for (const [what, [options, pattern]] of Object.entries(cases)) {
    test(what, async (t) => {
      const store = newStore(t)
      await refused(() => Snowflake.leased(store, options), 'INVALID_ARGUMENT', pattern)
      assert(!existsSync(store))
    })
  }

  test('a layout that has ended', async (t) => {
    const lease = () => Snowflake.leased(newStore(t), { layout: 'baidu' })
    await refused(lease, 'LIFETIME_OVER', /2024-11-20T13:24:16Z/)
  })

  test('a layout where there is none', async (t) => {
    const lease = () => Randflake.leased(newStore(t), SECRET, { layout: 'twitter' })
    await refused(lease, 'INVALID_ARGUMENT', /can only have the names nodeCount/)
  })
})

test('a burst borrows only where a drift is set', async (t) => {
  const options = { layout: CUT, maxWaitMs: 0 }
  const never = await Snowflake.leased(newStore(t), options)
  assert.throws(() => never.generateMany(257), /at most 256 ids, got 257/)
  never.close()

  const store = newStore(t)
  const flake = await Snowflake.leased(store, { ...options, maxDriftSeconds: 2 })
  const ids = flake.generateMany(60_000) // 235 ticks of 256 ids: 1.6 seconds
  const [first, last] = [ids[0], ids.at(-1)].map((id) => flake.inspect(id).unixMs)
  assert(first + 1600 < last && last <= Date.now() + 2000)
  await flake[Symbol.asyncDispose]()
})

test('it goes on for many terms of its lease', async (t) => {
  const flake = await Snowflake.leased(newStore(t), SHORT)
  let last = 0n
  await until('two renewals', () => {
    const id = flake.generate()
    assert(last < id)
    last = id
    return flake.lease.renewals >= 2
  })
  flake.close()
})

test('closed', async (t) => {
  const store = newStore(t)
  const flake = await Snowflake.leased(store, { nodeCount: 2 })
  const id = flake.generate()
  const { nodeIds } = flake
  assert.throws(() => flake.extendLease(2_000_000_000), { code: 'INVALID_LEASE' })
  assert.deepEqual(heldIn(store).sort(), [...nodeIds].sort())
  await flake[Symbol.asyncDispose]()
  assert.deepEqual(heldIn(store), [])
  for (const call of [() => flake.generate(), () => flake.generateMany(1)]) {
    assert.throws(call, { code: 'CLOSED' })
  }
  await assert.rejects(flake.ready(), { code: 'CLOSED' })
  assert.deepEqual([flake.lease, flake.nodeIds], [null, []])
  assert(nodeIds.includes(flake.inspect(id).nodeId))
})

suite('the end gives back', () => {
  const endings = {
    'of a process': ['', 0],
    'of a process that exits': ['process.exit(3)', 3],
    'of a worker': [
      `const worker = work(\`const flake = await Snowflake.leased(STORE)
         parentPort.postMessage(String(flake.generate()))\`)
       await once(worker, 'exit')`,
      0,
    ],
  }
  for (const [whose, [ending, code]] of Object.entries(endings)) {
    test(whose, async (t) => {
      const store = newStore(t)
      const script = `const flake = await Snowflake.leased(STORE, { layout: 'leaf' })
        say(typeof flake.generate(), heldIn(STORE).length)
        ${ending}`
      const ended = await run(store, script)
      assert.deepEqual([ended.stdout, ended.code], ['bigint 1\n', code], ended.stderr)
      assert.deepEqual(heldIn(store), [])
    })
  }
})
