'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { test } = require('node:test')

/** Makes and drops many objects and returns by how many MiB the process has grown. */
function growth(make) {
  const script = `
    const { Randflake, Inspector } = require('./index.js')
    const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
    const make = ${make}
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    async function many(count) {
      for (let index = 0; index < count; index++) {
        await make()
        if (index % 500 === 0) { gc(); await turn() } // finalizers run in a later turn
      }
      for (let round = 0; round < 3; round++) { gc(); await turn() }
      return process.memoryUsage().rss
    }
    many(2000).then(async (before) => console.log((await many(20000)) - before))`
  const options = { cwd: `${__dirname}/..`, encoding: 'utf8' }
  const done = spawnSync(process.execPath, ['--expose-gc', '--eval', script], options)
  assert.equal(done.status, 0, done.stderr)
  return Number(done.stdout) / 2 ** 20
}

// A generator with 1000 nodes takes more than 4 KiB: 20 000 of them are 80 MiB.
const NODES = 'Array.from({ length: 1000 }, (_, node) => node)'

for (const [name, make] of Object.entries({
  'a generator': `() => new Randflake(${NODES}, SECRET)`,
  'a generator with an injected clock': `() => {
    const clock = { now: () => 1763640000, sleep() {}, memory: new Array(500).fill(0) }
    new Randflake(${NODES}, SECRET, { clock }).generate()
  }`,
  'an inspector': '() => { for (let i = 0; i < 4; i++) new Inspector(SECRET).inspect(1n) }',
  'an error': `() => {
    try { new Inspector(Array(1000).fill(0)) } catch (error) { return error.code }
  }`,
})) {
  test(`${name} is given back`, () => {
    const grown = growth(make)
    assert(grown < 40, `grown by ${grown.toFixed(1)} MiB`)
  })
}

test('V8 knows the weight of a generator, and collects those that were dropped', () => {
  const script = `
    const { Randflake } = require('./index.js')
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    const nodes = Array.from({ length: 16384 }, (_, node) => node) // 64 KiB in each generator
    async function main() {
      const begin = process.memoryUsage().rss
      let most = 0
      for (let count = 0; count < 2500; count++) {
        new Randflake(nodes, 'dffd6021bb2bd5b0af676290809ec3a5')
        if (count % 50 !== 0) continue
        await turn()
        most = Math.max(most, process.memoryUsage().rss - begin)
      }
      console.log(most)
    }
    main()`
  const options = { cwd: `${__dirname}/..`, encoding: 'utf8' }
  const done = spawnSync(process.execPath, ['--eval', script], options)
  assert.equal(done.status, 0, done.stderr)
  const grown = Number(done.stdout) / 2 ** 20
  assert(grown < 140, `grown by ${grown.toFixed(1)} MiB`)
})

test('a lone method keeps its generator', () => {
  const script = `
    const { Randflake } = require('./index.js')
    const flake = new Randflake(1, 'dffd6021bb2bd5b0af676290809ec3a5', { restartSafe: false })
    let generate = flake.generate.bind(flake)
    setImmediate(() => { gc(); console.log(typeof generate()) })`
  const options = { cwd: `${__dirname}/..`, encoding: 'utf8' }
  const done = spawnSync(process.execPath, ['--expose-gc', '--eval', script], options)
  assert.equal(done.stdout, 'bigint\n', done.stderr)
})
