// Measures the Node cases. Says on the first line which there are, then does one run of each case
// that it is asked for by name; see ../run.py.

import crypto from 'node:crypto'
import { createRequire } from 'node:module'
import os from 'node:os'
import readline from 'node:readline'
import { Snowflake as SapphireSnowflake } from '@sapphire/snowflake'
import Hashids from 'hashids'
import { nanoid } from 'nanoid'
import { Snowflake as NodejsSnowflake } from 'nodejs-snowflake'
import Optimus from 'optimus-js'
import Sqids from 'sqids'
import { monotonicFactory, ulid } from 'ulid'
import * as uuid from 'uuid'

const require = createRequire(import.meta.url)
const { Cloak, Codes, Inspector, Randflake, Snowflake } = require('../../bindings-node')
const v2 = require('../../bindings-node/v2.js')

const floor = { exports: {} }
process.dlopen(floor, process.argv[2], os.constants.dlopen.RTLD_NOW)

/** How long one run takes, in milliseconds. */
const RUN = 5
const BATCH = 4096
// As many node ids as one generator can have: 2**31 ids a second, more than any case makes.
const NODES = Array.from({ length: 16384 }, (_, node) => node)
const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'

const flake = new Randflake(NODES, SECRET, { restartSafe: false })
// As many as these can have, so that nothing waits either.
const twitter = new Snowflake(NODES.slice(0, 1023), { layout: 'twitter', restartSafe: false })
const discord = new Snowflake(NODES.slice(0, 511), { layout: 'discord', restartSafe: false })
const inspector = new Inspector(SECRET)
const batch = flake.generateMany(BATCH)
const number = 1_234_567
const big = BigInt(number)
const cloak = new Cloak(SECRET, 'orders.id')
const codes = new Codes(SECRET, 'orders')
const checked = new Codes(SECRET, 'vouchers', { length: 10, alphabet: 'crockford', check: 3 })
const sqids = new Sqids({ minLength: 8 })
const hashids = new Hashids(SECRET, 8)
const knuth = new Optimus(1580030173, 59260789, 1163945558)

/** Generators by the names of 2.1, each with a node id of its own: the next one where one is used up. */
const byOldNames = {
  next: 0,
  generator: undefined,
  generate() {
    try {
      return this.generator.generate()
    } catch {
      const start = Math.floor(Date.now() / 1000)
      const lease = { nodeID: this.next++, start, endExclusive: start + 86_400 }
      this.generator = new v2.Generator({ lease, secret: new Uint8Array(16).fill(7) })
      return this.generator.generate()
    }
  },
}

/** Name, label, kind, what the loop does, what `it` is there, how many ids that makes. */
const cases = [
  ['floor_bigint', 'an empty function returning a bigint', 'floor', 'it.integer()', floor.exports],
  ['floor_string', 'an empty function returning a string', 'floor', 'it.text()', floor.exports],
  ['generate', 'generate()', 'us', 'it.generate()', flake],
  ['generate_string', 'generateString()', 'us', 'it.generateString()', flake],
  ['v2', 'v2 Generator.generate()', 'us', 'it.generate()', byOldNames],
  ['snowflake_twitter', 'Snowflake.generate(), Twitter', 'us', 'it.generate()', twitter],
  ['snowflake_discord', 'Snowflake.generate(), Discord', 'us', 'it.generate()', discord],
  [
    'fill',
    'fill(BigInt64Array(4096)), per id',
    'us',
    'it.flake.fill(it.ids)',
    { flake, ids: new BigInt64Array(BATCH) },
    BATCH,
  ],
  ['many', 'generateMany(4096), per id', 'us', 'it.generateMany(4096)', flake, BATCH],
  ['inspect', 'inspect()', 'us', 'it.inspector.inspect(it.id)', { inspector, id: batch[0] }],
  [
    'inspect_many',
    'inspectMany(4096), per id',
    'us',
    'it.inspector.inspectMany(it.ids)',
    { inspector, ids: batch },
    BATCH,
  ],
  ['cloak_hide', 'Cloak.hideString()', 'us', 'it.cloak.hideString(it.big)', { cloak, big }],
  ['codes_encode', 'Codes.encode(), 8 digits', 'us', 'it.codes.encode(it.big)', { codes, big }],
  [
    'codes_decode',
    'Codes.decode(), 8 digits',
    'us',
    'it.codes.decode(it.code)',
    { codes, code: codes.encode(big) },
  ],
  [
    'codes_crockford',
    'Codes.encode(), 10 of crockford',
    'us',
    'it.checked.encode(it.big)',
    { checked, big },
  ],
  [
    'sqids_encode',
    'sqids encode (no key)',
    'peer',
    'it.sqids.encode(it.numbers)',
    { sqids, numbers: [number] },
  ],
  [
    'sqids_decode',
    'sqids decode (no key)',
    'peer',
    'it.sqids.decode(it.text)',
    { sqids, text: sqids.encode([number]) },
  ],
  [
    'hashids_encode',
    'hashids encode (no cipher)',
    'peer',
    'it.hashids.encode(it.number)',
    { hashids, number },
  ],
  [
    'hashids_decode',
    'hashids decode (no cipher)',
    'peer',
    'it.hashids.decode(it.text)',
    { hashids, text: hashids.encode(number) },
  ],
  [
    'optimus_encode',
    'optimus-js encode (one multiplication, no text)',
    'peer',
    'it.knuth.encode(it.number)',
    { knuth, number },
  ],
  ['random_uuid', 'crypto.randomUUID', 'peer', 'it.randomUUID()', crypto],
  ['sapphire', '@sapphire/snowflake', 'peer', 'it.generate()', new SapphireSnowflake(0)],
  ['uuid_v4', 'uuid v4', 'peer', 'it.v4()', uuid],
  ['uuid_v7', 'uuid v7', 'peer', 'it.v7()', uuid],
  ['nanoid', 'nanoid', 'peer', 'it.nanoid()', { nanoid }],
  ['ulid', 'ulid', 'peer', 'it.ulid()', { ulid }],
  ['ulid_monotonic', 'ulid, monotonic', 'peer', 'it.ulid()', { ulid: monotonicFactory() }],
  [
    'nodejs_snowflake',
    'nodejs-snowflake',
    'peer',
    'it.getUniqueID()',
    new NodejsSnowflake({ instance_id: 1 }),
  ],
].map(([name, label, kind, expression, it, ids = 1]) => ({
  name,
  label,
  kind,
  it,
  ids,
  // Compiled for this case alone. Every result is stored, or it would be optimised away.
  loop: new Function(
    'it',
    'results',
    'times',
    `for (let i = 0; i < times; i++) results[i & 255] = ${expression}`,
  ),
  times: 0,
}))

/** Returns the milliseconds that so many times take. */
function timed({ loop, it }, times) {
  const results = new Array(256).fill(null)
  const start = performance.now()
  loop(it, results, times)
  return performance.now() - start
}

/** Returns the nanoseconds per id, loop and store included. */
function run(it) {
  if (it.times === 0) {
    // Until it is compiled.
    for (let took = 0; took < 8 * RUN; took += timed(it, 100)) {}
    it.times = 1
    while (timed(it, it.times) < RUN / 2) it.times *= 2
  }
  // Earlier cases have evicted this one from the caches.
  timed(it, Math.ceil(it.times / 4))
  const each = timed(it, it.times) / it.times
  // A disturbance of the first runs must not decide how long the others are.
  it.times = Math.max(1, Math.floor(RUN / each))
  return (each / it.ids) * 1e6
}

const byName = new Map(cases.map((it) => [it.name, it]))
const listed = cases.map(({ name, label, kind }) => [name, label, kind])
console.log(JSON.stringify({ cases: listed, facts: { node: process.version.slice(1) } }))
for await (const name of readline.createInterface({ input: process.stdin })) {
  console.log(run(byName.get(name)))
}
