'use strict'

// A store for a test, scripts that use it, and what is in it.

const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { text } = require('node:stream/consumers')
const { setTimeout: delay } = require('node:timers/promises')
const postgres = require('postgres')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'

/** Anything that takes longer hangs, on any machine. */
const HANGS_MS = 180_000

/** Returns the path of a store that is removed after the test. */
function newStore(t) {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-leased-'))
  t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 })) // a keeper may write meanwhile
  return join(folder, 'ids.db')
}

/**
 * Returns the node ids that are leased. Another process looks: another SQLite in this one could
 * undo a transaction of ours.
 */
function heldIn(store) {
  const look = `import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute("select node_id from node where token is not null"):
    print(row[0])`
  return execFileSync('python3', ['-c', look, store], { encoding: 'utf8' })
    .split('\n')
    .slice(0, -1)
    .map(Number)
}

/**
 * Runs a script in a process of its own and returns how it ended, what it wrote, and how many
 * seconds it took to end after it last wrote, or after its start if it never did. It has `STORE`,
 * `SECRET`, `Randflake`, `Snowflake`, and `work(code)`, which starts a worker that has the same.
 */
const run = (...script) => runWith({}, ...script)

/** Like `run`, with these additional environment variables. */
async function runWith(variables, store, script, ...flags) {
  const prelude = `
    const { initStore, Randflake, RandflakeError, Snowflake } = require('./index.js')
    const SECRET = '${SECRET}'
    const STORE = ${JSON.stringify(store)}
    const SHORT = { ttlSeconds: 6, maxSkewSeconds: 0 } // renewed after 2 seconds
    const say = (...words) => process.stdout.write(words.join(' ') + '\\n')
    const { Worker, parentPort } = require('node:worker_threads')
    const { once } = require('node:events')
    const { setTimeout: delay } = require('node:timers/promises')
    const { heldIn } = require('./test/store.js');\n`
  const workers = `const work = (code) =>
    new Worker(${JSON.stringify(prelude)} + '(async () => {' + code + '\\n})()', { eval: true });\n`
  const child = spawn(
    process.execPath,
    [...flags, '--eval', `${prelude}${workers}(async () => { ${script}\n })()`],
    {
      cwd: join(__dirname, '..'),
      env: { ...process.env, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const timer = setTimeout(() => child.kill('SIGKILL'), HANGS_MS)
  let stdout = ''
  let last = performance.now()
  let end
  child.stdout.setEncoding('utf8').on('data', (written) => {
    stdout += written
    last = performance.now()
  })
  child.on('exit', () => {
    end = performance.now()
  })
  const [stderr, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'close')])
  clearTimeout(timer)
  // What it wrote last may be read after its end.
  return { code, signal, stdout, stderr, secondsToEnd: Math.max(0, end - last) / 1000 }
}

/** The adapter of the guide to PostgreSQL, with this many connections. */
function adapterOf(url, max = 1) {
  let isConfirmed = true
  const onnotice = ({ file }) => {
    if (file?.endsWith('syncrep.c')) isConfirmed = false
  }
  const sql = postgres(url, { max, onnotice })
  return {
    async run(text, parameters) {
      isConfirmed = true
      const rows = await sql.unsafe(text, parameters).values()
      if (!isConfirmed) throw new Error('no standby has confirmed it')
      return rows
    },
    end: () => sql.end(),
  }
}

/** Returns the options of mariadb for a URL: it takes none of `mysql:`. */
function ofMariadb(url) {
  const { hostname: host, port, username: user, password, pathname } = new URL(url)
  const database = pathname.slice(1)
  return { host, port: Number(port), user, password, database, connectTimeout: 20_000 }
}

/** Resolves once the condition holds, or fails with `what`. */
async function until(what, isSo) {
  for (const begun = performance.now(); !(await isSo()); await delay(20)) {
    if (performance.now() - begun > HANGS_MS) throw new Error(`not within three minutes: ${what}`)
  }
}

module.exports = { adapterOf, heldIn, newStore, ofMariadb, run, runWith, SECRET, until }
