'use strict'

// Notifies a program of each change of a lease: on a diagnostics channel, and by calling its
// function.
//
// Changes come by a thread-safe function, which keeps no process alive and waits for nobody. It knows
// the generator by a weak reference, since the native half holds the function as long as the
// generator.

const { channel } = require('node:diagnostics_channel')
const { mustBe } = require('./arguments.js')
const { ownOf } = require('./native.js')

const everyChange = channel('randflake:lease')

/** An exception of the program's function becomes a warning: it does not concern the lease. */
function warn(error) {
  const detail = error instanceof Error ? error.stack : String(error)
  const options = { type: 'LeaseChangeWarning', code: 'RANDFLAKE_LEASE_CHANGE', detail }
  process.emitWarning('onLeaseChange has failed', options)
}

/** The changes of one lease. */
class Changes {
  /** Weak: the native half holds this as long as the generator, which is closed when it is collected. */
  #generator

  constructor(onLeaseChange) {
    if (onLeaseChange !== undefined && typeof onLeaseChange !== 'function') {
      throw mustBe('onLeaseChange', 'a function', onLeaseChange)
    }
    /** What the native half calls; it is never rejected. */
    this.tell = async (made) => {
      const change = ownOf(made)
      if (everyChange.hasSubscribers) {
        everyChange.publish({ ...change, generator: this.#generator?.deref() })
      }
      try {
        await onLeaseChange?.(change.status)
      } catch (error) {
        warn(error)
      }
    }
  }

  /** Returns the generator whose lease it is, once that is made. */
  of(generator) {
    this.#generator = new WeakRef(generator)
    return generator
  }
}

module.exports = { Changes }
