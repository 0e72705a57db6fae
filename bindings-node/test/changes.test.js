'use strict'

// What a program is told about its lease, and the metrics of a generator.

const assert = require('node:assert/strict')
const { channel } = require('node:diagnostics_channel')
const { mkdirSync, readFileSync, renameSync, rmdirSync } = require('node:fs')
const { join } = require('node:path')
const { suite, test } = require('node:test')
const client = require('prom-client')
const { generateSecret, Layout, Randflake, Snowflake, Tickets } = require('../index.js')
const { collect } = require('../prometheus.js')
const { newStore, run, SECRET, until } = require('./store.js')

/** Renewed after two seconds. */
const SHORT = { ttlSeconds: 6, maxSkewSeconds: 0, maxDriftSeconds: 0 }

/** A store in a file that can be made unavailable; what is reported about a lease from it. */
async function told(t, options) {
  const store = newStore(t)
  const statuses = []
  const onLeaseChange = (status) => statuses.push(status)
  const flake = await Randflake.leased(store, SECRET, { ...SHORT, onLeaseChange, ...options })
  t.after(() => flake[Symbol.asyncDispose]())
  return { store, flake, statuses, states: () => statuses.map(({ state }) => state) }
}

suite('changes of a lease', () => {
  test('an outage is told once in each of its states', async (t) => {
    const published = []
    const listen = (change) => published.push(change)
    channel('randflake:lease').subscribe(listen)
    t.after(() => channel('randflake:lease').unsubscribe(listen))
    const { store, flake, statuses, states } = await told(t, { namespace: 'orders' })
    await until('it is told', () => statuses.length === 1)
    const [first] = statuses
    assert(Object.isFrozen(first))
    assert.deepEqual(
      [first.state, first.store, first.namespace, first.replacements, first.nodeIds],
      ['holding', store, 'orders', 0, flake.nodeIds],
    )
    // Nothing can be opened where a folder is.
    renameSync(store, `${store}.away`)
    mkdirSync(store)
    await until('it is told', () => statuses.length === 3)
    assert.deepEqual(states(), ['holding', 'retrying', 'expired'])
    assert.equal(flake.lease.state, 'expired')
    assert.throws(() => flake.generate(), { code: 'LEASE_UNAVAILABLE' })
    rmdirSync(store)
    renameSync(`${store}.away`, store)
    await until('it is told', () => statuses.length === 4)
    flake.generate()
    await flake[Symbol.asyncDispose]()
    await until('it is told', () => statuses.length === 5)
    assert.deepEqual(states(), ['holding', 'retrying', 'expired', 'holding', 'stopped'])

    // The new lease may have another node id.
    const isSame = statuses[3].nodeIds[0] === first.nodeIds[0]
    assert.equal(statuses[3].replacements, isSame ? 0 : 1)
    const ours = published.filter(({ status }) => status.store === store)
    assert.deepEqual(
      ours.map(({ level }) => level),
      ['info', 'warning', 'error', isSame ? 'info' : 'warning', 'info'],
    )
    assert.deepEqual(
      ours.map(({ status }) => status),
      statuses,
    )
    for (const { status, message, generator } of ours.slice(1)) {
      assert.equal(generator, flake)
      assert(message.includes(`node ids [${status.nodeIds}]`), message)
      assert(!message.includes(SECRET))
    }
    assert.match(ours[2].message, /; no ids until .*: STORE_\w+: /)
  })

  test('what the function throws or rejects with is a warning', async (t) => {
    const warnings = []
    const listen = (warning) => warnings.push(warning)
    process.on('warning', listen)
    t.after(() => process.off('warning', listen))
    for (const onLeaseChange of [
      () => {
        throw new Error('thrown')
      },
      () => Promise.reject(new Error('rejected')),
    ]) {
      const { flake } = await told(t, { onLeaseChange })
      await until('it is told', () => warnings.length > 0)
      const [{ name, code, detail }] = warnings.splice(0)
      assert.deepEqual([name, code], ['LeaseChangeWarning', 'RANDFLAKE_LEASE_CHANGE'])
      assert.match(detail, /thrown|rejected/)
      flake.generate()
    }
  })

  for (const [what, bad] of Object.entries({ null: null, 'a number': 1, 'an object': {} })) {
    test(`a function is refused that is ${what}`, async (t) => {
      const leasing = Randflake.leased(newStore(t), SECRET, { onLeaseChange: bad })
      await assert.rejects(leasing, { code: 'INVALID_ARGUMENT' })
      const other = Snowflake.leased(newStore(t), { onLeaseChange: bad })
      await assert.rejects(other, { code: 'INVALID_ARGUMENT' })
    })
  }

  test('it keeps no process alive, and does not outlive a worker', async (t) => {
    const script = `
      const tell = { ...SHORT, onLeaseChange: ({ state }) => say(state) }
      const flake = await Randflake.leased(STORE, SECRET, tell)
      flake.generate()`
    const alone = await run(newStore(t), script)
    assert.equal(alone.code, 0, alone.stderr)
    assert(alone.secondsToEnd < 30, `${alone.secondsToEnd} s`)
    const inWorker = await run(
      newStore(t),
      `const worker = work(\`
        const flake = await Randflake.leased(STORE, SECRET, { ...SHORT, onLeaseChange() {} })
        parentPort.postMessage(1)
        setInterval(() => flake.generate(), 1)\`)
      await once(worker, 'message')
      await worker.terminate()
      say('ended')`,
    )
    assert.equal(inWorker.code, 0, inWorker.stderr)
    assert.match(inWorker.stdout, /ended/)
  })
})

suite('metrics', () => {
  test('of a generator with a node id of its own', () => {
    const flake = new Snowflake(1023, { layout: 'sonyflake', restartSafe: false })
    const before = flake.metrics().idsGenerated
    flake.generateMany(1000)
    for (let n = 0; n < 5; n++) flake.generate()
    const { idsGenerated, waits, ...rest } = flake.metrics()
    assert.equal(idsGenerated - before, 1005)
    assert.deepEqual(Object.keys(waits).sort(), [
      'CLOCK_MOVED_BACK',
      'LEASE_NOT_STARTED',
      'SEQUENCE_EXHAUSTED',
    ])
    assert.equal(waits.SEQUENCE_EXHAUSTED, 1, '1000 ids have 40 milliseconds')
    assert.deepEqual(rest, {
      storeRequests: 0,
      storeRequestSeconds: 0,
      storeErrors: {},
      clockSkewSeconds: null,
    })
  })

  test('of a leased one', async (t) => {
    const { flake } = await told(t)
    flake.generateMany(1000)
    const { idsGenerated, waits, storeRequests, storeRequestSeconds, ...rest } = flake.metrics()
    assert.equal(idsGenerated, 1000)
    assert.equal(waits.LEASE_UNAVAILABLE, 0)
    assert(storeRequests >= 1 && storeRequestSeconds > 0)
    assert.deepEqual(rest, { storeErrors: {}, clockSkewSeconds: 0 })
    flake.close()
    assert.equal(flake.metrics().idsGenerated, 1000)
  })

  test('a prototype has none', () => {
    assert.throws(() => Randflake.prototype.metrics(), { code: 'INVALID_ARGUMENT' })
  })
})

suite('randflake/prometheus', () => {
  test('shows the numbers when it is asked, under their names', async (t) => {
    const { flake } = await told(t)
    const posts = new Snowflake(1022, { layout: 'twitter' })
    const register = new client.Registry()
    collect({ orders: flake, posts }, { register })
    const before = posts.metrics().idsGenerated
    for (const made of [1, 2]) {
      flake.generateMany(1000)
      posts.generateMany(50)
      const text = await register.metrics()
      const value = (series) => {
        const line = text.split('\n').find((one) => one.startsWith(`${series} `))
        assert(line, `${series} in\n${text}`)
        return Number(line.slice(series.length))
      }
      assert.equal(value('randflake_ids_generated_total{generator="orders"}'), made * 1000)
      assert.equal(value('randflake_ids_generated_total{generator="posts"}'), before + made * 50)
      const left = value('randflake_lease_remaining_seconds{generator="orders"}')
      assert(left > 0 && left <= SHORT.ttlSeconds)
      assert(value('randflake_lease_renewals_total{generator="orders"}') >= 0)
      assert.equal(value('randflake_lease_losses_total{generator="orders"}'), 0)
      assert.equal(value('randflake_lease_replacements_total{generator="orders"}'), 0)
      const waits = 'randflake_waits_total{generator="orders",reason="LEASE_UNAVAILABLE"}'
      assert.equal(value(waits), 0)
      const duration = 'randflake_store_request_duration_seconds'
      assert(value(`${duration}_count{generator="orders"}`) >= 1)
      assert(value(`${duration}_sum{generator="orders"}`) > 0)
      assert.equal(value('randflake_clock_skew_seconds{generator="orders"}'), 0)
      const end = value('randflake_layout_end_timestamp_seconds{generator="posts"}')
      assert.equal(end, new Layout('twitter').endsAt / 1000)
      const { version } = require('../package.json')
      assert.equal(value(`randflake_build_info{version="${version}"}`), 1)
      assert(!text.includes('randflake_lease_remaining_seconds{generator="posts"}'))
      assert(!text.includes(`${duration}_count{generator="posts"}`))
      assert.match(text, /^# TYPE randflake_store_request_duration_seconds summary$/m)
    }
  })

  test('of several workers, what is one of each is not added up', async (t) => {
    const { flake } = await told(t)
    flake.generateMany(1000)
    const register = new client.Registry()
    collect({ orders: flake, invoices: Tickets.lazy('a', 'invoices') }, { register })
    const worker = await register.getMetricsAsJSON()
    const all = client.AggregatorRegistry.aggregate([worker, worker])
    for (const { name, type, values } of await all.getMetricsAsJSON()) {
      const isSum = type !== 'gauge' || name === 'randflake_tickets_reserve'
      const before = worker.find((metric) => metric.name === name).values
      const expected = before.map(({ value }) => (isSum ? 2 * value : value))
      assert.deepEqual(
        values.map(({ value }) => value),
        expected,
        name,
      )
    }
  })

  test('has the names, kinds and labels of the guide, and no others', async () => {
    const register = new client.Registry()
    const [flake, invoices] = [new Randflake(77, generateSecret()), Tickets.lazy('a', 'invoices')]
    collect({ flake, invoices }, { register })
    const shown = register.getMetricsAsArray().map((metric) => {
      const more = metric.labelNames.filter((label) => !['generator', 'counter'].includes(label))
      return [metric.name, metric.constructor.name.toLowerCase(), more.join()].join(' ')
    })
    const guide = readFileSync(join(__dirname, '../../docs/guides/monitoring.md'), 'utf8')
    const rows = guide.matchAll(/^\| `(randflake_\w+)` \| (\w+).* \| (?:`(\w+)` )?\|$/gm)
    const written = Array.from(rows, ([, name, kind, label]) => [name, kind, label].join(' '))
    assert.deepEqual(shown.sort(), written.sort())
  })

  test('takes one generator, and a registry of its own only if told', async () => {
    const flake = new Randflake(77, generateSecret())
    collect(flake)
    const text = await client.register.metrics()
    assert.match(text, /^randflake_ids_generated_total\{generator="default"\} 0$/m)
    client.register.clear()
  })

  test('refuses what is no generator', () => {
    for (const bad of [undefined, null, {}, { orders: 1 }, [], 'orders']) {
      assert.throws(() => collect(bad), { code: 'INVALID_ARGUMENT' })
    }
    const flake = new Randflake(77, generateSecret())
    assert.throws(() => collect(flake, { registry: client.register }), { code: 'INVALID_ARGUMENT' })
  })
})
