// Node.js's side: makes ids, or reads the ids that another language made.

const assert = require('node:assert')
const { readFileSync } = require('node:fs')
const { Inspector, Randflake, decodeString, encodeString } = require('../../bindings-node')

const secret = process.env.RANDFLAKE_SECRET
if (process.argv[2] === 'generate') {
  const flake = new Randflake(2, secret)
  for (let count = 0; count < 1000; count++) {
    const id = flake.generate()
    console.log(`${id} ${encodeString(id)}`)
  }
} else {
  const inspector = new Inspector(secret)
  for (const line of readFileSync(0, 'utf8').trim().split('\n')) {
    const [number, text] = line.split(' ')
    assert.equal(decodeString(text), BigInt(number))
    const parts = inspector.inspect(BigInt(number))
    assert.deepEqual(parts, inspector.inspect(text))
    console.log(`${parts.timestamp} ${parts.nodeId} ${parts.sequence}`)
  }
}
