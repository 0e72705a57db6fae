'use strict'

// What a lazy generator keeps until its first use.
//
// A lazy generator has an index that no other has, so the native generate returns false, and
// generators.js makes the generator of open_lazily and takes its index: other generators pay nothing
// for that. It is not the index that erases the owner, or an id left in the call buffer would pass for theirs. A
// thread takes the first lease, and the JavaScript thread waits for it only where the store is a
// file.

const { isAbsolute, sep } = require('node:path')
const { isUint8Array } = require('node:util/types')
const { native } = require('./native.js')

/**
 * Returns the options as they are now, checked. `layout` is undefined for a generator with a
 * secret.
 */
function keptOptions(options, layout) {
  native.checkLeaseOptions(layout, options)
  return { ...options }
}

/** Returns a store that stays the same one in another current directory. */
function keptStore(store) {
  // Anything that begins like a URL is one, or is refused; under a directory it would be a path.
  const isPath = typeof store === 'string' && store !== '' && !/^[^/\\:]{2,}:/.test(store)
  return isPath && !isAbsolute(store) ? process.cwd() + sep + store : store
}

/** Returns a copy of the secret that remains when the caller erases theirs. */
function keptSecret(secret) {
  return isUint8Array(secret) ? new Uint8Array(secret) : secret
}

/** Replaces the function that makes the native generator, for one that was closed before. */
function closedBefore() {
  throw new native.RandflakeError('CLOSED', 'this generator was closed; make a new one')
}

module.exports = { closedBefore, keptOptions, keptSecret, keptStore }
