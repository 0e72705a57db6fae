'use strict'

// The server of the README, in an outage of its store that is longer than its lease.

const assert = require('node:assert/strict')
const { fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { suite, test } = require('node:test')
const { setTimeout: delay } = require('node:timers/promises')
const { initStore } = require('../index.js')
const { patience } = require('../stores.js')
const { servers } = require('./servers.js')
const { SECRET, until } = require('./store.js')

patience.ms = 20_000 // of this process, which only makes the namespaces

const CLIENTS = 50
const OUTAGE_MS = 12_000
/** The README says two seconds; a machine may have other things to do. */
const LONGEST_RETURN_MS = 20_000

/**
 * The one thing that is added to the README's code: with the 300 seconds that a lease has unless
 * they are set, such an outage would change nothing.
 */
const SHORT = '{ ttlSeconds: 6, maxSkewSeconds: 1 }'

/** Returns the README's code up to where it listens. */
function serverCode() {
  const readme = readFileSync(join(__dirname, '../README.md'), 'utf8')
  const blocks = readme.matchAll(/^```js\n(.*?)^```$/gms)
  const [code] = [...blocks].map(([, code]) => code).filter((code) => code.includes('Retry-After'))
  const [begin, end] = code.split('server.listen(')
  assert(end !== undefined, 'the README has a server')
  const leased = begin.replace('leased(store, secret)', `leased(store, secret, ${SHORT})`)
  assert.notEqual(leased, begin)
  return `${leased}server.listen(0, '127.0.0.1', () => process.send(server.address().port))\n`
}

/** Each starts a store and returns where it is, how it goes away and comes back, and its end. */
const stores = {
  'a file': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'randflake-server-'))
    const file = join(folder, 'ids.db')
    let holder
    return {
      url: file,
      // Another process has it.
      async leave() {
        const script = `import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=60).execute("begin exclusive")
print("held", flush=True)
sys.stdin.read()`
        holder = spawn('python3', ['-c', script, file], { stdio: ['pipe', 'pipe', 'inherit'] })
        await once(holder.stdout, 'data')
      },
      async comeBack() {
        holder.kill('SIGKILL')
        await once(holder, 'exit')
      },
      stop: () => rmSync(folder, { recursive: true }),
    }
  },
  postgresql: async () => {
    const server = await servers.postgresql()
    return server && { server, leave: () => server.end('SIGINT'), comeBack: () => server.start() }
  },
  redis: async () => {
    const server = await servers.redis()
    const signal = (name) => async () => server.signal(name)
    // Started anew it would be in quarantine.
    return server && { server, leave: signal('SIGSTOP'), comeBack: signal('SIGCONT') }
  },
  etcd: async () => {
    const server = await servers.etcd()
    return server && { server, leave: () => server.end('SIGKILL'), comeBack: () => server.start() }
  },
}

/** Starts the README's server; returns its process and its address. */
async function startServer(t, store) {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-readme-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(__dirname, '..'), join(folder, 'node_modules', 'randflake'))
  writeFileSync(join(folder, 'server.mjs'), serverCode())
  const child = fork('server.mjs', {
    cwd: folder,
    env: { ...process.env, RANDFLAKE_STORE: store, RANDFLAKE_SECRET: SECRET },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  t.after(() => child.kill('SIGKILL'))
  let log = ''
  child.stderr.on('data', (text) => {
    log = (log + text).slice(-5000)
  })
  const ended = once(child, 'exit').then(() => assert.fail(`the server has ended: ${log}`))
  ended.catch(() => {})
  const [port] = await Promise.race([once(child, 'message'), ended])
  return { address: `http://127.0.0.1:${port}`, child }
}

suite('the server of the README', { concurrency: 4 }, () => {
  for (const [name, start] of Object.entries(stores)) {
    test(`${name}: away for longer than the lease lasts`, async (t) => {
      const store = await start()
      if (store === undefined) return t.skip('the server is missing')
      const { server, leave, comeBack, url = server.url } = store
      t.after(() => (server ?? store).stop())
      if (server) await initStore(url, SECRET, 'new', { maxSkewSeconds: 1 })
      const { address, child } = await startServer(t, url)

      const ids = []
      const statuses = { 200: 0, 503: 0 }
      let isOver = false
      const ask = async () => {
        while (!isOver) {
          const response = await fetch(address)
          const body = await response.text()
          assert(response.status in statuses, `${response.status}`)
          statuses[response.status] += 1
          if (response.status === 200) ids.push(JSON.parse(body).id)
          else assert.match(response.headers.get('Retry-After'), /^[1-9]\d*$/)
          await delay(200)
        }
      }
      const clients = Promise.all(Array.from({ length: CLIENTS }, ask))
      clients.catch(() => {})
      const served = (more) => {
        const before = statuses[200]
        return Promise.race([
          until(`${more} ids are served`, () => statuses[200] >= before + more),
          clients,
        ])
      }

      await served(2 * CLIENTS)
      const away = performance.now()
      await leave()
      await until('there are none', () => statuses[503] > 0)
      await delay(away + OUTAGE_MS - performance.now())
      await comeBack()
      const back = performance.now()
      await served(1)
      const took = performance.now() - back
      t.diagnostic(`served again after ${(took / 1000).toFixed(2)} s`)
      await served(2 * CLIENTS)
      isOver = true
      await clients

      assert(took < LONGEST_RETURN_MS, `${took} ms`)
      assert.equal(new Set(ids).size, ids.length)
      assert.equal(child.exitCode, null)
    })
  }
})
