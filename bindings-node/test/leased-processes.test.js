'use strict'

// Leases of real processes and workers: how they begin, end and are given back.

const assert = require('node:assert/strict')
const { dirname, join } = require('node:path')
const { suite, test } = require('node:test')
const { BUSY_WORKERS, RUNNING_WORKERS } = require('./runtime.js')
const { heldIn, newStore, run } = require('./store.js')

/** Many times what an end takes on a busy machine, but much less than any wait that is avoided. */
const SOON = 20

/** Runs a script that must write this, and end in this way soon after. */
async function expect(store, script, stdout, code = 0) {
  const ended = await run(store, script)
  assert.deepEqual([ended.stdout, ended.code, ended.signal], [stdout, code, null], ended.stderr)
  assert(ended.secondsToEnd < SOON, `took ${ended.secondsToEnd} s`)
  return ended
}

suite('a process with a lease', () => {
  const endings = {
    'ends by itself': ['', 0],
    'calls process.exit': ['process.exit(3)', 3],
    'calls process.exit later': ['setTimeout(() => process.exit(3), 50)', 3],
    'ends with an uncaught exception': ['setTimeout(() => { throw new Error("mine") })', 1],
    'ends with an unhandled rejection': ['throw new Error("mine")', 1],
    'has closed it': ['flake.close()', 0],
    'waits for an id': ['flake.ready(); flake.generateManyAsync(10)', 0],
    'renews it': ['while (flake.lease.renewals === 0) await delay(10)', 0],
  }
  for (const [how, [ending, code]] of Object.entries(endings)) {
    test(`gives it back when it ${how}`, async (t) => {
      const store = newStore(t)
      await expect(
        store,
        `const flake = await Randflake.leased(STORE, SECRET, SHORT)
        say(typeof flake.generate(), heldIn(STORE).length)
        ${ending}`,
        'bigint 1\n',
        code,
      )
      assert.deepEqual(heldIn(store), [])
    })
  }

  test('ends soon although it holds many', async (t) => {
    const store = newStore(t)
    await expect(
      store,
      `const flakes = await Promise.all(Array(20).fill().map(() => Randflake.leased(STORE, SECRET)))
      say(new Set(flakes.flatMap((flake) => flake.nodeIds)).size, heldIn(STORE).length)`,
      '20 20\n',
    )
    assert.deepEqual(heldIn(store), [])
  })

  test('is not held up for long by a store that others block', async (t) => {
    const store = newStore(t)
    await expect(
      store,
      `const flakes = await Promise.all(Array(8).fill().map(() => Randflake.leased(STORE, SECRET)))
      const blocker = require('node:child_process').spawn('python3', ['-c', \`import sqlite3, sys
file = sqlite3.connect('\${STORE}', isolation_level=None)
file.execute("begin exclusive")
print("locked", flush=True)
sys.stdin.read()\`], { stdio: ['pipe', 'pipe', 'ignore'] })
      await once(blocker.stdout, 'data')
      const begun = performance.now() // it waits five seconds for all, not for each
      process.on('exit', () => {
        process.stdout.write((performance.now() - begun) / 1000 < 30 ? 'in time' : 'late')
        blocker.kill()
      })
      process.exit()`,
      'in time',
    )
  })

  test('keeps it when it is killed, and another process gets another one', async (t) => {
    const store = newStore(t)
    const killed = await run(
      store,
      `const flake = await Randflake.leased(STORE, SECRET)
      say(flake.nodeIds)
      process.kill(process.pid, 'SIGKILL')`,
    )
    assert.equal(killed.signal, 'SIGKILL')
    assert.deepEqual(heldIn(store), [Number(killed.stdout)])
    const next = await run(store, 'say((await Randflake.leased(STORE, SECRET)).nodeIds)')
    assert.notEqual(next.stdout, killed.stdout)
    assert.deepEqual(heldIn(store), [Number(killed.stdout)])
  })
})

suite('a pending leased()', () => {
  test('keeps the process alive', async (t) => {
    const script = "Randflake.leased(STORE, SECRET).then((flake) => say('leased'))"
    await expect(newStore(t), script, 'leased\n')
  })

  for (const later of [0, 1, 2, 5, 10]) {
    test(`leaves nothing behind when the process ends ${later} ms into it`, async (t) => {
      const store = newStore(t)
      // The store is there, and the lease is in progress.
      await expect(
        store,
        `await (await Randflake.leased(STORE, SECRET))[Symbol.asyncDispose]()
        for (let count = 0; count < 3; count++) Randflake.leased(STORE, SECRET)
        setTimeout(() => process.exit(3), ${later})`,
        '',
        3,
      )
      assert.deepEqual(heldIn(store), [])
    })
  }

  const PENDING = 'Randflake.leased(STORE, SECRET, { acquireTimeoutMs: 3600000 }).catch(() => {})'

  test('does not hold up a process that exits', async (t) => {
    const store = join(dirname(newStore(t)), 'missing', 'ids.db')
    await expect(store, `${PENDING}; setTimeout(() => process.exit(3), 300)`, '', 3)
  })

  test('does not hold up a worker that is terminated, nor the pool of libuv', async (t) => {
    const store = join(dirname(newStore(t)), 'missing', 'ids.db')
    await expect(
      store,
      `const workers = Array(6).fill().map(() => work(\`${PENDING}; parentPort.postMessage(1)\`))
      await Promise.all(workers.map((worker) => once(worker, 'message')))
      await delay(300)
      await require('node:fs/promises').stat('.')
      await Promise.all(workers.map((worker) => worker.terminate()))
      say('terminated')`,
      'terminated\n',
    )
  })

  test('fails at the exit of the process', async (t) => {
    const script = `process.on('exit', () => {
        Randflake.leased(STORE, SECRET).then(() => say('leased'))
      })
      await Randflake.leased(STORE, SECRET)`
    const store = newStore(t)
    await expect(store, script, '')
    assert.deepEqual(heldIn(store), [])
  })
})

suite('workers', () => {
  const WORKER = `const flake = await Randflake.leased(STORE, SECRET)
    parentPort.postMessage([...flake.generateMany(20000), flake.generate(), flake.generate()])`

  test('eight at once have a lease each, and never an id twice', async (t) => {
    const store = newStore(t)
    await expect(
      store,
      `const own = await Randflake.leased(STORE, SECRET)
      const workers = Array(8).fill().map(() => work(${JSON.stringify(WORKER)}))
      const posted = await Promise.all(workers.map(async (worker) => {
        const ended = once(worker, 'exit')
        const [ids] = await once(worker, 'message')
        await ended
        return ids
      }))
      const ids = [...posted.flat(), ...own.generateMany(20000)]
      const nodeIds = ids.map((id) => own.inspect(id).nodeId)
      say(ids.length, new Set(ids).size, new Set(nodeIds).size)
      say(heldIn(STORE).join() === own.nodeIds.join()) // the others were given back
      say(typeof own.generate(), own.lease.state)`,
      '180016 180016 9\ntrue\nbigint holding\n',
    )
    assert.deepEqual(heldIn(store), [])
  })

  const endings = {
    'is terminated': ['setInterval(() => flake, 1000)', 'worker.terminate()'],
    'is terminated while it is busy': ['for (;;) flake.generate()', 'worker.terminate()'],
    'calls process.exit': ['process.exit()', ''],
    'ends by itself': ['', ''],
    throws: ["throw new Error('mine')", ''],
  }
  for (const [how, [inside, outside]] of Object.entries(endings)) {
    const options = how.endsWith('busy') ? BUSY_WORKERS : {}
    test(`one that ${how} gives its lease back, and others go on`, options, async (t) => {
      const store = newStore(t)
      await expect(
        store,
        `const own = await Randflake.leased(STORE, SECRET)
        const worker = work(${JSON.stringify(`${WORKER}\n${inside}`)}).on('error', () => {})
        const ended = new Promise((resolve) => worker.on('exit', resolve))
        worker.once('message', (ids) => { say(ids.length); ${outside} })
        await ended
        say(heldIn(STORE).join() === own.nodeIds.join(), typeof own.generate())`,
        '20002\ntrue bigint\n',
      )
      assert.deepEqual(heldIn(store), [])
    })
  }

  test(
    'that are busy or hold a lease give it back at the exit of the process',
    RUNNING_WORKERS,
    async (t) => {
      const store = newStore(t)
      await expect(
        store,
        `for (const ending of ['setInterval(() => flake, 1000)', 'for (;;) flake.generate()']) {
        await once(work(${JSON.stringify(WORKER)} + '\\n' + ending), 'message')
      }
      say(heldIn(STORE).length)
      process.exit(3)`,
        '2\n',
        3,
      )
      assert.deepEqual(heldIn(store), [])
    },
  )

  test('have errors of their own class', async (t) => {
    await expect(
      newStore(t),
      `const worker = work(\`await Randflake.leased(STORE, SECRET, { acquireTimeoutMs: -1 }).catch(
        (error) => parentPort.postMessage([error instanceof RandflakeError, error.code]))\`)
      say(await once(worker, 'message'))`,
      'true,INVALID_ARGUMENT\n',
    )
  })
})

test('eight processes at once have a lease each', async (t) => {
  const store = newStore(t)
  const script = `const flake = await Randflake.leased(STORE, SECRET, SHORT)
    while (flake.lease.renewals === 0) await delay(10)
    say(flake.generate(), ...flake.generateMany(1000))`
  const ended = await Promise.all(Array.from({ length: 8 }, () => run(store, script)))
  const ids = ended.flatMap(({ stdout, stderr, code }) => {
    assert.equal(code, 0, stderr)
    return stdout.split(' ')
  })
  assert.deepEqual([ids.length, new Set(ids).size], [8008, 8008])
  assert.deepEqual(heldIn(store), [])
})
