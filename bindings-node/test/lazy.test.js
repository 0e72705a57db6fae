'use strict'

// Generators that take their first lease with their first id.

const assert = require('node:assert/strict')
const { channel } = require('node:diagnostics_channel')
const { existsSync } = require('node:fs')
const { basename, dirname } = require('node:path')
const { beforeEach, suite, test } = require('node:test')
const { setTimeout: delay } = require('node:timers/promises')
const { inspect } = require('node:util')
const { Inspector, Layout, listLeases, Randflake, Snowflake } = require('../index.js')
const { FakeRandflake, FakeSnowflake } = require('../testing.js')
const { BUSY_WORKERS } = require('./runtime.js')
const { heldIn, newStore, run, SECRET, until } = require('./store.js')

const OTHER = '00112233445566778899aabbccddeeff'
const NAMES = [
  'RANDFLAKE_STORE',
  'RANDFLAKE_SECRET',
  'RANDFLAKE_SECRET_FILE',
  'RANDFLAKE_NAMESPACE',
]

beforeEach(() => {
  for (const name of NAMES) delete process.env[name]
})

/** Makes a generator that is closed after the test. Its calls wait for as long as a lease may take. */
function lazy(t, store, secret, options) {
  const flake = Randflake.lazy(store, secret, { maxWaitMs: 60_000, ...options })
  t.after(() => flake[Symbol.asyncDispose]())
  return flake
}

/** A server that holds requests until `answer` is called, and then refuses them or fails. */
function silentServer() {
  const waiting = []
  return {
    waiting,
    run: (text) => new Promise((_, reject) => waiting.push({ text, reject })),
    fail: () => {
      for (const { reject } of waiting.splice(0)) reject(new Error('it is down'))
    },
  }
}

suite('before the first id', () => {
  test('nothing is read and nothing leased', async (t) => {
    const store = newStore(t)
    const flake = lazy(t)
    assert(flake instanceof Randflake)
    assert.deepEqual([flake.nodeIds, flake.lease], [[], null])
    assert.deepEqual(JSON.parse(JSON.stringify(flake)), { nodeIds: [] })
    assert.equal(inspect(flake), 'Randflake { nodeIds: [] }')
    const metrics = flake.metrics()
    assert.throws(() => structuredClone(flake), { code: 'INVALID_ARGUMENT' })
    assert.throws(() => flake.generate(), { code: 'INVALID_SECRET', message: /RANDFLAKE_SECRET/ })
    process.env.RANDFLAKE_SECRET = SECRET
    assert.throws(() => flake.generate(), { code: 'INVALID_ARGUMENT', message: /RANDFLAKE_STORE/ })
    process.env.RANDFLAKE_STORE = store
    const id = flake.generate()
    assert.deepEqual(flake.nodeIds, [new Inspector(SECRET).inspect(id).nodeId])
    assert.deepEqual(heldIn(store), flake.nodeIds)
    const { waits, ...others } = flake.metrics()
    assert.deepEqual(Object.keys(metrics), [
      'idsGenerated',
      'waits',
      ...Object.keys(others).slice(1),
    ])
    assert.deepEqual(metrics.waits, { ...waits, LEASE_UNAVAILABLE: 0 })
    assert.deepEqual([metrics.idsGenerated, metrics.storeRequests], [0, 0])
  })

  test('reading an id needs the secret alone, which then stays', async (t) => {
    const store = newStore(t)
    const flake = lazy(t)
    const id = new Randflake(78, SECRET).generate()
    assert.throws(() => flake.inspect(id), { code: 'INVALID_SECRET' })
    process.env.RANDFLAKE_SECRET = SECRET
    assert.equal(flake.inspect(id).nodeId, 78)
    assert.equal(flake.encrypt(flake.decrypt(id)), id)
    assert.equal(flake.lease, null)
    Object.assign(process.env, { RANDFLAKE_SECRET: OTHER, RANDFLAKE_STORE: store })
    assert.equal(new Inspector(SECRET).inspect(flake.generate()).nodeId, flake.nodeIds[0])
  })

  test('the namespace comes with a store or a secret of the environment', async (t) => {
    const store = newStore(t)
    process.env.RANDFLAKE_NAMESPACE = 'orders'
    process.env.RANDFLAKE_SECRET = SECRET
    const [ofEnvironment, given] = [lazy(t, store), lazy(t, store, SECRET)]
    ofEnvironment.inspect(1n) // after which the secret is still the environment's
    ofEnvironment.generate()
    given.generate()
    assert.equal(ofEnvironment.lease.namespace, 'orders')
    assert.equal(given.lease.namespace, 'default')
    assert.equal((await listLeases(store, { namespace: 'orders' })).held, 1)
  })

  test('an argument that is wrong throws at once', () => {
    for (const options of [
      { ttlSeconds: 0 },
      { namespace: '' },
      { maxDriftSeconds: 200 },
      { ttl: 1 },
    ]) {
      assert.throws(() => Randflake.lazy(undefined, undefined, options), {
        code: 'INVALID_ARGUMENT',
      })
      assert.throws(() => Snowflake.lazy(undefined, options), { code: 'INVALID_ARGUMENT' })
    }
    assert.throws(() => Randflake.lazy('a', SECRET, { layout: 'twitter' }), {
      code: 'INVALID_ARGUMENT',
    })
    assert.throws(() => Snowflake.lazy('a', { layout: 'simpleflake' }), {
      code: 'INVALID_ARGUMENT',
    })
    assert.throws(() => Randflake.lazy('a', SECRET, { onLeaseChange: 1 }), {
      code: 'INVALID_ARGUMENT',
    })
    assert.throws(() => Randflake.lazy('a', 'hush').generate(), { code: 'INVALID_SECRET' })
    for (const store of ['postgres:5432', 'localhost:6379', 'mongodb://host/']) {
      assert.throws(
        () => Randflake.lazy(store, SECRET).generate(),
        { code: 'INVALID_ARGUMENT' },
        store,
      )
      assert.ok(!existsSync(store))
    }
  })

  test('a path, a secret and options stay what they were', async (t) => {
    const store = newStore(t)
    const secret = Buffer.from(SECRET, 'hex')
    const options = { namespace: 'orders' }
    const folder = process.cwd()
    t.after(() => process.chdir(folder))
    process.chdir(dirname(store))
    const flake = lazy(t, basename(store), secret, options)
    process.chdir(folder)
    secret.fill(0)
    options.namespace = 'posts'
    const id = flake.generate()
    assert.equal(new Inspector(SECRET).inspect(id).nodeId, flake.nodeIds[0])
    assert.deepEqual([flake.lease.store, flake.lease.namespace], [store, 'orders'])
  })

  test('close leases nothing, and it stays closed', async (t) => {
    const store = newStore(t)
    for (const close of ['close', Symbol.dispose, Symbol.asyncDispose]) {
      const flake = Randflake.lazy(store, SECRET)
      await flake[close]()
      flake.close()
      const calls = [
        () => flake.generate(),
        () => flake.generateString(),
        () => flake.generateMany(2),
        () => flake.fill(new BigInt64Array(2)),
        () => flake.extendLease(1),
      ]
      for (const call of calls) assert.throws(call, { code: 'CLOSED' })
      await assert.rejects(flake.ready(), { code: 'CLOSED' })
      await assert.rejects(flake.generateManyAsync(2), { code: 'CLOSED' })
      assert.deepEqual([flake.nodeIds, flake.lease], [[], null])
      flake.inspect(1n)
    }
    assert(!existsSync(store))
  })
})

suite('the first id', () => {
  const calls = {
    generate: (flake) => flake.generate(),
    generateString: (flake) => flake.generateString(),
    generateMany: (flake) => flake.generateMany(3)[2],
    'a large batch': (flake) => flake.generateMany(20_000)[19_999],
    generateStrings: (flake) => flake.generateStrings(3)[2],
    generateManyAsync: async (flake) => (await flake.generateManyAsync(3))[2],
    fill: (flake) => {
      const ids = new BigInt64Array(3)
      flake.fill(ids)
      return ids[2]
    },
    ready: async (flake) => {
      await flake.ready()
      return flake.generate()
    },
  }
  for (const [name, call] of Object.entries(calls)) {
    test(`takes the lease, by ${name}`, async (t) => {
      const store = newStore(t)
      const flake = lazy(t, store, SECRET)
      const ids = [await call(flake), await call(flake), flake.generate(), flake.generateString()]
      assert.equal(new Set(ids.map(String)).size, 4)
      assert.deepEqual(heldIn(store), flake.nodeIds)
      assert.equal(flake.lease.state, 'holding')
      for (const id of ids) assert.equal(flake.inspect(id).nodeId, flake.nodeIds[0])
      assert.equal(flake.metrics().storeRequests, 1)
      await flake[Symbol.asyncDispose]()
      assert.deepEqual(heldIn(store), [])
      assert.throws(() => flake.generate(), { code: 'CLOSED' })
    })
  }

  test('of a Snowflake takes the lease, too', async (t) => {
    process.env.RANDFLAKE_STORE = newStore(t)
    const flake = Snowflake.lazy(undefined, { layout: 'discord', maxWaitMs: 60_000 })
    assert.equal(inspect(flake), "Snowflake { layout: 'discord', nodeIds: [] }")
    assert.equal(flake.layout.name, 'discord')
    flake.inspect(1n)
    const [one, other] = [flake.generate(), flake.generate()]
    assert(one < other)
    assert.equal(flake.inspect(other).nodeId, flake.nodeIds[0])
    await flake[Symbol.asyncDispose]()
    assert.deepEqual(heldIn(process.env.RANDFLAKE_STORE), [])
    assert.throws(() => Snowflake.lazy(undefined, { layout: new Layout('twitter'), ttl: 1 }), {
      code: 'INVALID_ARGUMENT',
    })
  })

  test('many callers at once have one lease', async (t) => {
    const store = newStore(t)
    const flake = lazy(t, store, SECRET)
    const many = Array.from({ length: 20 }, () => flake.generateManyAsync(100))
    const ready = Array.from({ length: 5 }, () => flake.ready())
    const batches = await Promise.all(many)
    await Promise.all(ready)
    assert.equal(new Set(batches.flatMap((ids) => [...ids])).size, 2000)
    assert.equal(heldIn(store).length, 1)
    assert.equal(flake.metrics().storeRequests, 1)
  })

  test('a class that extends it counts each call once', async (t) => {
    let calls = 0
    class Counted extends Randflake {
      generate() {
        calls += 1
        return super.generate()
      }
    }
    const flake = lazy(t, newStore(t), SECRET)
    Object.setPrototypeOf(flake, Counted.prototype)
    const ids = [flake.generate(), flake.generate()]
    assert.notEqual(ids[0], ids[1])
    assert.equal(calls, 2)
  })

  test('changes of the lease are told', async (t) => {
    const store = newStore(t)
    const published = []
    const listen = (change) => published.push(change)
    channel('randflake:lease').subscribe(listen)
    t.after(() => channel('randflake:lease').unsubscribe(listen))
    const statuses = []
    const onLeaseChange = (status) => statuses.push(status)
    const flake = lazy(t, store, SECRET, { onLeaseChange })
    await delay(1)
    assert.equal(statuses.length, 0)
    flake.generate()
    await until('it is told', () => statuses.length === 1)
    assert.deepEqual([statuses[0].state, statuses[0].nodeIds], ['holding', flake.nodeIds])
    const ours = published.filter(({ status }) => status.store === store)
    assert.equal(ours[0].generator, flake)
    await flake[Symbol.asyncDispose]()
    await until('the end is told', () => statuses.at(-1).state === 'stopped')
  })
})

suite('without a lease', () => {
  test('what waiting does not help is thrown, and the next call tries again', async (t) => {
    const store = newStore(t)
    const other = lazy(t, store, OTHER)
    await other.ready()
    const flake = lazy(t, store, SECRET)
    for (const call of [() => flake.generate(), () => flake.generateMany(1)]) {
      assert.throws(call, { code: 'SECRET_MISMATCH' })
    }
    await assert.rejects(flake.ready(), { code: 'SECRET_MISMATCH' })
    await assert.rejects(flake.generateManyAsync(1), { code: 'SECRET_MISMATCH' })
    assert.deepEqual([flake.lease, flake.nodeIds], [null, []])
  })

  test('a file that cannot be used yet is asked again', async (t) => {
    const store = newStore(t)
    const flake = lazy(t, store, SECRET, { create: false })
    assert.throws(() => flake.generate(), { code: 'STORE_NOT_INITIALIZED' })
    await lazy(t, store, SECRET).ready()
    assert.equal(typeof flake.generate(), 'bigint')
  })

  test('a call does not wait longer than it may', async (t) => {
    const store = newStore(t)
    const refused = []
    for (let count = 0; count < 10 || (refused.length === 0 && count < 100); count++) {
      const flake = lazy(t, store, SECRET, { maxWaitMs: 0 })
      try {
        flake.generate()
      } catch (error) {
        refused.push(error)
      }
      await flake.ready()
      assert.equal(typeof flake.generate(), 'bigint')
      await flake[Symbol.asyncDispose]()
    }
    // On a busy machine the thread that takes the lease may come first, but not every time.
    assert.notEqual(refused.length, 0)
    for (const { code, retryAfterMs } of refused) {
      assert.deepEqual([code, retryAfterMs > 0], ['LEASE_UNAVAILABLE', true])
    }
  })

  test('a server is asked once at a time, and never waited for', async () => {
    const server = silentServer()
    const flake = Randflake.lazy(server, SECRET, { acquireTimeoutMs: 0, maxWaitMs: 60_000 })
    const unavailable = ({ code, retryAfterMs }) =>
      code === 'LEASE_UNAVAILABLE' && retryAfterMs > 0 && retryAfterMs <= 5000
    for (let round = 0; round < 3; round++) assert.throws(() => flake.generate(), unavailable)
    assert.throws(() => flake.fill(new BigInt64Array(3)), unavailable)
    assert.throws(() => flake.generateMany(20_000), unavailable)
    await until('it is asked', () => server.waiting.length > 0)
    assert.throws(() => flake.generate(), unavailable)
    await delay(20)
    assert.equal(server.waiting.length, 1)
    server.fail()
    // The store's error is known once the attempt is over.
    await until('it says why', () => {
      try {
        flake.generate()
      } catch (error) {
        assert(unavailable(error), error)
        server.fail()
        return error.cause?.code === 'STORE_UNAVAILABLE' && /it is down/.test(error.message)
      }
      return assert.fail('there is no lease')
    })
    assert.deepEqual([flake.lease, flake.nodeIds], [null, []])
    const disposed = flake[Symbol.asyncDispose]()
    await until('it gives up', async () => {
      server.fail()
      return Promise.race([disposed.then(() => true), delay(1).then(() => false)])
    })
    assert.throws(() => flake.generate(), { code: 'CLOSED' })
  })
})

test('ready fails where there is no first lease in time, and says why', async (t) => {
  for (const acquireTimeoutMs of [0, 50]) {
    const run = () => Promise.reject(new Error('it is down'))
    const flake = lazy(t, { run, server: 'postgresql' }, SECRET, { acquireTimeoutMs })
    await assert.rejects(flake.ready(), (error) => {
      assert.deepEqual([error.code, error.cause?.code], ['LEASE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
      return /it is down/.test(error.message)
    })
  }
})

test('options may come alone', async (t) => {
  const store = newStore(t)
  Object.assign(process.env, { RANDFLAKE_STORE: store, RANDFLAKE_SECRET: SECRET })
  const never = { create: false }
  assert.throws(() => Randflake.lazy(never).generate(), { code: 'STORE_NOT_INITIALIZED' })
  await assert.rejects(Randflake.leased(never), { code: 'STORE_NOT_INITIALIZED' })
  const flake = Randflake.lazy({ nodeCount: 2, maxWaitMs: 60_000 })
  t.after(() => flake.closeAsync())
  flake.generate()
  assert.equal(flake.nodeIds.length, 2)
  const layout = new Layout('sonyflake')
  const snowflake = await Snowflake.leased({ layout, namespace: 'other' })
  assert.deepEqual([snowflake.layout, snowflake.nodeIds.length], [layout, 1])
  await snowflake.closeAsync()
  assert.equal(Snowflake.lazy({ layout }).layout, layout)
  assert.throws(() => Randflake.lazy({ nodeCount: 0 }), { code: 'INVALID_ARGUMENT' })
  // An object with other names is a store, or is refused.
  assert.throws(() => Randflake.lazy({ nodeCont: 2 }).generate(), {
    message: /this object is none/,
  })
})

suite('a process', () => {
  const endings = {
    'ends by itself': ['', 0],
    'calls process.exit': ['process.exit(3)', 3],
    'ends with an uncaught exception': ['setTimeout(() => { throw new Error("mine") })', 1],
  }
  for (const [how, [ending, code]] of Object.entries(endings)) {
    test(`that ${how} gives the lease back`, async (t) => {
      const store = newStore(t)
      const ended = await run(
        store,
        `const flake = Randflake.lazy(STORE, SECRET, { maxWaitMs: 60000 })
        say(typeof flake.generate(), heldIn(STORE).length)
        ${ending}`,
      )
      assert.deepEqual([ended.stdout, ended.code], ['bigint 1\n', code], ended.stderr)
      assert.deepEqual(heldIn(store), [])
    })
  }

  for (const later of [0, 1, 3, 10]) {
    test(`leaves nothing behind when it ends ${later} ms into the first lease`, async (t) => {
      const store = newStore(t)
      const ended = await run(
        store,
        `await (await Randflake.leased(STORE, SECRET))[Symbol.asyncDispose]()
        const flakes = Array(3).fill().map(() => Randflake.lazy(STORE, SECRET, { maxWaitMs: 0 }))
        for (const flake of flakes) try { flake.generate() } catch {}
        setTimeout(() => process.exit(3), ${later})`,
      )
      assert.equal(ended.code, 3, ended.stderr)
      assert.deepEqual(heldIn(store), [])
    })
  }

  test('that never uses it contacts nothing, and does not wait', async (t) => {
    const store = newStore(t)
    const ended = await run(store, 'globalThis.flake = Randflake.lazy(STORE, SECRET)')
    assert.deepEqual([ended.code, existsSync(store)], [0, false], ended.stderr)
  })

  test('closes during the first lease, which goes back', async (t) => {
    const store = newStore(t)
    const ended = await run(
      store,
      `const { readdirSync, statSync } = require('node:fs')
      const folder = require('node:path').dirname(STORE)
      const written = () => JSON.stringify(
        readdirSync(folder).map((name) => [name, statSync(folder + '/' + name).mtimeMs]))
      await (await Randflake.leased(STORE, SECRET))[Symbol.asyncDispose]()
      for (let round = 0; round < 20; round++) {
        const flake = Randflake.lazy(STORE, SECRET, { maxWaitMs: 0 })
        try { flake.generate() } catch {}
        for (const end = performance.now() + round / 4; performance.now() < end;);
        await flake[Symbol.asyncDispose]()
        // All is done by then, so no file changes any more.
        const ended = written()
        await delay(20)
        if (written() !== ended) say('written after the end of', round)
      }
      say('done')`,
    )
    assert.deepEqual([ended.stdout, ended.code], ['done\n', 0], ended.stderr)
  })

  test('collects one that was never used, and gives back that of one that was', async (t) => {
    const store = newStore(t)
    const ended = await run(
      store,
      `let gone = 0
      const registry = new FinalizationRegistry(() => { gone += 1 })
      const make = (uses) => {
        const flake = Randflake.lazy(STORE, SECRET, { maxWaitMs: 60000 })
        if (uses) flake.generate()
        registry.register(flake, 0)
      }
      make(false)
      make(true)
      for (let round = 0; round < 1000 && (gone < 2 || heldIn(STORE).length > 0); round++) {
        gc()
        await delay(20)
      }
      say(gone, heldIn(STORE).length)`,
      '--expose-gc',
    )
    assert.equal(ended.stdout, '2 0\n', ended.stderr)
  })

  const workers = {
    'ends by itself': ['', ''],
    'is terminated': ['setInterval(() => flake, 1000)', 'worker.terminate()'],
    'is terminated while it makes ids': ['for (;;) flake.generate()', 'worker.terminate()'],
  }
  for (const [how, [inside, outside]] of Object.entries(workers)) {
    const options = how.endsWith('makes ids') ? BUSY_WORKERS : {}
    test(`has a worker that ${how} give its lease back`, options, async (t) => {
      const store = newStore(t)
      const code = `const flake = Randflake.lazy(STORE, SECRET, { maxWaitMs: 60000 })
        parentPort.postMessage([flake.generate(), ...flake.generateMany(2)])
        ${inside}`
      const ended = await run(
        store,
        `const own = Randflake.lazy(STORE, SECRET, { maxWaitMs: 60000 })
        own.generate()
        const worker = work(${JSON.stringify(code)})
        const ended = once(worker, 'exit')
        const [ids] = await once(worker, 'message')
        ${outside}
        await ended
        say(ids.length, heldIn(STORE).join() === own.nodeIds.join(), typeof own.generate())`,
      )
      assert.deepEqual([ended.stdout, ended.code], ['3 true bigint\n', 0], ended.stderr)
      assert.deepEqual(heldIn(store), [])
    })
  }

  test('terminates workers that make their first id', async (t) => {
    const store = newStore(t)
    const code = `parentPort.postMessage('begun')
      const flake = Randflake.lazy(STORE, SECRET, { maxWaitMs: 60000 })
      flake.generate()
      flake.generate()`
    const ended = await run(
      store,
      `await Randflake.lazy(STORE, SECRET).ready()
      for (let round = 0; round < 10; round++) {
        const worker = work(${JSON.stringify(code)})
        await once(worker, 'message')
        await worker.terminate()
      }
      say('done')`,
    )
    assert.deepEqual([ended.stdout, ended.code], ['done\n', 0], ended.stderr)
    assert.deepEqual(heldIn(store), [])
  })
})

test('the fakes of randflake/testing have it', () => {
  const flake = FakeRandflake.lazy('ids.db', undefined, { ttlSeconds: 60 })
  assert(flake instanceof FakeRandflake)
  flake.generate()
  assert.equal(flake.lease.store, 'memory')
  const posts = FakeSnowflake.lazy(undefined, { layout: 'discord' })
  assert(posts instanceof FakeSnowflake)
  assert.equal(posts.layout.name, 'discord')
})
