'use strict'

// The names of the published `randflake`, version 2.1, that were already deprecated there.

const v2 = require('./index.js')

const { ErrInvalidID, ErrInvalidLease, ErrRandflakeDead, RANDFLAKE_MAX_TIMESTAMP } = v2

/** Returns the lease of 2.1, whose end is its last second. */
function leaseOf(nodeID, leaseStart, leaseEnd) {
  const areIntegers = Number.isInteger(leaseStart) && Number.isInteger(leaseEnd)
  if (!areIntegers || leaseEnd < leaseStart) throw new ErrInvalidLease()
  if (leaseEnd > RANDFLAKE_MAX_TIMESTAMP) throw new ErrRandflakeDead()
  return { nodeID, start: leaseStart, endExclusive: leaseEnd + 1 }
}

/** Reads a text in any case, up to the first `=`, modulo 2^64. */
function decoded(text) {
  const digits = typeof text === 'string' && /^([0-9a-v]*)(=|$)/i.exec(text)?.[1]
  if (typeof digits !== 'string') throw new ErrInvalidID()
  let id = 0n
  for (const digit of digits) id = BigInt.asUintN(64, id * 32n + BigInt(Number.parseInt(digit, 32)))
  return BigInt.asIntN(64, id)
}

class Generator {
  #generator
  #timeSource

  constructor(nodeID, leaseStart, leaseEnd, secret) {
    this.#generator = new v2.Generator({ lease: leaseOf(nodeID, leaseStart, leaseEnd), secret })
  }

  get timeSource() {
    return this.#timeSource
  }

  set timeSource(clock) {
    v2.setClock(this.#generator, clock)
    this.#timeSource = clock
  }

  updateLease(leaseStart, leaseEnd) {
    const { nodeID, endExclusive } = this.#generator.lease()
    try {
      this.#generator.extendLease(leaseOf(nodeID, leaseStart, leaseEnd))
    } catch {
      return false
    }
    return this.#generator.lease().endExclusive > endExclusive
  }

  getLeaseInfo() {
    const { nodeID, start, endExclusive } = this.#generator.lease()
    return { nodeID, leaseStart: start, leaseEnd: endExclusive - 1 }
  }

  generate() {
    return this.#generator.generate()
  }

  generateString() {
    return this.#generator.generateString()
  }

  inspect(id) {
    const { timestamp, nodeID, sequence } = this.#generator.inspect(id)
    return [timestamp, nodeID, sequence]
  }

  inspectString(text) {
    return this.inspect(decoded(text))
  }
}

module.exports = {
  ...v2,
  RANDFLAKE_TIMESTAMP_BITS: Math.log2(RANDFLAKE_MAX_TIMESTAMP + 1 - v2.RANDFLAKE_EPOCH_OFFSET),
  RANDFLAKE_NODE_BITS: Math.log2(v2.RANDFLAKE_MAX_NODE + 1),
  RANDFLAKE_SEQUENCE_BITS: Math.log2(v2.RANDFLAKE_MAX_SEQUENCE + 1),
  Generator,
}
