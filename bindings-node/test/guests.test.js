'use strict'

// As a guest on other people's servers: its connections, poolers, Sentinel and Cluster.

const assert = require('node:assert/strict')
const { suite, test } = require('node:test')
const Redis = require('ioredis')
const { Pool } = require('pg')
const { createCluster, createSentinel } = require('redis')
const { initStore, Randflake } = require('../index.js')
const { timeout } = require('../lib/stores.js')
const {
  PASSWORD,
  pgbouncer,
  redisCluster,
  redisSentinel,
  redisWithReplica,
  servers,
} = require('./servers.js')
const { SECRET, until } = require('./store.js')

timeout.ms = 20_000 // for a busy machine

const GENERATORS = 20
/** Renewed every 20 seconds, so that the connection stays open. */
const OFTEN = { ttlSeconds: 60 }
/** Renewed after six seconds. On a busy machine, a request may take longer than a second of skew. */
const SHORT = { ttlSeconds: 18, maxSkewSeconds: 3 }
const LIMITS = { maxTtlSeconds: 18, maxSkewSeconds: 3 }

const release = (flake) => flake[Symbol.asyncDispose]()
const portOf = ({ url }) => Number(new URL(url).port)

/** Returns a function that counts the connections of a server, without its own, and one that ends it. */
function counter(name, url) {
  if (name === 'redis') {
    const client = new Redis(url)
    const list = async () => (await client.client('LIST')).trim().split('\n').length - 1
    return [list, () => client.disconnect()]
  }
  const pool = new Pool({ connectionString: url, max: 1 })
  const count = `select count(*)::int as count from pg_stat_activity
    where usename = 'randflake' and backend_type = 'client backend' and pid <> pg_backend_pid()`
  return [async () => (await pool.query(count)).rows[0].count, () => pool.end()]
}

// They mostly wait.
suite('a guest', { concurrency: 4 }, () => {
  for (const name of ['postgresql', 'redis']) {
    test(`${name}: all generators of a URL have one connection`, async (t) => {
      const server = await servers[name]()
      if (server === undefined) return t.skip('the server is missing')
      const [connections, end] = counter(name, server.url)
      try {
        await initStore(server.url, SECRET, 'new')
        const lease = () => Randflake.leased(server.url, SECRET, OFTEN)
        const flakes = await Promise.all(Array.from({ length: GENERATORS }, lease))
        assert.equal(await connections(), 1)
        assert.equal(new Set(flakes.flatMap(({ nodeIds }) => nodeIds)).size, GENERATORS)
        const ids = flakes.flatMap((flake) => [...flake.generateMany(100)])
        assert.equal(new Set(ids).size, ids.length)
        const [first, ...others] = flakes
        await Promise.all(others.map(release))
        assert.equal(await connections(), 1, 'one generator needs it')
        await release(first)
        await until('it is closed', async () => (await connections()) === 0)
      } finally {
        await end()
        await server.stop()
      }
    })
  }

  const POOLERS = {
    transaction: ['pool_mode = transaction', 'default_pool_size = 2'],
    session: ['pool_mode = session'],
    'options are ignored': ['pool_mode = transaction', 'ignore_startup_parameters = options'],
  }

  test('PgBouncer', async (t) => {
    const server = await servers.postgresql()
    if (server === undefined) return t.skip('the server is missing')
    t.after(() => server.stop())
    await Promise.all(
      Object.entries(POOLERS).map(([namespace, settings]) =>
        t.test(namespace, async () => {
          await initStore(server.url, SECRET, 'new', { namespace, ...LIMITS })
          const bouncer = await pgbouncer(server, ...settings)
          if (bouncer === undefined) return t.skip('PgBouncer is missing')
          const pool = new Pool({ connectionString: bouncer.url })
          try {
            const stores = [bouncer.url, bouncer.url, pool, pool]
            const flakes = await Promise.all(
              stores.map((store) => Randflake.leased(store, SECRET, { namespace, ...SHORT })),
            )
            assert.equal(new Set(flakes.flatMap(({ nodeIds }) => nodeIds)).size, stores.length)
            const isRenewed = ({ lease }) => lease.renewals > 0 && lease.lastError === null
            await until('all are renewed', () => flakes.every(isRenewed))
            // Other clients of the pooler do not see what was set for our connection.
            const { rows } = await pool.query('show statement_timeout')
            assert.deepEqual(rows, [{ statement_timeout: '0' }])
            await Promise.all(flakes.map(release))
          } finally {
            await pool.end()
            await bouncer.stop()
          }
        }),
      ),
    )
  })

  test('a Redis Cluster: all that is asked about a namespace goes to its node', async (t) => {
    const nodes = await redisCluster()
    if (nodes === undefined) return t.skip('the server is missing')
    t.after(() => Promise.all(nodes.map((node) => node.stop())))
    const ioredis = new Redis.Cluster([{ host: '127.0.0.1', port: portOf(nodes[0]) }], {
      redisOptions: { password: PASSWORD },
    })
    const nodeRedis = createCluster({
      rootNodes: [{ url: nodes[0].url }],
      defaults: { password: PASSWORD },
    })
    await nodeRedis.connect()
    const names = Array.from({ length: 12 }, (_, number) => String(number))
    try {
      for (const store of [ioredis, nodeRedis]) {
        for (const namespace of names) {
          await initStore(store, SECRET, 'new', { namespace, ...LIMITS })
          const flake = await Randflake.leased(store, SECRET, { namespace, ...SHORT })
          assert.equal(typeof flake.generate(), 'bigint')
          await release(flake)
        }
      }
      // A server that forgets is recognised by its own settings, not by another server's.
      const [weak, other] = nodes
      const client = new Redis(weak.url)
      await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
      const there = new Set()
      for (const namespace of names) {
        const found = await client.exists(`randflake:{${namespace}}`).catch(() => 0)
        if (found) there.add(namespace)
      }
      client.disconnect()
      assert(there.size > 0 && there.size < names.length, [...there].join())
      for (const store of [ioredis, nodeRedis]) {
        for (const namespace of names) {
          const leasing = Randflake.leased(store, SECRET, { namespace, ...SHORT })
          const outcome = await leasing.then(release, ({ code }) => code)
          assert.equal(outcome, there.has(namespace) ? 'WEAK_STORE' : undefined, namespace)
        }
      }
      // A URL names one node.
      const [namespace] = there
      await assert.rejects(initStore(other.url, SECRET, 'new', { namespace }), (error) => {
        assert.equal(error.code, 'STORE_UNAVAILABLE')
        assert.match(error.message, /Redis Cluster/)
        return true
      })
    } finally {
      ioredis.disconnect()
      nodeRedis.destroy()
    }
  })

  test('Sentinel promotes a replica', async (t) => {
    const running = await redisWithReplica()
    if (running === undefined) return t.skip('the server is missing')
    const { master, replica } = running
    const sentinel = await redisSentinel(master)
    t.after(() => Promise.all([master, replica, sentinel].map((server) => server.stop())))
    const asked = new Redis(sentinel.url)
    const sentinels = [{ host: '127.0.0.1', port: portOf(sentinel) }]
    const store = new Redis({ sentinels, name: 'leases', password: PASSWORD, commandTimeout: 2000 })
    store.on('error', () => {})
    const ofNodeRedis = createSentinel({
      name: 'leases',
      sentinelRootNodes: sentinels,
      nodeClientOptions: { password: PASSWORD },
    }).on('error', () => {})
    try {
      await ofNodeRedis.connect()
      await until('it knows the replica', async () => {
        return (await asked.call('SENTINEL', 'REPLICAS', 'leases')).length === 1
      })
      await initStore(store, SECRET, 'new', LIMITS)
      const flakes = await Promise.all(
        [store, ofNodeRedis].map((one) => Randflake.leased(one, SECRET, SHORT)),
      )
      const ids = flakes.flatMap((flake) => [...flake.generateMany(1000)])
      await master.end('SIGKILL')
      await until('it is promoted', async () => {
        const [, port] = await asked.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'leases')
        return Number(port) === portOf(replica)
      })
      // After a promotion nothing is granted for the longest lease, the skew and the lag.
      const codes = new Set()
      let late
      await until('it grants again', async () => {
        const options = { ...SHORT, acquireTimeoutMs: 0 }
        late = await Randflake.leased(store, SECRET, options).catch(({ code }) => {
          codes.add(code)
        })
        return late !== undefined
      })
      assert(codes.has('STORE_QUARANTINED'), [...codes].join())
      flakes.push(late)
      await until('all hold one', () => flakes.every(({ lease }) => lease.state === 'holding'))
      ids.push(...flakes.flatMap((flake) => [...flake.generateMany(1000)]))
      assert.equal(new Set(ids).size, ids.length)
      const held = flakes.flatMap(({ nodeIds }) => nodeIds)
      assert.equal(new Set(held).size, 3)
      const inStore = await replica.leases('default')
      assert(held.every((nodeId) => inStore[nodeId][1]))
      await Promise.all(flakes.map(release))
    } finally {
      store.disconnect()
      ofNodeRedis.destroy()
      asked.disconnect()
    }
  })
})
