'use strict'

// What a lazy generator keeps until its first use.

const { isAbsolute, sep } = require('node:path')
const { isUint8Array } = require('node:util/types')
const { native } = require('./native.js')

/** Returns the options as they are now, checked. `layout` is undefined for those of a secret. */
function keptOptions(options, layout) {
  native.checkLeaseOptions(layout, options)
  return { ...options }
}

/** Returns a store that stays the same one in another current directory. */
function keptStore(store) {
  // What begins as a URL does is one, or is refused: not below a directory, where it were a path.
  const isPath = typeof store === 'string' && store !== '' && !/^[^/\\:]{2,}:/.test(store)
  return isPath && !isAbsolute(store) ? process.cwd() + sep + store : store
}

/** Returns a secret that stays when the caller erases theirs. */
function keptSecret(secret) {
  return isUint8Array(secret) ? new Uint8Array(secret) : secret
}

/** Stands for what makes the native generator of one that was closed before. */
function closedBefore() {
  throw new native.RandflakeError('CLOSED', 'this generator was closed; make a new one')
}

module.exports = { closedBefore, keptOptions, keptSecret, keptStore }
