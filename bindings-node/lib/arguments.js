'use strict'

// Checks what callers pass, where JavaScript does that best: names, functions, URLs. The native
// half checks the values.

const { fileURLToPath, URL } = require('node:url')
const { native } = require('./native.js')
const { serverOf } = require('./stores.js')

function invalidArgument(message) {
  return new native.RandflakeError('INVALID_ARGUMENT', message)
}

/** Makes a class throw our own error when it is called without `new`. */
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

function mustBe(what, form, got) {
  return invalidArgument(`${what} must be ${form}, got ${native.describe(got)}`)
}

/** Returns an object that has only these names. */
function withNames(what, value, names, { code = 'INVALID_ARGUMENT', form = 'an object' } = {}) {
  const list = names.join(', ')
  const isObject = typeof value === 'object' && value !== null
  // A list or a Map has no names, or hides them: its contents would be silently ignored.
  const isIterable = isObject && Symbol.iterator in value
  if (!isObject || isIterable) {
    const got = isIterable ? 'an iterable' : native.describe(value)
    const message = `${what} must be ${form} with ${list}, got ${got}`
    throw new native.RandflakeError(code, message)
  }
  if (!Object.keys(value).every((name) => names.includes(name))) {
    throw new native.RandflakeError(code, `${what} can only have the names ${list}`)
  }
  return value
}

function optionsOf(options, ...names) {
  return options === undefined ? {} : withNames('the options', options, names)
}

/** The options of a generator with node ids of its own. */
const MANUAL = ['lease', 'maxWaitMs', 'maxDriftSeconds', 'restartSafe', 'clock']

function manualOptions(options, ...also) {
  const checked = optionsOf(options, ...also, ...MANUAL)
  const { lease } = checked
  if (lease !== undefined) {
    withNames('a lease', lease, ['start', 'endExclusive'], { code: 'INVALID_LEASE' })
  }
  return checked
}

/** The options of a generator with leased node ids. */
const LEASED = [
  'nodeCount',
  'ttlSeconds',
  'maxSkewSeconds',
  'namespace',
  'acquireTimeoutMs',
  'maxWaitMs',
  'maxDriftSeconds',
  'create',
  'allowWeakStore',
  'onLeaseChange',
]

function leaseOptions(options, ...also) {
  return optionsOf(options, ...also, ...LEASED)
}

/** Returns these arguments; the options, at `place`, may have been the only one. */
function withOptions(given, place, ...also) {
  const [first] = given
  const isAlone = given.length === 1 && typeof first === 'object' && first !== null
  const names = isAlone ? Object.keys(first) : []
  const isOption = (name) => also.includes(name) || LEASED.includes(name)
  if (names.length === 0 || !names.every(isOption)) return given
  return [...Array(place), first]
}

/**
 * Returns a clock as one function for the native half: without an argument it returns unix seconds,
 * with one it sleeps for that many seconds and returns whether it can.
 */
function clockOf(clock) {
  if (clock === undefined) return undefined
  const refuse = (what, got) => {
    const form =
      'a function; a clock is a function that returns unix seconds, or an object with such a ' +
      'function now() and perhaps sleep(seconds)'
    throw mustBe(what, form, got)
  }
  if (typeof clock === 'function') return (seconds) => seconds === undefined && clock()
  if (typeof clock !== 'object' || clock?.now === undefined) refuse('the clock', clock)
  const { now, sleep } = clock
  if (typeof now !== 'function') refuse('now of the clock', now)
  if (sleep !== undefined && typeof sleep !== 'function') refuse('sleep of the clock', sleep)
  return (seconds) => {
    if (seconds === undefined) return now.call(clock)
    sleep?.call(clock, seconds)
    return sleep !== undefined
  }
}

function checkCount(n) {
  if (Number.isSafeInteger(n) && n >= 0) return
  throw mustBe('the number of ids', 'an integer, at least 0', n)
}

/** Returns what names a store to the native half. */
function storeOf(store) {
  const server = serverOf(store, native)
  if (server !== undefined) return server
  if (typeof store === 'string' && store.isWellFormed()) return store
  if (!(store instanceof URL)) {
    const form =
      'the path of a SQLite file, the URL or a client of PostgreSQL, MySQL, Redis or etcd, or an adapter ' +
      'with run(text, parameters)'
    throw mustBe('the store', form, store)
  }
  try {
    return fileURLToPath(store)
  } catch {
    throw invalidArgument(
      `a store is the path of a file of this machine, or its file: URL, got a ${store.protocol} URL`,
    )
  }
}

/** The names of what listLeases and inspectLease return for a node id. */
const STATUS = ['nodeId', 'state', 'start', 'endExclusive', 'secondsLeft', 'isImplausible', 'note']

function checkStatus(lease) {
  withNames('the lease', lease, STATUS)
}

const DESCRIPTION = ['fields', 'tickMs', 'epochMs', 'sequence', 'unsigned', 'nodeSplit']

/** Takes the text of a layout, or its description. */
function checkLayout(layout) {
  if (typeof layout !== 'string') {
    withNames('a layout', layout, DESCRIPTION, { form: 'the text of a layout or an object' })
  }
  return layout
}

function unixMsOf(time) {
  return time instanceof Date ? time.getTime() : time
}

/**
 * Returns store, secret and options; missing ones come from the environment. Its secret may have
 * been found before.
 */
function withEnvironment(store, secret, options, found) {
  const { env } = process
  const settings = {
    store: store ?? native.environmentStore(env),
    secret: secret ?? found ?? native.environmentSecret(env),
    options,
  }
  // If both were given, nothing is taken: under another namespace a secret repeats ids.
  const isGiven = store !== undefined && secret !== undefined
  if (isGiven || options.namespace !== undefined) return settings
  const namespace = native.environmentNamespace(env)
  return namespace === null ? settings : { ...settings, options: { ...options, namespace } }
}

module.exports = {
  checkCount,
  checkLayout,
  checkStatus,
  clockOf,
  invalidArgument,
  leaseOptions,
  manualOptions,
  mustBe,
  onlyWithNew,
  optionsOf,
  storeOf,
  unixMsOf,
  warnIfWeak,
  withEnvironment,
  withOptions,
  wrongThis,
}
