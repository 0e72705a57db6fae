// `randflake/web` in browsers and on the runtimes that docs/guides/web.md names: each reads the
// vectors as Node.js does.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { after, before, test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const zlib = require('node:zlib')
const { BIN, BINDING, environment, project, run } = require('./project.js')
const { freePort } = require(path.join(BINDING, 'test/servers.js'))

const ROOT = path.resolve(__dirname, '../..')
const NAMES = ['ids', 'cloak', 'layout_texts', 'codes', 'text']
const VECTORS = Object.fromEntries(
  NAMES.map((name) => {
    return [
      name,
      JSON.parse(fs.readFileSync(path.join(ROOT, `tests/vectors/${name}.json`), 'utf8')),
    ]
  }),
)
const READ = fs.readFileSync(path.join(__dirname, 'read.mjs'), 'utf8')

/** What comes out in Node.js, as the tests of the package compare it with the vectors. */
let expected
/** A service that only counts, and the pages of a browser. */
let service
let address
/** The folder that the service has pages from. */
let pages

const TYPES = { '.html': 'text/html', '.js': 'text/javascript' }
// All that a page needs which compiles WebAssembly.
const POLICY = "default-src 'none'; connect-src 'self'; script-src 'self' 'wasm-unsafe-eval'"

let last = 0

function answer({ url, method, headers }, response) {
  const { pathname, searchParams } = new URL(url, address)
  if (pathname === '/v1/ids' && method === 'POST') {
    const isAllowed = headers.authorization === 'Bearer open-sesame-4711'
    const ids = Array.from({ length: Number(searchParams.get('count')) }, () => String(++last))
    return response.writeHead(isAllowed ? 200 : 401).end(JSON.stringify({ ids }))
  }
  if (pathname === '/moved/v1/ids') {
    return response.writeHead(307, { location: `${address}/v1/ids?count=1000` }).end()
  }
  const file = path.join(pages, pathname === '/' ? 'index.html' : pathname)
  if (!pages || !fs.existsSync(file)) return response.writeHead(404).end()
  const type = TYPES[path.extname(file)]
  response.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY })
  response.end(fs.readFileSync(file))
}

before(async () => {
  service = http.createServer(answer).listen(0, '127.0.0.1')
  await once(service, 'listening')
  address = `http://127.0.0.1:${service.address().port}`
  const [web, { read }] = await Promise.all([
    import(`${BINDING}/web/index.mjs`),
    import('./read.mjs'),
  ])
  expected = await read(web, VECTORS, address)
  assert.ok(expected.length > 500)
  assert.equal(expected.at(-1).split(' ')[0], 'STORE_UNAVAILABLE')
})

after(() => {
  service.close()
  service.closeAllConnections()
})

/** What every program has beside it. */
const FILES = { 'read.mjs': READ, 'vectors.mjs': `export default ${JSON.stringify(VECTORS)}\n` }

const IMPORTS = `
import * as web from 'randflake/web'
import { read } from './read.mjs'
import vectors from './vectors.mjs'
`

/** For the command line: the address comes from there. */
const APP = `${IMPORTS}
const [url] = (globalThis.Deno?.args ?? process.argv.slice(2))
console.log(JSON.stringify(await read(web, vectors, url)))
`

const checked = (folder, line) => {
  const done = run(folder, line)
  assert.equal(done.status, 0, `${line}: ${done.stdout}${done.stderr}`)
  return done.stdout
}

/** Runs a line without holding up the service. */
async function said(folder, line) {
  const [tool, ...rest] = line.split(' ')
  const program = tool === 'node' ? process.execPath : path.join(BIN, tool)
  const running = spawn(program, rest, { cwd: folder, env: environment() })
  let [out, errors] = ['', '']
  running.stdout.on('data', (text) => (out += text))
  running.stderr.on('data', (text) => (errors += text))
  const [status] = await once(running, 'close')
  assert.equal(status, 0, errors)
  return JSON.parse(out)
}

for (const line of ['node app.mjs', 'bun app.mjs', 'deno run --allow-net app.mjs']) {
  const [tool] = line.split(' ')
  test(tool, async () => {
    const folder = project(`web-${tool}`, { 'app.mjs': APP, ...FILES })
    assert.deepEqual(await said(folder, `${line} ${address}`), expected)
  })
}

const PAGE = `<!doctype html>
<title>randflake/web</title>
<script type="module" src="./app.js"></script>
`
const IN_PAGE = `${IMPORTS}
globalThis.outcome = read(web, vectors, location.origin)
`

/** Opens a page that a bundler made, and returns what came out. */
async function inBrowser(folder) {
  const { HANGS_MS, startBrowser } = await import('../../site/test/browser.js')
  pages = folder
  const browser = await startBrowser()
  try {
    const page = await browser.newPage()
    page.setDefaultTimeout(HANGS_MS)
    const errors = []
    page.on('pageerror', (error) => errors.push(error))
    await page.goto(address)
    await page.waitForFunction('globalThis.outcome !== undefined').catch((error) => {
      throw errors[0] ?? error
    })
    return await page.evaluate('globalThis.outcome')
  } finally {
    await browser.close()
  }
}

test('esbuild, for a browser', async () => {
  const files = { 'app.mjs': IN_PAGE, ...FILES, 'out/index.html': PAGE }
  const folder = project('web-esbuild', files)
  checked(folder, 'esbuild app.mjs --bundle --minify --format=esm --outfile=out/app.js')
  assert.deepEqual(await inBrowser(path.join(folder, 'out')), expected)
})

test('Vite, for a browser', async () => {
  const index = PAGE.replace('./app.js', './app.mjs')
  const folder = project('web-vite', { 'app.mjs': IN_PAGE, ...FILES, 'index.html': index })
  checked(folder, 'vite build --outDir out')
  assert.deepEqual(await inBrowser(path.join(folder, 'out')), expected)
})

const WEBPACK = `
require('webpack')({
  mode: 'production',
  entry: './app.mjs',
  output: { path: \`\${__dirname}/out\`, filename: 'app.js' },
}, (error, stats) => {
  if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString())
})
`

test('webpack, for a browser', async () => {
  const files = { 'app.mjs': IN_PAGE, ...FILES, 'build.cjs': WEBPACK, 'out/index.html': PAGE }
  const folder = project('web-webpack', files)
  checked(folder, 'node build.cjs')
  assert.deepEqual(await inBrowser(path.join(folder, 'out')), expected)
})

test('a browser gets less than 120 kB', (t) => {
  const names = { all: '*', inspector: '{ Inspector }', served: '{ ServedGenerator }' }
  const sizes = {}
  for (const [name, imported] of Object.entries(names)) {
    const exported = imported === '*' ? '*' : imported
    const folder = project(`web-size-${name}`, {
      'app.mjs': `export ${exported} from 'randflake/web'\n`,
    })
    checked(folder, 'esbuild app.mjs --bundle --minify --format=esm --outfile=app.js')
    const bundle = fs.readFileSync(path.join(folder, 'app.js'))
    sizes[name] = [bundle, zlib.gzipSync(bundle, { level: 9 }), zlib.brotliCompressSync(bundle)]
    const [raw, gzip, brotli] = sizes[name].map(({ length }) => length)
    t.diagnostic(`${name}: ${raw} bytes, ${gzip} by gzip, ${brotli} by brotli`)
    assert.ok(gzip < 120_000, `${name}: ${gzip} bytes`)
  }
})

const WORKER = `${IMPORTS}
export default {
  async fetch(request) {
    return Response.json(await read(web, vectors, new URL(request.url).searchParams.get('url')))
  },
}
`

test('workerd', async () => {
  const folder = project('web-workerd', { 'worker.mjs': WORKER, ...FILES })
  const options = '--bundle --format=esm --conditions=workerd,worker,browser --loader:.wasm=copy'
  checked(folder, `esbuild worker.mjs ${options} --outdir=out --asset-names=[name]`)
  const { Miniflare } = require('miniflare')
  const out = path.join(folder, 'out')
  const modules = ['worker.js', 'randflake.wasm'].map((name) => {
    const type = name.endsWith('.wasm') ? 'CompiledWasm' : 'ESModule'
    return { type, path: path.join(out, name) }
  })
  const worker = new Miniflare({ modules, modulesRoot: out, compatibilityDate: '2025-01-01' })
  try {
    const response = await worker.dispatchFetch(`http://worker/?url=${address}`)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    assert.deepEqual(JSON.parse(text), expected)
  } finally {
    await worker.dispose()
  }
})

const ROUTE = `${IMPORTS.replaceAll('./', '../../')}
export const runtime = 'edge'
export const dynamic = 'force-dynamic'

export async function GET(request) {
  return Response.json(await read(web, vectors, new URL(request.url).searchParams.get('url')))
}
`

const LAYOUT = `
import { createElement } from 'react'

export default function Layout({ children }) {
  return createElement('html', { lang: 'en' }, createElement('body', null, children))
}
`

/** Asks a server that may not listen yet. */
async function asked(server, url, output) {
  for (;;) {
    assert.equal(server.exitCode, null, output())
    const response = await fetch(url).catch(() => null)
    if (response !== null) return response
    await sleep(50)
  }
}

for (const [name, line] of [
  ['Next.js', 'next build'],
  ['Next.js by webpack', 'next build --webpack'],
]) {
  test(`${name}, its edge runtime`, async () => {
    const files = { 'app/layout.js': LAYOUT, 'app/read/route.js': ROUTE, ...FILES }
    const folder = project(`web-${line.replaceAll(' ', '')}`, files)
    checked(folder, line)
    const port = await freePort()
    const env = environment({ PORT: String(port), HOSTNAME: '127.0.0.1' })
    const server = spawn(path.join(BIN, 'next'), ['start'], { cwd: folder, env })
    let text = ''
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (more) => (text += more))
    const ended = once(server, 'exit')
    try {
      const url = `http://127.0.0.1:${port}/read?url=${address}`
      const response = await asked(server, url, () => text)
      const body = await response.text()
      assert.equal(response.status, 200, text)
      assert.deepEqual(JSON.parse(body), expected)
    } finally {
      server.kill('SIGTERM')
      await ended
    }
  })
}
