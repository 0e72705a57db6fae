'use strict'

// Settings of generators in the environment.

const assert = require('node:assert/strict')
const { writeFileSync } = require('node:fs')
const { beforeEach, test } = require('node:test')
const { Inspector, listLeases, Randflake, Snowflake } = require('../index.js')
const { newStore, SECRET } = require('./store.js')

const NAMES = [
  'RANDFLAKE_STORE',
  'RANDFLAKE_SECRET',
  'RANDFLAKE_SECRET_FILE',
  'RANDFLAKE_NAMESPACE',
]

beforeEach(() => {
  for (const name of NAMES) delete process.env[name]
})

/** Leases, and then returns how many leases each namespace has. */
async function heldBy(store, leased) {
  const flake = await leased()
  const counts = {}
  for (const namespace of ['default', 'orders']) {
    const listed = listLeases(store, { namespace })
    counts[namespace] = await listed.then(({ held }) => held).catch(() => 0)
  }
  await flake[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]()
  return counts
}

test('what is not given comes from the environment', async (t) => {
  const store = newStore(t)
  await assert.rejects(Randflake.leased(store), {
    code: 'INVALID_SECRET',
    message: /RANDFLAKE_SECRET /,
  })
  await assert.rejects(Randflake.leased(undefined, SECRET), {
    code: 'INVALID_ARGUMENT',
    message: /RANDFLAKE_STORE/,
  })
  const file = `${store}.secret`
  writeFileSync(file, `${SECRET}\n`)
  Object.assign(process.env, { RANDFLAKE_STORE: store, RANDFLAKE_SECRET_FILE: file })
  const flake = await Randflake.leased()
  const id = flake.generate()
  assert.deepEqual([new Inspector(SECRET).inspect(id).nodeId], flake.nodeIds)
  flake.close()
  process.env.RANDFLAKE_SECRET = SECRET
  await assert.rejects(Randflake.leased(), { code: 'INVALID_SECRET', message: /both/ })
})

test('a call that names all takes nothing from the environment', async (t) => {
  const store = newStore(t)
  process.env.RANDFLAKE_NAMESPACE = 'orders'
  process.env.RANDFLAKE_SECRET = SECRET
  assert.deepEqual(await heldBy(store, () => Randflake.leased(store)), { default: 0, orders: 1 })
  const given = () => Randflake.leased(store, SECRET)
  assert.deepEqual(await heldBy(store, given), { default: 1, orders: 0 })
  process.env.RANDFLAKE_STORE = `${store}.posts`
  const posts = () => Snowflake.leased()
  assert.deepEqual(await heldBy(`${store}.posts`, posts), { default: 0, orders: 1 })
})
