'use strict'

// Sequential numbers, in one process, in workers and in several processes.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { existsSync, renameSync } = require('node:fs')
const { basename, dirname } = require('node:path')
const { suite, test } = require('node:test')
const { pathToFileURL } = require('node:url')
const { inspect } = require('node:util')
const client = require('prom-client')
const {
  Cloak,
  fenceStore,
  fenceTickets,
  initTickets,
  listTickets,
  Randflake,
  RandflakeError,
  showTickets,
  Snowflake,
  Tickets,
} = require('../index.js')
const { collect } = require('../prometheus.js')
const { newStore, run, SECRET, until } = require('./store.js')

const LARGEST = Number.MAX_SAFE_INTEGER

/** Makes a store with a namespace for tickets. */
async function newCounters(t) {
  const store = newStore(t)
  await initTickets(store, 'new')
  return store
}

/** Draws from a counter until the end of the test. */
async function draw(t, store, options) {
  const tickets = await Tickets.leased(store, 'invoices', options)
  t.after(() => tickets[Symbol.asyncDispose]())
  return tickets
}

/** A server that never answers until it fails all requests. */
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

/**
 * Makes another process block a store until the end of the test, or until the returned function is
 * called.
 */
async function block(t, store) {
  const script = `import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=60).execute("begin exclusive")
print("held", flush=True)
sys.stdin.read()`
  const blocker = spawn('python3', ['-c', script, store], { stdio: ['pipe', 'pipe', 'inherit'] })
  const unblock = () => blocker.kill('SIGKILL')
  t.after(unblock)
  await once(blocker.stdout, 'data')
  return unblock
}

function isOurs(error, code) {
  assert(error instanceof RandflakeError, String(error))
  assert.equal(error.code, code, error.message)
  return true
}

suite('numbers', () => {
  test('are in a row, whichever call hands them out', async (t) => {
    const tickets = await draw(t, await newCounters(t))
    assert(tickets instanceof Tickets)
    assert.deepEqual([tickets.generate(), tickets.generate()], [1n, 2n])
    assert.deepEqual([...tickets.generateMany(3)], [3n, 4n, 5n])
    assert.deepEqual([...(await tickets.generateManyAsync(2))], [6n, 7n])
    const filled = new BigInt64Array(3)
    tickets.fill(filled)
    assert.deepEqual([...filled], [8n, 9n, 10n])
    assert.equal(tickets.generateMany(0).length, 0)
    await tickets.ready()
    assert.equal(tickets.generate(), 11n)
  })

  test('go on where the last process ended', async (t) => {
    const store = await newCounters(t)
    for (const [url, first] of [
      [store, 1n],
      [pathToFileURL(store), 4n],
    ]) {
      const tickets = await Tickets.leased(url, 'invoices')
      assert.deepEqual([...tickets.generateMany(3)], [first, first + 1n, first + 2n])
      await tickets[Symbol.asyncDispose]()
    }
  })

  test('have a start and a step, as numbers or bigints', async (t) => {
    const store = await newCounters(t)
    const tickets = await draw(t, store, { start: 1000, step: 10n })
    assert.deepEqual([...tickets.generateMany(3)], [1000n, 1010n, 1020n])
    for (const other of [{ start: 1 }, { step: 1n }]) {
      const opening = Tickets.leased(store, 'invoices', other)
      await assert.rejects(opening, { code: 'INVALID_ARGUMENT' })
    }
    await draw(t, store, { start: 1000n, step: 10 })
  })

  test('of many objects are never the same, and rise in each', async (t) => {
    const store = await newCounters(t)
    const all = await Promise.all(Array.from({ length: 4 }, () => draw(t, store)))
    const seen = new Set()
    for (let round = 0; round < 500; round++) {
      for (const tickets of all) seen.add(tickets.generate())
    }
    const last = new Map()
    for (const batch of await Promise.all(
      all.map((tickets) => tickets.generateManyAsync(20_000)),
    )) {
      assert(batch.every((number, index) => index === 0 || batch[index - 1] < number))
      for (const number of batch) seen.add(number)
      last.set(batch, batch.at(-1))
    }
    assert.equal(seen.size, 82_000)
    assert.equal(last.size, 4)
  })

  test('of other counters and namespaces are others', async (t) => {
    const store = await newCounters(t)
    await initTickets(store, 'new', { namespace: 'tests' })
    const all = await Promise.all([
      Tickets.leased(store, 'invoices'),
      Tickets.leased(store, 'credit-notes'),
      Tickets.leased(store, 'invoices', { namespace: 'tests' }),
    ])
    for (const tickets of all) {
      assert.equal(tickets.generate(), 1n)
      await tickets[Symbol.asyncDispose]()
    }
  })

  test('are unpredictable ids under a Cloak', async (t) => {
    const tickets = await draw(t, await newCounters(t))
    const cloak = new Cloak(SECRET, 'invoices')
    const hidden = cloak.hide(tickets.generate())
    assert.equal(cloak.reveal(hidden), 1n)
  })

  test('end at the largest that a number holds', async (t) => {
    const store = await newCounters(t)
    const tickets = await draw(t, store, { start: LARGEST - 2 })
    assert.deepEqual(
      [...tickets.generateMany(3)],
      [-2, -1, 0].map((by) => BigInt(LARGEST + by)),
    )
    assert.throws(() => tickets.generate(), { code: 'LIFETIME_OVER' })
    const another = Tickets.leased(store, 'invoices')
    await assert.rejects(another, { code: 'LIFETIME_OVER' })
  })
})

suite('bad input', () => {
  const NOT_A_NUMBER = {
    'a string': '1',
    true: true,
    null: null,
    'a symbol': Symbol('1'),
    'an object': { valueOf: () => 1 },
    NaN: Number.NaN,
    Infinity: Number.POSITIVE_INFINITY,
    '-1': -1,
  }
  const NOT_OF_A_COUNTER = {
    ...NOT_A_NUMBER,
    'a fraction': 1.5,
    zero: 0,
    'a bigint of zero': 0n,
    'a negative bigint': -1n,
    'too large': LARGEST + 1,
    'a bigint that is too large': 2n ** 53n,
    'a huge bigint': 2n ** 64n + 1n,
  }
  const BAD_OPTIONS = {
    start: NOT_OF_A_COUNTER,
    step: NOT_OF_A_COUNTER,
    minBlock: { ...NOT_OF_A_COUNTER, 'more than maxBlock': 1_000_001 },
    maxBlock: { ...NOT_OF_A_COUNTER, 'less than minBlock': 9 },
    reserveSeconds: { ...NOT_A_NUMBER, 'more than a day': 86_401, 'a bigint': 1n },
    acquireTimeoutMs: { ...NOT_A_NUMBER, 'more than a day': 86_400_001, 'a bigint': 1n },
    maxWaitMs: { ...NOT_A_NUMBER, 'more than a day': 86_400_001, 'a bigint': 1n },
    namespace: { 'a number': 1, null: null, empty: '', 'a control character': 'a\nb', true: true },
    create: { 'a number': 1, null: null, 'a string': 'yes', 'an object': {}, 'a bigint': 1n },
    allowWeakStore: { 'for a file': true, 'a number': 1, null: null, 'a string': '', zero: 0 },
    nodeCount: { 'of leases': 1 },
    ttlSeconds: { 'of leases': 300 },
    max_wait: { 'another language': 1 },
  }
  for (const [name, table] of Object.entries(BAD_OPTIONS)) {
    test(`option ${name}`, async (t) => {
      const store = newStore(t)
      for (const [what, bad] of Object.entries(table)) {
        const options = { [name]: bad }
        const opening = Tickets.leased(store, 'invoices', options)
        await assert.rejects(opening, (error) => isOurs(error, 'INVALID_ARGUMENT'), what)
        const lazy = () => Tickets.lazy(store, 'invoices', options).generate()
        assert.throws(lazy, (error) => isOurs(error, 'INVALID_ARGUMENT'), what)
      }
      assert(!existsSync(store))
    })
  }

  const BAD_NAMES = {
    undefined,
    null: null,
    'a number': 1,
    empty: '',
    'a space': 'our invoices',
    'a control character': 'a\nb',
    'too long': 'x'.repeat(201),
    'too long in bytes': 'é'.repeat(101),
    'half a surrogate pair': 'a\ud800',
    'an object': { toString: () => 'invoices' },
  }
  test('names', async (t) => {
    const store = newStore(t)
    for (const [what, name] of Object.entries(BAD_NAMES)) {
      const refuses = (error) => isOurs(error, 'INVALID_ARGUMENT')
      await assert.rejects(Tickets.leased(store, name), refuses, what)
      assert.throws(() => Tickets.lazy(store, name), refuses, what)
      await assert.rejects(fenceTickets(store, name, 1), refuses, what)
      await assert.rejects(showTickets(store, name), refuses, what)
    }
    assert(!existsSync(store))
  })

  test('stores', async (t) => {
    const stores = [null, 7, '', ':memory:', Buffer.from('ids.db'), 'mongodb://me:hush@host/db', {}]
    for (const store of stores) {
      const refuses = (error) =>
        isOurs(error, 'INVALID_ARGUMENT') && !error.message.includes('hush')
      await assert.rejects(Tickets.leased(store, 'invoices'), refuses)
      assert.throws(() => Tickets.lazy(store, 'invoices').generate(), refuses)
      await assert.rejects(initTickets(store, 'new'), refuses)
      await assert.rejects(fenceTickets(store, 'invoices', 1), refuses)
      await assert.rejects(listTickets(store), refuses)
    }
    t.diagnostic(`${stores.length} stores`)
  })

  test('what no method takes', async (t) => {
    const tickets = await draw(t, await newCounters(t))
    for (const n of [-1, 1.5, '3', null, undefined, 3n, LARGEST + 1]) {
      assert.throws(() => tickets.generateMany(n), { code: 'INVALID_ARGUMENT' })
      await assert.rejects(tickets.generateManyAsync(n), { code: 'INVALID_ARGUMENT' })
    }
    for (const n of [2 ** 44, LARGEST]) {
      assert.throws(() => tickets.generateMany(n), { code: 'INVALID_ARGUMENT' })
      await assert.rejects(tickets.generateManyAsync(n), { code: 'INVALID_ARGUMENT' })
    }
    const shared = new BigInt64Array(new SharedArrayBuffer(8))
    for (const array of [[], new BigUint64Array(1), new Float64Array(1), shared, null, undefined]) {
      assert.throws(() => tickets.fill(array), { code: 'INVALID_ARGUMENT' })
    }
    assert.equal(tickets.generate(), 1n)
  })

  test('other objects, and the constructor', async (t) => {
    const tickets = await draw(t, await newCounters(t))
    const { generate, metrics, toJSON, close, fill } = Tickets.prototype
    const flake = new Randflake(1, SECRET)
    for (const self of [undefined, null, {}, Object.create(tickets), flake]) {
      for (const method of [generate, metrics, toJSON]) {
        assert.throws(() => method.call(self), { code: 'INVALID_ARGUMENT' })
      }
    }
    for (const method of [close, fill]) {
      assert.throws(() => method.call({}), { code: 'INVALID_ARGUMENT' })
    }
    assert.throws(() => Randflake.prototype.generate.call(tickets), { code: 'INVALID_ARGUMENT' })
    assert.throws(() => new Tickets('ids.db', 'invoices'), { code: 'INVALID_ARGUMENT' })
    assert.throws(() => Tickets('ids.db', 'invoices'), { code: 'INVALID_ARGUMENT' })
    assert.throws(() => new Tickets(), { code: 'INVALID_ARGUMENT' })
  })
})

suite('a store', () => {
  test('that was not made for tickets has none, unless it is asked to', async (t) => {
    const store = newStore(t)
    const refused = { code: 'STORE_NOT_INITIALIZED' }
    await assert.rejects(Tickets.leased(store, 'invoices'), refused)
    assert.throws(() => Tickets.lazy(store, 'invoices').generate(), refused)
    await assert.rejects(Tickets.leased(store, 'invoices', { create: false }), refused)
    assert(!existsSync(store))
    const tickets = await draw(t, store, { create: true })
    assert.equal(tickets.generate(), 1n)
  })

  test('has leases and tickets in namespaces of their own', async (t) => {
    const store = await newCounters(t)
    const flake = await Randflake.leased(store, SECRET)
    t.after(() => flake[Symbol.asyncDispose]())
    const of = (namespace) => ({ namespace })
    await assert.rejects(Randflake.leased(store, SECRET, of('tickets')), {
      code: 'INVALID_ARGUMENT',
    })
    await assert.rejects(Tickets.leased(store, 'invoices', of('default')), {
      code: 'INVALID_ARGUMENT',
    })
  })

  test('of the environment is found by its variable alone', async (t) => {
    const store = await newCounters(t)
    t.after(() => delete process.env.RANDFLAKE_STORE)
    delete process.env.RANDFLAKE_STORE
    const none = { code: 'INVALID_ARGUMENT', message: /RANDFLAKE_STORE/ }
    await assert.rejects(Tickets.leased(undefined, 'invoices'), none)
    const lazy = Tickets.lazy(undefined, 'invoices')
    assert.throws(() => lazy.generate(), none)
    process.env.RANDFLAKE_STORE = store
    assert.equal(lazy.generate(), 1n)
    await lazy[Symbol.asyncDispose]()
    assert.equal((await draw(t, undefined)).generate(), 2n)
  })

  /** Takes numbers until there is none for a reason that the store gives, and returns the error. */
  async function exhaust(tickets, numbers) {
    let failure
    await until('it has none left', () => {
      try {
        numbers.push(tickets.generate())
        return false
      } catch (error) {
        failure = error
        return (error.cause ?? error).code.startsWith('STORE_')
      }
    })
    return failure
  }

  test('that others block is waited for', async (t) => {
    const store = await newCounters(t)
    const tickets = await draw(t, store, { maxWaitMs: 0, minBlock: 1, maxBlock: 2 })
    const unblock = await block(t, store)
    const numbers = []
    const failure = await exhaust(tickets, numbers)
    isOurs(failure, 'LEASE_UNAVAILABLE')
    assert(failure.retryAfterMs > 0 && failure.retryAfterMs <= 5000, failure.retryAfterMs)
    isOurs(failure.cause, 'STORE_UNAVAILABLE')
    isOurs(tickets.metrics().lastError, 'STORE_UNAVAILABLE')
    assert(tickets.metrics().storeErrors.STORE_UNAVAILABLE > 0)
    const later = tickets.ready()
    unblock()
    await later
    numbers.push(tickets.generate())
    assert.equal(new Set(numbers).size, numbers.length)
  })

  test('that was moved away is used again once it is back', async (t) => {
    const store = await newCounters(t)
    const tickets = await draw(t, store, { maxWaitMs: 0, minBlock: 1, maxBlock: 2 })
    renameSync(store, `${store}.away`)
    const numbers = []
    isOurs(await exhaust(tickets, numbers), 'STORE_REPLACED')
    renameSync(`${store}.away`, store)
    await until('it is back', () => {
      try {
        numbers.push(tickets.generate())
        return true
      } catch {
        return false
      }
    })
    assert.equal(new Set(numbers).size, numbers.length)
  })

  test('that was fenced goes on above that number, and nowhere below', async (t) => {
    const store = await newCounters(t)
    const tickets = await Tickets.leased(store, 'invoices')
    assert.equal(tickets.generate(), 1n)
    await tickets[Symbol.asyncDispose]()
    const { givenBack, next } = await showTickets(store, 'invoices')
    assert.deepEqual([givenBack, next], [0, 2n])
    const status = {
      name: 'invoices',
      start: 1n,
      step: 1n,
      next: 5001n,
      givenBack: 0,
      blocks: 0,
      mustBeFenced: false,
    }
    assert.deepEqual(await fenceTickets(store, 'invoices', 5000n), status)
    assert.deepEqual(await showTickets(store, 'invoices'), status)
    assert.equal((await draw(t, store)).generate(), 5001n)
    await fenceTickets(store, 'invoices', 10)
    assert((await draw(t, store)).generate() > 5001n)
    assert.equal(await showTickets(store, 'orders'), null)
    await fenceTickets(store, 'orders', 77, { start: 2n, step: 2 })
    const orders = await Tickets.leased(store, 'orders', { start: 2 })
    assert.deepEqual([...orders.generateMany(2)], [78n, 80n])
    await orders[Symbol.asyncDispose]()
  })

  test('is listed with all others, by name', async (t) => {
    const store = await newCounters(t)
    assert.deepEqual(await listTickets(store), [])
    const made = []
    for (const name of ['invoices', 'orders', 'été']) {
      made.push(await fenceTickets(store, name, made.length * 10))
    }
    const listed = await listTickets(store)
    assert.deepEqual(listed, made)
    assert(Object.isFrozen(listed) && listed.every(Object.isFrozen))
    await fenceStore(store, { namespace: 'tickets' })
    await fenceTickets(store, 'orders', 0)
    const refused = (await listTickets(store)).map(({ mustBeFenced }) => mustBeFenced)
    assert.deepEqual(refused, [true, false, true])
    await initTickets(store, 'new', { namespace: 'others' })
    assert.deepEqual(await listTickets(store, { namespace: 'others' }), [])
  })

  test('in quarantine is drawn from once each counter is fenced', async (t) => {
    const store = newStore(t)
    await initTickets(store, 'quarantine')
    const refused = (error) =>
      isOurs(error, 'STORE_QUARANTINED') && /fenceTickets/.test(error.message)
    await assert.rejects(Tickets.leased(store, 'invoices'), refused)
    const lazy = Tickets.lazy(store, 'invoices', { maxWaitMs: 60_000 })
    assert.throws(() => lazy.generate(), refused)
    await assert.rejects(lazy.ready(), refused)
    lazy.close()
    await fenceTickets(store, 'invoices', 100)
    assert.equal((await draw(t, store)).generate(), 101n)
    await assert.rejects(Tickets.leased(store, 'orders'), refused)
  })

  test('that is fenced takes numbers alone', async (t) => {
    const store = await newCounters(t)
    const bad = ['1', null, undefined, -1, -1n, 1.5, Number.NaN, LARGEST + 1, 2n ** 53n, 2n ** 64n]
    const refused = (error) => isOurs(error, 'INVALID_ARGUMENT')
    for (const above of bad) {
      await assert.rejects(fenceTickets(store, 'invoices', above), (error) => {
        assert.match(error.message, /above/)
        return refused(error)
      })
    }
    for (const options of [
      null,
      1,
      { start: 0 },
      { step: '1' },
      { namespace: 1 },
      { create: true },
      { allowWeakStore: 1 },
      { allowWeakStore: true }, // of a file
    ]) {
      await assert.rejects(fenceTickets(store, 'invoices', 1, options), refused)
    }
    for (const options of [
      null,
      1,
      { start: 1 },
      { namespace: '' },
      { namespace: null },
      { allowWeakStore: true }, // of a file
    ]) {
      await assert.rejects(showTickets(store, 'invoices', options), refused)
      await assert.rejects(listTickets(store, options), refused)
    }
    for (const mode of ['', 'old', undefined, null, 1]) {
      await assert.rejects(initTickets(newStore(t), mode), refused)
    }
    for (const options of [
      null,
      1,
      { namespace: 1 },
      { layout: 'twitter' },
      { allowWeakStore: 1 },
    ]) {
      await assert.rejects(initTickets(newStore(t), 'new', options), refused)
    }
    assert.equal(await showTickets(store, 'invoices'), null)
    const missing = newStore(t)
    const none = (error) => isOurs(error, 'STORE_NOT_INITIALIZED')
    await assert.rejects(showTickets(missing, 'invoices'), none)
    await assert.rejects(listTickets(missing), none)
    await assert.rejects(fenceTickets(missing, 'invoices', 1), none)
    assert(!existsSync(missing))
  })
})

suite('a server', () => {
  test('is never waited for on this thread', async () => {
    const server = silentServer()
    const options = { acquireTimeoutMs: 0, maxWaitMs: 60_000 }
    const tickets = Tickets.lazy(server, 'invoices', options)
    const unavailable = ({ code, retryAfterMs }) =>
      code === 'LEASE_UNAVAILABLE' && retryAfterMs > 0 && retryAfterMs <= 5000
    for (let round = 0; round < 3; round++) assert.throws(() => tickets.generate(), unavailable)
    assert.throws(() => tickets.fill(new BigInt64Array(3)), unavailable)
    assert.throws(() => tickets.generateMany(20_000), unavailable)
    await until('it is asked', () => server.waiting.length > 0)
    assert.throws(() => tickets.generate(), unavailable)
    assert.equal(server.waiting.length, 1)
    server.fail()
    await until('it says why', () => {
      server.fail()
      try {
        tickets.generate()
      } catch (error) {
        assert(unavailable(error), error)
        return error.cause?.code === 'STORE_UNAVAILABLE' && /it is down/.test(error.message)
      }
      return assert.fail('there is no number')
    })
    tickets.close()
    server.fail()
    assert.throws(() => tickets.generate(), { code: 'CLOSED' })
  })
})

suite('an object', () => {
  test('shows its name alone', async (t) => {
    const store = await newCounters(t)
    const tickets = await draw(t, store)
    assert.equal(tickets.name, 'invoices')
    assert.equal(JSON.stringify(tickets), '{"name":"invoices"}')
    assert.equal(inspect(tickets), "Tickets { name: 'invoices' }")
    assert.equal(inspect(Tickets.lazy(store, 'orders')), "Tickets { name: 'orders' }")
    assert.throws(() => structuredClone(tickets), { code: 'INVALID_ARGUMENT' })
  })

  test('counts what it does', async (t) => {
    const tickets = await draw(t, await newCounters(t))
    tickets.generateMany(4)
    const { storeRequestSeconds, ...metrics } = tickets.metrics()
    assert.deepEqual(metrics, {
      numbersGenerated: 4,
      reserve: 6,
      blocksDrawn: 1,
      waits: 0,
      storeRequests: 1,
      storeErrors: {},
      lastError: null,
    })
    assert(storeRequestSeconds > 0)
  })

  test('that is closed hands out nothing, and gives back what it has left', async (t) => {
    const store = await newCounters(t)
    for (const close of ['close', Symbol.dispose, Symbol.asyncDispose]) {
      const tickets = await Tickets.leased(store, 'invoices')
      const first = tickets.generate()
      await tickets[close]()
      tickets.close()
      for (const call of [
        () => tickets.generate(),
        () => tickets.generateMany(1),
        () => tickets.fill(new BigInt64Array(1)),
      ]) {
        assert.throws(call, { code: 'CLOSED' })
      }
      await assert.rejects(tickets.generateManyAsync(1), { code: 'CLOSED' })
      await assert.rejects(tickets.ready(), { code: 'CLOSED' })
      await tickets[Symbol.asyncDispose]()
      const next = await Tickets.leased(store, 'invoices')
      assert.equal(next.generate(), first + 1n)
      await next[Symbol.asyncDispose]()
    }
  })
})

suite('randflake/prometheus', () => {
  test('shows the numbers of tickets beside those of generators', async (t) => {
    const invoices = await draw(t, await newCounters(t))
    invoices.generateMany(4)
    const register = new client.Registry()
    const orders = new Snowflake(1021, { layout: 'twitter' })
    const unused = Tickets.lazy(undefined, 'orders')
    collect({ invoices, orders, unused }, { register })
    const text = await register.metrics()
    for (const line of [
      'randflake_tickets_issued_total{counter="invoices"} 4',
      'randflake_tickets_blocks_total{counter="invoices"} 1',
      'randflake_tickets_waits_total{counter="unused"} 0',
      'randflake_tickets_reserve{counter="invoices"} 6',
      'randflake_tickets_issued_total{counter="unused"} 0',
    ]) {
      assert(text.split('\n').includes(line), `${line} in\n${text}`)
    }
    assert.match(text, /^randflake_ids_generated_total\{generator="orders"\} \d+$/m)
    assert.doesNotMatch(text, /counter="orders"|generator="(invoices|unused)"/)
  })
})

suite('a lazy object', () => {
  test('reads nothing before its first number', async (t) => {
    const store = newStore(t)
    const tickets = Tickets.lazy(store, 'invoices', { maxWaitMs: 60_000 })
    const unused = tickets.metrics()
    assert(!existsSync(store))
    await initTickets(store, 'new')
    const folder = process.cwd()
    t.after(() => process.chdir(folder))
    process.chdir(dirname(store))
    const relative = Tickets.lazy(basename(store), 'invoices', { maxWaitMs: 60_000 })
    process.chdir(folder)
    assert.equal(tickets.generate(), 1n)
    assert.deepEqual(Object.keys(tickets.metrics()), Object.keys(unused))
    await tickets[Symbol.asyncDispose]()
    assert.equal(relative.generate(), 2n)
    await relative[Symbol.asyncDispose]()
  })

  const calls = {
    generate: (tickets) => tickets.generate(),
    generateMany: (tickets) => tickets.generateMany(3)[0],
    'a large batch': (tickets) => tickets.generateMany(20_000)[0],
    generateManyAsync: async (tickets) => (await tickets.generateManyAsync(3))[0],
    fill: (tickets) => {
      const numbers = new BigInt64Array(3)
      tickets.fill(numbers)
      return numbers[0]
    },
    ready: async (tickets) => {
      await tickets.ready()
      return tickets.generate()
    },
  }
  for (const [name, call] of Object.entries(calls)) {
    test(`draws with ${name}`, async (t) => {
      const store = await newCounters(t)
      const tickets = Tickets.lazy(store, 'invoices', { maxWaitMs: 60_000 })
      assert.equal(await call(tickets), 1n)
      await tickets[Symbol.asyncDispose]()
    })
  }

  test('is not ready where there is no first block in time, and says why', async () => {
    const store = { run: () => Promise.reject(new Error('it is down')), server: 'postgresql' }
    for (const acquireTimeoutMs of [0, 50]) {
      const tickets = Tickets.lazy(store, 'invoices', { acquireTimeoutMs })
      await assert.rejects(tickets.ready(), (error) => {
        isOurs(error, 'LEASE_UNAVAILABLE')
        isOurs(error.cause, 'STORE_UNAVAILABLE')
        return /it is down/.test(error.message)
      })
      tickets.close()
    }
  })

  test('does not wait for its first block longer than a call may', async (t) => {
    const store = await newCounters(t)
    const unblock = await block(t, store)
    const tickets = Tickets.lazy(store, 'invoices', { maxWaitMs: 0 })
    assert.throws(
      () => tickets.generate(),
      (error) => isOurs(error, 'LEASE_UNAVAILABLE'),
    )
    unblock()
    await tickets.ready()
    assert.equal(tickets.generate(), 1n)
    await tickets[Symbol.asyncDispose]()
  })

  test('that is closed before draws nothing', async (t) => {
    const store = newStore(t)
    const tickets = Tickets.lazy(store, 'invoices')
    tickets.close()
    assert.throws(() => tickets.generate(), { code: 'CLOSED' })
    await assert.rejects(tickets.ready(), { code: 'CLOSED' })
    assert(!existsSync(store))
  })
})

suite('a process', () => {
  const endings = {
    'ends by itself': ['', 0],
    'calls process.exit': ['process.exit(3)', 3],
    'ends with an uncaught exception': ['setTimeout(() => { throw new Error("mine") })', 1],
  }
  for (const [how, [ending, code]] of Object.entries(endings)) {
    test(`that ${how} gives back what it has left`, async (t) => {
      const store = await newCounters(t)
      const ended = await run(
        store,
        `const { Tickets } = require('./index.js')
        const tickets = await Tickets.leased(STORE, 'invoices')
        const lazy = Tickets.lazy(STORE, 'invoices')
        say(tickets.generateMany(3).at(-1))
        lazy.generate()
        ${ending}`,
      )
      assert.deepEqual([ended.stdout, ended.code], ['3\n', code], ended.stderr)
      const tickets = await draw(t, store)
      const next = [tickets.generate(), tickets.generateMany(6), tickets.generate()].flat()
      assert.deepEqual([next[0], next.at(-1)], [4n, 12n])
    })
  }

  test('that is killed loses no more than it had drawn', async (t) => {
    const store = await newCounters(t)
    const killed = await run(
      store,
      `const { Tickets } = require('./index.js')
      const tickets = await Tickets.leased(STORE, 'invoices', { maxBlock: 50 })
      say(tickets.generateMany(100).at(-1))
      process.kill(process.pid, 'SIGKILL')`,
    )
    assert.deepEqual([killed.stdout, killed.signal], ['100\n', 'SIGKILL'], killed.stderr)
    const next = (await draw(t, store)).generate()
    assert(next > 100n && next <= 151n, String(next))
  })

  test('has workers that hand out no number twice, also where they are terminated', async (t) => {
    const store = await newCounters(t)
    const code = `const { Tickets } = require('./index.js')
      const tickets = Tickets.lazy(STORE, 'invoices', { maxWaitMs: 60000 })
      const numbers = new BigInt64Array(5000)
      for (let index = 0; index < 5000; index++) numbers[index] = tickets.generate()
      parentPort.postMessage(numbers)
      for (;;) tickets.generate()`
    const ended = await run(
      store,
      `const { Tickets } = require('./index.js')
      const numbers = await Promise.all(Array(3).fill().map(async () => {
        const worker = work(${JSON.stringify(code)})
        const [posted] = await once(worker, 'message')
        await worker.terminate()
        return [...posted]
      }))
      const tickets = await Tickets.leased(STORE, 'invoices', { maxWaitMs: 60000 })
      const all = [...numbers.flat(), ...tickets.generateMany(5000)]
      say(all.length, new Set(all).size)`,
    )
    assert.equal(ended.stdout, '20000 20000\n', ended.stderr)
  })

  test('ends soon, and terminates workers, while calls wait for a block', async (t) => {
    const store = await newCounters(t)
    await block(t, store)
    const code = `const { Tickets } = require('./index.js')
      const tickets = Tickets.lazy(STORE, 'invoices', { maxWaitMs: 2000 })
      parentPort.postMessage('waits')
      tickets.generate()`
    const ended = await run(
      store,
      `const { Tickets } = require('./index.js')
      const start = () => work(${JSON.stringify(code)}).on('error', () => {}) // it has waited
      const workers = Array.from({ length: 3 }, start)
      await Promise.all(workers.map((worker) => once(worker, 'message')))
      say('they wait')
      await delay(50)
      await Promise.all(workers.map((worker) => worker.terminate()))
      const tickets = Tickets.lazy(STORE, 'invoices', { maxWaitMs: 3600000 })
      tickets.generateManyAsync(3).catch(() => {})
      tickets.ready().catch(() => {})
      setTimeout(() => process.exit(3), 50)`,
    )
    assert.deepEqual([ended.stdout, ended.code], ['they wait\n', 3], ended.stderr)
    assert(ended.secondsToEnd < 40, `took ${ended.secondsToEnd} s`)
  })

  test('gives back what an object had that nobody has any more', async (t) => {
    const store = await newCounters(t)
    const ended = await run(
      store,
      `const { Tickets } = require('./index.js')
      const make = async () => { (await Tickets.leased(STORE, 'invoices')).generate() }
      await make()
      let next
      for (let round = 0; round < 1000 && next !== 2n; round++) {
        gc()
        await delay(20)
        const tickets = await Tickets.leased(STORE, 'invoices')
        next = tickets.generateMany(1)[0]
        if (next !== 2n) await tickets[Symbol.asyncDispose]()
      }
      say(next)`,
      '--expose-gc',
    )
    assert.equal(ended.stdout, '2\n', ended.stderr)
  })
})
