'use strict'

// The names of the published `randflake/v2`, version 2.1, for programs that were written for it.
// The implementation is that of Randflake.

const { Randflake } = require('../generators.js')
const { Inspector } = require('../inspector.js')
const { Layout } = require('../layouts.js')
const { native } = require('../native.js')

const { RandflakeError } = native
const layout = new Layout('randflake')
const RANDFLAKE_EPOCH_OFFSET = layout.epochMs / 1000
const RANDFLAKE_MAX_TIMESTAMP = layout.endsAt / 1000 - 1
const RANDFLAKE_MAX_NODE = layout.maxNodeId
const RANDFLAKE_MAX_SEQUENCE = layout.maxSequence

/** Makes the class of an error that takes no arguments. */
function errorClass(name, code, message) {
  const Class = class extends RandflakeError {
    constructor(options) {
      super(code, message, undefined, options)
    }

    get name() {
      return name
    }
  }
  return Object.defineProperty(Class, 'name', { value: name })
}

const ErrRandflakeDead = errorClass(
  'ErrRandflakeDead',
  'LIFETIME_OVER',
  `ids end after the unix second ${RANDFLAKE_MAX_TIMESTAMP}; end the lease there`,
)
const ErrInvalidSecret = errorClass(
  'ErrInvalidSecret',
  'INVALID_SECRET',
  'the secret must be 16 bytes, as a Uint8Array',
)
const ErrInvalidLease = errorClass(
  'ErrInvalidLease',
  'INVALID_LEASE',
  'the lease must be in unix seconds within the lifetime of ids, with start < endExclusive, and ' +
    'hold the current second; take one that does',
)
const ErrInvalidNode = errorClass(
  'ErrInvalidNode',
  'INVALID_NODE',
  `the node id must be an integer from 0 to ${RANDFLAKE_MAX_NODE}`,
)
const ErrResourceExhausted = errorClass(
  'ErrResourceExhausted',
  'SEQUENCE_EXHAUSTED',
  `all ${RANDFLAKE_MAX_SEQUENCE + 1} ids of this second are used; wait for the next one`,
)
const ErrConsistencyViolation = errorClass(
  'ErrConsistencyViolation',
  'CLOCK_MOVED_BACK',
  'the clock must show whole unix seconds, and never move back; correct it',
)
const ErrInvalidID = errorClass(
  'ErrInvalidID',
  'INVALID_ID',
  'an id is a signed 64-bit bigint, or its text of at most 13 digits from 0-9 and a-v',
)

/** The error of 2.1 for each code of the core. Other codes did not exist, and pass through. */
const errors = {
  INVALID_ID: ErrInvalidID,
  LEASE_NOT_STARTED: ErrInvalidLease,
  LEASE_EXPIRED: ErrInvalidLease,
  LIFETIME_OVER: ErrInvalidLease,
  CLOCK_BEFORE_EPOCH: ErrInvalidLease,
  SEQUENCE_EXHAUSTED: ErrResourceExhausted,
  CLOCK_MOVED_BACK: ErrConsistencyViolation,
}

function known(error) {
  const Class = error?.constructor === RandflakeError ? errors[error.code] : undefined
  return Class === undefined ? error : new Class({ cause: error })
}

/** Returns what a call returns; its errors have their classes of 2.1. */
function call(work) {
  try {
    return work()
  } catch (error) {
    throw known(error)
  }
}

function checkId(id) {
  if (typeof id !== 'bigint' || BigInt.asIntN(64, id) !== id) throw new ErrInvalidID()
  return id
}

function encodeString(id) {
  return native.encodeString(checkId(id))
}

function decodeString(text) {
  if (typeof text !== 'string') throw new ErrInvalidID()
  return call(() => native.decodeString(text))
}

/** Returns a frozen copy of a lease that is valid. */
function leaseOf(lease) {
  if (typeof lease !== 'object' || lease === null) throw new ErrInvalidLease()
  const { nodeID, start, endExclusive } = lease
  if (!Number.isInteger(nodeID) || nodeID < 0 || nodeID > RANDFLAKE_MAX_NODE) {
    throw new ErrInvalidNode()
  }
  const isInOrder =
    Number.isInteger(start) && Number.isInteger(endExclusive) && start < endExclusive
  const isInLifetime =
    start >= RANDFLAKE_EPOCH_OFFSET && endExclusive <= RANDFLAKE_MAX_TIMESTAMP + 1
  if (!isInOrder || !isInLifetime) throw new ErrInvalidLease()
  return Object.freeze({ nodeID, start, endExclusive })
}

let setClock

class Generator {
  #lease
  #secret
  /** The one that was set last, if any. */
  #clock
  #isOnMachineClock
  #inspector
  /** Made with the first id, since a clock may be set before. */
  #flake
  #last
  /** The last id from before it was set back to the machine's clock, until a later one is made. */
  #lastAlone
  /** The process that it belongs to. */
  #process = native.forkId()
  /** What the clock shows while this generator learns what an earlier one has issued. */
  #fixed

  static {
    setClock = (self, clock) => self.#setClock(clock)
  }

  constructor(config) {
    if (typeof config !== 'object' || config === null) throw new ErrInvalidLease()
    const { lease, secret, clock } = config
    this.#lease = leaseOf(lease)
    if (!(secret instanceof Uint8Array) || secret.length !== 16) throw new ErrInvalidSecret()
    // In its own memory: the caller may change theirs, or share it with other threads.
    this.#secret = Uint8Array.from(secret)
    if (clock !== undefined && typeof clock !== 'function') throw new ErrConsistencyViolation()
    this.#clock = clock
    this.#isOnMachineClock = clock === undefined
    this.#inspector = new Inspector(this.#secret)
  }

  generate() {
    try {
      let flake
      let id
      do {
        flake = this.#flake ?? this.#made()
        id = flake.generate()
      } while (flake !== this.#flake || (this.#lastAlone !== undefined && !this.#isLater(id)))
      this.#last = id
      return id
    } catch (error) {
      throw known(error)
    }
  }

  generateString() {
    return native.encodeString(this.generate())
  }

  extendLease(lease) {
    const next = leaseOf(lease)
    const { nodeID, start, endExclusive } = this.#lease
    if (next.nodeID !== nodeID || next.start !== start) throw new ErrInvalidLease()
    if (next.endExclusive <= endExclusive) return
    this.#flake?.extendLease(next.endExclusive)
    this.#lease = next
  }

  lease() {
    return this.#lease
  }

  inspect(id) {
    const { timestamp, nodeId, sequence } = this.#inspector.inspect(checkId(id))
    return Object.freeze({ timestamp, nodeID: nodeId, sequence })
  }

  inspectString(text) {
    return this.inspect(decodeString(text))
  }

  /** On the machine's clock it shares what it has issued with others of its node id. */
  #made() {
    if (this.#process !== native.forkId()) {
      const why = 'this generator was made before this process was restored'
      throw new RandflakeError('FORKED', `${why}; make one with another node id`)
    }
    const { nodeID, start, endExclusive } = this.#lease
    const clock = this.#isOnMachineClock ? undefined : () => this.#fixed ?? this.#now()
    const options = { lease: { start, endExclusive }, maxWaitMs: 0, clock }
    this.#flake = call(() => new Randflake(nodeID, this.#secret, options))
    return this.#flake
  }

  /** Returns whether an id comes after those from before it was set back to the machine's clock. */
  #isLater(id) {
    const [now, last] = [id, this.#lastAlone].map((it) => this.#inspector.inspect(it))
    if (now.timestamp < last.timestamp) throw new ErrConsistencyViolation()
    if (now.timestamp === last.timestamp && now.sequence <= last.sequence) return false
    this.#lastAlone = undefined
    return true
  }

  /** Sets the clock, and keeps what was issued. */
  #setClock(clock) {
    if (clock !== undefined && typeof clock !== 'function') throw new ErrConsistencyViolation()
    const wasOnMachineClock = this.#isOnMachineClock
    this.#isOnMachineClock = clock === undefined
    const [flake, before] = [this.#flake, this.#clock]
    // A call may still be reading the previous clock.
    this.#clock = clock ?? before
    if (wasOnMachineClock === this.#isOnMachineClock || flake === undefined) return
    this.#flake = undefined
    if (this.#last === undefined) return
    if (this.#isOnMachineClock) {
      this.#lastAlone = this.#last
      return
    }
    try {
      // Makes all ids up to the last one again, without handing them out.
      const { timestamp, sequence } = this.#inspector.inspect(this.#last)
      this.#fixed = timestamp
      this.#made().fill(new BigInt64Array(sequence + 1))
    } catch (error) {
      // For instance without memory. Otherwise the new one would start over.
      ;[this.#flake, this.#clock, this.#isOnMachineClock] = [flake, before, true]
      throw error
    } finally {
      this.#fixed = undefined
    }
  }

  #now() {
    const now = this.#clock()
    if (!Number.isInteger(now)) throw new ErrConsistencyViolation()
    const { start, endExclusive } = this.#lease
    if (now < start || now >= endExclusive) throw new ErrInvalidLease()
    return now
  }
}

module.exports.RANDFLAKE_EPOCH_OFFSET = RANDFLAKE_EPOCH_OFFSET
module.exports.RANDFLAKE_MAX_TIMESTAMP = RANDFLAKE_MAX_TIMESTAMP
module.exports.RANDFLAKE_MAX_NODE = RANDFLAKE_MAX_NODE
module.exports.RANDFLAKE_MAX_SEQUENCE = RANDFLAKE_MAX_SEQUENCE
module.exports.RandflakeError = RandflakeError
module.exports.ErrRandflakeDead = ErrRandflakeDead
module.exports.ErrInvalidSecret = ErrInvalidSecret
module.exports.ErrInvalidLease = ErrInvalidLease
module.exports.ErrInvalidNode = ErrInvalidNode
module.exports.ErrResourceExhausted = ErrResourceExhausted
module.exports.ErrConsistencyViolation = ErrConsistencyViolation
module.exports.ErrInvalidID = ErrInvalidID
module.exports.Generator = Generator
module.exports.encodeString = encodeString
module.exports.decodeString = decodeString

/** For `published.js`. Not enumerable: it is not a name of 2.1. */
Object.defineProperty(module.exports, 'setClock', { value: setClock })
