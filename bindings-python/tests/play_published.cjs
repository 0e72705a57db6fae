'use strict'

// Plays programs for the published 2.1, one for each line of standard input, with the names of
// Node.js. Each step has the outcome that it had there.

const assert = require('node:assert/strict')
const { createInterface } = require('node:readline')
const randflake = require('../../bindings-node')
const v2 = require('../../bindings-node/v2.js')

/** Bigint where an id is meant, and number elsewhere. */
function read(value, isId) {
  if (Array.isArray(value)) return value.map((each) => read(each, isId))
  if (typeof value !== 'object' || value === null) return value
  if ('integer' in value) return isId ? BigInt(value.integer) : Number(value.integer)
  return 'bytes' in value
    ? Uint8Array.from(Buffer.from(value.bytes, 'hex'))
    : new Error(value.error)
}

function newProgram() {
  let generator
  let reading
  const clock = () => {
    if (reading instanceof Error) throw reading
    return reading
  }
  return {
    new_v2: (nodeID, start, endExclusive, secret) => {
      generator = new v2.Generator({ lease: { nodeID, start, endExclusive }, secret, clock })
    },
    new_legacy: (...given) => {
      generator = new randflake.Generator(...given)
    },
    show: (shown) => {
      reading = shown
    },
    set_time_source: (source = () => clock()) => {
      generator.timeSource = source
    },
    generate: () => generator.generate(),
    generate_string: () => generator.generateString(),
    extend_lease: (nodeID, start, endExclusive) =>
      generator.extendLease({ nodeID, start, endExclusive }),
    update_lease: (start, end) => generator.updateLease(start, end),
    lease: () => Object.values(generator.lease()),
    get_lease_info: () => Object.values(generator.getLeaseInfo()),
    inspect: (id) => Object.values(generator.inspect(id)),
    inspect_string: (text) => Object.values(generator.inspectString(text)),
    encode_string: (id) => v2.encodeString(id),
    decode_string: (text) => v2.decodeString(text),
  }
}

/** Returns what a step returns, or the name of what it throws. */
function outcome(step) {
  try {
    return step() ?? null
  } catch (error) {
    return error.name === 'Error' ? error.message : error.name
  }
}

async function main() {
  let programs = 0
  for await (const line of createInterface({ input: process.stdin })) {
    const program = newProgram()
    for (const [name, given, expected] of JSON.parse(line)) {
      const takesId = ['inspect', 'encode_string'].includes(name)
      const givesId = ['generate', 'decode_string'].includes(name)
      const shown = outcome(() => program[name](...read(given, takesId)))
      assert.deepEqual(shown, read(expected, givesId), `${name} in ${line}`)
    }
    programs += 1
  }
  console.log(`${programs} programs`)
}

main()
