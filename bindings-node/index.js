'use strict'

const { setTimeout: delay } = require('node:timers/promises')
const { isBigInt64Array } = require('node:util/types')
const { native } = require('./native.js')
const {
  checkCount,
  checkLayout,
  checkStatus,
  clockOf,
  invalidArgument,
  leaseOptions,
  manualOptions,
  mustBe,
  optionsOf,
  storeOf,
  unixMsOf,
} = require('./arguments.js')

/** Longest time that timers take. */
const LONGEST_DELAY_MS = 2 ** 31 - 1

/** Makes a class complain in our own way when it is called without `new`. */
function onlyWithNew(type) {
  const checked = new Proxy(type, {
    apply() {
      throw invalidArgument(`${type.name} is a class; call it with new`)
    },
  })
  type.prototype.constructor = checked
  return checked
}

function wrongThis(name) {
  return invalidArgument(`a method of ${name} needs its object; call it as object.method()`)
}

function warnIfWeak(secret) {
  const weakness = native.newWeakness(secret)
  if (weakness === null) return
  process.emitWarning(weakness, { type: 'WeakSecretWarning', code: 'RANDFLAKE_WEAK_SECRET' })
}

/** From how many ids on it is worth asking before. */
const LARGE_BATCH = 16_384

function newIds(n) {
  try {
    return new BigInt64Array(n)
  } catch {
    throw invalidArgument(`there is no memory for ${n} ids; ask for fewer at a time`)
  }
}

/** Marks the arguments of a constructor as those of a generator that is leased already. */
const leased = Symbol('leased')

let endsLeases = false

/** Has the leases end with the process; workers that are terminated end theirs by themselves. */
function endLeasesAtExit() {
  if (endsLeases) return
  endsLeases = true
  process.once('exit', () => native.endLeases())
}

// Taken out of `native`, where finding them would take 5 ns.
const { generate, generateString, fill, inspect, inspectRaw, encrypt, decrypt } = native

/** How long the native half makes each text of `encodeStrings`, by spaces in front. */
const textLength = native.encodeStrings(new BigInt64Array(1), 0).length

const SPACE = 32

/** How many texts are joined for the native half. */
const TEXTS_AT_ONCE = 1024

/** Where `generate` and `generateString` find which generator is meant: 5 ns sooner than in an argument. */
const meant = new Uint32Array(native.callBuffer.buffer, 0, 1)

/** Where they leave whose id they have made. */
const owner = new Uint32Array(native.callBuffer.buffer, 4, 1)

/** No generator has this index. */
const NOBODY = 2 ** 32 - 1

// Where `generate` leaves an id: 10 ns sooner than a bigint can be returned.
const signedId = new BigInt64Array(native.callBuffer.buffer, 8, 1)
const unsignedId = new BigUint64Array(native.callBuffer.buffer, 8, 1)

/** Where `inspect` and `inspectRaw` leave the parts of an id. */
const parts = new Float64Array(native.callBuffer.buffer, 16, 3)

function workerIsEnding() {
  return new native.RandflakeError('CLOSED', 'this worker is ending')
}

/**
 * Returns an id or its text if it is of the generator that was meant: before the native call, and
 * nowhere after it among these arguments, a debugger may stop and have another generator called.
 */
function own(made, isOwn) {
  if (isOwn && made !== undefined) return made
  // In a worker that is being terminated the native half cannot throw, and the script runs on.
  if (made === undefined || owner[0] === NOBODY) throw workerIsEnding()
  throw new native.RandflakeError('INTERNAL', 'a debugger called another generator; call again')
}

/** Takes what a native function that changes an array returns; see `own`. */
function mustBeDone(done) {
  if (!done) throw workerIsEnding()
}

/** Fills a new array. */
function generateManyWith(generator, n) {
  checkCount(n)
  if (n >= LARGE_BATCH) native.checkFill(generator, n)
  const ids = newIds(n)
  mustBeDone(fill(generator, ids))
  return ids
}

/** Says which element is wrong: the first that `read`, which takes one, refuses. */
function faultOf(elements, read) {
  for (const [index, element] of elements.entries()) {
    try {
      read(element)
    } catch (error) {
      return new native.RandflakeError(error.code, `at index ${index}: ${error.message}`)
    }
  }
  return invalidArgument('an array changed while it was read')
}

/** Copies bigints into an array of 64 bits each; `read`, which takes one, says which are refused. */
function copyBigints(elements, numbers, read) {
  for (let index = 0; index < numbers.length; index++) {
    const element = elements[index]
    if (typeof element === 'bigint') numbers[index] = element // without the bits above 64
    if (numbers[index] !== element) throw faultOf(elements, read)
  }
  return numbers
}

/** Returns ids as a BigInt64Array; the native half refuses what holds none. */
function idsOf(ids) {
  if (isBigInt64Array(ids)) return ids
  if (!Array.isArray(ids)) return native.signedIds(ids)
  return copyBigints(ids, newIds(ids.length), native.encodeString)
}

function encryptManyWith(inspector, raws) {
  if (!Array.isArray(raws)) return native.encryptMany(inspector, raws)
  const copy = new BigUint64Array(newIds(raws.length).buffer)
  return native.encryptMany(
    inspector,
    copyBigints(raws, copy, (raw) => encrypt(inspector, raw)),
  )
}

function decryptManyWith(inspector, ids) {
  const isText = Array.isArray(ids) && typeof ids[0] === 'string'
  return native.decryptMany(inspector, isText ? decodeStrings(ids) : idsOf(ids))
}

/** Makes the texts of many ids: to slice them takes a third of the time that single ones take. */
function encodeStrings(ids) {
  const numbers = idsOf(ids)
  let joined = native.encodeStrings(numbers, 0)
  const texts = new Array(numbers.length)
  for (let index = 0; joined !== ''; joined = native.encodeStrings(numbers, index)) {
    // As in `own`.
    if (joined === undefined) throw workerIsEnding()
    for (let end = textLength; end <= joined.length; end += textLength) {
      let start = end - textLength
      while (joined.charCodeAt(start) === SPACE) start++
      texts[index++] = joined.slice(start, end)
    }
  }
  return texts
}

/** Reads many texts: to join them first takes half the time that handing over each does. */
function decodeStrings(texts) {
  if (!Array.isArray(texts)) throw mustBe('texts', 'an array of strings', texts)
  const ids = newIds(texts.length)
  for (let start = 0; start < ids.length; start += TEXTS_AT_ONCE) {
    const some = ids.subarray(start, start + TEXTS_AT_ONCE)
    const joined = new Array(some.length)
    for (let index = 0; index < some.length; index++) {
      const text = texts[start + index]
      if (typeof text !== 'string') throw faultOf(texts, native.decodeString)
      joined[index] = text
    }
    if (!native.decodeStrings(joined.join(), some)) throw faultOf(texts, native.decodeString)
  }
  return ids
}

function inspectWith(inspector, id) {
  inspect(inspector, id)
  const [timestamp, nodeId, sequence] = parts
  return { timestamp, nodeId, sequence, date: new Date(timestamp * 1000) }
}

function inspectRawWith(layout, id) {
  inspectRaw(layout, id)
  const [unixMs, nodeId, sequence] = parts
  return { unixMs, nodeId, sequence, date: new Date(unixMs) }
}

/**
 * What every generator has, so that structuredClone and postMessage throw instead of making an
 * empty object. They read what is enumerable, and into a Set. What only lists or compares
 * properties, as console.table and deepStrictEqual do, never comes to the getter in there.
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

/** What Randflake and Snowflake share. */
class IdGenerator {
  #generator
  #name

  static {
    isGenerator = (self) => typeof self === 'object' && self !== null && #generator in self
    generatorOf = (self) => {
      if (!isGenerator(self)) throw wrongThis('a generator')
      return self.#generator
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
    // An injected clock can only be asked on this thread.
    return native.generateManyAsync(generator, n) ?? generateManyWith(generator, n)
  }

  fill(ids) {
    mustBeDone(fill(generatorOf(this), ids))
  }

  async ready() {
    const generator = generatorOf(this)
    for (;;) {
      const ms = native.readyInMs(generator)
      if (ms === 0) return
      await delay(Math.min(ms, LONGEST_DELAY_MS))
    }
  }

  extendLease(endExclusive) {
    native.extendLease(generatorOf(this), endExclusive)
  }

  get lease() {
    return native.leaseOf(generatorOf(this))
  }

  get nodeIds() {
    return native.nodeIds(generatorOf(this))
  }

  close() {
    native.close(generatorOf(this))
  }

  // Node 20 had these symbols only from 20.5 on.
  [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() {
    native.close(generatorOf(this))
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    const generator = generatorOf(this)
    native.close(generator)
    await native.released(generator)
  }

  toJSON() {
    return { nodeIds: native.nodeIds(generatorOf(this)) }
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options, inspect) {
    if (!isGenerator(this)) return this // the prototype
    return `${this.#name} ${inspect(this.toJSON(), options)}`
  }
}

/** Makes a generator of a format: that of a secret, or a layout of the native half. */
function create(format, nodeId, options) {
  return native.createGenerator(format, nodeId, options, clockOf(options.clock))
}

let randflakeOf

class Randflake extends IdGenerator {
  #index
  #inspector

  static {
    randflakeOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#index in self)) {
        throw wrongThis('Randflake')
      }
      return self
    }
  }

  constructor(nodeId, secret, options) {
    const isLeased = nodeId === leased
    const generator = isLeased ? secret : create(secret, nodeId, manualOptions(options))
    super(generator, 'Randflake')
    this.#index = native.generatorIndex(generator)
    this.#inspector = isLeased ? options : native.createInspector(secret)
    if (!isLeased) warnIfWeak(secret)
  }

  static async leased(store, secret, options) {
    const generator = native.lease(storeOf(store), secret, leaseOptions(options))
    const inspector = native.createInspector(secret)
    warnIfWeak(secret)
    endLeasesAtExit()
    return new Randflake(leased, await generator, inspector)
  }

  generate() {
    meant[0] = randflakeOf(this).#index
    owner[0] = NOBODY
    return own(generate() ?? signedId[0], owner[0] === this.#index)
  }

  generateString() {
    meant[0] = randflakeOf(this).#index
    return own(generateString(), owner[0] === this.#index)
  }

  generateStrings(n) {
    return encodeStrings(generateManyWith(generatorOf(randflakeOf(this)), n))
  }

  inspect(id) {
    return inspectWith(randflakeOf(this).#inspector, id)
  }

  encrypt(raw) {
    return encrypt(randflakeOf(this).#inspector, raw)
  }

  decrypt(id) {
    return decrypt(randflakeOf(this).#inspector, id)
  }

  encryptMany(raws) {
    return encryptManyWith(randflakeOf(this).#inspector, raws)
  }

  decryptMany(ids) {
    return decryptManyWith(randflakeOf(this).#inspector, ids)
  }

  encryptInPlace(raws) {
    mustBeDone(native.encryptInPlace(randflakeOf(this).#inspector, raws))
  }

  decryptInPlace(ids) {
    mustBeDone(native.decryptInPlace(randflakeOf(this).#inspector, ids))
  }
}

let inspectorOf

class Inspector {
  #inspector

  static {
    inspectorOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#inspector in self)) {
        throw wrongThis('Inspector')
      }
      return self.#inspector
    }
  }

  constructor(secret) {
    this.#inspector = native.createInspector(secret)
    warnIfWeak(secret)
  }

  inspect(id) {
    return inspectWith(inspectorOf(this), id)
  }

  inspectMany(ids) {
    return native.inspectMany(inspectorOf(this), ids)
  }

  encrypt(raw) {
    return encrypt(inspectorOf(this), raw)
  }

  decrypt(id) {
    return decrypt(inspectorOf(this), id)
  }

  encryptMany(raws) {
    return encryptManyWith(inspectorOf(this), raws)
  }

  decryptMany(ids) {
    return decryptManyWith(inspectorOf(this), ids)
  }

  encryptInPlace(raws) {
    mustBeDone(native.encryptInPlace(inspectorOf(this), raws))
  }

  decryptInPlace(ids) {
    mustBeDone(native.decryptInPlace(inspectorOf(this), ids))
  }
}

async function listLeases(store, options) {
  return native.listLeases(storeOf(store), optionsOf(options, 'namespace'))
}

async function inspectLease(store, nodeId, options) {
  return native.inspectLease(storeOf(store), nodeId, optionsOf(options, 'namespace'))
}

async function fenceStore(store, options) {
  return native.fenceStore(storeOf(store), optionsOf(options, 'namespace'))
}

async function repairLease(store, nodeId, options) {
  const checked = optionsOf(options, 'namespace', 'endExclusive')
  return native.repairLease(storeOf(store), nodeId, checked)
}

async function repairStore(store, options) {
  return native.repairStore(storeOf(store), optionsOf(options, 'namespace', 'floor'))
}

async function releaseLease(store, lease, options) {
  checkStatus(lease)
  return native.releaseLease(storeOf(store), lease, optionsOf(options, 'namespace'))
}

/** Marks the arguments of a constructor as those of a layout that is made already. */
const made = Symbol('made')

let layoutOf

class Layout {
  #layout

  static {
    layoutOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#layout in self)) {
        throw wrongThis('Layout')
      }
      return self.#layout
    }
  }

  constructor(layout, changed) {
    this.#layout = layout === made ? changed : native.createLayout(checkLayout(layout))
    Object.freeze(Object.assign(this, native.layoutProperties(this.#layout)))
  }

  inspect(id) {
    return inspectRawWith(layoutOf(this), id)
  }

  pack(time, nodeId, sequence) {
    return native.pack(layoutOf(this), unixMsOf(time), nodeId, sequence)
  }

  firstIdAt(time) {
    return native.firstIdAt(layoutOf(this), unixMsOf(time))
  }

  lastIdAt(time) {
    return native.lastIdAt(layoutOf(this), unixMsOf(time))
  }

  joinNode(datacenter, worker) {
    return native.joinNode(layoutOf(this), datacenter, worker)
  }

  splitNode(nodeId) {
    return native.splitNode(layoutOf(this), nodeId)
  }

  withSequence(sequence) {
    return new Layout(made, native.withSequence(layoutOf(this), sequence))
  }
}

/** The ends of the layouts that were warned of. */
const endsWarnedOf = new Set()

function warnIfEnding(layout) {
  const warning = native.layoutWarning(layoutOf(layout))
  if (warning === null || endsWarnedOf.has(layout.endsAt)) return
  endsWarnedOf.add(layout.endsAt)
  process.emitWarning(warning, { type: 'LifetimeWarning', code: 'RANDFLAKE_LIFETIME' })
}

/** Returns the layout that options name, or else `otherwise`. */
function layoutIn(options, otherwise) {
  const { layout = otherwise } = options
  return layout === undefined || layout instanceof Layout ? layout : new Layout(layout)
}

let snowflakeOf

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
  }

  constructor(nodeId, options, generator) {
    const isLeased = nodeId === leased
    const checked = isLeased ? {} : manualOptions(options, 'layout')
    const layout = isLeased ? options : layoutIn(checked, 'twitter')
    // A layout without node ids leaves nothing to choose.
    const chosen = nodeId === undefined && layout.nodeBits === 0 ? [] : nodeId
    const made = generator ?? create(layoutOf(layout), chosen, checked)
    super(made, 'Snowflake')
    this.#index = native.generatorIndex(made)
    this.#layout = layout
    this.#nativeLayout = layoutOf(layout)
    if (!isLeased) warnIfEnding(layout)
  }

  static async leased(store, options) {
    const checked = leaseOptions(options, 'layout')
    const layout = layoutIn(checked, 'twitter')
    const generator = native.lease(storeOf(store), layoutOf(layout), checked)
    endLeasesAtExit()
    const flake = new Snowflake(leased, layout, await generator)
    warnIfEnding(layout)
    return flake
  }

  generate() {
    meant[0] = snowflakeOf(this).#index
    owner[0] = NOBODY
    return own(generate() ?? unsignedId[0], owner[0] === this.#index)
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

/** The options of initStore. */
const INIT = ['layout', 'namespace', 'maxTtlSeconds', 'maxSkewSeconds', 'allowWeakStore']

async function initStore(store, secret, mode, options) {
  const checked = optionsOf(options, ...INIT)
  const layout = layoutIn(checked)
  if (layout !== undefined && secret !== undefined) {
    throw invalidArgument(
      'a namespace has either a secret, for Randflake, or a layout, for Snowflake; with the option ' +
        'layout the secret must be undefined',
    )
  }
  const format = layout === undefined ? secret : layoutOf(layout)
  const made = native.initStore(storeOf(store), format, mode, checked)
  if (layout === undefined) warnIfWeak(secret)
  await made
}

let cloakOf

class Cloak {
  #cloak

  static {
    cloakOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#cloak in self)) throw wrongThis('Cloak')
      return self.#cloak
    }
  }

  constructor(secret, label) {
    this.#cloak = native.createCloak(secret, label)
    warnIfWeak(secret)
  }

  hide(number) {
    return native.hide(cloakOf(this), number)
  }

  hideString(number) {
    return native.hideString(cloakOf(this), number)
  }

  hideInPlace(numbers) {
    mustBeDone(native.hideInPlace(cloakOf(this), numbers))
  }

  reveal(hidden) {
    return native.reveal(cloakOf(this), hidden)
  }

  revealInPlace(hidden) {
    mustBeDone(native.revealInPlace(cloakOf(this), hidden))
  }
}

let boundaryFlakeOf

class BoundaryFlake {
  #flake

  static {
    boundaryFlakeOf = (self) => {
      if (typeof self !== 'object' || self === null || !(#flake in self)) {
        throw wrongThis('BoundaryFlake')
      }
      return self.#flake
    }
  }

  constructor(flake) {
    this.#flake = native.readBoundaryFlake(flake)
    const { unixMs, worker, sequence } = this.#flake
    const date = new Date(Number(unixMs))
    Object.freeze(Object.assign(this, { unixMs, worker: Uint8Array.from(worker), sequence, date }))
  }

  toBytes() {
    return Uint8Array.from(boundaryFlakeOf(this).bytes)
  }

  toString() {
    return boundaryFlakeOf(this).text
  }

  toJSON() {
    return boundaryFlakeOf(this).text
  }
}

// One by one and by name, which is how `import { … }` finds them.
module.exports.Randflake = onlyWithNew(Randflake)
module.exports.Inspector = onlyWithNew(Inspector)
module.exports.initStore = initStore
module.exports.listLeases = listLeases
module.exports.inspectLease = inspectLease
module.exports.fenceStore = fenceStore
module.exports.repairLease = repairLease
module.exports.repairStore = repairStore
module.exports.releaseLease = releaseLease
module.exports.Layout = onlyWithNew(Layout)
module.exports.Snowflake = onlyWithNew(Snowflake)
module.exports.Cloak = onlyWithNew(Cloak)
module.exports.BoundaryFlake = onlyWithNew(BoundaryFlake)
module.exports.RandflakeError = native.RandflakeError
module.exports.encodeString = native.encodeString
module.exports.decodeString = native.decodeString
module.exports.encodeStrings = encodeStrings
module.exports.decodeStrings = decodeStrings
module.exports.generateSecret = native.generateSecret
