'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { suite, test } = require('node:test')
const { generateSecret, Inspector, Randflake, RandflakeError } = require('../index.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const NOW = 1763640000
const inspector = new Inspector(SECRET)

/** Returns a generator on a clock that stands still, and the clock. */
function still(options, nodeId = 1) {
  const clock = { time: NOW, now: () => clock.time }
  return [new Randflake(nodeId, SECRET, { clock, ...options }), clock]
}

/** Runs a script in a process of its own, which must succeed, and returns what it wrote. */
function run(script, ...flags) {
  const prelude = `const { Randflake, Inspector, generateSecret } = require('./index.js')
    const SECRET = '${SECRET}'\n`
  const options = { cwd: `${__dirname}/..`, encoding: 'utf8' }
  const done = spawnSync(process.execPath, [...flags, '--eval', prelude + script], options)
  assert.equal(done.status, 0, done.stderr)
  return done
}

suite('batches', () => {
  test('are in order, and go on where single ids stopped', async () => {
    const [flake] = still()
    const ids = [flake.generate()]
    ids.push(...flake.generateMany(3))
    const buffer = new BigInt64Array(2)
    flake.fill(buffer)
    ids.push(...buffer, ...(await flake.generateManyAsync(2)), flake.generate())
    const sequences = ids.map((id) => flake.inspect(id).sequence)
    assert.deepEqual(sequences, [0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert.equal(flake.inspect(flake.generateString()).sequence, 9)
  })

  test('may be empty', async () => {
    const [flake] = still()
    assert.equal(flake.generateMany(0).length, 0)
    assert.equal((await flake.generateManyAsync(0)).length, 0)
    flake.fill(new BigInt64Array(0))
    assert.equal(flake.inspect(flake.generate()).sequence, 0)
  })

  test('fill only the part of the memory that the array shows', () => {
    for (const options of [{ clock: () => NOW }, { restartSafe: false }]) {
      const all = new BigInt64Array(6)
      new Randflake(1100, SECRET, options).fill(all.subarray(2, 4))
      assert.deepEqual(
        Array.from(all, (id) => id !== 0n),
        [false, false, true, true, false, false],
      )
    }
  })

  test('made on another thread are distinct, and may be changed', async () => {
    const flake = new Randflake(1101, SECRET, { restartSafe: false })
    const batches = await Promise.all([1, 2, 3, 4].map(() => flake.generateManyAsync(20_000)))
    assert.equal(new Set(batches.flatMap((ids) => [...ids])).size, 80_000)
    batches[0][0] = 5n
    assert.equal(batches[0][0], 5n)
    assert(batches[0] instanceof BigInt64Array)
  })

  test('made on another thread fail with our error', async () => {
    const flake = new Randflake(1102, SECRET, { restartSafe: false, maxWaitMs: 0 })
    await assert.rejects(flake.generateManyAsync(131_073), { code: 'INVALID_ARGUMENT' })
    flake.close()
    await assert.rejects(
      flake.generateManyAsync(1),
      (error) => error instanceof RandflakeError && error.code === 'CLOSED',
    )
  })

  test('leave the event loop free while they wait on another thread', async () => {
    const flake = new Randflake(1103, SECRET, { restartSafe: false })
    let turns = 0
    const ticking = setInterval(() => turns++, 5)
    await flake.generateManyAsync(3 * 131_072) // of three seconds, wherever the first one ends
    clearInterval(ticking)
    assert(turns > 3, `${turns} turns`)
  })
})

suite('waiting', () => {
  test('retryAfterMs is long enough, to the millisecond', () => {
    const [flake, clock] = still({ maxWaitMs: 0 })
    clock.time = NOW + 0.0001220703125 // 0.12 ms
    flake.generateMany(131_072)
    let wait
    assert.throws(
      () => flake.generate(),
      (error) => {
        wait = error.retryAfterMs
        return error.code === 'SEQUENCE_EXHAUSTED'
      },
    )
    assert.equal(wait, 1000)
    clock.time += (wait - 1) / 1000
    assert.throws(() => flake.generate(), { retryAfterMs: 1 })
    clock.time += 1 / 1000
    assert.equal(flake.inspect(flake.generate()).timestamp, NOW + 1)
  })

  test('retryAfterMs is absent where waiting does not help', () => {
    const [flake, clock] = still({ lease: { start: NOW, endExclusive: NOW + 1 } })
    clock.time = NOW + 1
    assert.throws(
      () => flake.generate(),
      (error) => error.code === 'LEASE_EXPIRED' && !('retryAfterMs' in error),
    )
  })

  test('ready() resolves once an id can be had, and not before', async () => {
    const flake = new Randflake(1200, SECRET, { restartSafe: false, maxWaitMs: 0 })
    await flake.ready()
    let code
    while (code === undefined) {
      try {
        flake.generateMany(10_000)
      } catch (error) {
        code = error.code
      }
    }
    assert.equal(code, 'SEQUENCE_EXHAUSTED')
    await flake.ready()
    flake.generate()
  })

  test('ready() looks at an injected clock again and again', async () => {
    const [flake, clock] = still({ lease: { start: NOW + 1, endExclusive: NOW + 9 } })
    clock.time = NOW + 0.984375
    let done = false
    const ready = flake.ready().then(() => {
      done = true
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.equal(done, false)
    clock.time = NOW + 1
    await ready
    assert.equal(flake.inspect(flake.generate()).timestamp, NOW + 1)
  })

  test('ready() rejects where waiting does not help', async () => {
    const [flake] = still()
    flake.close()
    await assert.rejects(flake.ready(), { name: 'RandflakeError', code: 'CLOSED' })
  })

  test('a pending ready() keeps the process alive', () => {
    const { stdout } = run(`
      const flake = new Randflake(1, SECRET, { maxWaitMs: 0 })
      flake.ready().then(() => console.log(typeof flake.generate()))`)
    assert.equal(stdout, 'bigint\n')
  })

  test('the first id comes from the second after the generator was made', () => {
    const { stdout } = run(`
      for (const nodeId of [1, 1, 2]) {
        const made = Math.floor(Date.now() / 1000)
        const flake = new Randflake(nodeId, SECRET)
        console.log(flake.inspect(flake.generate()).timestamp > made)
        const other = new Randflake(nodeId, SECRET, { maxWaitMs: 0 })
        console.log(typeof other.generate())
        other.close()
        flake.close()
      }
      const hasty = new Randflake(3, SECRET, { restartSafe: false, maxWaitMs: 0 })
      console.log(typeof hasty.generate())`)
    assert.equal(stdout, 'true\nbigint\ntrue\nbigint\ntrue\nbigint\nbigint\n')
  })
})

suite('clock', () => {
  const thrown = { not: 'an error' }

  for (const [name, clock] of Object.entries({
    'a function': () => {
      throw thrown
    },
    'an object': {
      now() {
        throw thrown
      },
    },
    'its sleep': {
      now: () => NOW - 1 / 64,
      sleep() {
        throw thrown
      },
    },
  })) {
    test(`what ${name} throws is thrown on unchanged`, async () => {
      const lease = { start: NOW, endExclusive: NOW + 9 }
      const flake = new Randflake(1, SECRET, { clock, lease })
      const buffer = new BigInt64Array(3).fill(-1n)
      const calls = [
        () => flake.generate(),
        () => flake.generateString(),
        () => flake.generateMany(3),
        () => flake.fill(buffer),
      ]
      for (const call of calls) assert.throws(call, (error) => error === thrown)
      assert.deepEqual(buffer, new BigInt64Array(3))
      await assert.rejects(flake.generateManyAsync(3), (error) => error === thrown)
      if (name !== 'its sleep') await assert.rejects(flake.ready(), (error) => error === thrown)
    })
  }

  test('is called as a method of its object', () => {
    class Fixed {
      #time = NOW
      now() {
        return this.#time
      }
    }
    const flake = new Randflake(1, SECRET, { clock: new Fixed() })
    assert.equal(flake.inspect(flake.generate()).timestamp, NOW)
  })

  test('may call its own generator, and close it', () => {
    const inner = []
    const clock = {
      now() {
        if (inner.length < 3) {
          inner.push(0n)
          inner.push(flake.generate())
        }
        return NOW
      },
    }
    const flake = new Randflake(1, SECRET, { clock })
    const ids = [flake.generate(), ...inner.filter((id) => id !== 0n)]
    assert.equal(new Set(ids).size, 4)

    const closing = new Randflake(1, SECRET, {
      clock: () => {
        closing.close()
        return NOW
      },
    })
    // Also the call that was reading the clock when the generator was closed.
    for (const _ of [1, 2]) assert.throws(() => closing.generate(), { code: 'CLOSED' })
  })

  test('may look at the array that is being filled, or take it away', () => {
    let ids = new BigInt64Array(3).fill(-1n)
    const seen = []
    const watching = new Randflake(1, SECRET, {
      clock: () => {
        seen.push(...ids)
        ids[0] = 7n
        return NOW
      },
    })
    watching.fill(ids)
    assert.deepEqual(seen, [-1n, -1n, -1n])
    assert.deepEqual(
      Array.from(ids, (id) => inspector.inspect(id).sequence),
      [0, 1, 2],
    )

    ids = new BigInt64Array(3)
    const taking = new Randflake(1, SECRET, {
      clock: () => {
        structuredClone(ids, { transfer: [ids.buffer] })
        return NOW
      },
    })
    assert.throws(() => taking.fill(ids), { code: 'INVALID_ARGUMENT' })

    const buffer = new ArrayBuffer(64, { maxByteLength: 128 })
    const resizing = new Randflake(1, SECRET, {
      clock: () => {
        buffer.resize(128)
        return NOW
      },
    })
    assert.throws(() => resizing.fill(new BigInt64Array(buffer)), { code: 'INVALID_ARGUMENT' })
  })

  test('of one generator is not that of another', () => {
    const [one] = still()
    const [other] = still()
    assert.equal(one.generate(), other.generate())
  })
})

suite('lease', () => {
  test('bounds the generator and can only be extended', () => {
    const [flake, clock] = still({ lease: { start: NOW, endExclusive: NOW + 10 } })
    assert.deepEqual(flake.lease, { start: NOW, endExclusive: NOW + 10 })
    flake.extendLease(NOW + 5)
    assert.equal(flake.lease.endExclusive, NOW + 10)
    clock.time = NOW + 10
    assert.throws(() => flake.generate(), { code: 'LEASE_EXPIRED' })
    flake.extendLease(NOW + 11)
    assert.equal(flake.inspect(flake.generate()).timestamp, NOW + 10)
  })

  test('is null without one', () => {
    assert.equal(still()[0].lease, null)
  })

  test('lets a burst borrow seconds', () => {
    const lease = { start: NOW, endExclusive: NOW + 10 }
    const [flake] = still({ lease, maxDriftSeconds: 1, maxWaitMs: 0 })
    const { timestamp } = inspector.inspectMany(flake.generateMany(2 * 131_072))
    assert.deepEqual([timestamp[0], timestamp.at(-1)], [BigInt(NOW), BigInt(NOW + 1)])
  })
})

suite('closing', () => {
  const closers = {
    close: (flake) => flake.close(),
    dispose: (flake) => flake[Symbol.dispose](),
    asyncDispose: (flake) => flake[Symbol.asyncDispose](),
  }
  for (const [name, close] of Object.entries(closers)) {
    test(`${name} ends generating, not reading, and can be repeated`, async () => {
      const [flake] = still()
      const id = flake.generate()
      assert.equal(await close(flake), undefined)
      assert.equal(await close(flake), undefined)
      const calls = [
        () => flake.generate(),
        () => flake.generateString(),
        () => flake.generateMany(1),
        () => flake.fill(new BigInt64Array(1)),
        () => flake.fill(new BigInt64Array(0)),
        () => flake.extendLease(NOW),
      ]
      for (const call of calls) assert.throws(call, { code: 'CLOSED' })
      await assert.rejects(flake.generateManyAsync(1), { code: 'CLOSED' })
      assert.equal(flake.inspect(id).nodeId, 1)
      assert.equal(flake.encrypt(flake.decrypt(id)), id)
      assert.deepEqual([flake.nodeIds, flake.lease], [[], null])
    })
  }
})

suite('one process', () => {
  test('two objects with one node id share its ids', () => {
    const make = () => new Randflake([1300, 1301], SECRET, { restartSafe: false })
    const [one, other] = [make(), make()]
    const ids = new Set()
    for (let count = 0; count < 10_000; count++) ids.add(one.generate()).add(other.generate())
    one.close()
    ids.add(make().generate())
    assert.equal(ids.size, 20_001)
  })

  test('node lists that overlap are refused', () => {
    new Randflake([1400, 1401], SECRET)
    for (const nodeId of [1400, [1401, 1402]]) {
      assert.throws(() => new Randflake(nodeId, SECRET), { code: 'NODE_IN_USE' })
    }
  })

  test('node ids are sorted', () => {
    assert.deepEqual(
      new Randflake([131_071, 0, 5], SECRET, { clock: () => NOW }).nodeIds,
      [0, 5, 131_071],
    )
  })

  test('the class can be inherited from', () => {
    class Mine extends Randflake {
      generate() {
        return [super.generate()]
      }
    }
    const mine = new Mine(1, SECRET, { clock: () => NOW })
    assert(mine instanceof Randflake && mine instanceof Mine)
    assert.equal(inspector.inspect(mine.generate()[0]).timestamp, NOW)
    assert.equal(still()[0].constructor, Randflake)
  })
})

suite('inspectMany', () => {
  test('agrees with inspect', () => {
    const ids = BigInt64Array.from({ length: 1000 }, (_, index) =>
      BigInt.asIntN(64, BigInt(index) * 0x9e3779b97f4a7c15n),
    )
    const columns = inspector.inspectMany(ids)
    for (const [index, id] of ids.entries()) {
      const { timestamp, nodeId, sequence } = inspector.inspect(id)
      assert.deepEqual(
        [columns.timestamp[index], columns.nodeId[index], columns.sequence[index]],
        [BigInt(timestamp), nodeId, sequence],
      )
    }
    assert.equal(inspector.inspectMany(new BigInt64Array(0)).nodeId.length, 0)
  })
})

suite('secret', () => {
  test('fresh ones differ and work', () => {
    const secrets = new Set(Array.from({ length: 100 }, generateSecret))
    assert.equal(secrets.size, 100)
    for (const secret of secrets) {
      assert.match(secret, /^[0-9a-f]{32}$/)
      new Inspector(secret)
    }
  })

  test('a weak one is warned about once in a process, workers included', () => {
    const { stderr } = run(`
      const { Worker } = require('node:worker_threads')
      for (const weak of ['0'.repeat(32), Buffer.from('super-secret-key')]) {
        new Inspector(weak)
        new Randflake(1, weak)
      }
      new Worker("new (require('./index.js').Inspector)('0'.repeat(32))", { eval: true })`)
    assert.equal(stderr.match(/\[RANDFLAKE_WEAK_SECRET\] WeakSecretWarning: /g)?.length, 1, stderr)
    assert(!stderr.includes('super-secret') && !stderr.includes('0000'))
  })

  test('a random one is not warned about', () => {
    assert.equal(run('new Inspector(generateSecret()); new Randflake(1, SECRET)').stderr, '')
  })
})
