'use strict'

// The package in several realms of one process: each test file that a jest worker runs is one.

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { dirname, join } = require('node:path')
const { test } = require('node:test')
const vm = require('node:vm')
const { heldIn, newStore, SECRET } = require('./store.js')

const ROOT = join(__dirname, '..')

/** Makes a realm, and returns its `Error`, its `Array` and what the package exports there. */
function newRealm(before = '') {
  const context = vm.createContext({ process, Buffer, URL, setTimeout, clearTimeout })
  vm.runInContext(before, context)
  const modules = {}
  const load = (path) => {
    if (path in modules) return modules[path].exports
    const module = { exports: {} }
    modules[path] = module
    const outer = createRequire(path)
    const inner = (name) =>
      /^\.{1,2}\/.*\.js$/.test(name) && !name.endsWith('/binding.js')
        ? load(join(dirname(path), name))
        : outer(name)
    const parameters = ['module', 'exports', 'require']
    const options = { filename: path, parsingContext: context }
    vm.compileFunction(readFileSync(path, 'utf8'), parameters, options)(
      module,
      module.exports,
      inner,
    )
    return module.exports
  }
  return {
    ...vm.runInContext('({ Error, Array, Object })', context),
    package: load(join(ROOT, 'index.js')),
  }
}

const REALMS = [1, 2, 3].map(newRealm)

for (const [index, realm] of REALMS.entries()) {
  test(`errors are of their own realm: ${index}`, async (t) => {
    const { Randflake, RandflakeError, Snowflake, Layout, Inspector } = realm.package
    const isOwn = (code) => (error) => {
      assert(error instanceof RandflakeError, `${error}`)
      assert(error instanceof realm.Error, `${error}`)
      assert.equal(error.constructor, RandflakeError)
      assert.equal(error.code, code)
      return true
    }
    const flake = new Randflake(1, SECRET)
    assert(flake.nodeIds instanceof realm.Array)
    await flake.ready()
    assert.equal(flake.inspect(flake.generate()).nodeId, 1)
    assert.equal((await flake.generateManyAsync(7)).length, 7)
    assert.throws(() => flake.inspect('?'), isOwn('INVALID_ID'))
    assert.throws(() => flake.fill([]), isOwn('INVALID_ARGUMENT'))
    flake.close()
    assert.throws(() => flake.generate(), isOwn('CLOSED'))
    assert.throws(() => flake.generateString(), isOwn('CLOSED'))
    await assert.rejects(flake.generateManyAsync(1), isOwn('CLOSED'))
    await assert.rejects(flake.ready(), isOwn('CLOSED'))
    assert.throws(() => new Randflake(-1, SECRET), isOwn('INVALID_NODE'))
    assert.throws(() => new Inspector('x'), isOwn('INVALID_SECRET'))
    assert.throws(() => new Layout('none'), isOwn('INVALID_ARGUMENT'))
    assert.throws(() => new Snowflake(-1), isOwn('INVALID_NODE'))
    assert.throws(() => new Layout('twitter').inspect('?'), isOwn('INVALID_ID'))
    assert.throws(() => Randflake(1, SECRET), isOwn('INVALID_ARGUMENT'))

    const mine = new TypeError('mine')
    const clock = () => {
      throw mine
    }
    assert.throws(
      () => new Randflake(2, SECRET, { clock }).generate(),
      (error) => error === mine,
    )

    const missing = join(newStore(t), 'missing', 'ids.db')
    const hasty = { acquireTimeoutMs: 0 }
    await assert.rejects(Randflake.leased(missing, SECRET, hasty), isOwn('INVALID_ARGUMENT'))
    const leased = await Randflake.leased(newStore(t), SECRET)
    assert(Object.isFrozen(leased.lease) && leased.lease instanceof realm.Object)
    assert.equal(leased.lease.lastError, null)
    leased.close()
  })
}

test('why there is no lease is of its own realm', async () => {
  const { Randflake, RandflakeError } = REALMS[2].package
  const seen = new Promise((resolve) => {
    const run = () => Promise.reject(new Error('mine'))
    Randflake.leased({ run }, SECRET, { acquireTimeoutMs: 0 }).catch(resolve)
  })
  const error = await seen
  assert(error instanceof RandflakeError && error instanceof REALMS[2].Error, `${error}`)
  assert.match(error.message, /mine/)
})

test('all realms have one listener for the end of the process', async (t) => {
  const before = process.listenerCount('exit')
  const flakes = []
  for (const realm of [...REALMS, newRealm(), newRealm()]) {
    flakes.push(await realm.package.Randflake.leased(newStore(t), SECRET))
  }
  assert(process.listenerCount('exit') <= before + 1)
  // The first file of this process may have made one.
  assert(process.listenerCount('exit') >= 1)
  for (const flake of flakes) flake.close()
})

test('an end can be awaited where the symbol for it is missing', async (t) => {
  // Where an engine has the symbols, they cannot be deleted.
  const realm = newRealm(`{
    const own = Symbol
    const missing = { value: undefined }
    globalThis.Symbol = Object.setPrototypeOf((name) => own(name), own)
    Object.defineProperties(Symbol, { dispose: missing, asyncDispose: missing })
  }`)
  const store = newStore(t)
  const flake = await realm.package.Randflake.leased(store, SECRET)
  assert.equal(flake[Symbol.asyncDispose], undefined)
  assert.equal(typeof flake[Symbol.for('Symbol.asyncDispose')], 'function')
  assert.equal(heldIn(store).length, 1)
  assert.equal(await flake.closeAsync(), undefined)
  assert.deepEqual(heldIn(store), [])
})
