// The Node half of `make demo`.
//
// demo.mjs generate STORE COUNT   leases a node id, makes ids and prints what is in them
// demo.mjs read                   prints what is in the ids on standard input
//
// The secret is read from RANDFLAKE_SECRET.

import { createInterface } from 'node:readline'
// The clone's own package; elsewhere: from 'randflake'.
import { encodeString, Inspector, Randflake } from '../bindings-node/index.js'

const secret = process.env.RANDFLAKE_SECRET
const inspector = new Inspector(secret)

function describe(id) {
  const { date, nodeId, sequence } = inspector.inspect(id)
  const time = date.toISOString().replace('.000Z', 'Z')
  return [id, encodeString(id), time, nodeId, sequence].join('\t')
}

const [command, store, count] = process.argv.slice(2)
if (command === 'generate') {
  const flake = await Randflake.leased(store, secret)
  for (const id of flake.generateMany(Number(count))) console.log(describe(id))
  flake.close() // and gives the node id back
} else if (command === 'read') {
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(describe(BigInt(line)))
  }
} else {
  console.error('usage: demo.mjs generate STORE COUNT | read')
  process.exitCode = 2
}
