#!/usr/bin/env node
'use strict'

// The command randflake. It writes to the standard streams by itself: nothing here may touch the
// streams of `process`, which would make them non-blocking.

const { native } = require('./lib/native.js')
const { serverOf } = require('./lib/stores.js')

/** Opens the store with a server of a URL, with the client that is installed. */
async function open(url) {
  try {
    return { server: serverOf(url, native) }
  } catch (error) {
    return { failed: [error.code, error.message].map(String) }
  }
}

native.runCommand(process.argv.slice(2), open).then((code) => {
  process.exitCode = code
})
