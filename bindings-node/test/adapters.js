'use strict'

// What goes into frameworks, with their oldest versions, too.

const Module = require('node:module')

/** Loads a module of ours with another version of a package, which is installed under a name of its own. */
function requireWith(file, name, installed) {
  const find = Module._resolveFilename
  const path = require.resolve(file)
  const kept = require.cache[path]
  delete require.cache[path]
  Module._resolveFilename = (request, ...rest) => {
    const isIt = request === name || request.startsWith(`${name}/`)
    return find(isIt ? installed + request.slice(name.length) : request, ...rest)
  }
  try {
    return require(path)
  } finally {
    Module._resolveFilename = find
    require.cache[path] = kept
  }
}

module.exports = { requireWith }
