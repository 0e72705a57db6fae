'use strict'

// What Bun and Deno do differently, so that a test cannot apply to them.

const { bun, deno } = process.versions

const runtime = bun ? 'bun' : deno ? 'deno' : 'node'

/** Returns the options of a test that is skipped on the named runtimes, each with a reason. */
const skipOn = (reasons) => ({ skip: reasons[runtime] ?? false })

/** Of a test in which a worker is terminated while it makes ids. */
const BUSY_WORKERS = skipOn({
  deno: 'says that a busy worker has ended at once, and never clears up after it',
})

/** Of a test in which the process exits while workers run. */
const RUNNING_WORKERS = skipOn({
  bun: 'does not clear up after workers that run when the process exits',
  deno: 'does not clear up after workers that run when the process exits',
})

module.exports = { BUSY_WORKERS, RUNNING_WORKERS, skipOn }
