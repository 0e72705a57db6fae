// Does what docs/guides/bundlers.md says, with the real tools, and makes ids with the outcome.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const vm = require('node:vm')
const { BIN, BINDING, environment, project, run } = require('./project.js')

const PAGE = fs.readFileSync(path.resolve(__dirname, '../../docs/guides/bundlers.md'), 'utf8')
const { Inspector, listLeases } = require(BINDING)
const { freePort } = require(path.join(BINDING, 'test/servers.js'))
const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const inspector = new Inspector(SECRET)

// Bun and Deno run it too.
const APP = `
import { Randflake } from 'randflake'

const flake = await Randflake.leased(process.env.RANDFLAKE_STORE, process.env.RANDFLAKE_SECRET)
console.log(flake.generateString())
flake.close()
`

const APP_CJS = `
const { Randflake } = require('randflake')

Randflake.leased(process.env.RANDFLAKE_STORE, process.env.RANDFLAKE_SECRET).then((flake) => {
  console.log(flake.generateString())
  flake.close()
})
`

// Everything that starts threads, or is done when the process ends.
const MORE = `
import { Worker, isMainThread, parentPort } from 'node:worker_threads'
import { Randflake, RandflakeError } from 'randflake'

const { RANDFLAKE_STORE: store, RANDFLAKE_SECRET: secret } = process.env
const manual = new Randflake(7, secret, { maxWaitMs: 60000 })
const make = () => Array.from({ length: 70000 }, () => manual.generate())
if (isMainThread) {
  const workers = [0, 1].map(() => new Worker(new URL(import.meta.url)))
  const made = workers.map((worker) => new Promise((resolve, reject) => {
    worker.on('message', resolve)
    worker.on('error', reject)
  }))
  const ids = [...make(), ...(await Promise.all(made)).flat()]
  for (const worker of workers) await worker.terminate()
  const flake = await Randflake.leased(store, secret)
  for (const id of flake.generateMany(1000)) ids.push(id)
  for (const id of await flake.generateManyAsync(200000)) ids.push(id)
  await flake.ready()
  ids.push(flake.generate())
  let code
  try {
    new Randflake(-1, secret)
  } catch (error) {
    code = error instanceof RandflakeError && error.code
  }
  console.log(ids.length, new Set(ids).size, code)
} else {
  parentPort.postMessage(make())
}
`

/** Returns the file that a block of the page shows. */
function shown(file) {
  const start = PAGE.indexOf(`// ${file}\n`)
  assert.ok(start > 0, `the page shows ${file}`)
  return PAGE.slice(start, PAGE.indexOf('```', start))
}

const store = (folder) => path.join(folder, 'ids.db')
const settings = (folder) => ({ RANDFLAKE_STORE: store(folder), RANDFLAKE_SECRET: SECRET })

/** Runs a line of the page, which must succeed. */
function runShown(folder, line, variables) {
  assert.ok(PAGE.includes(`\n\`${line}\`\n`), `the page has the line ${line}`)
  const done = run(folder, line, variables)
  assert.equal(done.status, 0, `${line}: ${done.stdout}${done.stderr}`)
  return done.stdout
}

/** Checks a text id, and that its node id was given back. */
async function checkId(text, folder) {
  const { date } = inspector.inspect(text.trim())
  assert.ok(Math.abs(Date.now() - date.getTime()) < 3600_000, `${date} is now`)
  assert.equal((await listLeases(store(folder))).held, 0)
}

/** Checks what the bundle in this file prints. */
async function checkBundle(folder, file) {
  const bundle = fs.readFileSync(path.join(folder, file), 'utf8')
  assert.match(bundle, /generateString/)
  const done = run(folder, `node ${file}`, settings(folder))
  assert.equal(done.status, 0, done.stderr)
  await checkId(done.stdout, folder)
}

test('esbuild', async () => {
  const folder = project('esbuild', { 'app.mjs': APP })
  const options = '--bundle --platform=node --format=esm'
  runShown(folder, `esbuild app.mjs ${options} --external:randflake --outfile=out/app.mjs`)
  await checkBundle(folder, 'out/app.mjs')
  const without = run(folder, `esbuild app.mjs ${options} --outfile=out/not.mjs`)
  assert.notEqual(without.status, 0)
  assert.match(without.stderr, /No loader is configured for "\.node" files/)
  assert.ok(PAGE.includes('No loader is configured for ".node" files'))
})

const WEBPACK = `
const options = { mode: 'production', entry: './app.cjs' }
const output = { path: \`\${__dirname}/out\`, filename: 'app.cjs' }
require('webpack')({ ...require('./webpack.config.cjs'), ...options, output }, (error, stats) => {
  if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString())
})
`

test('webpack', async () => {
  const config = 'webpack.config.cjs'
  const files = { 'app.cjs': APP_CJS, 'build.cjs': WEBPACK, [config]: shown(config) }
  const folder = project('webpack', files)
  const done = run(folder, 'node build.cjs')
  assert.equal(done.status, 0, done.stderr)
  await checkBundle(folder, 'out/app.cjs')
})

test('Rollup', async () => {
  const folder = project('rollup', { 'app.mjs': APP })
  runShown(folder, 'rollup app.mjs --external randflake --file out/app.mjs')
  await checkBundle(folder, 'out/app.mjs')
})

test('Vite, for a server', async () => {
  const config = 'vite.config.mjs'
  const folder = project('vite', { 'app.mjs': APP, [config]: shown(config) })
  runShown(folder, 'vite build --ssr app.mjs --outDir out')
  await checkBundle(folder, 'out/app.mjs')
})

// A schema that the client shares.
const IN_BROWSER = `
import { decodeString, encodeString, TextForm } from 'randflake/text'
import { id } from 'randflake/zod'
import { z } from 'zod'

const form = new TextForm({ prefix: 'order' })
const Order = z.object({ id: id({ form }) })
const order = Order.parse({ id: 'order_1234567890123' })
globalThis.said = [decodeString('fphhelk04q8f8'), encodeString(-1n), order.id, id().in.parse('10')]
`

const SAID = ['-232447010193727000', 'fvvvvvvvvvvvv', '1228503247364293699', '10']

/** Runs a script as a browser does: without anything of Node.js. */
function runInBrowser(file) {
  const globals = vm.createContext({})
  vm.runInContext(fs.readFileSync(file, 'utf8'), globals)
  return Array.from(globals.said, String)
}

test('a browser', () => {
  const folder = project('browser', { 'app.mjs': IN_BROWSER })
  runShown(folder, 'esbuild app.mjs --bundle --minify --outfile=out/app.js')
  assert.deepEqual(runInBrowser(path.join(folder, 'out/app.js')), SAID)
})

const IN_BROWSER_BY_WEBPACK = `
require('webpack')({
  mode: 'production',
  entry: './app.mjs',
  output: { path: \`\${__dirname}/out\`, filename: 'app.js' },
}, (error, stats) => {
  if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString())
})
`

const IN_BROWSER_BY_VITE = `
export default { build: { lib: { entry: 'app.mjs', formats: ['iife'], name: 'app', fileName: () => 'app.js' }, outDir: 'out' } }
`

for (const [tool, line, files] of [
  ['webpack', 'node build.cjs', { 'build.cjs': IN_BROWSER_BY_WEBPACK }],
  ['Vite', 'vite build', { 'vite.config.mjs': IN_BROWSER_BY_VITE }],
]) {
  test(`a browser, by ${tool}`, () => {
    const folder = project(`browser-${tool}`, { 'app.mjs': IN_BROWSER, ...files })
    const done = run(folder, line)
    assert.equal(done.status, 0, `${done.stdout}${done.stderr}`)
    assert.deepEqual(runInBrowser(path.join(folder, 'out/app.js')), SAID)
  })
}

test('a bundle has zod once', () => {
  const files = { 'app.mjs': IN_BROWSER, 'zod.mjs': "export { z } from 'zod'" }
  const folder = project('zod', files)
  const [size, alone] = ['app', 'zod'].map((name) => {
    const done = run(folder, `esbuild ${name}.mjs --bundle --minify --format=esm`)
    assert.equal(done.status, 0, done.stderr)
    return done.stdout.length
  })
  assert.ok(size < 1.2 * alone, `${size} bytes, and zod alone ${alone}`)
})

test('the text of ids is at most 1.3 KiB', () => {
  const done = run(BINDING, 'esbuild text.js --minify --format=cjs')
  assert.equal(done.status, 0, done.stderr)
  assert.ok(done.stdout.length <= 1331, `${done.stdout.length} bytes`)
})

/** Starts a server, asks it for two ids, and ends it by SIGTERM, as an orchestrator does. */
async function askForIds(folder, program, rest, cwd = folder) {
  const port = await freePort()
  const env = environment({ ...settings(folder), PORT: String(port), HOSTNAME: '127.0.0.1' })
  const server = spawn(program, rest, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (text) => (said += text))
  const ended = once(server, 'exit')
  const closed = once(server, 'close')
  const ids = []
  try {
    while (ids.length < 2) {
      if (server.exitCode !== null) {
        await closed // and all that it said is read
        // Another program has taken the port meanwhile.
        if (/EADDRINUSE/.test(said)) return await askForIds(folder, program, rest, cwd)
        assert.fail(said)
      }
      const answer = await fetch(`http://127.0.0.1:${port}/id`).catch(() => null)
      if (answer === null) {
        await sleep(50) // it does not listen yet
        continue
      }
      assert.equal(answer.status, 200, said)
      ids.push((await answer.json()).id)
    }
    assert.equal((await listLeases(store(folder))).held, 1)
  } finally {
    server.kill('SIGTERM')
    await ended
  }
  assert.notEqual(ids[0], ids[1])
  for (const id of ids) await checkId(id, folder)
}

const LAYOUT = `
import { createElement } from 'react'

export default function Layout({ children }) {
  return createElement('html', { lang: 'en' }, createElement('body', null, children))
}
`

test('Next.js', async () => {
  const [config, route] = ['next.config.mjs', 'app/id/route.js']
  const files = { 'app/layout.js': LAYOUT, [config]: shown(config), [route]: shown(route) }
  const folder = project('next', files)
  const build = () => {
    const done = run(folder, 'next build')
    assert.equal(done.status, 0, `${done.stdout}${done.stderr}`)
  }
  build()
  assert.ok(!fs.existsSync(store(folder)), 'a build leases nothing')
  await askForIds(folder, path.join(BIN, 'next'), ['start'])

  const standalone = shown(config).replace('default {\n', "default {\n  output: 'standalone',\n")
  assert.ok(PAGE.includes("`output: 'standalone'`") && standalone.includes('standalone'))
  fs.writeFileSync(path.join(folder, config), standalone)
  build()
  const output = path.join(folder, '.next/standalone')
  const inside = fs.readdirSync(output, { recursive: true })
  const server = inside.find(
    (file) => path.basename(file) === 'server.js' && !file.includes('node_modules'),
  )
  assert.ok(
    inside.some((file) => file.endsWith('.node')),
    'it has copied the native half',
  )
  await askForIds(folder, process.execPath, [server], output)
})

for (const line of ['bun app.mjs', 'deno run --allow-ffi --allow-env --allow-read app.mjs']) {
  const [tool] = line.split(' ')
  test(tool, async () => {
    const folder = project(tool, { 'app.mjs': APP, 'more.mjs': MORE })
    await checkId(runShown(folder, line, settings(folder)), folder)
    const done = run(folder, line.replace('app.mjs', 'more.mjs'), settings(folder))
    assert.equal(done.status, 0, done.stderr)
    assert.equal(done.stdout.trim(), '411001 411001 INVALID_NODE')
    assert.equal((await listLeases(store(folder))).held, 0, 'also without close')
  })
}
