'use strict'

// The numbers of generators as metrics of prom-client. They are read when Prometheus asks.

const client = require('prom-client')
const { invalidArgument, optionsOf } = require('./arguments.js')
const { Layout, Randflake, Snowflake } = require('./index.js')
const { version } = require('./package.json')

/** Name, kind, help, labels besides that of the generator, and what it reads of one. */
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
    'Time to the end of the lease; 0 if it is over.',
    [],
    ({ lease }) => (lease ? [[{}, lease.secondsLeft]] : []),
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
  ],
  [
    'randflake_layout_end_timestamp_seconds',
    'Gauge',
    'The unix second from which on there are no ids.',
    [],
    ({ layout }) => [[{}, layout.endsAt / 1000]],
  ],
]

const DURATION = 'randflake_store_request_duration_seconds'

function counts(byCode, label) {
  return Object.entries(byCode).map(([code, count]) => [{ [label]: code }, count])
}

function isGenerator(value) {
  return value instanceof Randflake || value instanceof Snowflake
}

/** Registers metrics of generators, which are named by the label `generator`. */
function collect(flakes, options) {
  const { register = client.register } = optionsOf(options, 'register')
  const named = Object.entries(isGenerator(flakes) ? { default: flakes } : (flakes ?? {}))
  if (named.length === 0 || !named.every(([, flake]) => isGenerator(flake))) {
    throw invalidArgument('collect takes a generator, or an object with a generator for each name')
  }
  const read = () =>
    named.map(([generator, flake]) => ({
      generator,
      lease: isLeased(flake.lease) ? flake.lease : null,
      layout: flake.layout ?? new Layout('randflake'),
      metrics: flake.metrics(),
    }))
  for (const [name, kind, help, labels, valuesOf] of METRICS) {
    const set = kind === 'Counter' ? 'inc' : 'set'
    const collectNow = function () {
      this.reset()
      for (const one of read()) {
        for (const [own, value] of valuesOf(one)) {
          this[set]({ generator: one.generator, ...own }, value)
        }
      }
    }
    const labelNames = ['generator', ...labels]
    new client[kind]({ name, help, labelNames, registers: [register], collect: collectNow })
  }
  registerDurations(register, read)
  const info = { name: 'randflake_build_info', help: 'The version of randflake.' }
  new client.Gauge({ ...info, labelNames: ['version'], registers: [register] }).set({ version }, 1)
}

/** A lease from a store, not one that was given. */
function isLeased(lease) {
  return lease?.store !== undefined
}

/** A summary observes one value after the other; here are a sum and a count. */
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
