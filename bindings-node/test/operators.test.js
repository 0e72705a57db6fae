'use strict'

// What operators see in a store and do to it, without its secret.

const assert = require('node:assert/strict')
const { execFileSync } = require('node:child_process')
const { existsSync } = require('node:fs')
const { after, before, suite, test } = require('node:test')
const {
  fenceStore,
  initStore,
  inspectLease,
  listLeases,
  Randflake,
  RandflakeError,
  releaseLease,
  repairLease,
  repairStore,
  setNodeIds,
} = require('../index.js')
const { timeout } = require('../lib/stores.js')
const { PASSWORD, servers } = require('./servers.js')
const { newStore, run, SECRET } = require('./store.js')

timeout.ms = 20_000 // for a busy machine

const YEARS = 315_360_000

async function refused(promise, code, pattern = /./) {
  await assert.rejects(promise, (error) => {
    assert(error instanceof RandflakeError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, pattern)
    assert(!error.message.includes(PASSWORD), error.message)
    return true
  })
}

/** Runs SQL in another process: another SQLite in this one could undo ours. */
function sqlite(store, sql) {
  const program = `import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.executescript(sys.argv[2])`
  execFileSync('python3', ['-c', program, store, sql])
}

/** The tests of every store. `make` creates the namespace, if the store needs that. */
function operations(storeOf, live) {
  const make = async (t, namespace) => {
    const store = storeOf(t)
    if (store.includes('://')) await initStore(store, SECRET, 'new', { namespace })
    return store
  }

  live('leases are listed without the secret', async (t) => {
    const namespace = 'listed'
    const store = await make(t, namespace)
    const flake = await Randflake.leased(store, SECRET, { namespace, nodeCount: 2 })
    const status = await listLeases(store, { namespace })
    assert(Object.isFrozen(status) && Object.isFrozen(status.leases[0]))
    const { now, leases, held, waiting, free, implausible, floor, floorIsImplausible, limits } =
      status
    assert.deepEqual(
      leases.map(({ nodeId }) => nodeId),
      flake.nodeIds,
    )
    assert.deepEqual([held, waiting, free, implausible], [2, 0, 131_070, 0])
    assert.deepEqual([floor, floorIsImplausible, status.incarnationChanged], [0, false, false])
    assert.deepEqual(limits, {
      maxTtlSeconds: 300,
      maxSkewSeconds: 5,
      nodeIds: '0-131071',
      layout: '1730000000:30:17:17',
      format: 2,
    })
    const { nodeId, state, start, endExclusive, secondsLeft, isImplausible, note } = leases[0]
    assert.deepEqual([state, isImplausible, endExclusive - now], ['held', false, secondsLeft])
    assert(start < now && now < endExclusive && endExclusive <= now + 300)
    assert(note.endsWith(`:${process.pid}`), note)

    await flake[Symbol.asyncDispose]()
    const after = await inspectLease(store, nodeId, { namespace })
    assert.deepEqual([after.state, after.note], ['free', note])
    const never = [0, 1, 2].find((id) => !flake.nodeIds.includes(id))
    assert.equal(await inspectLease(store, never, { namespace }), null)
  })

  live('the lease of a killed process is released', async (t) => {
    const namespace = 'killed'
    const store = await make(t, namespace)
    const { stdout, stderr } = await run(
      store,
      `const { nodeIds } = await Randflake.leased(STORE, SECRET, { namespace: '${namespace}' })
      say(nodeIds[0])
      process.kill(process.pid, 'SIGKILL')`,
    )
    assert.equal(stderr, '')
    const nodeId = Number(stdout)
    const before = await inspectLease(store, nodeId, { namespace })
    assert.equal(before.state, 'held')
    const stale = { ...before, start: before.start - 1 }
    await refused(releaseLease(store, stale, { namespace }), 'INVALID_ARGUMENT', /another lease/)
    const endExclusive = await releaseLease(store, before, { namespace })
    const after = await inspectLease(store, nodeId, { namespace })
    assert.deepEqual([after.state, after.endExclusive], ['free', endExclusive])
    assert(endExclusive < before.endExclusive && after.secondsLeft <= 107)
    await refused(releaseLease(store, after, { namespace }), 'INVALID_ARGUMENT', /no holder/)
  })

  live('a fence keeps new leases out', async (t) => {
    const namespace = 'fenced'
    const store = await make(t, namespace)
    const flake = await Randflake.leased(store, SECRET, { namespace })
    const floor = await fenceStore(store, { namespace })
    const status = await listLeases(store, { namespace })
    assert.equal(status.floor, floor)
    assert(floor <= status.now + 320 && floor > status.now + 200)
    const leasing = Randflake.leased(store, SECRET, { namespace, acquireTimeoutMs: 0 })
    await refused(leasing, 'STORE_QUARANTINED')
    const [nodeId] = flake.nodeIds
    await refused(repairStore(store, { namespace }), 'INVALID_ARGUMENT', /needs no repair/)
    await refused(repairLease(store, nodeId, { namespace }), 'INVALID_ARGUMENT', /no repair/)
    await flake[Symbol.asyncDispose]()
  })

  live('an operator sets which node ids are leased', async (t) => {
    const namespace = 'ranges'
    const store = storeOf(t)
    await initStore(store, SECRET, 'new', { namespace, nodeIds: '7,9-10' })
    const flake = await Randflake.leased(store, SECRET, { namespace, nodeCount: 3 })
    assert.deepEqual([...flake.nodeIds].sort(), [10, 7, 9])
    const { leases } = await listLeases(store, { namespace })
    const unusedFrom = await setNodeIds(store, '0-6,8-10', { namespace })
    const [seven] = leases.filter(({ nodeId }) => nodeId === 7)
    assert(unusedFrom >= seven.endExclusive, `${unusedFrom}`)
    const { limits, free } = await listLeases(store, { namespace })
    assert.deepEqual([limits.nodeIds, free], ['0-6,8-10', 8])
    await flake[Symbol.asyncDispose]()
    for (const nodeIds of ['', '7-', '9-8', '0-131072', '0,a']) {
      await refused(setNodeIds(store, nodeIds, { namespace }), 'INVALID_ARGUMENT', /as 0-6,8-1023/)
      const init = initStore(store, SECRET, 'new', { namespace: 'none', nodeIds })
      await refused(init, 'INVALID_ARGUMENT', /as 0-6,8-1023/)
    }
    for (const nodeIds of [7, [7], null, 7n]) {
      await refused(setNodeIds(store, nodeIds, { namespace }), 'INVALID_ARGUMENT', /a string/)
    }
  })

  live('a namespace that is not there is not made', async (t) => {
    const [store, namespace] = [storeOf(t), "nobody's"]
    for (const call of [
      () => listLeases(store, { namespace }),
      () => inspectLease(store, 7, { namespace }),
      () => fenceStore(store, { namespace }),
      () => setNodeIds(store, '0-6', { namespace }),
      () => repairLease(store, 7, { namespace }),
      () => repairStore(store, { namespace }),
      () => releaseLease(store, { nodeId: 7, start: 0, endExclusive: 1 }, { namespace }),
    ]) {
      await refused(call(), 'STORE_NOT_INITIALIZED')
    }
  })
}

suite('of a file', () => operations(newStore, test))

const settings = { redis: ['--appendonly', 'yes'] }

for (const name of ['postgresql', 'redis', 'etcd']) {
  suite(`of ${name}`, () => {
    let server
    before(async () => {
      server = await servers[name](...(settings[name] ?? []))
    })
    after(() => server?.stop())
    operations(
      () => server.url,
      (what, body) =>
        test(what, (t) => (server === undefined ? t.skip('the server is missing') : body(t))),
    )
  })
}

test('what a wrong clock has set is repaired', async (t) => {
  const store = newStore(t)
  const flake = await Randflake.leased(store, SECRET)
  const [nodeId] = flake.nodeIds
  await flake[Symbol.asyncDispose]()
  sqlite(
    store,
    `update node set end_exclusive = end_exclusive + ${YEARS}, token = zeroblob(16);
    update namespace set floor = ${2_000_000_000 + YEARS};`,
  )
  const { now, implausible, leases, floorIsImplausible } = await listLeases(store)
  assert.deepEqual([implausible, leases[0].isImplausible, floorIsImplausible], [1, true, true])
  await refused(releaseLease(store, leases[0]), 'INVALID_ARGUMENT', /repair it/)
  const low = { endExclusive: now }
  await refused(repairLease(store, nodeId, low), 'INVALID_ARGUMENT', /no less than/)
  const mine = now + 1000
  assert.equal(await repairLease(store, nodeId, { endExclusive: mine }), mine)
  assert.equal(await repairStore(store, { floor: mine }), mine)
  const repaired = [await repairLease(store, nodeId), await repairStore(store)]
  for (const end of repaired) assert(end >= now + 305 && end < mine, `${end} after ${now}`)
  assert.equal((await listLeases(store)).implausible, 0)
})

test('a file that is not there is not made', async (t) => {
  const store = newStore(t)
  await refused(listLeases(store), 'STORE_NOT_INITIALIZED')
  assert(!existsSync(store))
})

test('what is no argument is refused, as a rejection', async (t) => {
  const store = newStore(t)
  await (await Randflake.leased(store, SECRET))[Symbol.asyncDispose]()
  for (const call of [
    () => listLeases(7),
    () => listLeases(store, { nameSpace: 'orders' }),
    () => listLeases(store, { namespace: 7 }),
    () => listLeases(store, 'orders'),
    () => inspectLease(store),
    () => inspectLease(store, -1),
    () => inspectLease(store, 1.5),
    () => inspectLease(store, '7'),
    () => inspectLease(store, 131_072),
    () => repairLease(store, 7, { endExclusive: '7' }),
    () => repairLease(store, 7, { floor: 7 }),
    () => repairStore(store, { floor: 1.5 }),
    () => releaseLease(store, 7),
    () => releaseLease(store, null),
    () => releaseLease(store, { nodeId: 7 }),
    () => releaseLease(store, { nodeId: 2 ** 32, start: 0, endExclusive: 1 }),
  ]) {
    await refused(call(), 'INVALID_ARGUMENT')
  }
})
