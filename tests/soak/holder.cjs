// The soak's holder in Node.js; see soak.py.
//
// `holder.cjs STORE LOG TTL NODE_COUNT` makes ids until SIGTERM.

const { closeSync, openSync, writeSync } = require('node:fs')
const { setTimeout: sleep } = require('node:timers/promises')
const { Randflake } = require('../../bindings-node')

// What passes by itself: a lease that is over, a store that is busy.
const PASSES = ['LEASE_UNAVAILABLE', 'NODES_EXHAUSTED', 'STORE_UNAVAILABLE', 'CLOCK_SKEW']

let ending = false
process.on('SIGTERM', () => {
  ending = true
})

function name(log, kind) {
  return `${log}.${process.pid}.${kind}`
}

// Makes ids and logs them; says at last that all went well.
async function hold(store, log, ttl, nodeCount) {
  const flake = await Randflake.leased(store, process.env.RANDFLAKE_SECRET, {
    ttlSeconds: Number(ttl),
    nodeCount: Number(nodeCount),
    maxSkewSeconds: 0,
    acquireTimeoutMs: 60_000,
  })
  const file = openSync(name(log, 'ids'), 'ax')
  while (!ending) {
    try {
      const ids = new BigInt64Array(101)
      ids[0] = flake.generate()
      flake.fill(ids.subarray(1))
      writeSync(file, ids)
    } catch (error) {
      if (!PASSES.includes(error.code)) throw error
    }
    await sleep(50)
  }
  await flake[Symbol.asyncDispose]()
  closeSync(openSync(name(log, 'end'), 'ax'))
}

hold(...process.argv.slice(2))
