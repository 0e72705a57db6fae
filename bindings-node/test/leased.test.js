'use strict'

// Generators with leased node ids, in one process.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { existsSync, mkdirSync, renameSync, writeFileSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { suite, test } = require('node:test')
const { setTimeout: delay } = require('node:timers/promises')
const { pathToFileURL } = require('node:url')
const { inspect } = require('node:util')
const { generateSecret, Randflake, RandflakeError } = require('../index.js')
const { heldIn, newStore, run, SECRET, until } = require('./store.js')

/** Renewed after two seconds. */
const SHORT = { ttlSeconds: 6, maxSkewSeconds: 0, maxDriftSeconds: 0 }

const NOT_A_NUMBER = {
  'a string': '1',
  true: true,
  null: null,
  'a bigint': 1n,
  'a symbol': Symbol('1'),
  'an object': { valueOf: () => 1 },
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-1': -1,
  '1e300': 1e300,
}
const NOT_WHOLE = { ...NOT_A_NUMBER, 'a fraction': 1.5, 'above 32 bits': 2 ** 32 + 7 }

/** Bad values of each option, which are `INVALID_ARGUMENT` unless another code is given. */
const BAD_OPTIONS = {
  nodeCount: { ...NOT_WHOLE, none: 0, 'too many': 16385 },
  ttlSeconds: { ...NOT_WHOLE, none: 0, 'less than six skews': 29, 'more than a day': 86401 },
  maxSkewSeconds: { ...NOT_WHOLE, 'more than a sixth': 51 },
  namespace: {
    'a number': 1,
    null: null,
    true: true,
    'an object': { toString: () => 'name' },
    empty: '',
    'too long': 'x'.repeat(201),
    'too long in bytes': 'é'.repeat(101),
    'a control character': 'a\nb',
    'half a surrogate pair': 'a\ud800',
  },
  acquireTimeoutMs: { ...NOT_A_NUMBER, 'more than a day': 86_400_001 },
  maxWaitMs: { ...NOT_A_NUMBER, 'more than a day': 86_400_001 },
  maxDriftSeconds: { ...NOT_WHOLE, 'more than an hour': 3601 },
  lease: { 'a lease': { start: 1, endExclusive: 2 } },
  clock: { 'a clock': () => 1763640000, undefined },
  restartSafe: { false: false },
  ttl: { 'another unit': 300 },
  max_wait: { 'another language': 1 },
}

/** Asserts that it rejects, and does not throw, with an error of this package. */
async function refused(lease, code) {
  let leasing
  assert.doesNotThrow(() => {
    leasing = lease()
  })
  await assert.rejects(leasing, (error) => {
    assert(error instanceof RandflakeError, String(error))
    assert.equal(error.code, code, error.message)
    assert(!error.message.includes(SECRET) && !error.message.includes('hush'), error.message)
    return true
  })
}

for (const [name, table] of Object.entries(BAD_OPTIONS)) {
  suite(`option ${name}`, () => {
    for (const [what, bad] of Object.entries(table)) {
      test(what, async (t) => {
        const store = newStore(t)
        const options = { [name]: bad }
        await refused(() => Randflake.leased(store, SECRET, options), 'INVALID_ARGUMENT')
      })
    }
  })
}

suite('bad arguments', () => {
  const stores = {
    undefined,
    null: null,
    'a number': 7,
    'a buffer': Buffer.from('ids.db'),
    'an object': { href: 'file:///ids.db' },
    'a boxed string': Object('ids.db'),
    empty: '',
    'in memory': ':memory:',
    'a zero': 'ids\0.db',
    'half a surrogate pair': 'a\ud800.db',
    'a server': 'mongodb://me:hush@host/db',
    'the URL of a server': new URL('http://me:hush@host/ids.db'),
    'the file: URL of a server': new URL('file://host/ids.db'),
  }
  for (const [what, store] of Object.entries(stores)) {
    test(`store: ${what}`, () => refused(() => Randflake.leased(store, SECRET), 'INVALID_ARGUMENT'))
  }

  for (const [what, options] of Object.entries({ null: null, 'a number': 1, 'a string': 'x' })) {
    test(`options: ${what}`, async (t) => {
      const store = newStore(t)
      await refused(() => Randflake.leased(store, SECRET, options), 'INVALID_ARGUMENT')
    })
  }

  for (const [what, secret] of Object.entries({ undefined, null: null, short: SECRET.slice(1) })) {
    test(`secret: ${what}`, async (t) => {
      const store = newStore(t)
      await refused(() => Randflake.leased(store, secret), 'INVALID_SECRET')
    })
  }
})

suite('a store that cannot be used', () => {
  // Waiting does not help: an hour's wait would be noticed.
  const patient = { acquireTimeoutMs: 3_600_000 }

  test('in a directory that is missing', async (t) => {
    const store = join(dirname(newStore(t)), 'missing', 'ids.db')
    await refused(() => Randflake.leased(store, SECRET, patient), 'INVALID_ARGUMENT')
  })

  test('that is a directory', async (t) => {
    const store = newStore(t)
    mkdirSync(store)
    await refused(() => Randflake.leased(store, SECRET, patient), 'INVALID_ARGUMENT')
  })

  test('that is a file of something else', async (t) => {
    const store = newStore(t)
    writeFileSync(store, Buffer.alloc(4096, 7))
    await refused(() => Randflake.leased(store, SECRET), 'INVALID_ARGUMENT')
  })

  test('that is read-only', async (t) => {
    const store = newStore(t)
    const { stdout, stderr } = await run(
      store,
      `const { chmodSync } = require('node:fs')
      const { dirname } = require('node:path')
      const flake = await Randflake.leased(STORE, SECRET)
      await flake[Symbol.asyncDispose]()
      chmodSync(STORE, 0o444)
      chmodSync(dirname(STORE), 0o755)
      if (process.getuid() === 0) process.setuid(65534) // root may write everything
      await Randflake.leased(STORE, SECRET, { acquireTimeoutMs: 3_600_000 })
        .catch(({ code, message }) => say(code, message))`,
    )
    assert.match(stdout, /^INVALID_ARGUMENT .*(read-only|this user may write)/, stderr)
  })

  test('that belongs to another secret, whose other namespace does not', async (t) => {
    const store = newStore(t)
    const flake = await Randflake.leased(store, SECRET)
    const secret = generateSecret()
    await refused(() => Randflake.leased(store, secret), 'SECRET_MISMATCH')
    const other = await Randflake.leased(store, secret, { namespace: 'other' })
    assert.equal(typeof other.generate(), 'bigint')
    flake.close()
    other.close()
  })
})

suite('leased generators', () => {
  test('have node ids of their own, and never an id twice', async (t) => {
    const store = newStore(t)
    // A path and a URL of the same file, with characters that URLs escape.
    const odd = join(dirname(store), 'é %20.db')
    const flakes = await Promise.all([
      Randflake.leased(odd, SECRET),
      Randflake.leased(pathToFileURL(odd), SECRET, { nodeCount: 2 }),
      Randflake.leased(odd, Buffer.from(SECRET, 'hex')),
    ])
    const nodeIds = flakes.flatMap((flake) => flake.nodeIds)
    assert.deepEqual([nodeIds.length, new Set(nodeIds).size], [4, 4])
    const ids = []
    for (const flake of flakes) {
      for (let count = 0; count < 20_000; count++) ids.push(flake.generate())
      ids.push(...flake.generateMany(20_000), ...(await flake.generateManyAsync(20_000)))
      flake.fill(new BigInt64Array(10))
      ids.push(BigInt.asIntN(64, flake.encrypt(flake.decrypt(flake.generateString()))))
    }
    assert.equal(new Set(ids).size, 180_003)
    for (const flake of flakes) {
      assert(flake instanceof Randflake)
      assert(flake.nodeIds.includes(flake.inspect(flake.generate()).nodeId))
      await flake[Symbol.asyncDispose]()
    }
    assert.deepEqual(heldIn(odd), [])
  })

  test('renew their lease, and show its status', async (t) => {
    const flake = await Randflake.leased(newStore(t), SECRET, SHORT)
    const first = flake.lease
    const { state, nodeIds, start, endExclusive, secondsLeft, renewals, losses } = first
    assert.deepEqual(
      [state, nodeIds, endExclusive - start, renewals, losses, first.lastError, first.lastErrorAt],
      ['holding', flake.nodeIds, SHORT.ttlSeconds, 0, 0, null, null],
    )
    assert.equal(Object.keys(first).length, 12)
    assert(Object.isFrozen(first) && Object.isFrozen(nodeIds))
    assert(secondsLeft > 0 && secondsLeft <= SHORT.ttlSeconds, String(secondsLeft))
    const ids = new Set()
    let count = 0
    await until('renewals', () => {
      ids.add(flake.generate())
      count += 1
      return flake.lease.renewals >= 4
    })
    assert.equal(ids.size, count)
    assert(flake.lease.endExclusive > endExclusive + 1)
    assert.deepEqual(flake.nodeIds, nodeIds)
    assert.throws(() => flake.extendLease(endExclusive + 100), { code: 'INVALID_LEASE' })
    flake.close()
  })

  test('borrow coming seconds, and are set not to wait', async (t) => {
    const store = newStore(t)
    const flake = await Randflake.leased(store, SECRET, { maxWaitMs: 0 })
    assert.equal(new Set(flake.generateMany(5 * 131_072)).size, 5 * 131_072)
    const strict = await Randflake.leased(store, SECRET, { maxWaitMs: 0, maxDriftSeconds: 0 })
    assert.throws(
      () => {
        for (;;) strict.generateMany(50_000)
      },
      ({ code, retryAfterMs }) => code === 'SEQUENCE_EXHAUSTED' && retryAfterMs <= 1000,
    )
    await strict.ready()
    strict.generate()
    flake.close()
    strict.close()
  })

  test('outlast a store that is gone to their end, and recover', async (t) => {
    const store = newStore(t)
    const flake = await Randflake.leased(store, SECRET, { ...SHORT, maxWaitMs: 0 })
    renameSync(store, `${store}.away`)
    const ids = new Set()
    let count = 0
    await until('the end of the lease', () => {
      try {
        ids.add(flake.generate())
        count += 1
        return false
      } catch (error) {
        assert.equal(error.code, 'LEASE_UNAVAILABLE')
        assert(error.retryAfterMs >= 50 && error.retryAfterMs <= 5000, String(error.retryAfterMs))
        assert(error.cause instanceof RandflakeError)
        // Soon it makes a new file, which is in quarantine.
        assert(['STORE_REPLACED', 'STORE_QUARANTINED'].includes(error.cause.code))
        assert(error.message.includes(error.cause.message), error.message)
        return true
      }
    })
    await assert.rejects(flake.generateManyAsync(10), (error) => {
      return error.code === 'LEASE_UNAVAILABLE' && error.cause.code.startsWith('STORE_')
    })
    const { state, start, secondsLeft, lastError, lastErrorAt } = flake.lease
    assert.deepEqual([state, secondsLeft], ['expired', 0])
    assert(lastError instanceof RandflakeError)
    assert(['STORE_REPLACED', 'STORE_QUARANTINED'].includes(lastError.code), lastError.code)
    assert(lastErrorAt >= start && lastErrorAt <= Date.now() / 1000, String(lastErrorAt))
    // Waits without blocking, however long it takes.
    let isReady = false
    const ready = flake.ready().then(() => {
      isReady = true
    })
    await delay(300)
    assert.equal(isReady, false)
    assert(existsSync(store) || lastError.code === 'STORE_REPLACED', 'one in quarantine')
    renameSync(`${store}.away`, store)
    await ready
    ids.add(flake.generate())
    assert.equal(ids.size, count + 1)
    flake.close()
  })

  test('make batches longer than their lease, which is renewed meanwhile', async (t) => {
    const options = { ...SHORT, maxWaitMs: 60_000 }
    const flake = await Randflake.leased(newStore(t), SECRET, options)
    const { endExclusive } = flake.lease
    const seconds = SHORT.ttlSeconds + 1
    const ids = flake.generateMany(seconds * 131_072)
    const more = await flake.generateManyAsync(3 * 131_072)
    assert.equal(new Set([...ids, ...more]).size, (seconds + 3) * 131_072)
    assert(flake.inspect(ids.at(-1)).timestamp >= endExclusive)
    const refusal = { code: 'INVALID_ARGUMENT', message: /takes 7629 seconds/ }
    assert.throws(() => flake.generateMany(1e9), refusal)
    await assert.rejects(flake.generateManyAsync(1e9), refusal)
    flake.close()
  })

  test('take names of any length for what they are', async (t) => {
    const store = newStore(t)
    const long = `${'é'.repeat(75)}.db`
    const flakes = []
    for (const length of [1, 30, 31, 32, 33, 100]) {
      const namespace = 'é'.repeat(length)
      // In one namespace, the second secret would be refused.
      flakes.push(await Randflake.leased(store, generateSecret(), { namespace }))
      flakes.push(await Randflake.leased(store.replace('ids.db', long), SECRET))
    }
    assert(existsSync(store.replace('ids.db', long)))
    for (const flake of flakes) flake.close()
  })

  test('never have the JavaScript thread wait for the store', async (t) => {
    const store = newStore(t)
    const [flake, third] = [
      await Randflake.leased(store, SECRET),
      await Randflake.leased(store, SECRET),
    ]
    const block = `import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("begin exclusive")
print("locked", flush=True)
sys.stdin.read()`
    const locked = async () => {
      const blocker = spawn('python3', ['-c', block, store])
      await once(blocker.stdout, 'data')
      return blocker
    }
    let blocker = await locked()
    let last = performance.now()
    let longest = 0
    const ticking = setInterval(() => {
      const now = performance.now()
      longest = Math.max(longest, now - last)
      last = now
    }, 5)
    const leasing = Randflake.leased(store, SECRET)
    const disposing = third[Symbol.asyncDispose]()
    assert.equal(await Promise.race([leasing, delay(3000, 'waited')]), 'waited')
    blocker.stdin.end()
    const other = await leasing
    await disposing // may have given up by then
    clearInterval(ticking)
    // A turn takes 5 ms. One that waits for the store takes as long as the store is blocked.
    assert(longest < 2500, `no turn of the event loop for ${longest} ms`)

    const [given] = flake.nodeIds
    blocker = await locked()
    const giving = flake[Symbol.asyncDispose]()
    assert.equal(await Promise.race([giving, delay(200, 'waited')]), 'waited')
    blocker.stdin.end()
    await giving
    const held = heldIn(store)
    assert(held.includes(other.nodeIds[0]) && !held.includes(given), `${held}`)
    other.close()
  })

  test('are not copied, and never show their secret', async (t) => {
    const flake = await Randflake.leased(newStore(t), SECRET)
    const copying = { name: 'RandflakeError', code: 'INVALID_ARGUMENT' }
    assert.throws(() => structuredClone(flake), copying)
    const { port1 } = new MessageChannel()
    assert.throws(() => port1.postMessage(flake), copying)
    port1.close()
    const [nodeId] = flake.nodeIds
    assert.equal(inspect(flake), `Randflake { nodeIds: [ ${nodeId} ] }`)
    assert.equal(JSON.stringify(flake), `{"nodeIds":[${nodeId}]}`)
    const all = inspect([flake, flake.lease], { showHidden: true, depth: 10, getters: true })
    assert(!all.includes(SECRET), all)
    flake.close()
  })

  test('are made by a function that needs no class', async (t) => {
    class Mine extends Randflake {}
    const { leased } = Randflake
    const store = newStore(t)
    for (const lease of [leased, (...given) => Mine.leased(...given)]) {
      const flake = await lease(store, SECRET)
      assert.equal(flake.constructor, Randflake)
      flake.close()
    }
  })
})

suite('closing a leased generator', () => {
  test('ends it at once, and reading goes on', async (t) => {
    const store = newStore(t)
    const flake = await Randflake.leased(store, SECRET)
    const id = flake.generate()
    assert.equal(flake.close(), undefined)
    for (const call of [
      () => flake.generate(),
      () => flake.generateString(),
      () => flake.generateMany(1),
      () => flake.fill(new BigInt64Array(1)),
    ]) {
      assert.throws(call, { code: 'CLOSED' })
    }
    await assert.rejects(flake.ready(), { code: 'CLOSED' })
    await assert.rejects(flake.generateManyAsync(1), { code: 'CLOSED' })
    assert.deepEqual([flake.lease, flake.nodeIds], [null, []])
    assert.equal(flake.encrypt(flake.decrypt(id)), id)
    await until('it is given back', () => heldIn(store).length === 0)
    flake.close()
  })

  test('asyncDispose resolves once the node ids are given back', async (t) => {
    const store = newStore(t)
    const flake = await Randflake.leased(store, SECRET, { nodeCount: 3 })
    assert.deepEqual(heldIn(store), flake.nodeIds)
    const disposing = flake[Symbol.asyncDispose]()
    assert.throws(() => flake.generate(), { code: 'CLOSED' })
    assert.equal(await disposing, undefined)
    assert.deepEqual(heldIn(store), [])
    assert.equal(await flake[Symbol.asyncDispose](), undefined)
  })

  test('happens by itself when nothing refers to it', async (t) => {
    const { stdout, stderr } = await run(
      newStore(t),
      `let flake = await Randflake.leased(STORE, SECRET)
      flake.generate()
      say(heldIn(STORE).length)
      flake = undefined
      while (heldIn(STORE).length > 0) { gc(); await delay(10) }
      say('given back')`,
      '--expose-gc',
    )
    assert.equal(stdout, '1\ngiven back\n', stderr)
  })

  test('is waited for when the process exits in the middle of it', async (t) => {
    const store = newStore(t)
    const { stdout, stderr } = await run(
      store,
      `let flakes = await Promise.all(Array(4).fill().map(() => Randflake.leased(STORE, SECRET)))
      say(heldIn(STORE).length)
      flakes = undefined
      await delay(1)
      gc()
      setImmediate(() => process.exit()) // finalizers have run`,
      '--expose-gc',
    )
    assert.equal(stdout, '4\n', stderr)
    assert.deepEqual(heldIn(store), [])
  })
})
