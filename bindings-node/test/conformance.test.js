'use strict'

// The vectors in tests/vectors, which all languages run.

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { suite, test } = require('node:test')
const { decodeString, encodeString, Inspector, Randflake } = require('../index.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const vectors = (name) =>
  JSON.parse(readFileSync(join(__dirname, '../../tests/vectors', `${name}.json`), 'utf8'))

suite('ids.json', () => {
  for (const expected of vectors('ids').cases) {
    test(expected.name, () => {
      const { timestamp, node_id: nodeId, sequence } = expected
      const [id, raw] = [BigInt(expected.id), BigInt(expected.raw)]
      const clock = () => timestamp
      const flake = new Randflake(nodeId, expected.secret, { clock })
      for (const reader of [new Inspector(expected.secret), flake]) {
        const parts = { timestamp, nodeId, sequence, date: new Date(timestamp * 1000) }
        assert.deepEqual(reader.inspect(id), parts)
        assert.deepEqual(reader.inspect(expected.text), parts)
        assert.equal(reader.decrypt(id), raw)
        assert.equal(reader.encrypt(raw), id)
      }
      assert.equal(encodeString(id), expected.text)
      assert.equal(decodeString(expected.text), id)
      if (sequence < 1000) assert.equal(flake.generateMany(sequence + 1)[sequence], id)
    })
  }
})

suite('sparx.json', () => {
  for (const { name, secret, raw, id } of vectors('sparx').cases) {
    test(name, () => {
      for (const key of [secret, secret.toUpperCase(), Buffer.from(secret, 'hex')]) {
        assert.equal(new Inspector(key).encrypt(BigInt(raw)), BigInt(id))
        assert.equal(new Inspector(key).decrypt(BigInt(id)), BigInt(raw))
      }
    })
  }
})

suite('text.json', () => {
  const { valid, invalid } = vectors('text')
  const inspector = new Inspector(SECRET)
  for (const { name, text, id } of valid) {
    test(name, () => {
      assert.equal(encodeString(BigInt(id)), text)
      assert.equal(decodeString(text), BigInt(id))
      assert.deepEqual(inspector.inspect(text), inspector.inspect(BigInt(id)))
    })
  }
  for (const { name, text } of invalid) {
    test(name, () => {
      for (const read of [decodeString, (id) => inspector.inspect(id)]) {
        assert.throws(() => read(text), { name: 'RandflakeError', code: 'INVALID_ID' })
      }
    })
  }
})

/** Turns the options of a vector into those of a generator. */
function optionsOf({ lease, max_wait, max_drift }) {
  return {
    lease: lease ? { start: lease.start, endExclusive: lease.end_exclusive } : undefined,
    maxWaitMs: max_wait === undefined ? undefined : max_wait * 1000,
    maxDriftSeconds: max_drift,
  }
}

suite('errors.json', () => {
  for (const { name, options, error } of vectors('errors').cases) {
    test(name, () => {
      const { node_ids = [1], secret = SECRET } = options
      assert.throws(
        () => new Randflake(node_ids, secret, { ...optionsOf(options), clock: () => 1763640000 }),
        { name: 'RandflakeError', code: error },
      )
    })
  }
})

suite('timelines.json', () => {
  const inspector = new Inspector(SECRET)

  /** Summarizes ids as runs: [timestamp, node id, first sequence, how many]. */
  function runsOf(ids) {
    const runs = []
    const { timestamp, nodeId, sequence } = inspector.inspectMany(ids)
    for (let index = 0; index < ids.length; index++) {
      const [second, node, first, count] = runs.at(-1) ?? []
      const goesOn =
        Number(timestamp[index]) === second &&
        nodeId[index] === node &&
        sequence[index] === first + count
      if (goesOn) runs.at(-1)[3]++
      else runs.push([Number(timestamp[index]), nodeId[index], sequence[index], 1])
    }
    return runs
  }

  function call(flake, step, buffer) {
    switch (step.call) {
      case 'generate':
        return BigInt64Array.of(flake.generate())
      case 'fill':
        flake.fill(buffer)
        return buffer
      case 'extend_lease':
        flake.extendLease(step.end_exclusive)
        return new BigInt64Array()
      case 'close':
        flake.close()
        return new BigInt64Array()
    }
    assert.fail(`no such call: ${step.call}`)
  }

  for (const timeline of vectors('timelines').cases) {
    test(timeline.name, () => {
      let readings = []
      let sleeps = []
      const now = () => {
        assert.notEqual(readings.length, 0, 'one reading too many')
        return readings.shift()
      }
      const sleep = (seconds) => sleeps.push(seconds)
      const clock = timeline.can_sleep ? { now, sleep } : now
      const flake = new Randflake(timeline.node_ids, SECRET, { ...optionsOf(timeline), clock })
      for (const [index, step] of timeline.steps.entries()) {
        const where = `step ${index}, ${step.call}`
        readings = [...step.readings]
        sleeps = []
        const buffer = new BigInt64Array(step.count ?? 0).fill(-1n)
        if (step.error === undefined) {
          assert.deepEqual(runsOf(call(flake, step, buffer)), step.ids ?? [], where)
        } else {
          const retryAfterMs =
            typeof step.retry_after === 'number' ? Math.ceil(step.retry_after * 1000) : undefined
          assert.throws(
            () => call(flake, step, buffer),
            (error) => {
              assert.equal(error.code, step.error, where)
              assert.equal(error.retryAfterMs, retryAfterMs, where)
              return true
            },
          )
          if (step.call === 'fill')
            assert(
              buffer.every((id) => id === 0n),
              `${where}: zeros`,
            )
        }
        assert.deepEqual({ readings, sleeps }, { readings: [], sleeps: step.sleeps }, where)
      }
    })
  }
})
