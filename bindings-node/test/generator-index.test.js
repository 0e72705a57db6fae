'use strict'

// One native function makes the ids of all generators of an environment. These tests check that
// each id is from the generator that was asked.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { Session } = require('node:inspector')
const { test } = require('node:test')
const { Inspector, Randflake, Snowflake } = require('../index.js')
const { BUSY_WORKERS, skipOn } = require('./runtime.js')

const DEBUGGER = skipOn({
  bun: 'has no debugger while no inspector listens',
  deno: 'answers a debugger later, not within the call',
})

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const OTHER = '00112233445566778899aabbccddeeff'
const NOW = 1763640000

/** Runs a script in a process of its own and returns what it wrote. */
function run(script, ...flags) {
  const prelude = `const { Randflake, Snowflake } = require('./index.js')
    const { native } = require('./lib/native.js')
    const SECRET = '${SECRET}'
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    /** Collects unreachable objects; their finalizers run in a later turn. */
    async function collect() { for (let round = 0; round < 5; round++) { gc(); await turn() } }
    async function main() { ${script} }
    main().catch((error) => { console.error(error); process.exitCode = 1 })`
  const options = { cwd: `${__dirname}/..`, encoding: 'utf8', timeout: 300_000 }
  const done = spawnSync(process.execPath, [...flags, '--eval', prelude], options)
  assert.equal(done.status, 0, `${done.signal}\n${done.stderr}`)
  return JSON.parse(done.stdout)
}

test('generators at one call site do not mix their ids', () => {
  const clock = () => NOW
  const flakes = [
    new Randflake([2000, 2001], SECRET, { restartSafe: false }),
    new Snowflake(600, { restartSafe: false }),
    new Randflake(2002, OTHER, { restartSafe: false }),
    new Randflake(2003, SECRET, { clock }),
    new Snowflake(601, { layout: 'discord', clock }),
  ]
  const seen = flakes.map(() => new Set())
  for (let round = 0; round < 20_000; round++) {
    const index = (round * 7) % flakes.length
    const flake = flakes[index]
    const id = index === 2 ? flake.generateString() : flake.generate()
    assert(!seen[index].has(id))
    seen[index].add(id)
    assert(flake.nodeIds.includes(flake.inspect(id).nodeId), `round ${round}, ${id}`)
  }
  // Fewer than a tick of a stopped clock has.
  assert(seen.every(({ size }) => size === 4000))
  // Nor does an id of one secret read back under the other.
  const nodeIds = [...seen[2]].map((id) => new Inspector(SECRET).inspect(id).nodeId)
  assert(nodeIds.filter((nodeId) => nodeId === 2002).length < 10)
})

test('a clock may use other generators while its own makes an id', () => {
  const inner = new Randflake(2010, SECRET, { clock: () => NOW })
  const inside = []
  const clock = () => {
    // Enough for the table of generators to grow meanwhile.
    const others = Array.from({ length: 100 }, () => new Snowflake(1, { clock: () => NOW }))
    inside.push(
      inner.generate(),
      ...others.map((other) => BigInt(other.inspect(other.generate()).nodeId)),
    )
    return NOW
  }
  const outer = new Randflake(2011, SECRET, { clock })
  const [id, text] = [outer.generate(), outer.generateString()]
  const inspector = new Inspector(SECRET)
  assert.equal(inspector.inspect(id).nodeId, 2011)
  assert.equal(inspector.inspect(text).nodeId, 2011)
  assert(inside.length >= 202)
  const ids = inside.filter((value) => value !== 1n)
  assert(ids.every((value) => inspector.inspect(value).nodeId === 2010))
  assert.equal(new Set([...ids, id]).size, ids.length + 1)
})

test('an error leaves no id to be taken', () => {
  const good = new Randflake(2020, SECRET, { restartSafe: false })
  const closed = new Randflake(2021, SECRET, { restartSafe: false })
  closed.close()
  let fails = false
  const clock = () => {
    if (!fails) return NOW
    good.generate()
    throw new RangeError('no time')
  }
  const failing = new Snowflake(602, { clock })
  fails = true
  for (let round = 0; round < 100; round++) {
    good.generate()
    assert.throws(() => closed.generate(), { code: 'CLOSED' })
    assert.throws(() => closed.generateString(), { code: 'CLOSED' })
    assert.throws(() => failing.generate(), RangeError)
  }
})

test('indexes of collected generators are used again, and ids stay with theirs', () => {
  const { first, later, mixed } = run(
    `
    const held = new Randflake(7, SECRET, { restartSafe: false })
    const clock = () => ${NOW}
    const make = (nodeId) => native.createGenerator(SECRET, nodeId, {}, clock)
    const indexes = (from) =>
      Array.from({ length: 200 }, (_, index) => native.generatorIndex(make(from + index)))
    const first = Math.max(...indexes(1000))
    let later = 0
    for (let round = 0; round < 20; round++) {
      await collect()
      later = Math.max(later, ...indexes(2000))
    }
    await collect()
    const flakes = Array.from({ length: 300 }, (_, index) => index % 2
      ? new Randflake(3000 + index, SECRET, { clock })
      : new Snowflake(index, { clock }))
    const all = [held, ...flakes]
    const mixed = all.filter((flake) => flake.inspect(flake.generate()).nodeId !== flake.nodeIds[0])
    console.log(JSON.stringify({ first, later, mixed: mixed.length }))`,
    '--expose-gc',
  )
  assert(first >= 200 && later < 1000, `indexes up to ${first}, later up to ${later}`)
  assert.equal(mixed, 0)
})

test('a generator that is collected while its batch is made finishes it', () => {
  const { length, distinct } = run(
    `
    const batch = (() => new Randflake(1, SECRET, { restartSafe: false }).generateManyAsync(100000))()
    await collect()
    for (let nodeId = 2; nodeId < 100; nodeId++) new Randflake(nodeId, SECRET, { restartSafe: false }).generateMany(1)
    const ids = await batch
    console.log(JSON.stringify({ length: ids.length, distinct: new Set(ids).size }))`,
    '--expose-gc',
  )
  assert.deepEqual([length, distinct], [100_000, 100_000])
})

test('two copies of the library in one environment do not mix their ids', () => {
  const mixed = run(`
    for (const file of Object.keys(require.cache)) delete require.cache[file]
    const copy = require('./index.js')
    const clock = () => ${NOW}
    const flakes = [new Randflake(1, SECRET, { clock }), new copy.Randflake(2, SECRET, { clock }),
      new Snowflake(3, { clock }), new copy.Snowflake(4, { clock })]
    let mixed = copy.Randflake === Randflake ? 1 : 0
    for (let round = 0; round < 1000; round++) {
      for (const flake of flakes) {
        if (flake.inspect(flake.generate()).nodeId !== flake.nodeIds[0]) mixed++
      }
    }
    console.log(mixed)`)
  assert.equal(mixed, 0)
})

test('environments that end leave the others their generators', () => {
  const { seen, own } = run(
    `
    const { Worker } = require('node:worker_threads')
    const clock = () => ${NOW}
    const flake = new Randflake(1, SECRET, { clock })
    const runWorker = (nodeId, end) => new Promise((resolve, reject) => {
      const worker = new Worker(\`
        const { parentPort } = require('node:worker_threads')
        const { Randflake, Snowflake } = require('./index.js')
        const clock = () => ${NOW}
        const flakes = Array.from({ length: 20 }, (_, index) => index % 2
          ? new Randflake(\${nodeId}, '${SECRET}', { clock })
          : new Snowflake(\${nodeId}, { restartSafe: false }))
        const nodeIds = flakes.map((flake) => flake.inspect(flake.generate()).nodeId)
        parentPort.postMessage(nodeIds)
        \${end}\`, { eval: true })
      worker.on('message', (nodeIds) => {
        seen.push(nodeIds.every((one) => one === nodeId))
        if (end) worker.terminate()
      }).on('error', reject).on('exit', resolve)
    })
    const seen = []
    const own = []
    const tick = setInterval(() => own.push(flake.inspect(flake.generate()).nodeId), 1)
    for (let round = 0; round < 4; round++) {
      await Promise.all([runWorker(10, ''), runWorker(11, 'for (;;) for (const flake of flakes) try { flake.generate() } catch {}')])
    }
    clearInterval(tick)
    gc()
    own.push(flake.inspect(flake.generate()).nodeId)
    console.log(JSON.stringify({ seen, own: [...new Set(own)] }))`,
    '--expose-gc',
  )
  assert.deepEqual(seen, Array(8).fill(true))
  assert.deepEqual(own, [1])
})

test(
  'a worker that is being terminated finds no older id where an error could not be thrown',
  BUSY_WORKERS,
  () => {
    const { loops, older } = run(`
    const { Worker } = require('node:worker_threads')
    const counts = new Int32Array(new SharedArrayBuffer(8))
    const code = \`
      const { parentPort, workerData: counts } = require('node:worker_threads')
      const { Randflake } = require('./index.js')
      Error.stackTraceLimit = 0
      const [good, closed] = [1, 2].map((nodeId) =>
        new Randflake(nodeId, '\${SECRET}', { restartSafe: false }))
      closed.close()
      const ids = good.generateMany(1)
      parentPort.postMessage('ready')
      good.generate()
      for (;;) {
        // No JavaScript function in between: the termination would take effect with its call.
        try { if (closed.generate() !== undefined) Atomics.add(counts, 1, 1) } catch {}
        try { closed.fill(ids); Atomics.add(counts, 1, 1) } catch {}
        Atomics.add(counts, 0, 1)
      }\`
    for (let round = 0; round < 60; round++) {
      const worker = new Worker(code, { eval: true, workerData: counts })
      await new Promise((resolve) => worker.once('message', resolve))
      await worker.terminate()
    }
    console.log(JSON.stringify({ loops: counts[0], older: counts[1] }))`)
    assert(loops > 0)
    assert.equal(older, 0)
  },
)

test('no debugger stops between the making of an id and its taking', DEBUGGER, () => {
  const session = new Session()
  session.connect()
  try {
    const path = require.resolve('../lib/generators.js')
    let scriptId
    session.on('Debugger.scriptParsed', ({ params }) => {
      if (params.url.endsWith('bindings-node/lib/generators.js')) scriptId = params.scriptId
    })
    session.post('Debugger.enable')
    const taking = /return own\(generate(String)?\(/
    const lines = readFileSync(path, 'utf8').split('\n')
    const found = lines.flatMap((line, lineNumber) => {
      if (!taking.test(line)) return []
      let columns
      session.post(
        'Debugger.getPossibleBreakpoints',
        {
          start: { scriptId, lineNumber, columnNumber: 0 },
          end: { scriptId, lineNumber: lineNumber + 1, columnNumber: 0 },
        },
        (error, found) => {
          assert.equal(error, null)
          columns = found.locations.map(({ columnNumber }) => columnNumber)
        },
      )
      // Before the statement and the native call, before the check of what is taken by then, and
      // when all is done.
      const [, native] = /own\((generate\w*)/.exec(line)
      const stops = ['return', 'own', native].map((stop) => line.indexOf(stop))
      assert.deepEqual(columns, [...stops, line.length])
      return [lineNumber]
    })
    assert.equal(found.length, 4)
  } finally {
    session.disconnect()
  }
})

test('what a debugger has another generator make is not handed out', DEBUGGER, () => {
  const { code, distinct } = run(`
    const { Session } = require('node:inspector')
    const { readFileSync } = require('node:fs')
    const [clock, file] = [() => ${NOW}, require.resolve('./lib/generators.js')]
    const [meant, other] = [0, 1].map(() => new Snowflake(5, { clock }))
    const lineNumber = readFileSync(file, 'utf8').split('\\n')
      .findIndex((line) => line.includes('return own(generate() ?? unsignedId'))
    const session = new Session()
    session.connect()
    let stops = 0
    session.on('Debugger.paused', () => { stops++; other.generate() })
    session.post('Debugger.enable')
    session.post('Debugger.setBreakpointByUrl', { lineNumber, urlRegex: 'bindings-node/lib/generators.js$' })
    let code
    try { meant.generate() } catch (error) { code = error.code }
    session.post('Debugger.disable')
    const ids = Array.from({ length: 5 }, () => meant.generate())
    console.log(JSON.stringify({ code: stops > 0 && code, distinct: new Set(ids).size }))`)
  assert.deepEqual([code, distinct], ['INTERNAL', 5])
})
