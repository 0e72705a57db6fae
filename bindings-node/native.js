'use strict'

// Loads the native half, and has what both halves need.

const types = require('node:util/types')

const { isPromise } = types

/** Deno has no such function; there an external has no prototype, and nothing else that we make. */
const isExternal = types.isExternal ?? ((value) => Object.getPrototypeOf(value) === null)

class RandflakeError extends Error {
  constructor(code, message, retryAfterMs, options) {
    // With one argument that is the message, as in 2.1.
    super(message ?? code, options)
    this.code = message === undefined ? 'INTERNAL' : code
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs
  }

  get name() {
    return 'RandflakeError'
  }
}

/** Loads the native half, or says why it cannot be loaded before what to do about it. */
function loadBinding() {
  try {
    return require('./binding.js')
  } catch (error) {
    const causes = []
    for (let cause = error.cause; cause instanceof Error; cause = cause.cause) causes.push(cause)
    // There is no WebAssembly of this package, which the loader looks for after all others.
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

/** Our `RandflakeError`, or that of the realm which was the first in this process or worker. */
const { RandflakeError: Loaded } = loaded

/** Gives an error of the native half the class of this realm. */
function ownError(error) {
  if (!(error instanceof Loaded)) return error
  ownError(error.cause)
  return Object.setPrototypeOf(error, RandflakeError.prototype)
}

/** Returns what the native half has made as something of this realm, along with all it throws. */
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

// The native half makes objects and arrays of the main realm, and errors of the first one that loaded
// it. Other realms, as each file of tests is with jest, have an `Error`, `Object` and `Array` of their
// own.
const isOwn = loaded instanceof Object && Loaded.prototype instanceof Error
const functions = { ...binding, ...loaded }
const native = isOwn ? functions : { ...own(functions), RandflakeError }

/** Gives something else of the native half, as what it calls a function with, the classes of this realm. */
const ownOf = isOwn ? (made) => made : own

module.exports = { native, ownOf }
