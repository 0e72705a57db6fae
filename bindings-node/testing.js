'use strict'

// Generators, and sequential numbers, for the tests of programs that lease: no store, a clock that the test
// sets, the same ids in each run. Never for production.

const { inspect } = require('node:util')
const { clockOf, invalidArgument, mustBe, onlyWithNew, optionsOf } = require('./lib/arguments.js')
const { ticketsInMemory } = require('./lib/generators.js')
const { Randflake, RandflakeError, Snowflake, Tickets } = require('./index.js')

/** Published, so that nobody mistakes it for a secret. */
const SECRET = '3b7ee0c9154f48d2a6907c1d5fb82e64'

const START_MS = Date.UTC(2025, 10, 20, 12)

/** Codes with which the same call can succeed later. */
const RETRY_LATER = [
  'LEASE_UNAVAILABLE',
  'SEQUENCE_EXHAUSTED',
  'CLOCK_MOVED_BACK',
  'LEASE_NOT_STARTED',
]
const LASTING = ['LIFETIME_OVER', 'CLOCK_BEFORE_EPOCH', 'FORKED', 'CLOSED', 'INTERNAL']
const OF_STORES = [
  'STORE_UNAVAILABLE',
  'NODES_EXHAUSTED',
  'CLOCK_SKEW',
  'LEASE_LOST',
  'STORE_QUARANTINED',
  'STORE_REPLACED',
  'STORE_NOT_INITIALIZED',
  'SECRET_MISMATCH',
  'WEAK_STORE',
  'DRIVER_MISSING',
]

const OPTIONS = [
  'start',
  'tickMs',
  'clock',
  'nodeId',
  'ttlSeconds',
  'namespace',
  'maxWaitMs',
  'maxDriftSeconds',
]

const LASTING_OF_TICKETS = ['LIFETIME_OVER', 'FORKED', 'CLOSED', 'INTERNAL']
/** What a call of tickets waits for; any other error it throws. */
const OF_STORES_WHILE_THEY_LAST = ['STORE_UNAVAILABLE', 'CLOCK_SKEW']
const OF_STORES_OF_TICKETS = [
  ...OF_STORES_WHILE_THEY_LAST,
  'STORE_QUARANTINED',
  'STORE_REPLACED',
  'STORE_NOT_INITIALIZED',
  'WEAK_STORE',
  'DRIVER_MISSING',
]

/** What a fake counts as a block of numbers. */
const BLOCK = 10

/** Calls a method of the class that a generator fakes. */
const call = Symbol('call')

function failure(code, retryAfterMs, cause) {
  if (!RETRY_LATER.includes(code)) return new RandflakeError(code, 'a test lets this call fail')
  const options = code === 'LEASE_UNAVAILABLE' ? { cause: cause ?? broken() } : undefined
  return new RandflakeError(code, 'a test lets this call fail', retryAfterMs, options)
}

function broken(code = 'STORE_UNAVAILABLE') {
  return new RandflakeError(code, 'the store of a test is broken', 1000)
}

function notInProduction() {
  if (process.env.NODE_ENV === 'production') {
    throw invalidArgument('randflake/testing is for tests, and NODE_ENV is production')
  }
}

/** Returns errors for the next calls. */
function failures(code, options, codes) {
  const { retryAfterMs = 1000, times = 1 } = optionsOf(options, 'retryAfterMs', 'times')
  if (!codes.includes(code)) throw mustBe('the code', `one of ${codes.join(', ')}`, code)
  return Array.from({ length: times }, () => failure(code, retryAfterMs))
}

function brokenWith(code, codes) {
  if (!codes.includes(code)) throw mustBe('the code', `one of ${codes.join(', ')}`, code)
  return broken(code)
}

function unixMicros(time) {
  const unixMs = time instanceof Date ? time.getTime() : time
  if (Number.isFinite(unixMs)) return Math.round(unixMs * 1000)
  throw mustBe('a time', 'a Date or unix milliseconds', time)
}

/** A clock that stands still until it is set. A wait passes at once. */
class SetClock {
  constructor(start) {
    this.micros = unixMicros(start)
  }

  now() {
    return (this.micros + 0.5) / 1e6 // the middle of a microsecond, since it may be slightly off
  }

  sleep(seconds) {
    this.micros += Math.ceil(seconds * 1e6)
  }
}

/** What a test has set of a generator, and the lease as its store would have granted it. */
class Setting {
  failures = []
  storeError = null
  storeErrorAt = null
  storeErrors = {}
  renewals = 0
  waiting = []

  constructor(options) {
    notInProduction()
    const { start, tickMs = 0, clock, ttlSeconds = 300, namespace = 'default' } = options
    if (clock !== undefined && (start !== undefined || tickMs !== 0)) {
      throw invalidArgument('start and tickMs are for its own clock; leave them out, or clock')
    }
    this.own = clock === undefined ? new SetClock(start ?? START_MS) : undefined
    this.clock = clock ?? this.own
    this.now = clockOf(this.clock)
    this.tickMs = tickMs
    this.ttl = ttlSeconds
    this.namespace = namespace
    this.leasedAt = Math.floor(this.now())
  }

  set(time) {
    if (this.own === undefined) throw invalidArgument('the clock was given; set the time there')
    this.own.micros = unixMicros(time)
    this.wake()
  }

  wake() {
    for (const resolve of this.waiting.splice(0)) resolve()
  }
}

/** Returns a class that adds what a test sets to one of our classes. */
function fakeOf(Real, name) {
  return class extends Real {
    #setting

    constructor(setting, ...made) {
      super(...made)
      this.#setting = setting
    }

    /** Does what a thread does for a real one: renews the lease at a third of its length. */
    #keep(atOnce = false) {
      const setting = this.#setting
      const now = Math.floor(setting.now())
      const isDue = atOnce || now >= setting.leasedAt + setting.ttl / 3
      if (!isDue || setting.storeError !== null || super.lease === null) return
      super.extendLease(now + setting.ttl)
      setting.leasedAt = now
      setting.renewals += 1
    }

    [call](generate) {
      const { failures, own, storeError, tickMs } = this.#setting
      if (failures.length > 0) throw failures.shift()
      this.#keep()
      let made
      try {
        made = generate()
      } catch (error) {
        if (error.code !== 'LEASE_EXPIRED') throw error
        throw failure('LEASE_UNAVAILABLE', 1000, storeError ?? undefined)
      }
      if (own !== undefined) own.micros += Math.round(tickMs * 1000)
      return made
    }

    get time() {
      const { own, now } = this.#setting
      return own === undefined ? now() * 1000 : own.micros / 1000
    }

    set time(time) {
      this.#setting.set(time)
    }

    advance(ms) {
      this.time += ms
    }

    failNext(code, options) {
      this.#setting.failures.push(...failures(code, options, [...RETRY_LATER, ...LASTING]))
    }

    breakStore(code = 'STORE_UNAVAILABLE') {
      const error = brokenWith(code, OF_STORES)
      this.#keep()
      this.#setting.storeError = error
      this.#setting.storeErrorAt = Math.floor(this.#setting.now())
      this.#setting.storeErrors[code] = (this.#setting.storeErrors[code] ?? 0) + 1
    }

    mendStore() {
      this.#setting.storeError = null
      this.#setting.storeErrorAt = null
      this.#keep(true)
      this.#setting.wake()
    }

    get lease() {
      this.#keep()
      const held = super.lease
      if (held === null) return null
      const { renewals, storeError, storeErrorAt } = this.#setting
      const secondsLeft = Math.max(0, held.endExclusive - this.time / 1000)
      const failing = secondsLeft > 0 ? 'retrying' : 'expired'
      return Object.freeze({
        state: storeError === null ? 'holding' : failing,
        nodeIds: Object.freeze(this.nodeIds),
        start: held.start,
        endExclusive: held.endExclusive,
        secondsLeft,
        renewals,
        losses: 0,
        lastError: storeError,
        lastErrorAt: storeErrorAt,
        store: 'memory',
        namespace: this.#setting.namespace,
        replacements: 0,
      })
    }

    /** What it has done, and what its store would have been asked. */
    metrics() {
      const { renewals, storeErrors } = this.#setting
      const errors = Object.values(storeErrors).reduce((sum, count) => sum + count, 0)
      return {
        ...super.metrics(),
        storeRequests: 1 + renewals + errors,
        storeErrors: { ...storeErrors },
        clockSkewSeconds: 0,
      }
    }

    extendLease() {
      throw new RandflakeError('INVALID_LEASE', 'a lease from a store is renewed automatically')
    }

    generate() {
      return this[call](() => super.generate())
    }

    generateMany(n) {
      return this[call](() => super.generateMany(n))
    }

    async generateManyAsync(n) {
      return this.generateMany(n)
    }

    fill(ids) {
      this[call](() => super.fill(ids))
    }

    async ready() {
      while (this.lease?.state === 'expired') {
        await new Promise((resolve) => this.#setting.waiting.push(resolve))
      }
      await super.ready()
    }

    close() {
      super.close()
      this.#setting.wake()
    }

    [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
      this.close()
    }

    async closeAsync() {
      this.close()
    }

    [inspect.custom](_depth, options) {
      if (!(#setting in this)) return this // the prototype
      return `${name} ${inspect(this.toJSON(), options)}`
    }
  }
}

/** Returns the options of the generator inside. */
function optionsInside(setting, { maxWaitMs, maxDriftSeconds }) {
  const { clock, leasedAt, ttl } = setting
  const lease = { start: leasedAt, endExclusive: leasedAt + ttl }
  return { lease, clock, maxWaitMs, maxDriftSeconds }
}

class FakeRandflake extends fakeOf(Randflake, 'FakeRandflake') {
  constructor(options) {
    const checked = optionsOf(options, ...OPTIONS, 'secret')
    const setting = new Setting(checked)
    const { maxDriftSeconds = Math.min(10, Math.floor(setting.ttl / 3)) } = checked
    const { nodeId = 1, secret = SECRET } = checked
    super(setting, nodeId, secret, optionsInside(setting, { ...checked, maxDriftSeconds }))
  }

  static async leased(store, secret, options) {
    return FakeRandflake.lazy(store, secret, options)
  }

  static lazy(_store, secret, options) {
    return new FakeRandflake({ secret, ...kept(options) })
  }

  generateString() {
    return this[call](() => super.generateString())
  }

  generateStrings(n) {
    return this[call](() => super.generateStrings(n))
  }
}

class FakeSnowflake extends fakeOf(Snowflake, 'FakeSnowflake') {
  constructor(options) {
    const checked = optionsOf(options, ...OPTIONS, 'layout')
    const setting = new Setting(checked)
    const { layout, nodeId = 1 } = checked
    super(setting, nodeId, { layout, ...optionsInside(setting, checked) })
  }

  static async leased(store, options) {
    return FakeSnowflake.lazy(store, options)
  }

  static lazy(_store, options) {
    // That of the environment, where none is given.
    const { layout } = Snowflake.lazy(undefined, { layout: options?.layout })
    return new FakeSnowflake({ layout, ...kept(options) })
  }
}

/** Returns the options of `leased` that mean something here. */
function kept({ ttlSeconds, namespace, maxWaitMs, maxDriftSeconds } = {}) {
  return { ttlSeconds, namespace, maxWaitMs, maxDriftSeconds }
}

class FakeTickets extends Tickets {
  #failures = []
  #storeError = null
  #storeErrors = {}
  #left = 0
  #isClosed = false
  #waiting = []

  constructor(name = 'tickets', options = undefined) {
    notInProduction()
    super(...ticketsInMemory(name, optionsOf(options, 'start', 'step')))
  }

  static async leased(store, name, options) {
    return FakeTickets.lazy(store, name, options)
  }

  static lazy(_store, name, { start, step } = {}) {
    return new FakeTickets(name, { start, step })
  }

  /** What a call for this many numbers throws while the store is broken. */
  #failure(count) {
    const error = this.#storeError
    if (error === null || this.#left >= count || this.#isClosed) return undefined
    if (!OF_STORES_WHILE_THEY_LAST.includes(error.code)) return error
    return failure('LEASE_UNAVAILABLE', 1000, error)
  }

  #call(count, generate) {
    if (this.#failures.length > 0) throw this.#failures.shift()
    const error = this.#failure(count)
    if (error !== undefined) throw error
    const made = generate()
    if (this.#storeError !== null) this.#left -= count
    return made
  }

  #wake() {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  failNext(code, options) {
    this.#failures.push(...failures(code, options, ['LEASE_UNAVAILABLE', ...LASTING_OF_TICKETS]))
  }

  breakStore(code = 'STORE_UNAVAILABLE', options = undefined) {
    const { left = 0 } = optionsOf(options, 'left')
    this.#storeError = brokenWith(code, OF_STORES_OF_TICKETS)
    this.#storeErrors[code] = (this.#storeErrors[code] ?? 0) + 1
    this.#left = left
    this.#wake()
  }

  mendStore() {
    this.#storeError = null
    this.#wake()
  }

  /** What it has done, as if each block had ten numbers. */
  metrics() {
    const { numbersGenerated } = super.metrics()
    const blocksDrawn = Math.max(1, Math.ceil(numbersGenerated / BLOCK))
    const left = this.#storeError === null ? blocksDrawn * BLOCK - numbersGenerated : this.#left
    const errors = Object.values(this.#storeErrors).reduce((sum, count) => sum + count, 0)
    return {
      numbersGenerated,
      reserve: this.#isClosed ? 0 : left,
      blocksDrawn,
      waits: 0,
      storeRequests: blocksDrawn + errors,
      storeRequestSeconds: 0,
      storeErrors: { ...this.#storeErrors },
      lastError: this.#storeError,
    }
  }

  generate() {
    return this.#call(1, () => super.generate())
  }

  generateMany(n) {
    return this.#call(n, () => super.generateMany(n))
  }

  async generateManyAsync(n) {
    return this.generateMany(n)
  }

  fill(numbers) {
    this.#call(numbers?.length, () => super.fill(numbers))
  }

  async ready() {
    for (let error = this.#failure(1); error !== undefined; error = this.#failure(1)) {
      if (error.code !== 'LEASE_UNAVAILABLE') throw error
      await new Promise((resolve) => this.#waiting.push(resolve))
    }
    await super.ready()
  }

  close() {
    super.close()
    this.#isClosed = true
    this.#wake()
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.close()
  }

  async closeAsync() {
    this.close()
    await super.closeAsync()
  }

  [inspect.custom](_depth, options) {
    if (!(#left in this)) return this // the prototype
    return `FakeTickets ${inspect(this.toJSON(), options)}`
  }
}

module.exports.FakeRandflake = onlyWithNew(FakeRandflake)
module.exports.FakeSnowflake = onlyWithNew(FakeSnowflake)
module.exports.FakeTickets = onlyWithNew(FakeTickets)
