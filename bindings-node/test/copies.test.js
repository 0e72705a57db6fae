'use strict'

// Two copies of the package in one process, as npm installs them for two versions of a dependency.

const assert = require('node:assert/strict')
const { cpSync, mkdtempSync, readdirSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { test } = require('node:test')
const { setTimeout: delay } = require('node:timers/promises')
const { newStore } = require('./store.js')

const root = join(__dirname, '..')
const GRANTS = 100

/** Returns another copy of the package, with its own native half. */
function copyOf(folder, what = /\.(js|node)$/) {
  for (const name of readdirSync(root)) {
    if (name === 'lib' || what.test(name))
      cpSync(join(root, name), join(folder, name), { recursive: true })
  }
  return require(join(folder, 'index.js'))
}

test('two copies never hold one node id', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-copies-'))
  t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }))
  const store = newStore(t)
  const copies = ['one', 'other'].map((name) => copyOf(join(folder, name)))
  assert.notEqual(copies[0].Snowflake, copies[1].Snowflake)
  const held = new Set()
  const grants = { left: GRANTS }
  // Two node ids, so that the copies want the same ones all the time.
  const fields = [
    ['time', 41],
    ['node', 1],
    ['sequence', 12],
  ]
  const hold = async ({ Layout, Snowflake }) => {
    const layout = new Layout({ fields, tickMs: 1, epochMs: 1_735_689_600_000 })
    while (grants.left-- > 0) {
      const flake = await Snowflake.leased(store, { layout, acquireTimeoutMs: 600_000 })
      const [nodeId] = flake.nodeIds
      assert(!held.has(nodeId), `${nodeId} is held by two`)
      held.add(nodeId)
      await delay(1)
      held.delete(nodeId)
      await flake[Symbol.asyncDispose]()
    }
  }
  await Promise.all([...copies, ...copies].map(hold))
})

test('a copy without its native half says which one is missing', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-copies-'))
  t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }))
  assert.throws(
    () => copyOf(join(folder, 'one'), /\.js$/),
    (error) => {
      assert.doesNotMatch(error.message, /wasi/)
      assert.match(error.message, new RegExp(`native-${process.platform}-.*cannot be loaded`))
      return error.cause instanceof Error
    },
  )
})
