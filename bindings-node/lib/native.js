'use strict'

// Loads the native half, and holds what both halves need.

const types = require('node:util/types')

const { isPromise } = types

/**
 * Deno has no such function; there an external has no prototype, unlike anything else that we make.
 */
const isExternal = types.isExternal ?? ((value) => Object.getPrototypeOf(value) === null)

class RandflakeError extends Error {
  constructor(code, message, retryAfterMs, options) {
    // A single argument is the message, as in 2.1.
    super(message ?? code, options)
    this.code = message === undefined ? 'INTERNAL' : code
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs
  }

  get name() {
    return 'RandflakeError'
  }
}

/** Loads the native half, or says first why it cannot be loaded, then what to do about it. */
function loadBinding() {
  try {
    return require('../binding.js')
  } catch (error) {
    const causes = []
    for (let cause = error.cause; cause instanceof Error; cause = cause.cause) causes.push(cause)
    // This package has no WebAssembly build, which the loader looks for last.
    const own = causes.filter(({ message }) => !/\bwasi\b/.test(message))
    const broken = own.find(({ code }) => code !== 'MODULE_NOT_FOUND')
    const [reason] = (broken ?? own[0] ?? error).message.split('\n')
    throw new Error(
      `${reason}: the native half of randflake for ${process.platform} ${process.arch} cannot be ` +
        'loaded. It comes as an optional dependency, @randflake/native-*: install on the platform ' +
        'that runs the program, with optional dependencies. In a clone, `npm run build` makes it.',
      { cause: error },
    )
  }
}

/** The class of shared memory, also where its name is hidden, as in a renderer of Electron. */
const Shared =
  globalThis.SharedArrayBuffer ??
  new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true }).buffer.constructor

/** Where both halves leave numbers for each other. No script can detach shared memory. */
const callBuffer = new BigInt64Array(new Shared(40))

const binding = loadBinding()
const loaded = binding.load(RandflakeError, callBuffer)

/** Our `RandflakeError`, or the one of the first realm in this process or worker. */
const { RandflakeError: Loaded } = loaded

/** Gives an error of the native half the class of this realm. */
function ownError(error) {
  if (!(error instanceof Loaded)) return error
  ownError(error.cause)
  return Object.setPrototypeOf(error, RandflakeError.prototype)
}

/**
 * Returns what the native half has made as an object of this realm, and does the same for all it
 * throws.
 */
function own(made) {
  if (typeof made === 'function') {
    return (...given) => {
      try {
        return own(made(...given))
      } catch (error) {
        throw ownError(error)
      }
    }
  }
  if (isPromise(made)) return made.then(own, (error) => Promise.reject(ownError(error)))
  if (typeof made !== 'object' || made === null) return made
  if (ArrayBuffer.isView(made) || isExternal(made)) return made
  if (made instanceof Loaded) return ownError(made)
  const copy = Array.isArray(made) ? Array.from(made, own) : {}
  if (!Array.isArray(made)) for (const name of Object.keys(made)) copy[name] = own(made[name])
  return Object.isFrozen(made) ? Object.freeze(copy) : copy
}

// The native half makes objects and arrays of the main realm, and errors of the first realm that
// loaded it. Other realms, such as each test file with jest, have their own `Error`, `Object` and
// `Array`.
const isOwn = loaded instanceof Object && Loaded.prototype instanceof Error
const functions = { ...binding, ...loaded }
const native = isOwn ? functions : { ...own(functions), RandflakeError }

/**
 * Gives anything else from the native half, such as arguments of a callback, the classes of this
 * realm.
 */
const ownOf = isOwn ? (made) => made : own

module.exports = { native, ownOf }
