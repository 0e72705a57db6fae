'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { join } = require('node:path')
const { mock, test } = require('node:test')
const { inspect } = require('node:util')
const { Inspector, Randflake, RandflakeError, Snowflake, Tickets } = require('../index.js')
const { FakeRandflake, FakeSnowflake, FakeTickets } = require('../testing.js')
const { SECRET } = require('./store.js')

const START = Date.UTC(2025, 10, 20, 12)
const RETRY_LATER = ['LEASE_UNAVAILABLE', 'SEQUENCE_EXHAUSTED', 'CLOCK_MOVED_BACK']

function fails(call) {
  try {
    call()
  } catch (error) {
    assert(error instanceof RandflakeError, `${error}`)
    return error
  }
  throw new Error('it did not fail')
}

test('the package exports it under its name', async () => {
  assert.equal(require('randflake/testing').FakeRandflake, FakeRandflake)
  assert.equal((await import('randflake/testing')).FakeSnowflake, FakeSnowflake)
  const names = ['FakeRandflake', 'FakeSnowflake', 'FakeTickets']
  assert.deepEqual(Object.keys(require('../testing.js')), names)
})

test('the ids are the same in each run, and in Python', () => {
  const flake = new FakeRandflake()
  assert.equal(flake.generateString(), 'd1ladjl4a6ikc')
  assert.equal(flake.generate(), 1185974778066149345n)
  assert.deepEqual(flake.inspect(flake.generate()), {
    timestamp: START / 1000,
    nodeId: 1,
    sequence: 2,
    date: new Date(START),
  })
  const snowflake = new FakeSnowflake({ tickMs: 1 })
  assert.deepEqual(Array.from(snowflake.generateMany(2)), [
    1991476617016250368n,
    1991476617016250369n,
  ])
  assert.equal(snowflake.generate(), 1991476617020444672n)
})

test('every form of call makes its ids', async () => {
  const flake = new FakeRandflake({ nodeId: [7, 8] })
  const ids = new BigInt64Array(3)
  flake.fill(ids)
  const all = [
    ...ids,
    ...flake.generateMany(2),
    ...(await flake.generateManyAsync(2)),
    ...flake.generateStrings(2),
    flake.generate(),
    flake.generateString(),
  ]
  const sequences = all.map((id) => flake.inspect(id).sequence)
  assert.deepEqual(sequences, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

test('each passes for what it stands for, and shows what it is', () => {
  const [flake, snowflake] = [new FakeRandflake(), new FakeSnowflake({ layout: 'discord' })]
  assert(flake instanceof Randflake && snowflake instanceof Snowflake)
  assert.equal(inspect(flake), 'FakeRandflake { nodeIds: [ 1 ] }')
  assert.equal(inspect(snowflake), "FakeSnowflake { layout: 'discord', nodeIds: [ 1 ] }")
  assert.throws(() => structuredClone(flake), { code: 'INVALID_ARGUMENT' })
  assert.equal(fails(() => flake.extendLease(2e9)).code, 'INVALID_LEASE')
})

test('the clock stands still, ticks, and is set', () => {
  const still = new FakeRandflake()
  const ticking = new FakeRandflake({ tickMs: 500, start: new Date(START) })
  const times = (flake) =>
    Array.from({ length: 3 }, () => flake.inspect(flake.generate()).timestamp - START / 1000)
  assert.deepEqual(times(still), [0, 0, 0])
  assert.deepEqual(times(ticking), [0, 0, 1])
  assert.equal(ticking.time, START + 1500)
  still.time = new Date(START + 7000)
  assert.deepEqual(times(still), [7, 7, 7])
  still.advance(2500)
  assert.deepEqual(times(still), [9, 9, 9])
  still.time = START - 60_000
  assert.equal(fails(() => still.generate()).code, 'CLOCK_MOVED_BACK')
  const own = { now: START / 1000 + 5 }
  const given = new FakeRandflake({ clock: () => own.now })
  assert.deepEqual(times(given), [5, 5, 5])
  assert.equal(given.time, START + 5000)
  assert.equal(fails(() => given.advance(1)).code, 'INVALID_ARGUMENT')
  own.now += 1
  assert.deepEqual(times(given), [6, 6, 6])
})

test('where a call would wait, the clock goes on', () => {
  const flake = new FakeRandflake({ maxDriftSeconds: 0 })
  flake.generateMany(131_072)
  assert.equal(flake.inspect(flake.generate()).timestamp, START / 1000 + 1)
  assert.equal(flake.time, START + 1000)
  const hasty = new FakeRandflake({ maxDriftSeconds: 0, maxWaitMs: 0 })
  hasty.generateMany(131_072)
  assert.equal(fails(() => hasty.generate()).code, 'SEQUENCE_EXHAUSTED')
})

test('the next calls fail with the errors of real ones', async () => {
  const flake = new FakeRandflake()
  for (const code of RETRY_LATER) {
    flake.failNext(code, { retryAfterMs: 2000 })
    const error = fails(() => flake.generate())
    assert.deepEqual([error.code, error.retryAfterMs], [code, 2000])
    const cause = code === 'LEASE_UNAVAILABLE' ? 'STORE_UNAVAILABLE' : undefined
    assert.equal(error.cause?.code, cause)
  }
  flake.failNext('CLOSED', { times: 5 })
  for (const call of ['generate', 'generateString', 'generateStrings', 'generateMany', 'fill']) {
    const error = fails(() => flake[call](call === 'fill' ? new BigInt64Array(1) : 1))
    assert.deepEqual([error.code, error.retryAfterMs], ['CLOSED', undefined])
  }
  flake.failNext('LEASE_UNAVAILABLE')
  await assert.rejects(flake.generateManyAsync(1), { code: 'LEASE_UNAVAILABLE' })
  await flake.ready()
  assert.equal(flake.inspect(flake.generate()).sequence, 0)
  assert.equal(fails(() => flake.failNext('INVALID_ID')).code, 'INVALID_ARGUMENT')
  assert.equal(fails(() => flake.failNext('CLOSED', { retryMs: 1 })).code, 'INVALID_ARGUMENT')
})

test('a lease is renewed, and ends where its store is broken', async () => {
  const flake = new FakeSnowflake({ ttlSeconds: 60 })
  const begin = START / 1000
  assert.deepEqual(
    [flake.lease.state, flake.lease.start, flake.lease.endExclusive, flake.lease.secondsLeft],
    ['holding', begin, begin + 60, 60],
  )
  flake.advance(20_000)
  assert.deepEqual([flake.lease.renewals, flake.lease.endExclusive], [1, begin + 80])
  flake.breakStore('NODES_EXHAUSTED')
  const { state, lastError, lastErrorAt, secondsLeft } = flake.lease
  assert.deepEqual(
    [state, lastError.code, lastErrorAt, secondsLeft],
    ['retrying', 'NODES_EXHAUSTED', begin + 20, 60],
  )
  flake.generate()
  flake.advance(60_000)
  assert.deepEqual([flake.lease.state, flake.lease.secondsLeft], ['expired', 0])
  const error = fails(() => flake.generate())
  assert.deepEqual([error.code, error.cause], ['LEASE_UNAVAILABLE', lastError])
  let isReady = false
  const ready = flake.ready().then(() => {
    isReady = true
  })
  await new Promise(setImmediate)
  assert(!isReady)
  flake.mendStore()
  await ready
  assert.deepEqual([flake.lease.state, flake.lease.lastError], ['holding', null])
  assert.equal(Number(flake.inspect(flake.generate()).unixMs), START + 80_000)
  assert.equal(fails(() => flake.breakStore('CLOSED')).code, 'INVALID_ARGUMENT')
  const { idsGenerated, storeRequests, storeErrors, clockSkewSeconds } = flake.metrics()
  assert.deepEqual([idsGenerated, clockSkewSeconds], [2, 0])
  assert.deepEqual(storeErrors, { NODES_EXHAUSTED: 1 })
  assert.equal(storeRequests, 1 + flake.lease.renewals + 1)
})

test('once closed it has no lease', async () => {
  const flake = new FakeRandflake()
  flake.breakStore()
  flake.advance(400_000)
  const ready = flake.ready()
  await flake[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]()
  await assert.rejects(ready, { code: 'CLOSED' })
  assert.equal(flake.lease, null)
  assert.equal(fails(() => flake.generate()).code, 'CLOSED')
})

test('it stands for leased', async (t) => {
  t.after(() => mock.restoreAll())
  mock.method(Randflake, 'leased', FakeRandflake.leased)
  mock.method(Snowflake, 'leased', FakeSnowflake.leased)
  const options = { namespace: 'orders', ttlSeconds: 60, acquireTimeoutMs: 1 }
  const flake = await Randflake.leased('redis://nowhere', SECRET, options)
  assert.equal(new Inspector(SECRET).inspect(flake.generate()).nodeId, 1)
  assert.equal(flake.lease.endExclusive, START / 1000 + 60)
  const snowflake = await Snowflake.leased('redis://nowhere', { layout: 'discord' })
  assert.equal(snowflake.layout.name, 'discord')
})

test('tickets: the numbers are in a row, in every form of call', async () => {
  const orders = new FakeTickets('orders', { start: 7n, step: 2 })
  assert(orders instanceof Tickets)
  assert.equal(orders.name, 'orders')
  assert.equal(inspect(orders), "FakeTickets { name: 'orders' }")
  assert.equal(JSON.stringify(orders), '{"name":"orders"}')
  const two = new BigInt64Array(2)
  orders.fill(two)
  await orders.ready()
  const numbers = [...two, orders.generate(), ...orders.generateMany(2)]
  numbers.push(...(await orders.generateManyAsync(1)))
  assert.deepEqual(numbers, [7n, 9n, 11n, 13n, 15n, 17n])
  assert.equal(new FakeTickets('orders').generate(), 1n, 'each begins at its start')
  assert.equal(new FakeTickets().name, 'tickets')
  const { numbersGenerated, blocksDrawn, reserve, lastError } = orders.metrics()
  assert.deepEqual([numbersGenerated, blocksDrawn, reserve, lastError], [6, 1, 4, null])
  for (const wrong of ['a b', '', 1, null]) {
    assert.equal(fails(() => new FakeTickets(wrong)).code, 'INVALID_ARGUMENT')
  }
  for (const wrong of [{ start: 0 }, { step: '1' }, { maxBlock: 1 }, null]) {
    assert.equal(fails(() => new FakeTickets('orders', wrong)).code, 'INVALID_ARGUMENT')
  }
  for (const wrong of [-1, 1.5, '3', null]) {
    assert.equal(fails(() => orders.generateMany(wrong)).code, 'INVALID_ARGUMENT')
  }
  assert.equal(orders.generate(), 19n)
})

test('tickets: the next calls fail with the errors of real ones', () => {
  const orders = new FakeTickets()
  orders.failNext('LEASE_UNAVAILABLE', { retryAfterMs: 2000, times: 2 })
  const { code, retryAfterMs, cause } = fails(() => orders.generate())
  assert.deepEqual(
    [code, retryAfterMs, cause.code],
    ['LEASE_UNAVAILABLE', 2000, 'STORE_UNAVAILABLE'],
  )
  assert.equal(fails(() => orders.generateMany(2)).code, 'LEASE_UNAVAILABLE')
  for (const lasting of ['LIFETIME_OVER', 'FORKED', 'CLOSED', 'INTERNAL']) {
    orders.failNext(lasting)
    assert.equal(fails(() => orders.generate()).code, lasting)
  }
  for (const wrong of ['SEQUENCE_EXHAUSTED', 'STORE_UNAVAILABLE', undefined]) {
    assert.equal(fails(() => orders.failNext(wrong)).code, 'INVALID_ARGUMENT')
  }
  assert.equal(orders.generate(), 1n, 'no failure takes a number')
  const last = new FakeTickets('orders', { start: 2n ** 53n - 1n })
  assert.equal(last.generate(), 2n ** 53n - 1n)
  assert.equal(fails(() => last.generate()).code, 'LIFETIME_OVER')
})

test('tickets: a broken store leaves what was drawn', async () => {
  const orders = new FakeTickets()
  orders.breakStore('STORE_UNAVAILABLE', { left: 3 })
  assert.equal(orders.metrics().reserve, 3)
  assert.equal(fails(() => orders.generateMany(4)).cause.code, 'STORE_UNAVAILABLE')
  assert.deepEqual([...orders.generateMany(3)], [1n, 2n, 3n])
  assert.equal(fails(() => orders.generate()).code, 'LEASE_UNAVAILABLE')
  assert.equal(fails(() => orders.fill(new BigInt64Array(1))).code, 'LEASE_UNAVAILABLE')
  await assert.rejects(orders.generateManyAsync(1), { code: 'LEASE_UNAVAILABLE' })
  const ready = orders.ready()
  orders.mendStore()
  await ready
  assert.equal(orders.generate(), 4n)
  const { storeErrors, lastError } = orders.metrics()
  assert.deepEqual([storeErrors, lastError], [{ STORE_UNAVAILABLE: 1 }, null])

  orders.breakStore('STORE_QUARANTINED')
  assert.equal(fails(() => orders.generate()).code, 'STORE_QUARANTINED')
  await assert.rejects(orders.ready(), { code: 'STORE_QUARANTINED' })
  for (const wrong of ['LEASE_LOST', 'NODES_EXHAUSTED', 'CLOSED']) {
    assert.equal(fails(() => orders.breakStore(wrong)).code, 'INVALID_ARGUMENT')
  }

  orders.breakStore()
  const waiting = orders.ready()
  orders.close()
  await assert.rejects(waiting, { code: 'CLOSED' })
  assert.equal(fails(() => orders.generate()).code, 'CLOSED')
  assert.equal(orders.metrics().reserve, 0)
  await orders[Symbol.asyncDispose]()
})

test('tickets: it stands for leased', async (t) => {
  mock.method(Tickets, 'leased', FakeTickets.leased)
  mock.method(Tickets, 'lazy', FakeTickets.lazy)
  t.after(() => mock.restoreAll())
  const options = { start: 5, step: 5, maxBlock: 10, namespace: 'shop' }
  const orders = await Tickets.leased('redis://nowhere', 'orders', options)
  assert(orders instanceof FakeTickets)
  assert.deepEqual([orders.name, orders.generate(), orders.generate()], ['orders', 5n, 10n])
  assert.equal(Tickets.lazy(undefined, 'orders').generate(), 1n)
})

test('options that it does not have are refused', () => {
  for (const options of [
    { startMs: 1 },
    { start: 'x' },
    { start: START, clock: () => 1 },
    { tickMs: 1, clock: () => 1 },
  ]) {
    assert.equal(fails(() => new FakeRandflake(options)).code, 'INVALID_ARGUMENT', inspect(options))
  }
})

test('production is refused', () => {
  const code = `
    const { FakeRandflake, FakeTickets } = require(${JSON.stringify(join(__dirname, '../testing.js'))})
    for (const Fake of [FakeRandflake, FakeTickets]) {
      try { new Fake() } catch (error) { console.log(error.code, error.message) }
    }
  `
  const env = { ...process.env, NODE_ENV: 'production' }
  const done = spawnSync(process.execPath, ['-e', code], { env, encoding: 'utf8' })
  assert.equal(done.stdout.match(/^INVALID_ARGUMENT randflake\/testing is for tests/gm)?.length, 2)
})
