'use strict'

// After a restore, what was made before belongs to another process. Each test runs in its own
// process.

const assert = require('node:assert/strict')
const { test } = require('node:test')
const { heldIn, newStore, run } = require('./store.js')

const BEGIN = `
  const { afterRestore, Tickets } = require('./index.js')
  const outcome = (call) => {
    try {
      call()
      return 'done'
    } catch (error) {
      return error.code
    }
  }
`

/** Returns what a script writes. */
async function said(t, script) {
  const store = newStore(t)
  const { code, stderr, stdout } = await run(store, BEGIN + script)
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
  return { store, lines: stdout.trimEnd().split('\n') }
}

test('manual node ids are another process’s', async (t) => {
  const { lines } = await said(
    t,
    `const flake = new Randflake(1, SECRET)
    const posts = new Snowflake(1)
    const id = flake.generate()
    afterRestore()
    say(outcome(() => flake.generate()), outcome(() => posts.generate()))
    say(outcome(() => new Randflake(1, SECRET)), outcome(() => new Randflake(2, SECRET).generate()))
    say(flake.inspect(id).nodeId)`,
  )
  assert.deepEqual(lines, ['FORKED FORKED', 'FORKED done', '1'])
})

test('a leased generator begins anew, and gives back nothing of before', async (t) => {
  const { lines, store } = await said(
    t,
    `const flake = await Randflake.leased(STORE, SECRET)
    const nodes = [flake.nodeIds[0]]
    const ids = [...flake.generateMany(100)]
    for (let turn = 0; turn < 3; turn++) {
      afterRestore()
      say(String(flake.lease))
      await flake.ready()
      ids.push(flake.generate(), ...flake.generateMany(1000))
      nodes.push(flake.nodeIds[0])
    }
    say(ids.length - new Set(ids).size, new Set(nodes).size)
    await flake.closeAsync()
    say(nodes.slice(0, 3).sort((one, other) => one - other))`,
  )
  assert.deepEqual(lines.slice(0, 4), ['null', 'null', 'null', '0 4'])
  const held = heldIn(store).sort((one, other) => one - other)
  assert.deepEqual(held, lines[4].split(',').map(Number))
})

test('numbers of before are not handed out', async (t) => {
  const { lines } = await said(
    t,
    `const open = () => Tickets.leased(STORE, 'orders', { create: true, minBlock: 10 })
    const orders = await open()
    const before = [orders.generate(), orders.generate()]
    afterRestore()
    await orders.ready()
    const after = [orders.generate(), orders.generate()]
    await orders.closeAsync()
    const next = await open()
    say(before)
    say([...after, next.generate()].every((number) => number > 10))
    await next.closeAsync()`,
  )
  assert.deepEqual(lines, ['1,2', 'true'])
})
