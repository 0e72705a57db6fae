// The soak's holder in Node.js; see soak.py.
//
// `holder.cjs STORE LOG TTL NODE_COUNT` makes ids until SIGTERM. If a node id and a port follow, it
// leases none, but uses that node id as soon as it can listen on the port. With a copy of the
// package in RANDFLAKE_COPY it has a generator from each.

const { closeSync, openSync, writeSync } = require('node:fs')
const { createServer } = require('node:net')
const { setTimeout: sleep } = require('node:timers/promises')
const { Layout, Randflake, Snowflake } = require('../../bindings-node')

const { RANDFLAKE_COPY, RANDFLAKE_SECRET } = process.env

// Temporary errors: a lease that has ended, a store that is busy.
const PASSES = [
  'LEASE_UNAVAILABLE',
  'NODES_EXHAUSTED',
  'STORE_UNAVAILABLE',
  'STORE_QUARANTINED',
  'CLOCK_SKEW',
  'SEQUENCE_EXHAUSTED',
]
// Ids per batch.
const BATCH = 1000
// Ids from single calls. Afterwards the thread's buffer has some left.
const SINGLE = 100

let ending = false
process.on('SIGTERM', () => {
  ending = true
})

function name(log, kind) {
  return `${log}.${process.pid}.${kind}`
}

// Makes ids and logs them; reports at the end that all went well.
async function generators(store, ttl, nodeCount, nodeId, port) {
  if (nodeId !== undefined) {
    await waitFor(Number(port))
    return [new Randflake(Number(nodeId), RANDFLAKE_SECRET)]
  }
  const options = {
    ttlSeconds: Number(ttl),
    nodeCount: Number(nodeCount),
  }
  if (store.includes('://')) {
    // As in stores.py.
    const layout = new Layout({
      fields: [
        ['time', 41],
        ['node', 5],
        ['sequence', 17],
      ],
      tickMs: 1000,
      epochMs: 1_730_000_000_000,
    })
    return [await Snowflake.leased(store, { ...options, layout, maxSkewSeconds: 1 })]
  }
  const packages = [Randflake]
  if (RANDFLAKE_COPY !== undefined) packages.push(require(RANDFLAKE_COPY).Randflake)
  const leased = packages.map((each) =>
    each.leased(store, RANDFLAKE_SECRET, { ...options, maxSkewSeconds: 0 }),
  )
  return await Promise.all(leased)
}

// Tries again until a generator is available.
async function generatorsAtLast(...options) {
  for (;;) {
    if (ending) process.exit()
    try {
      return await generators(...options)
    } catch (error) {
      if (!PASSES.includes(error.code)) throw error
    }
  }
}

// Listens on a port as soon as no other process does.
async function waitFor(port) {
  for (;;) {
    if (ending) process.exit()
    const server = createServer().unref()
    const listens = await new Promise((resolve) => {
      server.once('error', () => resolve(false))
      server.listen({ port, host: '127.0.0.1', exclusive: true }, () => resolve(true))
    })
    if (listens) return
    await sleep(1)
  }
}

async function hold(store, log, ...options) {
  const flakes = await generatorsAtLast(store, ...options)
  const file = openSync(name(log, 'ids'), 'ax')
  while (!ending) {
    for (const flake of flakes) {
      try {
        const ids = new BigInt64Array(BATCH + SINGLE)
        flake.fill(ids.subarray(0, BATCH))
        for (let place = BATCH; place < ids.length; place++) ids[place] = flake.generate()
        writeSync(file, ids)
      } catch (error) {
        if (!PASSES.includes(error.code)) throw error
      }
    }
    await sleep(50)
  }
  await Promise.all(flakes.map((flake) => flake[Symbol.asyncDispose]()))
  closeSync(openSync(name(log, 'end'), 'ax'))
  process.exit()
}

hold(...process.argv.slice(2))
