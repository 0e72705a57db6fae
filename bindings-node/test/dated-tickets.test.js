'use strict'

// Sequential numbers with a date, from a file.

const assert = require('node:assert/strict')
const { suite, test } = require('node:test')
const { inspect } = require('node:util')
const { DatedTickets, initTickets, listTickets } = require('..')
const { newStore } = require('./store.js')

const YEAR = new Date().getUTCFullYear()

/** Returns the path of a store with the namespace of tickets. */
async function newCounters(t) {
  const store = newStore(t)
  await initTickets(store, 'new')
  return store
}

suite('numbers with a date', () => {
  test('begin with 1, and are given back', async (t) => {
    const store = await newCounters(t)
    const options = { period: 'year', prefix: 'INV-', acquireTimeoutMs: 600_000 }
    const invoices = new DatedTickets(store, 'invoices', options)
    const first = await invoices.generate()
    assert.match(first, /^INV-20\d\d-000001$/)
    const more = await invoices.generateMany(3)
    assert.deepEqual(
      more,
      [2, 3, 4].map((number) => first.replace(/1$/, number)),
    )
    assert.deepEqual(await invoices.generateMany(0), [])
    await invoices.closeAsync()
    await assert.rejects(invoices.generate(), { code: 'CLOSED' })
    const again = new DatedTickets(store, 'invoices', { ...options, digits: 3 })
    t.after(() => again.closeAsync())
    assert.match(await again.generate(), /^INV-20\d\d-005$/)
    const [{ name }] = await listTickets(store)
    assert.match(name, /^invoices\/20\d\d$/)
    assert(Math.abs(Number(name.slice(-4)) - YEAR) <= 1)
  })

  test('are of the zone', async (t) => {
    const store = await newCounters(t)
    const dates = new Set()
    for (const timeZone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
      const options = { period: 'day', timeZone, acquireTimeoutMs: 600_000 }
      const invoices = new DatedTickets(store, 'invoices', options)
      t.after(() => invoices.closeAsync())
      dates.add((await invoices.generate()).slice(0, 8))
    }
    assert.equal(dates.size, 2, 'these are always more than a day apart')
  })

  test('show their name alone', async (t) => {
    const store = await newCounters(t)
    const invoices = new DatedTickets(store, 'invoices', { period: 'day' })
    t.after(() => invoices.closeAsync())
    assert.equal(invoices.name, 'invoices')
    assert.equal(JSON.stringify(invoices), '{"name":"invoices"}')
    assert(!inspect(invoices).includes(store))
  })

  test('refuse what is wrong', async (t) => {
    const store = await newCounters(t)
    const refused = { code: 'INVALID_ARGUMENT' }
    for (const options of [
      undefined,
      null,
      {},
      { period: 'week' },
      { period: 1 },
      { period: 'day', timeZone: 'Europe/Nowhere' },
      { period: 'day', prefix: 7 },
      { period: 'day', prefix: 'x'.repeat(101) },
      { period: 'day', digits: 0 },
      { period: 'day', digits: 17 },
      { period: 'day', digits: 1.5 },
      { period: 'day', step: 0 },
      { period: 'day', nodeCount: 1 },
    ]) {
      assert.throws(() => new DatedTickets(store, 'invoices', options), refused)
    }
    assert.throws(() => new DatedTickets(store, 'x'.repeat(192), { period: 'day' }), refused)
    assert.throws(() => new DatedTickets(store, '', { period: 'day' }), refused)
    assert.throws(() => DatedTickets(store, 'invoices', { period: 'day' }), refused)
    const invoices = new DatedTickets(store, 'invoices', { period: 'day' })
    t.after(() => invoices.closeAsync())
    for (const n of [-1, 1.5, '1', undefined]) {
      await assert.rejects(invoices.generateMany(n), refused)
    }
    assert.throws(() => DatedTickets.prototype.close.call({}), refused)
    const missing = new DatedTickets(newStore(t), 'invoices', { period: 'day' })
    await assert.rejects(missing.generate(), { code: 'STORE_NOT_INITIALIZED' })
  })
})
