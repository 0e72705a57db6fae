'use strict'

// Sequential numbers from PostgreSQL, Redis and etcd: real servers, through each client.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { fenceTickets, initTickets, listTickets, showTickets, Tickets } = require('../index.js')
const { timeout } = require('../lib/stores.js')
const { suites } = require('./clients.js')
const { PASSWORD, servers } = require('./servers.js')
const { run, until } = require('./store.js')

timeout.ms = 20_000 // for a busy machine

const release = (tickets) => tickets[Symbol.asyncDispose]()

suites({}, ({ name, table, live }) => {
  live('has none before it is made', async (_t, server) => {
    const opening = Tickets.leased(server.url, 'invoices', { namespace: 'nobody made this' })
    await assert.rejects(opening, { code: 'STORE_NOT_INITIALIZED' })
  })

  for (const [what, make] of Object.entries(table)) {
    live(`${what}: hands out numbers, and takes back what is left`, async (t, server) => {
      const [store, end] = await make(server.url)
      t.after(end)
      const options = { namespace: `of ${what}` }
      await initTickets(store, 'new', options)
      await initTickets(store, 'new', options) // again: it exists
      const one = await Tickets.leased(store, 'invoices', options)
      const other = Tickets.lazy(store, 'invoices', { ...options, maxWaitMs: 60_000 })
      // Its client runs on this thread, which never waits for it.
      assert.throws(() => other.generate(), { code: 'LEASE_UNAVAILABLE' })
      const tooMany = { code: 'INVALID_ARGUMENT', message: /max_block.*one that waits/ }
      assert.throws(() => other.generateMany(2_000_000), tooMany)
      await other.ready()
      const numbers = [one.generate(), ...one.generateMany(5), other.generate()]
      for (const tickets of [one, other]) {
        numbers.push(...(await tickets.generateManyAsync(5000)))
      }
      assert.equal(new Set(numbers).size, numbers.length)
      await Promise.all([one, other].map(release))
      const { blocks, givenBack, mustBeFenced, next } = await showTickets(
        store,
        'invoices',
        options,
      )
      assert.deepEqual([blocks, mustBeFenced], [0, false])
      assert.deepEqual(await listTickets(store, options), [
        await showTickets(store, 'invoices', options),
      ])
      // Each was handed out or given back.
      assert.equal(Number(next) - 1 - givenBack, numbers.length)
      const fenced = await fenceTickets(store, 'invoices', 1_000_000n, options)
      assert.equal(fenced.next, 1_000_001n)
      const later = await Tickets.leased(store, 'invoices', options)
      assert.equal(later.generate(), 1_000_001n)
      await release(later)
    })
  }

  live('outlasts an outage of the server', async (_t, server) => {
    const namespace = 'outage'
    await initTickets(server.url, 'new', { namespace })
    const options = { namespace, minBlock: 1000, maxBlock: 2000, maxWaitMs: 0 }
    const tickets = await Tickets.leased(server.url, 'invoices', options)
    const numbers = [tickets.generate()]
    await server.end(name === 'postgresql' ? 'SIGQUIT' : 'SIGKILL')
    numbers.push(...tickets.generateMany(100))
    let failure
    await until('it has none left', () => {
      try {
        for (;;) numbers.push(tickets.generate())
      } catch (error) {
        failure = error
      }
      return failure.cause !== undefined
    })
    assert.deepEqual([failure.code, failure.cause.code], ['LEASE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
    assert(!failure.message.includes(PASSWORD), failure.message)
    await server.start()
    if (name === 'redis') {
      // It may have forgotten blocks, and numbers may still be drawn from the former one for a
      // while.
      await until('it is noticed', async () => {
        const { code } = await tickets.ready().catch((error) => error)
        return code === 'STORE_QUARANTINED'
      })
      await until('it is fenced', () =>
        fenceTickets(server.url, 'invoices', numbers.at(-1), { namespace }).catch((error) => {
          assert.equal(error.code, 'STORE_QUARANTINED', error.message)
        }),
      )
    }
    await until('it is back', () => {
      try {
        return numbers.push(tickets.generate())
      } catch {
        return false
      }
    })
    assert.equal(new Set(numbers).size, numbers.length)
    await release(tickets)
  })

  live(
    'a process ends by itself, or has a worker that does, while it has numbers',
    async (_t, server) => {
      const { stdout, stderr, code, secondsToEnd } = await run(
        server.url,
        `const { initTickets, Tickets } = require('./index.js')
      await initTickets(STORE, 'new', { namespace: 'ends' })
      const tickets = await Tickets.leased(STORE, 'invoices', { namespace: 'ends' })
      say(tickets.generate())
      const worker = work(\`const { Tickets } = require('./index.js')
        const tickets = await Tickets.leased(STORE, 'invoices', { namespace: 'ends' })
        parentPort.postMessage(tickets.generateMany(1).length)
        setInterval(() => tickets.metrics(), 10)\`)
      say(await once(worker, 'message'))
      const begun = performance.now()
      await worker.terminate()
      say('terminated', performance.now() - begun < 20_000)`,
      )
      assert.deepEqual([stdout, code], ['1\n1\nterminated true\n', 0], stderr)
      assert(secondsToEnd < 20, `took ${secondsToEnd} s`)
    },
  )
})

test('a Redis that keeps nothing', async (t) => {
  const server = await servers.redis({ settings: ['--appendonly', 'no', '--save', ''] })
  if (server === undefined) return t.skip('the server is missing')
  t.after(() => server.stop())
  const { url } = server
  const allowed = { allowWeakStore: true }
  await initTickets(url, 'new', allowed)
  const weak = { code: 'WEAK_STORE' }
  await assert.rejects(Tickets.leased(url, 'invoices'), weak)
  await assert.rejects(showTickets(url, 'invoices'), weak)
  await assert.rejects(fenceTickets(url, 'invoices', 7), weak)
  assert.equal(await showTickets(url, 'invoices', allowed), null)
  assert.equal((await fenceTickets(url, 'invoices', 7, allowed)).next, 8n)
  const tickets = await Tickets.leased(url, 'invoices', allowed)
  assert.equal(tickets.generate(), 8n)
  await release(tickets)
  assert.equal((await showTickets(url, 'invoices', allowed)).next, 9n)
})
