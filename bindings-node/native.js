'use strict'

// Loads the native half, and has what both halves need.

class RandflakeError extends Error {
  constructor(code, message, retryAfterMs, options) {
    super(message, options)
    this.code = code
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
    const broken = causes.find(({ code }) => code !== 'MODULE_NOT_FOUND')
    const [reason] = (broken ?? causes[0] ?? error).message.split('\n')
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

/** What both halves leave numbers on for each other. No script can detach shared memory. */
const tray = new BigInt64Array(new Shared(16))

const native = loadBinding().load(RandflakeError, tray)

module.exports = { native }
