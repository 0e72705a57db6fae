'use strict'

// Stores with a server when something breaks: servers are stopped, killed and emptied.

const assert = require('node:assert/strict')
const { rmSync } = require('node:fs')
const { suite, test } = require('node:test')
const { setTimeout: delay } = require('node:timers/promises')
const { isDeepStrictEqual } = require('node:util')
const mariadb = require('mariadb')
const callbacks = require('mariadb/callback')
const mysql = require('mysql2/promise')
const { Client, Pool } = require('pg')
const { Pool: OldPool } = require('pg-8-13')
const { initStore, listLeases, Randflake } = require('../index.js')
const { askEtcd, Link, mariadbWithReplica, PASSWORD, servers } = require('./servers.js')
const { ofMariadb, run, runWith, SECRET, until } = require('./store.js')

const TTL = 9
const NAMESPACE = { maxTtlSeconds: TTL, maxSkewSeconds: 1 }
const SHORT = { ttlSeconds: TTL, maxSkewSeconds: 1, maxWaitMs: 0, acquireTimeoutMs: 60_000 }
/** For a lease that outlasts a failed renewal, on a busy machine, too. */
const LONG = 30

const leased = (store, options) => Randflake.leased(store, SECRET, { ...SHORT, ...options })

async function refusal(store, options = {}, tries = 10) {
  const error = await leased(store, { ...options, acquireTimeoutMs: 0 }).then(
    () => assert.fail('it was leased'),
    (error) => error,
  )
  assert(!/open-sesame|hush/.test(error.message), error.message)
  // On a busy machine, a request may take longer than such a short skew allows.
  return error.code === 'CLOCK_SKEW' && tries > 1 ? refusal(store, options, tries - 1) : error
}

/** Generates an id and adds it, or returns the code of the error. */
function outcome(flake, ids = []) {
  try {
    ids.push(flake.generate())
    return 'made'
  } catch (error) {
    return error.code
  }
}

/** A test with a server of its own. */
const live = (what, engine, body, options) =>
  test(what, async (t) => {
    const server = await servers[engine](options)
    if (server === undefined) return t.skip('the server is missing')
    t.after(() => server.stop())
    return body(server)
  })

/** Takes a server down: cleanly, by a kill, or by making it stop answering. */
const silence = {
  postgresql: (server) => server.end('SIGINT'),
  etcd: (server) => server.end('SIGKILL'),
  redis: (server) => server.signal('SIGSTOP'), // started again it is in quarantine, see below
}

suite('a store that fails', { concurrency: 16 }, () => {
  for (const engine of ['postgresql', 'etcd']) {
    live(
      `${engine}: a lazy generator waits for a server that comes later`,
      engine,
      async (server) => {
        await initStore(server.url, SECRET, 'new', NAMESPACE)
        await server.end('SIGKILL')
        const flake = Randflake.lazy(server.url, SECRET, { ...SHORT, acquireTimeoutMs: 200 })
        const refused = []
        const call = () => {
          try {
            return flake.generate()
          } catch (error) {
            refused.push(error)
            return undefined
          }
        }
        await until('it says why', () => call() === undefined && refused.at(-1).cause !== undefined)
        for (const { code, retryAfterMs } of refused) {
          assert.equal(code, 'LEASE_UNAVAILABLE')
          assert(retryAfterMs > 0 && retryAfterMs <= 5000)
        }
        assert.equal(refused.at(-1).cause.code, 'STORE_UNAVAILABLE')
        assert.equal(flake.lease, null)
        // It reports this where no request arrives.
        await assert.rejects(flake.ready(), { code: 'LEASE_UNAVAILABLE' })
        await server.start()
        const isReady = () =>
          flake.ready().then(
            () => true,
            ({ code }) => code !== 'LEASE_UNAVAILABLE',
          )
        while (!(await isReady()));
        const ids = [flake.generate(), ...(await flake.generateManyAsync(2))]
        assert.deepEqual([new Set(ids).size, flake.inspect(ids[2]).nodeId], [3, flake.nodeIds[0]])
        await flake[Symbol.asyncDispose]()
        assert.equal((await listLeases(server.url)).held, 0)
      },
    )
  }

  for (const engine of Object.keys(silence)) {
    live(`${engine}: survives an outage and a kill`, engine, async (server) => {
      await initStore(server.url, SECRET, 'new', NAMESPACE)
      const flake = await leased(server.url)
      await until('the lease is fresh', () => flake.lease.secondsLeft > 0.8 * TTL)
      const ids = []
      const { endExclusive } = flake.lease
      const silenced = silence[engine](server)
      for (;;) {
        const made = outcome(flake, ids)
        // Read afterwards: a slow machine may get here only when it is over.
        if (Date.now() / 1000 >= endExclusive - 2) break
        assert.equal(made, 'made')
        await delay(20)
      }
      await silenced
      await until('it is over', () => outcome(flake, ids) === 'LEASE_UNAVAILABLE')
      assert(flake.inspect(ids.at(-1)).timestamp < flake.lease.endExclusive)
      await until('it reports why', () => flake.lease.lastError !== null)
      assert.equal(flake.lease.lastError.code, 'STORE_UNAVAILABLE')
      assert(!flake.lease.lastError.message.includes(PASSWORD))
      if (engine === 'redis') server.signal('SIGCONT')
      else await server.start()
      await until('it begins again', () => outcome(flake, ids) === 'made')

      await server.end('SIGKILL')
      const { renewals } = flake.lease
      await server.start()
      if (engine === 'redis') {
        // The store knows that it may have lost something.
        const { code, retryAfterMs } = await refusal(server.url)
        assert.equal(code, 'STORE_QUARANTINED')
        // The skew, and the largest lag of a replica.
        const longest = 1000 * (TTL + 1 + 12)
        assert(retryAfterMs > 0 && retryAfterMs <= longest, String(retryAfterMs))
      } else {
        const other = await leased(server.url)
        ids.push(...other.generateMany(1000))
        await other[Symbol.asyncDispose]()
      }
      await until('it is renewed', () => flake.lease.renewals > renewals)
      ids.push(...flake.generateMany(1000))
      // After a kill, Redis cannot know whether it granted such a short lease before.
      if (engine !== 'redis') assert.equal(flake.lease.losses, 0)
      assert.equal(new Set(ids).size, ids.length)
      await flake[Symbol.asyncDispose]()
    })
  }

  const emptying = {
    'was flushed': (server) =>
      run(server.url, `await new (require('ioredis'))(STORE).flushall(); process.exit()`),
    'was started empty': async (server) => {
      await server.end('SIGKILL')
      rmSync(server.file('appendonlydir'), { recursive: true })
      await server.start()
    },
  }
  for (const [how, empty] of Object.entries(emptying)) {
    live(`a Redis that ${how} grants nothing`, 'redis', async (server) => {
      await initStore(server.url, SECRET, 'new', NAMESPACE)
      const flake = await leased(server.url)
      await empty(server)
      assert.equal((await refusal(server.url)).code, 'STORE_NOT_INITIALIZED')
      await initStore(server.url, SECRET, 'quarantine', NAMESPACE)
      assert.equal((await refusal(server.url)).code, 'STORE_QUARANTINED')
      // Once the lease has ended, it takes the other namespace, and reports what that says.
      const why = ['STORE_REPLACED', 'STORE_QUARANTINED']
      await until('it reports why', () => why.includes(flake.lease.lastError?.code))
      await until('it is over', () => outcome(flake) === 'LEASE_UNAVAILABLE')
      const { endExclusive } = flake.lease
      const other = await leased(server.url, { acquireTimeoutMs: 120_000 })
      const { timestamp } = other.inspect(other.generate())
      assert(timestamp >= endExclusive, 'the quarantine outlasts every lease')
      await flake.ready()
      assert(flake.lease.start >= endExclusive, 'it recovers by itself')
      await Promise.all([flake, other].map((each) => each[Symbol.asyncDispose]()))
    })
  }

  const freezing = {
    postgresql: `const { Client } = require('pg')
      const other = new Client(STORE)
      await other.connect()
      await other.query('begin; lock table randflake_leases.entry')
      const thaw = () => other.end()`,
    redis: `const other = new (require('ioredis'))(STORE)
      await other.client('PAUSE', 12000, 'ALL') // longer than the leases
      const thaw = () => other.disconnect()`,
  }
  for (const [engine, freeze] of Object.entries(freezing)) {
    // If each call waited on the JavaScript thread, the only one that can renew, it would never
    // recover.
    live(`many generators of a process recover: ${engine}`, engine, async (server) => {
      await initStore(server.url, SECRET, 'new', { maxTtlSeconds: 6, maxSkewSeconds: 1 })
      const { stdout, stderr, code } = await run(
        server.url,
        `const options = { ttlSeconds: 6, maxSkewSeconds: 1, acquireTimeoutMs: 60_000 }
        const leased = () => Randflake.leased(STORE, SECRET, options)
        const flakes = await Promise.all(Array.from({ length: 10 }, leased))
        ${freeze}
        let without = 0
        const recovers = async (flake) => {
          for (let refused = false; ; await delay(1)) {
            try {
              flake.generate()
              if (refused) return
            } catch ({ code, retryAfterMs }) {
              if (code === 'SEQUENCE_EXHAUSTED') continue
              if (!refused) say(code, retryAfterMs >= 50 && retryAfterMs <= 5000)
              if (!refused && ++without === flakes.length) thaw()
              refused = true
            }
          }
        }
        await Promise.all(flakes.map(recovers))
        await Promise.all(flakes.map((flake) => flake[Symbol.asyncDispose]()))
        say('recovered')`,
      )
      const refused = Array(10).fill('LEASE_UNAVAILABLE true\n').join('')
      assert.deepEqual([stdout, code], [`${refused}recovered\n`, 0], stderr)
    })
  }

  live('a Pool without a connection to spare', 'postgresql', async (server) => {
    const pool = new Pool({ connectionString: server.url, max: 1 })
    await initStore(pool, SECRET, 'new', { ...NAMESPACE, maxTtlSeconds: LONG })
    const flake = await leased(pool, { ttlSeconds: LONG })
    const taken = await pool.connect()
    const error = await refusal(pool)
    assert.equal(error.code, 'STORE_UNAVAILABLE')
    assert.match(error.message, /the pool provided no connection/)
    await until('it reports why', () => flake.lease.lastError !== null)
    assert.equal(flake.lease.lastError.code, 'STORE_UNAVAILABLE')
    assert.equal(outcome(flake), 'made')
    taken.release()
    await until('it is renewed', () => flake.lease.renewals > 0)
    assert.equal(pool.waitingCount, 0)
    await flake[Symbol.asyncDispose]()
    await pool.end()
  })

  const one = { connectionLimit: 1 }
  const pools = {
    mysql2: (url) => mysql.createPool({ uri: url, ...one }),
    mariadb: (url) => mariadb.createPool({ ...ofMariadb(url), ...one }),
    'mariadb with callbacks': (url) => callbacks.createPool({ ...ofMariadb(url), ...one }),
  }
  const lent = (pool) =>
    new Promise((resolve, reject) => {
      const lending = pool.getConnection((error, it) => (error ? reject(error) : resolve(it)))
      lending?.then(resolve, reject)
    })
  for (const [what, make] of Object.entries(pools)) {
    const name = `a pool of ${what} that has none to spare, waits for a lock, and loses its server`
    live(name, 'mysql', async (server) => {
      const pool = make(server.url)
      await initStore(pool, SECRET, 'new', NAMESPACE)
      const flake = await leased(pool)
      const ids = [flake.generate()]
      const goesOn = async () => {
        const { renewals } = flake.lease
        await until('it is renewed', () => flake.lease.renewals > renewals)
        await until('it has one', () => outcome(flake, ids) === 'made')
      }
      const fails = async () => {
        await until('it reports why', () => flake.lease.lastError !== null)
        assert.equal(flake.lease.lastError.code, 'STORE_UNAVAILABLE')
        assert(!flake.lease.lastError.message.includes(PASSWORD))
      }

      const taken = await lent(pool)
      const error = await refusal(pool)
      assert.deepEqual(
        [error.code, /the pool provided no connection/.test(error.message)],
        ['STORE_UNAVAILABLE', true],
        error.message,
      )
      await fails()
      taken.release()
      await goesOn()

      const locker = await mysql.createConnection(server.url)
      locker.on('error', () => {})
      await locker.query('begin')
      await locker.query('select * from randflake_entry for update')
      await until('nothing fails any more', () => flake.lease.lastError === null)
      await fails()
      // Statements that wait for the lock are given up, and their places are free again.
      const other = await lent(pool)
      other.release()
      await locker.query('rollback')
      await goesOn()

      await until('nothing fails any more', () => flake.lease.lastError === null)
      await server.end('SIGKILL')
      await fails()
      assert.equal((await refusal(pool)).code, 'STORE_UNAVAILABLE')
      await server.start()
      await goesOn()
      assert.equal(new Set(ids).size, ids.length)
      await flake[Symbol.asyncDispose]()
      locker.destroy()
      await pool.end()
    })
  }

  const losses = {
    'is killed': (primary) => primary.end('SIGKILL'),
    'is cut off, and runs on': async () => {},
  }
  for (const [how, lose] of Object.entries(losses)) {
    test(`a MariaDB that ${how}, and a replica without its last grants`, async (t) => {
      const running = await mariadbWithReplica()
      if (running === undefined) return t.skip('the server is missing')
      const { primary, replica, stopTaking, promote } = running
      t.after(() => Promise.all([primary.stop(), replica.stop()]))
      const link = await Link.to(primary)
      t.after(() => link.close())
      const limits = { ttlSeconds: 12, maxSkewSeconds: 2 }
      await initStore(primary.url, SECRET, 'new', { maxTtlSeconds: 12, maxSkewSeconds: 2 })
      const stores = [mysql.createPool(link.url), mariadb.createPool(ofMariadb(link.url)), link.url]
      t.after(() => Promise.all(stores.slice(0, 2).map((pool) => pool.end())))
      const leasedOf = () =>
        Promise.all(stores.map((store) => leased(store, { ...limits, acquireTimeoutMs: 120_000 })))
      const known = await leasedOf()
      await stopTaking()
      // The replica does not have these: it could grant the same node ids.
      const lost = await leasedOf()
      const before = [...known, ...lost]
      assert.equal(new Set(before.flatMap(({ nodeIds }) => nodeIds)).size, before.length)
      const ids = before.flatMap((flake) => [...flake.generateMany(100)])

      await lose(primary)
      await promote()
      const ends = lost.map(({ lease }) => lease.endExclusive)
      link.move(replica)
      for (const store of stores) {
        let error
        // A pool may have connections that are closed, and lend each once.
        await until('it is asked', async () => {
          error = await refusal(store, limits)
          return error.code !== 'STORE_UNAVAILABLE'
        })
        assert.equal(error.code, 'STORE_QUARANTINED')
        // Plus the largest skew.
        assert(error.retryAfterMs > 0 && error.retryAfterMs <= 14_000, `${error.retryAfterMs}`)
      }
      await until('those of which it knows nothing begin again', () => {
        for (const flake of before) outcome(flake, ids)
        return lost.every(({ lease }, number) => lease.start >= ends[number])
      })
      assert(lost.every(({ lease }) => lease.losses > 0))
      const others = await leasedOf()
      const flakes = [...before, ...others]
      await until('each has one', () => flakes.every((flake) => outcome(flake, ids) === 'made'))
      assert.equal(new Set(ids).size, ids.length)
      assert(others.every(({ lease }) => lease.start >= Math.max(...ends)))
      await Promise.all(flakes.map((flake) => flake[Symbol.asyncDispose]()))
      const { held } = await listLeases(replica.url)
      assert.equal(held, 0)
    })
  }

  live('a Pool whose queries wait for a lock', 'postgresql', async (server) => {
    const limits = { max: 4, connectionTimeoutMillis: 60_000 }
    const pool = new Pool({ connectionString: server.url, ...limits })
    pool.on('error', () => {})
    const other = new Pool({ connectionString: server.url })
    await initStore(pool, SECRET, 'new', NAMESPACE)
    const flakes = await Promise.all([1, 2, 3, 4].map(() => leased(pool)))
    const ids = flakes.map((flake) => flake.generate())
    const locker = await other.connect()
    await locker.query('begin; lock table randflake_leases.entry')
    await until('all have failed', () => flakes.every(({ lease }) => lease.lastError !== null))
    for (let turn = 0; turn < 5; turn++) {
      assert.deepEqual((await pool.query('select 1 as one')).rows, [{ one: 1 }])
      assert(pool.totalCount <= 4)
      const { rows } = await other.query(
        "select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock'",
      )
      assert(rows[0].waiting <= 4, `${rows[0].waiting} wait for the lock`)
      await delay(300)
    }
    await locker.query('rollback')
    await until('all have one', () => flakes.every((flake) => outcome(flake, ids) === 'made'))
    assert.equal(new Set(ids).size, ids.length)
    await Promise.all(flakes.map((flake) => flake[Symbol.asyncDispose]()))
    locker.release()
    await Promise.all([pool.end(), other.end()])
  })

  live(
    'a Client whose statements wait for a lock, or for its own',
    'postgresql',
    async (server) => {
      const client = new Client(server.url)
      const other = new Client(server.url)
      await Promise.all([client.connect(), other.connect()])
      await initStore(client, SECRET, 'new', NAMESPACE)
      const flake = await leased(client)
      await other.query('begin; lock table randflake_leases.entry')
      await until('it has failed', () => flake.lease.lastError !== null)
      assert.deepEqual((await client.query('select 1 as one')).rows, [{ one: 1 }], 'it is free')
      await other.query('rollback')
      await until('it has recovered', () => flake.lease.lastError === null)
      // The caller's own statement takes longer than ours may, and is not ours to cancel.
      const { lastErrorAt } = flake.lease
      let isOver = false
      const own = client.query("select pg_sleep(20), 'slept' as done").finally(() => {
        isOver = true
      })
      await until('a renewal was given up', () => isOver || flake.lease.lastErrorAt !== lastErrorAt)
      assert(!isOver, 'it still sleeps')
      assert.equal((await own).rows[0].done, 'slept')
      await until('it holds one', () => flake.lease.state === 'holding')
      await flake[Symbol.asyncDispose]()
      await Promise.all([client.end(), other.end()])
    },
  )

  live('a URL whose statements wait for a lock', 'postgresql', async (server) => {
    const pool = new Pool({ connectionString: server.url })
    await initStore(server.url, SECRET, 'new', NAMESPACE)
    const flakes = await Promise.all(Array.from({ length: 10 }, () => leased(server.url)))
    const ids = flakes.map((flake) => flake.generate())
    const locker = await pool.connect()
    await locker.query('begin; lock table randflake_leases.entry')
    let most = 0
    const failures = flakes.map(() => new Set())
    await until('each has failed three times', async () => {
      const { rows } = await pool.query(
        "select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock'",
      )
      most = Math.max(most, rows[0].waiting)
      failures.forEach((when, number) => {
        when.add(flakes[number].lease.lastErrorAt)
      })
      return failures.every((when) => when.size > 3) // one of them is null
    })
    // Each may have a connection that is about to end.
    assert(most > 0 && most <= 2 * flakes.length, `${most} waited for the lock at once`)
    await locker.query('rollback')
    await until('all have one', () => flakes.every((flake) => outcome(flake, ids) === 'made'))
    assert.equal(new Set(ids).size, ids.length)
    await Promise.all(flakes.map((flake) => flake[Symbol.asyncDispose]()))
    locker.release()
    await pool.end()
  })

  live('connections that end in the middle of a statement', 'postgresql', async (server) => {
    const pool = new Pool({ connectionString: server.url })
    const other = new Pool({ connectionString: server.url })
    for (const each of [pool, other]) each.on('error', () => {})
    await initStore(server.url, SECRET, 'new', NAMESPACE)
    const flakes = await Promise.all([pool, server.url].map((store) => leased(store)))
    const ids = flakes.map((flake) => flake.generate())
    const locker = await other.connect()
    locker.on('error', () => {})
    await locker.query('begin; lock table randflake_leases.entry')
    await until('both wait', async () => {
      const { rows } = await other.query(
        "select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock'",
      )
      return rows[0].waiting === flakes.length
    })
    // An error event of a client without a listener would end this process.
    await server.end('SIGKILL')
    await server.start()
    const { renewals } = flakes[0].lease
    await until('it is renewed', () => flakes[0].lease.renewals > renewals)
    await until('all have one', () => flakes.every((flake) => outcome(flake, ids) === 'made'))
    assert.equal(new Set(ids).size, ids.length)
    await Promise.all(flakes.map((flake) => flake[Symbol.asyncDispose]()))
    locker.release(true)
    await Promise.all([pool.end(), other.end()])
  })

  live('a Pool whose application leaks a transaction', 'postgresql', async (server) => {
    await initStore(server.url, SECRET, 'new', NAMESPACE)
    for (const options of [{ ttlSeconds: TTL }, { acquireTimeoutMs: 0 }]) {
      const old = new OldPool({ connectionString: server.url })
      const error = await leased(old, options).catch((error) => error)
      assert.equal(error.code, 'INVALID_ARGUMENT')
      assert.match(error.message, /pg 8\.18/)
    }
    const pool = new Pool({ connectionString: server.url, max: 2 })
    const leak = async () => {
      const client = await pool.connect()
      await client.query('begin; select 1')
      client.release()
    }
    const flake = await leased(pool)
    for (let turn = 0; turn < 2; turn++) await leak()
    await until('it is renewed', () => flake.lease.renewals > 0)
    // Another renewal may come in between.
    await until('the store has what it holds', async () => {
      const { leases } = await listLeases(server.url)
      const held = leases.map(({ nodeId, endExclusive }) => [nodeId, endExclusive])
      return isDeepStrictEqual(held, [[flake.nodeIds[0], flake.lease.endExclusive]])
    })
    await flake[Symbol.asyncDispose]()
    await pool.end()
  })

  for (const engine of Object.keys(silence)) {
    const body = async (server) => {
      const shown = `sslcert=${server.file('cert.pem')}&sslkey=${server.file('key.pem')}`
      const wary = engine === 'etcd' ? `${server.url}?${shown}` : server.url
      const { code, message } = await refusal(wary)
      assert.equal(code, 'STORE_UNAVAILABLE')
      assert.match(message, /certificate/)
      const trusting = { NODE_EXTRA_CA_CERTS: server.file('ca.pem') }
      const script = `await initStore(STORE, SECRET, 'new')
        const flake = await Randflake.leased(STORE, SECRET)
        say(typeof flake.generate())
        await flake[Symbol.asyncDispose]()`
      const { stdout, stderr, code: status } = await runWith(trusting, wary, script)
      assert.deepEqual([stdout, status], ['bigint\n', 0], stderr)
      const named = `${wary}${wary.includes('?') ? '&' : '?'}sslrootcert=${server.file('ca.pem')}`
      const flake = await Randflake.leased(named, SECRET)
      assert(flake.generate())
      await flake[Symbol.asyncDispose]()
    }
    live(`${engine}: TLS, with a certificate that is trusted`, engine, body, { tls: true })
  }

  live('etcd with users', 'etcd', async (server) => {
    const ask = (path, body) => askEtcd(server.url, path, body)
    for (const name of ['root', 'app']) {
      await ask('auth/user/add', { name, password: PASSWORD })
      await ask('auth/role/add', { name })
      await ask('auth/user/grant', { user: name, role: name })
    }
    // The permission that the README names is enough: all keys that begin with randflake/.
    const [key, range_end] = ['randflake/', 'randflake0'].map(btoa)
    const perm = { permType: 'READWRITE', key, range_end }
    await ask('auth/role/grant', { name: 'app', perm })
    await ask('auth/enable', {})

    const urlOf = (login) => server.url.replace('//', `//${login}`)
    const url = urlOf(`app:${PASSWORD}@`)
    await initStore(url, SECRET, 'new', NAMESPACE)
    const flake = await leased(url)
    await until('it is renewed', () => flake.lease.renewals > 0)
    await flake[Symbol.asyncDispose]()
    for (const login of ['app:hush-hush@', '']) {
      assert.equal((await refusal(urlOf(login))).code, 'STORE_UNAVAILABLE')
    }
  })
})
