'use strict'

const { setTimeout: delay } = require('node:timers/promises')
const { native } = require('./native.js')
const {
  checkCount,
  clockOf,
  invalidArgument,
  leaseOptions,
  manualOptions,
  onlyWithNew,
  optionsOf,
  storeOf,
  warnIfWeak,
  withEnvironment,
  withOptions,
  wrongThis,
} = require('./arguments.js')
const {
  decryptMany,
  encodeStrings,
  encryptMany,
  mustBeDone,
  newIds,
  workerIsEnding,
} = require('./bulk.js')
const { inspectWith } = require('./inspector.js')
const { inspectRawWith, layoutIn, layoutOf, warnIfEnding } = require('./layouts.js')
const { Changes } = require('./changes.js')
const { closedBefore, keptOptions, keptSecret, keptStore } = require('./lazy.js')

/** The longest time that timers accept. */
const LONGEST_DELAY_MS = 2 ** 31 - 1

/** The number of ids from which it is worth asking first. */
const LARGE_BATCH = 16_384

/** Marks the arguments of a constructor as for a generator that is already leased. */
const leased = Symbol('leased')

/** Which processes have the listener: all realms have one, but jest makes a `process` for each. */
native.callBuffer.processes ??= new WeakSet()

/** Makes the leases end with the process; workers that are terminated end theirs by themselves. */
function endLeasesAtExit() {
  const { processes } = native.callBuffer
  if (processes.has(process)) return
  processes.add(process)
  process.once('exit', () => native.endLeases())
}

// Taken out of `native`, where looking them up would take 5 ns.
const { generate, generateString, fill, encrypt, decrypt } = native

/**
 * Where `generate` and `generateString` find which generator is meant: 5 ns faster than as an
 * argument.
 */
const meant = new Uint32Array(native.callBuffer.buffer, 0, 1)

/** Where they leave which generator made the id. */
const owner = new Uint32Array(native.callBuffer.buffer, 4, 1)

/** No generator has this index. */
const NOBODY = 2 ** 32 - 1

/** The index of a lazy generator before its first id. `NOBODY` would be the erased owner. */
const UNUSED = 2 ** 32 - 2

// Where `generate` leaves an id: 10 ns faster than returning a bigint.
const signedId = new BigInt64Array(native.callBuffer.buffer, 8, 1)
const unsignedId = new BigUint64Array(native.callBuffer.buffer, 8, 1)

/**
 * Returns an id or its text if it is from the generator that was meant: a debugger may stop and
 * call another generator before the native call, but nowhere after it among these arguments.
 */
function own(made, isOwn, flake, first) {
  if (isOwn && made !== undefined) return made
  if (made === false) return first(flake) // a lazy generator, which had no index yet
  // In a worker that is being terminated, the native half cannot throw, and the script continues.
  if (made === undefined || owner[0] === NOBODY) throw workerIsEnding()
  throw new native.RandflakeError('INTERNAL', 'a debugger called another generator; call again')
}

/** Fills a new array. */
function generateManyWith(generator, n) {
  checkCount(n)
  if (n >= LARGE_BATCH) native.checkFill(generator, n)
  const ids = newIds(n)
  mustBeDone(fill(generator, ids))
  return ids
}

/** Returns the index of a generator; a lazy one has it from its first id on. */
function indexOf(generator) {
  return typeof generator === 'function' ? UNUSED : native.generatorIndex(generator)
}

/**
 * What every generator has, so that structuredClone and postMessage throw instead of making an
 * empty object. They read enumerable properties, and look into a Set. Code that only lists or
 * compares properties, as console.table and deepStrictEqual do, never reaches the getter in there.
 */
const uncloneable = new Set([
  {
    get refusal() {
      throw invalidArgument('a generator cannot be copied; make one where it is needed')
    },
  },
])

let isGenerator
let generatorOf
let madeOf
let close

/** Makes the first id of a lazy generator; a class that extends ours has already been called. */
function firstRandflake(flake) {
  beginRandflake(flake)
  return Randflake.prototype.generate.call(flake)
}

function firstText(flake) {
  beginRandflake(flake)
  return Randflake.prototype.generateString.call(flake)
}

function firstSnowflake(flake) {
  beginSnowflake(flake)
  return Snowflake.prototype.generate.call(flake)
}

/** Makes a lazy generator, and returns its index. */
function firstIndex(flake, index) {
  if (index !== UNUSED) throw new native.RandflakeError('INTERNAL', 'no generator has this index')
  return native.generatorIndex(generatorOf(flake))
}

/** What Randflake, Snowflake and Tickets share. */
class NumberGenerator {
  /**
   * The generator of the native half; for a lazy generator, before its first use, a function that
   * makes it.
   */
  #generator
  #name

  static {
    isGenerator = (self) => typeof self === 'object' && self !== null && #generator in self
    generatorOf = (self) => {
      const made = madeOf(self)
      if (made !== undefined) return made
      const make = self.#generator
      self.#generator = make()
      return self.#generator
    }
    madeOf = (self) => {
      if (!isGenerator(self)) throw wrongThis('a generator')
      return typeof self.#generator === 'function' ? undefined : self.#generator
    }
    close = (self) => {
      const made = madeOf(self)
      if (made === undefined) self.#generator = closedBefore
      else native.close(made)
    }
  }

  constructor(generator, name) {
    this.#generator = generator
    this.#name = name
    Object.defineProperty(this, 'uncloneable', { value: uncloneable, enumerable: true })
  }

  generateMany(n) {
    return generateManyWith(generatorOf(this), n)
  }

  async generateManyAsync(n) {
    const generator = generatorOf(this)
    checkCount(n)
    // An injected clock can only be called on this thread.
    return native.generateManyAsync(generator, n) ?? generateManyWith(generator, n)
  }

  fill(ids) {
    mustBeDone(fill(generatorOf(this), ids))
  }

  async ready() {
    const generator = generatorOf(this)
    await native.firstLease(generator)
    for (;;) {
      const ms = native.readyInMs(generator)
      if (ms === 0) return
      await delay(Math.min(ms, LONGEST_DELAY_MS))
    }
  }

  close() {
    close(this)
  }

  // Node 20 had these symbols only from 20.5 on.
  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    close(this)
  }

  /** Also where the symbol is missing, as in Node 20 under jest 29 and in the vm pools of vitest. */
  async closeAsync() {
    const made = madeOf(this)
    close(this)
    if (made !== undefined) await native.released(made)
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    madeOf(this) // which says what is wrong with another `this`
    await this.closeAsync()
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options, inspect) {
    if (!isGenerator(this)) return this // the prototype
    return `${this.#name} ${inspect(this.toJSON(), options)}`
  }
}

function nodeIdsOf(self) {
  const made = madeOf(self)
  return made === undefined ? [] : native.nodeIds(made)
}

/** What Randflake and Snowflake share. */
class IdGenerator extends NumberGenerator {
  extendLease(endExclusive) {
    native.extendLease(generatorOf(this), endExclusive)
  }

  get lease() {
    const made = madeOf(this)
    return made === undefined ? null : native.leaseOf(made)
  }

  get nodeIds() {
    return nodeIdsOf(this)
  }

  metrics() {
    return native.metricsOf(madeOf(this))
  }

  toJSON() {
    return { nodeIds: nodeIdsOf(this) }
  }
}

/** Makes a generator of a format: of a secret, or of a layout of the native half. */
function create(format, nodeId, options) {
  return native.createGenerator(format, nodeId, options, clockOf(options.clock))
}

let randflakeOf
let ownInspectorOf
let beginRandflake

class Randflake extends IdGenerator {
  #index
  /** For a lazy generator, before its first use, a function that makes it. */
  #inspector

  static {
    randflakeOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#index in self)) {
        throw wrongThis('Randflake')
      }
      return self
    }
    beginRandflake = (self) => {
      self.#index = firstIndex(self, self.#index)
    }
    ownInspectorOf = (self) => {
      const inspector = randflakeOf(self).#inspector
      return typeof inspector === 'function' ? inspector() : inspector
    }
  }

  constructor(nodeId, secret, options) {
    const isLeased = nodeId === leased
    const generator = isLeased ? secret : create(secret, nodeId, manualOptions(options))
    super(generator, 'Randflake')
    this.#index = indexOf(generator)
    this.#inspector = isLeased ? options : native.createInspector(secret)
    if (!isLeased) warnIfWeak(secret)
  }

  static async leased(...given) {
    const [givenStore, givenSecret, givenOptions] = withOptions(given, 2)
    const checked = leaseOptions(givenOptions)
    const { store, secret, options } = withEnvironment(givenStore, givenSecret, checked)
    const changes = new Changes(options.onLeaseChange)
    const generator = native.lease(storeOf(store), secret, options, changes.tell, false)
    const inspector = native.createInspector(secret)
    warnIfWeak(secret)
    endLeasesAtExit()
    return changes.of(new Randflake(leased, await generator, inspector))
  }

  static lazy(...given) {
    const [givenStore, givenSecret, givenOptions] = withOptions(given, 2)
    const checked = keptOptions(leaseOptions(givenOptions))
    const [ownStore, ownSecret] = [keptStore(givenStore), keptSecret(givenSecret)]
    const changes = new Changes(checked.onLeaseChange)
    let found
    let inspector
    const lookUp = () => {
      if (inspector === undefined) {
        found = ownSecret ?? native.environmentSecret(process.env)
        inspector = native.createInspector(found)
        warnIfWeak(found)
      }
      return inspector
    }
    const make = () => {
      lookUp()
      const { store, secret, options } = withEnvironment(ownStore, ownSecret, checked, found)
      endLeasesAtExit()
      return native.lease(storeOf(store), secret, options, changes.tell, true)
    }
    return changes.of(new Randflake(leased, make, lookUp))
  }

  generate() {
    meant[0] = randflakeOf(this).#index
    owner[0] = NOBODY
    return own(generate() ?? signedId[0], owner[0] === this.#index, this, firstRandflake)
  }

  generateString() {
    meant[0] = randflakeOf(this).#index
    return own(generateString(), owner[0] === this.#index, this, firstText)
  }

  generateStrings(n) {
    return encodeStrings(generateManyWith(generatorOf(randflakeOf(this)), n))
  }

  inspect(id) {
    return inspectWith(ownInspectorOf(this), id)
  }

  encrypt(raw) {
    return encrypt(ownInspectorOf(this), raw)
  }

  decrypt(id) {
    return decrypt(ownInspectorOf(this), id)
  }

  encryptMany(raws) {
    return encryptMany(ownInspectorOf(this), raws)
  }

  decryptMany(ids) {
    return decryptMany(ownInspectorOf(this), ids)
  }

  encryptInPlace(raws) {
    mustBeDone(native.encryptInPlace(ownInspectorOf(this), raws))
  }

  decryptInPlace(ids) {
    mustBeDone(native.decryptInPlace(ownInspectorOf(this), ids))
  }
}

let snowflakeOf
let beginSnowflake

class Snowflake extends IdGenerator {
  #index
  #layout
  #nativeLayout

  static {
    snowflakeOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#index in self)) {
        throw wrongThis('Snowflake')
      }
      return self
    }
    beginSnowflake = (self) => {
      self.#index = firstIndex(self, self.#index)
    }
  }

  constructor(nodeId, options, generator) {
    const isLeased = nodeId === leased
    const checked = isLeased ? {} : manualOptions(options, 'layout')
    const layout = isLeased ? options : layoutIn(checked, 'twitter')
    // With a layout without node ids there is nothing to choose.
    const chosen = nodeId === undefined && layout.nodeBits === 0 ? [] : nodeId
    const made = generator ?? create(layoutOf(layout), chosen, checked)
    super(made, 'Snowflake')
    this.#index = indexOf(made)
    this.#layout = layout
    this.#nativeLayout = layoutOf(layout)
    if (!isLeased) warnIfEnding(layout)
  }

  static async leased(...given) {
    const [givenStore, givenOptions] = withOptions(given, 1, 'layout')
    const checked = leaseOptions(givenOptions, 'layout')
    const layout = layoutIn(checked, native.environmentLayout(process.env) ?? 'twitter')
    const format = layoutOf(layout)
    const { store, options } = withEnvironment(givenStore, format, checked)
    const changes = new Changes(options.onLeaseChange)
    const generator = native.lease(storeOf(store), format, options, changes.tell, false)
    endLeasesAtExit()
    const flake = changes.of(new Snowflake(leased, layout, await generator))
    warnIfEnding(layout)
    return flake
  }

  static lazy(...given) {
    const [givenStore, givenOptions] = withOptions(given, 1, 'layout')
    const options = leaseOptions(givenOptions, 'layout')
    const layout = layoutIn(options, native.environmentLayout(process.env) ?? 'twitter')
    const format = layoutOf(layout)
    const checked = keptOptions(options, format)
    const ownStore = keptStore(givenStore)
    const changes = new Changes(checked.onLeaseChange)
    const make = () => {
      const { store, options } = withEnvironment(ownStore, format, checked)
      endLeasesAtExit()
      warnIfEnding(layout)
      return native.lease(storeOf(store), format, options, changes.tell, true)
    }
    return changes.of(new Snowflake(leased, layout, make))
  }

  generate() {
    meant[0] = snowflakeOf(this).#index
    owner[0] = NOBODY
    return own(generate() ?? unsignedId[0], owner[0] === this.#index, this, firstSnowflake)
  }

  inspect(id) {
    return inspectRawWith(snowflakeOf(this).#nativeLayout, id)
  }

  get layout() {
    return snowflakeOf(this).#layout
  }

  toJSON() {
    const { name } = snowflakeOf(this).#layout
    return { layout: name, ...super.toJSON() }
  }
}

/** The options of Tickets. */
const TICKETS = [
  'namespace',
  'start',
  'step',
  'reserveSeconds',
  'minBlock',
  'maxBlock',
  'create',
  'acquireTimeoutMs',
  'maxWaitMs',
  'allowWeakStore',
]

let ticketsOf
let beginTickets

function firstNumber(tickets) {
  beginTickets(tickets)
  return Tickets.prototype.generate.call(tickets)
}

class Tickets extends NumberGenerator {
  #index
  #counter

  static {
    ticketsOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#index in self)) {
        throw wrongThis('Tickets')
      }
      return self
    }
    beginTickets = (self) => {
      self.#index = firstIndex(self, self.#index)
    }
  }

  constructor(mark, counter, generator) {
    if (mark !== leased) {
      throw invalidArgument(
        'make Tickets with Tickets.leased or Tickets.lazy: their numbers come from a store',
      )
    }
    super(generator, 'Tickets')
    this.#index = indexOf(generator)
    this.#counter = counter
  }

  static async leased(givenStore, name, givenOptions) {
    const options = optionsOf(givenOptions, ...TICKETS)
    const store = storeOf(givenStore ?? native.environmentStore(process.env))
    const generator = native.leaseTickets(store, name, options, false)
    endLeasesAtExit()
    return new Tickets(leased, name, await generator)
  }

  static lazy(givenStore, name, givenOptions) {
    const options = { ...optionsOf(givenOptions, ...TICKETS) }
    native.checkTickets(name, options)
    const ownStore = keptStore(givenStore)
    const make = () => {
      const store = storeOf(ownStore ?? native.environmentStore(process.env))
      endLeasesAtExit()
      return native.leaseTickets(store, name, options, true)
    }
    return new Tickets(leased, name, make)
  }

  generate() {
    meant[0] = ticketsOf(this).#index
    owner[0] = NOBODY
    return own(generate() ?? signedId[0], owner[0] === this.#index, this, firstNumber)
  }

  metrics() {
    return native.metricsOfTickets(madeOf(ticketsOf(this)))
  }

  get name() {
    return ticketsOf(this).#counter
  }

  toJSON() {
    return { name: ticketsOf(this).#counter }
  }
}

let datedOf

class DatedTickets {
  #native
  #name

  static {
    datedOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#native in self)) {
        throw wrongThis('DatedTickets')
      }
      return self
    }
  }

  constructor(givenStore, name, givenOptions) {
    const options = optionsOf(givenOptions, 'period', 'timeZone', 'prefix', 'digits', ...TICKETS)
    const store = storeOf(givenStore ?? native.environmentStore(process.env))
    this.#native = native.createDatedTickets(store, name, options)
    this.#name = name
    endLeasesAtExit()
  }

  async generate() {
    const [text] = await datedOf(this).generateMany(1)
    return text
  }

  async generateMany(n) {
    checkCount(n)
    return native.generateDatedTickets(datedOf(this).#native, n)
  }

  close() {
    native.closeDatedTickets(datedOf(this).#native)
  }

  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    this.close()
  }

  async closeAsync() {
    await native.releaseDatedTickets(datedOf(this).#native)
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.closeAsync()
  }

  get name() {
    return datedOf(this).#name
  }

  toJSON() {
    return { name: datedOf(this).#name }
  }
}

/** Returns the arguments of a constructor whose numbers come from no store: for `testing.js`. */
module.exports.ticketsInMemory = (name, options) => [
  leased,
  name,
  native.ticketsInMemory(name, options),
]
module.exports.Randflake = onlyWithNew(Randflake)
module.exports.Snowflake = onlyWithNew(Snowflake)
module.exports.Tickets = onlyWithNew(Tickets)
module.exports.DatedTickets = onlyWithNew(DatedTickets)
