'use strict'

// Leases from PostgreSQL, Redis and etcd: real servers, through each client.

const assert = require('node:assert/strict')
const { after, before, suite, test } = require('node:test')
const Redis = require('ioredis')
const { Client, Pool } = require('pg')
const postgres = require('postgres')
const { createClient } = require('redis')
const { initStore, Randflake, RandflakeError } = require('../index.js')
const { PASSWORD, servers } = require('./servers.js')
const { run, SECRET, until } = require('./store.js')

/** Renewed after two seconds. */
const SHORT = { ttlSeconds: 6, maxSkewSeconds: 1 }
const HASTY = { acquireTimeoutMs: 100 }
const SKEW = { maxSkewSeconds: 1 }

const release = (flake) => flake[Symbol.asyncDispose]()

async function refused(leasing, code, pattern = /./) {
  await assert.rejects(leasing, (error) => {
    assert(error instanceof RandflakeError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, pattern)
    assert(!error.message.includes(PASSWORD) && !error.message.includes(SECRET), error.message)
    return true
  })
}

/** The adapter of the README. */
const adapterOf = (sql) => ({
  run: async (text, parameters) => sql.unsafe(text, parameters).values(),
})

/** What a store is made of for each client, and how to end that. */
const clients = {
  postgresql: {
    url: (url) => [url, () => {}],
    'a URL object': (url) => [new URL(url), () => {}],
    'a Pool': (url) => {
      const pool = new Pool({ connectionString: url })
      return [pool, () => pool.end()]
    },
    'a Client': async (url) => {
      const client = new Client(url)
      await client.connect()
      return [client, () => client.end()]
    },
    'an adapter of postgres': (url) => {
      const sql = postgres(url)
      return [adapterOf(sql), () => sql.end()]
    },
  },
  redis: {
    url: (url) => [url, () => {}],
    ioredis: (url) => {
      const client = new Redis(url)
      return [client, () => client.disconnect()]
    },
    redis: async (url) => {
      const client = createClient({ url })
      await client.connect()
      return [client, () => client.destroy()]
    },
  },
  etcd: { url: (url) => [url, () => {}] },
}

const settings = { redis: ['--appendonly', 'yes'] }

for (const [name, table] of Object.entries(clients)) {
  suite(name, () => {
    let server
    before(async () => {
      server = await servers[name](...(settings[name] ?? []))
    })
    after(() => server?.stop())

    /** A test that needs the server. */
    const live = (what, body) =>
      test(what, (t) => (server === undefined ? t.skip('the server is missing') : body(t)))

    live('is not used before it is made', async () => {
      const options = { ...HASTY, namespace: 'nobody made this' }
      await refused(Randflake.leased(server.url, SECRET, options), 'STORE_NOT_INITIALIZED', /init/)
    })

    for (const [what, make] of Object.entries(table)) {
      live(`${what}: leases, renews and gives back`, async (t) => {
        const [store, end] = await make(server.url)
        t.after(end)
        const namespace = what
        await initStore(store, SECRET, { namespace, ...SKEW })
        await initStore(store, SECRET, { namespace, ...SKEW }) // again: it is there
        const options = { ...SHORT, namespace }
        const flakes = await Promise.all([1, 2].map(() => Randflake.leased(store, SECRET, options)))
        const nodeIds = flakes.flatMap((flake) => flake.nodeIds)
        assert.equal(new Set(nodeIds).size, 2)
        const ids = flakes.flatMap((flake) => [...flake.generateMany(1000)])
        assert.equal(new Set(ids).size, 2000)
        await until('both are renewed', () => flakes.every(({ lease }) => lease.renewals > 0))
        assert.deepEqual(
          flakes.map(({ lease }) => [lease.state, lease.lastError, lease.losses]),
          [1, 2].map(() => ['holding', null, 0]),
        )
        await Promise.all(flakes.map(release))
        assert.throws(() => flakes[0].generate(), { code: 'CLOSED' })
        await refused(
          Randflake.leased(store, `${SECRET.slice(1)}0`, { ...HASTY, namespace }),
          'SECRET_MISMATCH',
        )
      })
    }

    live('gives all of them back', async () => {
      const options = { ...SKEW, namespace: 'all' }
      await initStore(server.url, SECRET, options)
      const many = { ...options, nodeCount: 1000, ttlSeconds: 300 }
      for (let turn = 0; turn < 2; turn++) {
        const flake = await Randflake.leased(server.url, SECRET, many)
        assert.equal(flake.nodeIds.length, 1000)
        await release(flake)
      }
    })

    live('a process ends by itself while it holds a lease', async () => {
      await initStore(server.url, SECRET, { namespace: 'ends' })
      const { stdout, stderr, code, seconds } = await run(
        server.url,
        `const flake = await Randflake.leased(STORE, SECRET, { namespace: 'ends' })
        say(typeof flake.generate())`,
      )
      assert.deepEqual([stdout, code], ['bigint\n', 0], stderr)
      assert(seconds < 5, `took ${seconds} s`)
    })

    live('a worker that holds a lease can be terminated', async () => {
      const { stdout, stderr, code } = await run(
        server.url,
        `const worker = work(\`const flake = await Randflake.leased(STORE, SECRET, { namespace: 'ends' })
          parentPort.postMessage(typeof flake.generate())
          for (;;) flake.generate()\`)
        say(await once(worker, 'message'))
        await worker.terminate()
        say('terminated')`,
      )
      assert.deepEqual([stdout, code], ['bigint\nterminated\n', 0], stderr)
    })
  })
}

suite('a store that cannot be used', () => {
  const schemes = ['postgresql', 'redis', 'etcd']
  for (const scheme of schemes) {
    test(`${scheme}: nobody listens`, () => {
      const url = `${scheme}://user:${PASSWORD}@127.0.0.1:2/`
      return refused(
        Randflake.leased(url, SECRET, HASTY),
        'STORE_UNAVAILABLE',
        /ECONNREFUSED|closed/,
      )
    })
  }
})
