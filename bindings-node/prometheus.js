'use strict'

// Generator metrics for prom-client. They are read when Prometheus scrapes.

const client = require('prom-client')
const { invalidArgument, optionsOf } = require('./lib/arguments.js')
const { Layout, Randflake, Snowflake, Tickets } = require('./index.js')
const { version } = require('./package.json')

/**
 * Name, kind, help, labels other than the generator's, what it reads from a generator, and for a gauge
 * what becomes of the values of several workers.
 */
const METRICS = [
  [
    'randflake_ids_generated_total',
    'Counter',
    'Ids that were claimed.',
    [],
    ({ metrics }) => [[{}, metrics.idsGenerated]],
  ],
  [
    'randflake_waits_total',
    'Counter',
    'Calls that waited, by the code of what they waited for.',
    ['reason'],
    ({ metrics }) => counts(metrics.waits, 'reason'),
  ],
  [
    'randflake_lease_remaining_seconds',
    'Gauge',
    'Time to the end of the lease; 0 if it has ended.',
    [],
    ({ lease }) => (lease ? [[{}, lease.secondsLeft]] : []),
    'min',
  ],
  [
    'randflake_lease_renewals_total',
    'Counter',
    'Renewals that the store has granted.',
    [],
    ({ lease }) => (lease ? [[{}, lease.renewals]] : []),
  ],
  [
    'randflake_lease_losses_total',
    'Counter',
    'Node ids that went to another holder before they were given back.',
    [],
    ({ lease }) => (lease ? [[{}, lease.losses]] : []),
  ],
  [
    'randflake_lease_replacements_total',
    'Counter',
    'Times that other node ids replaced lost ones.',
    [],
    ({ lease }) => (lease ? [[{}, lease.replacements]] : []),
  ],
  [
    'randflake_store_errors_total',
    'Counter',
    'Requests that the store did not grant, by the code of the error.',
    ['code'],
    ({ metrics }) => counts(metrics.storeErrors, 'code'),
  ],
  [
    'randflake_clock_skew_seconds',
    'Gauge',
    "The store's clock less this machine's, at the last answer.",
    [],
    ({ metrics: { clockSkewSeconds } }) =>
      clockSkewSeconds === null ? [] : [[{}, clockSkewSeconds]],
    'first',
  ],
  [
    'randflake_layout_end_timestamp_seconds',
    'Gauge',
    'The unix second from which there are no more ids.',
    [],
    ({ layout }) => [[{}, layout.endsAt / 1000]],
    'max',
  ],
]

/** The metrics of tickets: labels other than the counter's, and what each metric reads. */
const OF_TICKETS = [
  [
    'randflake_tickets_issued_total',
    'Counter',
    'Numbers that were handed out.',
    [],
    ({ numbersGenerated }) => [[{}, numbersGenerated]],
  ],
  [
    'randflake_tickets_blocks_total',
    'Counter',
    'Blocks of numbers that were drawn.',
    [],
    ({ blocksDrawn }) => [[{}, blocksDrawn]],
  ],
  [
    'randflake_tickets_waits_total',
    'Counter',
    'Calls that waited for a block.',
    [],
    ({ waits }) => [[{}, waits]],
  ],
  [
    'randflake_tickets_reserve',
    'Gauge',
    'Numbers that are drawn but not yet handed out.',
    [],
    ({ reserve }) => [[{}, reserve]],
    'sum',
  ],
  [
    'randflake_tickets_store_errors_total',
    'Counter',
    'Requests for numbers that the store did not grant, by the code of the error.',
    ['code'],
    ({ storeErrors }) => counts(storeErrors, 'code'),
  ],
]

const DURATION = 'randflake_store_request_duration_seconds'

function counts(byCode, label) {
  return Object.entries(byCode).map(([code, count]) => [{ [label]: code }, count])
}

function isGenerator(value) {
  return value instanceof Randflake || value instanceof Snowflake
}

function isCollected(value) {
  return isGenerator(value) || value instanceof Tickets
}

/** Registers metrics whose values are read from all objects with this label. */
function registerAll(register, metrics, label, read) {
  for (const [name, kind, help, labels, valuesOf, aggregator] of metrics) {
    const set = kind === 'Counter' ? 'inc' : 'set'
    const collectNow = function () {
      this.reset()
      for (const one of read()) {
        for (const [own, value] of valuesOf(one)) {
          this[set]({ [label]: one[label], ...own }, value)
        }
      }
    }
    const labelNames = [label, ...labels]
    const settings = { name, help, labelNames, registers: [register], collect: collectNow }
    new client[kind](aggregator ? { ...settings, aggregator } : settings)
  }
}

/** Registers metrics of generators, named by the label `generator`, and of tickets, by `counter`. */
function collect(flakes, options) {
  const { register = client.register } = optionsOf(options, 'register')
  const one = flakes instanceof Tickets ? { [flakes.name]: flakes } : { default: flakes }
  const named = Object.entries(isCollected(flakes) ? one : (flakes ?? {}))
  if (named.length === 0 || !named.every(([, flake]) => isCollected(flake))) {
    throw invalidArgument(
      'collect takes a generator or tickets, or an object with one of these for each name',
    )
  }
  const [generators, tickets] = [isGenerator, (value) => value instanceof Tickets].map((isOne) =>
    named.filter(([, value]) => isOne(value)),
  )
  const read = () =>
    generators.map(([generator, flake]) => ({
      generator,
      lease: isLeased(flake.lease) ? flake.lease : null,
      layout: flake.layout ?? new Layout('randflake'),
      metrics: flake.metrics(),
    }))
  const readTickets = () => tickets.map(([counter, drawn]) => ({ ...drawn.metrics(), counter }))
  if (generators.length > 0) {
    registerAll(register, METRICS, 'generator', read)
    registerDurations(register, read)
  }
  if (tickets.length > 0) registerAll(register, OF_TICKETS, 'counter', readTickets)
  const info = { name: 'randflake_build_info', help: 'The version of randflake.' }
  const settings = { ...info, labelNames: ['version'], registers: [register], aggregator: 'first' }
  new client.Gauge(settings).set({ version }, 1)
}

/** A lease from a store, not one that was given. */
function isLeased(lease) {
  return lease?.store !== undefined
}

/** A summary observes one value after another; here we have a sum and a count. */
function registerDurations(register, read) {
  const help = 'How long requests to the store took.'
  const labelNames = ['generator']
  const summary = new client.Summary({
    name: DURATION,
    help,
    labelNames,
    percentiles: [],
    registers: [register],
  })
  summary.get = async () => ({
    name: DURATION,
    help,
    type: summary.type,
    aggregator: 'sum',
    values: read().flatMap(({ generator, metrics: { storeRequests, storeRequestSeconds } }) =>
      storeRequests === 0
        ? []
        : [
            { metricName: `${DURATION}_sum`, labels: { generator }, value: storeRequestSeconds },
            { metricName: `${DURATION}_count`, labels: { generator }, value: storeRequests },
          ],
    ),
  })
}

module.exports.collect = collect
