'use strict'

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { test } = require('node:test')
const { newStore } = require('./store.js')

/**
 * Runs a script on the main thread of a process of its own, which must not load the library there
 * unless it wants to. `work(code)` starts a worker that runs `code` and resolves with all it posted.
 */
function run(script) {
  const prelude = `
    const { Worker } = require('node:worker_threads')
    const loading = \`const { parentPort } = require('node:worker_threads')
      const { Randflake } = require('./index.js')
      const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'\n\`
    const start = (code) => new Worker(loading + code, { eval: true })
    const work = (code) => new Promise((resolve, reject) => {
      const posted = []
      start(code).on('message', (ids) => posted.push(...ids)).on('error', reject)
        .on('exit', () => resolve(posted))
    })
    async function main() { ${script} }
    main().catch((error) => { console.error(error); process.exitCode = 1 })`
  const options = { cwd: `${__dirname}/..`, encoding: 'utf8', timeout: 300_000 }
  const done = spawnSync(process.execPath, ['--eval', prelude], options)
  assert.equal(done.status, 0, `${done.signal}\n${done.stdout}\n${done.stderr}`)
  return JSON.parse(done.stdout)
}

test('workers with one node id at once do not repeat an id', () => {
  const { ids, distinct } = run(`
    const code = \`
      const flake = new Randflake(1, SECRET)
      const ids = [...flake.generateMany(10000)]
      for (let count = 0; count < 20000; count++) ids.push(flake.generate())
      flake.generateManyAsync(10000).then((more) => parentPort.postMessage([...ids, ...more]))\`
    const posted = (await Promise.all([code, code, code, code].map(work))).flat()
    console.log(JSON.stringify({ ids: posted.length, distinct: new Set(posted).size }))`)
  assert.deepEqual([ids, distinct], [160_000, 160_000])
})

test('a library loaded only in workers, one after the other, goes on with its sequence', () => {
  // The first and last id of each worker: in one second, the sequence never begins again.
  const seen = run(`
    const code = \`
      const flake = new Randflake(1, SECRET, { restartSafe: false })
      parentPort.postMessage([0, 0].map(() => {
        const { timestamp, sequence } = flake.inspect(flake.generate())
        return timestamp * 131072 + sequence
      }))\`
    const seen = []
    for (let round = 0; round < 12; round++) seen.push(...(await work(code)))
    console.log(JSON.stringify(seen))`)
  assert.equal(seen.length, 24)
  const goesOn = seen.every((position, index) => index === 0 || seen[index - 1] < position)
  assert(goesOn, `positions: ${seen}`)
})

test('workers can be terminated while they are busy or wait', () => {
  const { distinct, ids } = run(`
    const { once } = require('node:events')
    for (const code of [
      'const flake = new Randflake(1, SECRET); parentPort.postMessage([]); for (;;) flake.generate()',
      'const flake = new Randflake(1, SECRET); parentPort.postMessage([]); const ids = new BigInt64Array(4096); for (;;) flake.fill(ids)',
      'const flake = new Randflake(1, SECRET); flake.generateManyAsync(200000); parentPort.postMessage([])',
      'const flake = new Randflake(1, SECRET, { lease: { start: 2e9, endExclusive: 2.1e9 } }); flake.ready(); parentPort.postMessage([])',
      'const flake = new Randflake(2, SECRET, { clock: () => 2e9 }); parentPort.postMessage([]); for (;;) { try { flake.generate() } catch {} }',
      'parentPort.postMessage([]); for (let index = 0; ; index++) new Randflake(3, SECRET)',
    ]) {
      for (let round = 0; round < 5; round++) {
        const worker = start(code)
        await once(worker, 'message')
        await worker.terminate()
      }
    }
    // The library still works.
    const posted = await work('parentPort.postMessage([...new Randflake(1, SECRET, { maxWaitMs: 60_000 }).generateMany(1000)])')
    console.log(JSON.stringify({ ids: posted.length, distinct: new Set(posted).size }))`)
  assert.deepEqual([ids, distinct], [1000, 1000])
})

/** More ids than a process can make in the time that `run` gives it. */
const LONG = '131072 * 150'

test('a process that exits does not wait for batches, nor do files', () => {
  const { name } = run(`
    const { Randflake } = require('./index.js')
    const { readFile } = require('node:fs/promises')
    const flake = new Randflake(1, 'dffd6021bb2bd5b0af676290809ec3a5')
    let batches = 0
    for (let batch = 0; batch < 4; batch++) {
      flake.generateManyAsync(${LONG}).finally(() => batches++)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
    const { name } = JSON.parse(await readFile('package.json'))
    if (batches === 0) console.log(JSON.stringify({ name }))
    process.exit()`)
  assert.equal(name, 'randflake')
})

test('a worker that is terminated does not wait for batches, which end', () => {
  const { ids } = run(`
    const { once } = require('node:events')
    const { Randflake } = require('./index.js')
    for (let round = 0; round < 3; round++) {
      const worker = start(\`const flake = new Randflake(1, SECRET)
        flake.generateManyAsync(${LONG})
        flake.generateManyAsync(${LONG})
        setTimeout(() => parentPort.postMessage([]), 100)\`)
      await once(worker, 'message')
      await worker.terminate()
    }
    const flake = new Randflake(1, 'dffd6021bb2bd5b0af676290809ec3a5', { maxWaitMs: 60_000 })
    console.log(JSON.stringify({ ids: flake.generateMany(131072).length }))`)
  assert.equal(ids, 131072)
})

test('batches of one generator are made however many are asked for at once', () => {
  const { distinct, code } = run(`
    const { Randflake } = require('./index.js')
    const flake = new Randflake(1, 'dffd6021bb2bd5b0af676290809ec3a5', { maxWaitMs: 60_000 })
    const batches = await Promise.all(
      Array(2000).fill().map((_, n) => flake.generateManyAsync(n % 7)),
    )
    const distinct = new Set(batches.flatMap((ids) => [...ids])).size
    flake.close()
    const { code } = await flake.generateManyAsync(1).catch((error) => error)
    console.log(JSON.stringify({ distinct, code }))`)
  assert.deepEqual([distinct, code], [5995, 'CLOSED'])
})

test('a lease is kept after the worker that loaded the library first has ended', (t) => {
  const { distinct } = run(`
    const { once } = require('node:events')
    const code = \`
      const options = { ttlSeconds: 6, maxSkewSeconds: 0 }
      Randflake.leased(${JSON.stringify(newStore(t))}, SECRET, options).then((flake) => {
        parentPort.postMessage([...flake.generateMany(1000)])
        parentPort.once('message', () => {
          const { renewals } = flake.lease
          const timer = setInterval(() => {
            if (flake.lease.renewals < renewals + 2) return
            clearInterval(timer)
            parentPort.postMessage([...flake.generateMany(1000)])
          }, 50)
        })
      })\`
    const ids = []
    const first = start(code)
    ids.push(...(await once(first, 'message'))[0])
    const second = start(code)
    ids.push(...(await once(second, 'message'))[0])
    await first.terminate()
    second.postMessage('it has ended')
    ids.push(...(await once(second, 'message'))[0])
    await second.terminate()
    console.log(JSON.stringify({ distinct: new Set(ids).size }))`)
  assert.equal(distinct, 3000)
})

test('errors of a worker are of its own class', () => {
  const seen = run(`
    const here = require('./index.js')
    const seen = await work(\`
      const { RandflakeError } = require('./index.js')
      try { new Randflake(-1, SECRET) } catch (error) {
        parentPort.postMessage([error instanceof RandflakeError, error.code])
      }\`)
    try { new here.Randflake(-1, 'x') } catch (error) { seen.push(error instanceof here.RandflakeError) }
    console.log(JSON.stringify(seen))`)
  assert.deepEqual(seen, [true, 'INVALID_NODE', true])
})
