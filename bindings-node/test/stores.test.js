'use strict'

// Namespaces that are made, and leases from PostgreSQL, MySQL, Redis and etcd: real servers, through
// each client.

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } = require('node:fs')
const http = require('node:http')
const { createServer: createNetServer } = require('node:net')
const { tmpdir } = require('node:os')
const { dirname, join } = require('node:path')
const { after, before, suite, test } = require('node:test')
const { pathToFileURL } = require('node:url')
const { isDeepStrictEqual } = require('node:util')
const Redis = require('ioredis')
const mariadb = require('mariadb')
const callbacks = require('mariadb/callback')
const mysql = require('mysql2/promise')
const { Client } = require('pg')
const postgres = require('postgres')
const {
  generateSecret,
  initStore,
  Layout,
  listLeases,
  Randflake,
  RandflakeError,
  Snowflake,
} = require('../index.js')
const { native } = require('../lib/native.js')
const { serverOf, timeout } = require('../lib/stores.js')
const { clients, PECULIAR, suites } = require('./clients.js')
const { PASSWORD, redisWithReplica, servers } = require('./servers.js')
const { newStore, ofMariadb, run, SECRET, until } = require('./store.js')

/** Renewed after six seconds. On a busy machine, a request may take longer than a second of skew. */
const SHORT = { ttlSeconds: 18, maxSkewSeconds: 3 }
const HASTY = { acquireTimeoutMs: 100 }
const SKEW = { maxSkewSeconds: 3 }

const release = (flake) => flake[Symbol.asyncDispose]()

/** Makes a server answer later than it may, in a suite: the machine is busy. */
function patiently() {
  const { ms } = timeout
  before(() => {
    timeout.ms = 20_000
  })
  after(() => {
    timeout.ms = ms
  })
}

async function refused(leasing, code, pattern = /./) {
  await assert.rejects(leasing, (error) => {
    assert(error instanceof RandflakeError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, pattern)
    assert(!error.message.includes(PASSWORD) && !error.message.includes(SECRET), error.message)
    return true
  })
}

suites({ concurrency: 4 }, ({ table, live }) => {
  patiently()

  live('is not used before it is made', async (_t, server) => {
    const options = { ...HASTY, namespace: 'nobody made this' }
    await refused(Randflake.leased(server.url, SECRET, options), 'STORE_NOT_INITIALIZED', /init/)
  })

  live('leases node ids of a layout', async (_t, server) => {
    const namespace = 'posts'
    const layout = new Layout('sonyflake2')
    await initStore(server.url, undefined, 'new', { namespace, layout, ...SKEW })
    const options = { ...SHORT, namespace, layout }
    const flakes = await Promise.all([1, 2].map(() => Snowflake.leased(server.url, options)))
    assert.notDeepEqual(flakes[0].nodeIds, flakes[1].nodeIds)
    const ids = flakes.flatMap((flake) => [...flake.generateMany(500)])
    assert.equal(new Set(ids).size, 1000)
    await Promise.all(flakes.map(release))
    const other = { ...HASTY, namespace, layout: 'sonyflake' }
    const lease = Snowflake.leased(server.url, other)
    await refused(lease, 'INVALID_ARGUMENT', /has the layout sonyflake2, not sonyflake;/)
    const init = (secret, more) =>
      initStore(server.url, secret, 'new', { namespace, ...SKEW, ...more })
    await refused(init(undefined, { layout: 'twitter' }), 'INVALID_ARGUMENT', /has the layout/)
    await refused(init(SECRET), 'INVALID_ARGUMENT', /has the layout/)
    await refused(init(SECRET, { layout }), 'INVALID_ARGUMENT', /either a secret/)
  })

  for (const [what, make] of Object.entries(table)) {
    live(`${what}: leases, renews and gives back`, async (t, server) => {
      const [store, end] = await make(server.url)
      t.after(end)
      const namespace = what
      await initStore(store, SECRET, 'new', { namespace, ...SKEW })
      await initStore(store, SECRET, 'new', { namespace, ...SKEW }) // again: it exists
      const options = { ...SHORT, namespace }
      const flakes = await Promise.all([1, 2].map(() => Randflake.leased(store, SECRET, options)))
      const nodeIds = flakes.flatMap((flake) => flake.nodeIds)
      assert.equal(new Set(nodeIds).size, 2)
      const made = flakes.map((flake) => flake.generateMany(1000))
      assert.equal(new Set(made.flatMap((ids) => [...ids])).size, 2000)
      await until('both are renewed', () => flakes.every(({ lease }) => lease.renewals > 0))
      assert.deepEqual(
        flakes.map(({ lease }) => [lease.state, lease.lastError, lease.losses]),
        [1, 2].map(() => ['holding', null, 0]),
      )
      await release(flakes[0])
      flakes[1].close()
      const [one, other] = made.map((ids, at) => flakes[at].inspect(ids.at(-1)).timestamp + 1)
      const rows = { [nodeIds[0]]: [one, false], [nodeIds[1]]: [other, false] }
      assert.deepEqual((await server.leases(namespace))[nodeIds[0]], rows[nodeIds[0]])
      await until('both are given back', async () =>
        isDeepStrictEqual(await server.leases(namespace), rows),
      )
      assert.throws(() => flakes[0].generate(), { code: 'CLOSED' })
      await refused(
        Randflake.leased(store, `${SECRET.slice(1)}0`, { ...HASTY, namespace }),
        'SECRET_MISMATCH',
      )
    })
  }

  live('gives all of them back', async (_t, server) => {
    const options = { ...SKEW, namespace: 'all' }
    await initStore(server.url, SECRET, 'new', options)
    const many = { ...options, nodeCount: 1000, ttlSeconds: 300 }
    for (let turn = 0; turn < 2; turn++) {
      const flake = await Randflake.leased(server.url, SECRET, many)
      assert.equal(flake.nodeIds.length, 1000)
      await release(flake)
    }
  })

  live('a process ends by itself while it holds a lease', async (_t, server) => {
    await initStore(server.url, SECRET, 'new', { namespace: 'ends' })
    const { stdout, stderr, code, secondsToEnd } = await run(
      server.url,
      `const flake = await Randflake.leased(STORE, SECRET, { namespace: 'ends' })
      say(typeof flake.generate())`,
    )
    assert.deepEqual([stdout, code], ['bigint\n', 0], stderr)
    // It takes milliseconds. An idle connection would keep it alive for ten seconds.
    assert(secondsToEnd < 5, `took ${secondsToEnd} s`)
  })

  live('a worker that holds a lease can be terminated', async (_t, server) => {
    const { stdout, stderr, code } = await run(
      server.url,
      `const worker = work(\`const flake = await Randflake.leased(STORE, SECRET, { namespace: 'ends' })
        parentPort.postMessage(typeof flake.generate())
        for (;;) flake.generate()\`)
      say(await once(worker, 'message'))
      await worker.terminate()
      say('terminated')`,
    )
    assert.deepEqual([stdout, code], ['bigint\nterminated\n', 0], stderr)
  })
})

suite('a file', { concurrency: 2 }, () => {
  for (const [kind, of] of Object.entries({ path: (file) => file, URL: pathToFileURL })) {
    test(`by its ${kind}: it is made with its quarantine or without`, async (t) => {
      const store = of(newStore(t))
      const orders = { namespace: 'orders' }
      const limits = { maxTtlSeconds: 600, maxSkewSeconds: 7 }
      await initStore(store, SECRET, 'quarantine', { ...orders, ...limits })
      await initStore(store, SECRET, 'new', orders) // again: it exists
      const { floor, now, limits: made } = await listLeases(store, orders)
      assert.deepEqual([made.maxTtlSeconds, made.maxSkewSeconds], [600, 7])
      assert(floor - now > 500 && floor - now <= 607, `${floor - now}`)
      const hasty = { ...orders, acquireTimeoutMs: 0 }
      await refused(Randflake.leased(store, SECRET, hasty), 'STORE_QUARANTINED')

      const posts = { namespace: 'posts', layout: 'twitter' }
      await initStore(store, undefined, 'new', posts)
      await refused(initStore(store, undefined, 'new', { ...posts, ...orders }), 'INVALID_ARGUMENT')
      await refused(initStore(store, generateSecret(), 'new', orders), 'SECRET_MISMATCH')
      const flake = await Snowflake.leased(store, posts)
      assert(flake.nodeIds.includes(flake.inspect(flake.generate()).nodeId))
      await release(flake)
    })
  }
})

suite('a store that cannot be used', { concurrency: 4 }, () => {
  const nobody = { postgresql: '/app', redis: '/', etcd: '/' }
  for (const [scheme, path] of Object.entries(nobody)) {
    test(`${scheme}: nobody listens`, () => {
      const url = `${scheme}://user:${PASSWORD}@127.0.0.1:2${path}`
      return refused(Randflake.leased(url, SECRET, HASTY), 'STORE_UNAVAILABLE', /ECONNREFUSED/)
    })
  }

  const passwords = {
    'a comma': ['hush,4711', 'hush,4711'],
    'a comma after what looks like a port': ['1,hush', '1,hush'],
    escapes: ['hush%2C%3a47%2F11', 'hush,:47/11'],
    'what a URL escapes by itself': ['hush|^47"11', 'hush|^47"11'],
  }
  for (const [what, [written, meant]] of Object.entries(passwords)) {
    test(`a password with ${what} is taken, and never shown`, async (t) => {
      for (const scheme of ['postgresql', 'redis', 'rediss', 'etcds']) {
        assert(
          serverOf(
            `${scheme}://user:${written}@host:2379${scheme === 'postgresql' ? '/db' : ''}`,
            native,
          ),
        )
      }
      // No client gets the URL as written.
      const forms = [meant, encodeURIComponent(meant)]
      t.mock.method(http, 'request', () => {
        throw new Error(forms.join(' '))
      })
      const { run } = serverOf(`etcd://user:${written}@host:2379,other:2379`, native)
      const statement = { text: '/v3/kv/range', parameters: ['{}'] }
      assert.deepEqual(await run(statement), { failed: '*** ***' })
    })
  }

  test('an etcd whose answer does not end', async (t) => {
    const endless = http
      .createServer((_, response) => {
        const write = () => {
          while (response.write('x'.repeat(1 << 16)));
          response.once('drain', write)
        }
        write()
      })
      .listen(0, '127.0.0.1')
    t.after(() => endless.close().closeAllConnections())
    await once(endless, 'listening')
    const { run } = serverOf(`etcd://127.0.0.1:${endless.address().port}`, native)
    const statement = { text: '/v3/kv/range', parameters: ['{}'] }
    const failed = 'the answer is longer than 1048576 bytes'
    assert.deepEqual(await run(statement), { failed })
  })

  // Each byte comes in time.
  for (const client of ['url', 'ioredis', 'redis']) {
    test(`a Redis whose answer to a script does not end: ${client}`, {
      timeout: 120_000,
    }, async (t) => {
      const listener = createNetServer((socket) => {
        socket
          .on('error', () => {})
          .on('data', (data) => {
            for (const name of String(data).match(/(?<=^\*\d+\r\n\$\d+\r\n)\w+/gm) ?? []) {
              if (!/^eval$/i.test(name)) socket.write('+OK\r\n')
              else {
                socket.write('$1000000\r\n')
                const trickle = setInterval(() => socket.write('x'), 100)
                socket.once('close', () => clearInterval(trickle))
              }
            }
          })
      }).listen(0, '127.0.0.1')
      await once(listener, 'listening')
      t.after(() => listener.close())
      const [store, end] = await clients.redis[client](
        `redis://127.0.0.1:${listener.address().port}`,
      )
      try {
        await refused(Randflake.leased(store, SECRET, HASTY), 'STORE_UNAVAILABLE')
      } finally {
        end()
      }
    })
  }

  const adapters = {
    'that throws': () => Promise.reject(new Error('mine')),
    'that throws nothing': () => Promise.reject(),
    'without rows': async () => 'rows',
    'with numbers': async () => [[1]],
    'with other rows': async () => [['check']],
    'that never answers': () => new Promise(() => {}),
  }
  for (const [what, body] of Object.entries(adapters)) {
    test(`an adapter ${what}`, () =>
      refused(Randflake.leased({ run: body }, SECRET, HASTY), 'STORE_UNAVAILABLE'))
  }

  const arguments_ = {
    'no URL of PostgreSQL': `postgresql://user:${PASSWORD}@host:port`,
    'no port of etcd': `etcd://user:${PASSWORD}@host`,
    'no password of etcd': `etcd://${PASSWORD}@host:2379`,
    'one slash': `postgresql:/user:${PASSWORD}@host`,
    'a bad escape': `postgresql://user:${PASSWORD}%zz@host`,
    'another server': `mongodb://user:${PASSWORD}@host`,
    'another client': { execute() {} },
    'a Client that cannot tell of a transaction': { query() {}, connect() {} },
    'a client of MySQL that is neither of mysql2 nor of mariadb': { query() {}, execute() {} },
    'a cluster of mariadb, which has many servers': mariadb.createPoolCluster(),
    'a part of a cluster of mariadb': mariadb.createPoolCluster().of('*'),
    'a part of a cluster of mariadb with callbacks': callbacks.createPoolCluster().of('*'),
    'a client with a keyPrefix': { call() {}, eval() {}, options: { keyPrefix: 'my:' } },
  }
  for (const [what, store] of Object.entries(arguments_)) {
    test(what, async () => {
      await refused(Randflake.leased(store, SECRET), 'INVALID_ARGUMENT')
      await refused(initStore(store, SECRET, 'new'), 'INVALID_ARGUMENT')
    })
  }

  const options = {
    namespace: 7,
    maxTtlSeconds: 0,
    maxSkewSeconds: 51,
    quarantine: 1,
    allowWeakStore: 'yes',
    ttlSeconds: 300,
  }
  for (const [name, bad] of Object.entries(options)) {
    test(`initStore: a bad ${name}`, () =>
      refused(initStore('etcd://127.0.0.1:2', SECRET, 'new', { [name]: bad }), 'INVALID_ARGUMENT'))
  }

  for (const mode of [undefined, null, '', 'New', true, { namespace: 'orders' }]) {
    test(`initStore: ${JSON.stringify(mode)} is no word for how to make a namespace`, async (t) => {
      const file = newStore(t)
      const says = /`new` if this store has never had it, or `quarantine` if .* deploy/
      await refused(initStore(file, SECRET, mode), 'INVALID_ARGUMENT', says)
      await refused(
        initStore(file, undefined, mode, { layout: 'twitter' }),
        'INVALID_ARGUMENT',
        says,
      )
      assert(!existsSync(file))
    })
  }

  test('a file that was lost is not made', async (t) => {
    const file = newStore(t)
    const careful = { create: false }
    const lost = Randflake.leased(file, SECRET, careful)
    await refused(lost, 'STORE_NOT_INITIALIZED', /initStore/)
    assert(!existsSync(file))
    await initStore(file, SECRET, 'new')
    await release(await Randflake.leased(file, SECRET, careful))
    const posts = { namespace: 'posts', layout: 'twitter' }
    await refused(Snowflake.leased(file, { ...posts, ...careful }), 'STORE_NOT_INITIALIZED')
    await release(await Snowflake.leased(file, { ...posts, create: true }))
  })

  test('a file has no such options', async (t) => {
    const file = newStore(t)
    await refused(initStore(file, SECRET, 'new', { allowWeakStore: true }), 'INVALID_ARGUMENT')
    await refused(Randflake.leased(file, SECRET, { allowWeakStore: true }), 'INVALID_ARGUMENT')
    await refused(Randflake.leased('redis://host', SECRET, { create: true }), 'INVALID_ARGUMENT')
  })

  test('what is no store is not made', async (t) => {
    const file = newStore(t)
    await refused(
      initStore(join(dirname(file), 'missing', 'ids.db'), SECRET, 'new'),
      'INVALID_ARGUMENT',
    )
    for (const wrong of [7, '', ':memory:', 'ids\0.db', new URL('https://host/ids.db')]) {
      await refused(initStore(wrong, SECRET, 'new'), 'INVALID_ARGUMENT')
    }
    assert.deepEqual(readdirSync(dirname(file)), [])
  })

  test('a driver that is not installed is named', (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'randflake-drivers-'))
    t.after(() => rmSync(folder, { recursive: true }))
    cpSync(join(__dirname, '../lib/stores.js'), join(folder, 'stores.js'))
    const { serverOf } = require(join(folder, 'stores.js'))
    const missing = (install) => ({ code: 'DRIVER_MISSING', message: new RegExp(install) })
    const of = (url) => () => serverOf(url, native)
    assert.throws(of('postgresql://app@host/db'), missing('npm install pg'))
    assert.throws(of('rediss://host'), missing('npm install ioredis'))
    assert.equal(of('etcds://host:2379')().engine, 'etcd')
  })
})

test('what the replica of a Redis has not confirmed does not count', async (t) => {
  const running = await redisWithReplica()
  if (running === undefined) return t.skip('the server is missing')
  const { master, replica } = running
  t.after(() => Promise.all([master.stop(), replica.stop()]))
  await initStore(master.url, SECRET, 'new')
  for (const [what, make] of Object.entries(clients.redis)) {
    const [store, end] = await make(master.url)
    try {
      const flake = await Randflake.leased(store, SECRET)
      assert.equal(typeof flake.generate(), 'bigint', what)
      await release(flake)
      replica.signal('SIGSTOP')
      const lease = Randflake.leased(store, SECRET, HASTY)
      await refused(lease, 'STORE_UNAVAILABLE', /0 of its replicas have confirmed/)
      replica.signal('SIGCONT')
      if (what !== 'redis') continue
      // It has no way to send two commands on one connection.
      const plain = { sendCommand: (command) => store.sendCommand(command) }
      await refused(Randflake.leased(plain, SECRET, HASTY), 'WEAK_STORE', /WAIT/)
    } finally {
      // Before the server ends: otherwise the client would emit an error.
      end()
    }
  }
})

test('the replicas of a Redis are asked on the connection that has written', async (t) => {
  const running = await redisWithReplica()
  if (running === undefined) return t.skip('the server is missing')
  const { master, replica } = running
  t.after(() => Promise.all([master.stop(), replica.stop()]))
  await initStore(master.url, SECRET, 'new')
  const observer = new Redis(master.url)
  const monitor = await observer.monitor()
  const said = []
  monitor.on('monitor', (_time, [name], source) => {
    if (source !== 'lua') said.push({ name: name.toUpperCase(), source })
  })
  try {
    for (const [what, make] of Object.entries(clients.redis)) {
      const [store, end] = await make(master.url)
      try {
        await release(await Randflake.leased(store, SECRET))
        await observer.echo('end')
        await until('all of it is seen', () => said.at(-1)?.name === 'ECHO')
      } finally {
        end()
      }
      // On another connection, `WAIT` may be about earlier writes.
      const asked = [...said.keys()].filter((at) => said[at].name === 'WAIT')
      const written = asked.map((at) => said[at - 1])
      assert.deepEqual(new Set(written.map(({ name }) => name)), new Set(['TIME', 'EVAL']), what)
      for (const [number, at] of asked.entries()) {
        assert.equal(said[at].source, written[number].source, what)
      }
      said.length = 0
    }
  } finally {
    for (const client of [monitor, observer]) client.disconnect()
  }
})

suite('a server that refuses', { concurrency: 4 }, () => {
  patiently()
  const running = {}
  before(async () => {
    running.postgresql = await servers.postgresql()
    running.mysql = await servers.mysql()
    running.redis = await servers.redis({ settings: ['--appendonly', 'no', '--save', ''] })
  })
  after(() => Promise.all(Object.values(running).map((server) => server?.stop())))
  const live = (name, what, body) =>
    test(what, (t) => (running[name] ? body(t, running[name].url) : t.skip('it is missing')))

  for (const name of ['postgresql', 'redis']) {
    live(name, `${name}: a wrong password is not shown`, async (_, url) => {
      const wrong = url.replace(PASSWORD, 'open-wrong-4711')
      await assert.rejects(Randflake.leased(wrong, SECRET, HASTY), ({ code, message }) => {
        assert.equal(code, 'STORE_UNAVAILABLE', message)
        assert.match(message, /password|WRONGPASS|NOAUTH/)
        return !message.includes('open-')
      })
    })
  }

  live('redis', 'a Redis that keeps nothing', async (_, url) => {
    await refused(initStore(url, SECRET, 'new'), 'WEAK_STORE', /disk/)
    const namespace = 'weak'
    await initStore(url, SECRET, 'quarantine', { namespace, allowWeakStore: true })
    const allowed = { ...HASTY, namespace, allowWeakStore: true }
    await refused(Randflake.leased(url, SECRET, { ...HASTY, namespace }), 'WEAK_STORE')
    await refused(Randflake.leased(url, SECRET, allowed), 'STORE_QUARANTINED')
  })

  live('postgresql', 'create makes the tables', async (_, url) => {
    const flake = await Randflake.leased(url, SECRET, { create: true, namespace: 'made' })
    assert.equal(typeof flake.generate(), 'bigint')
    await release(flake)
  })

  live('postgresql', 'a Client inside a transaction, from the start or later', async (t, url) => {
    const client = new Client(url)
    await client.connect()
    t.after(() => client.end())
    await initStore(client, SECRET, 'new', { namespace: 'transaction', ...SKEW })
    const options = { ...SHORT, namespace: 'transaction' }
    await client.query('begin')
    await refused(Randflake.leased(client, SECRET, options), 'INVALID_ARGUMENT', /transaction/)
    await client.query('rollback')
    const flake = await Randflake.leased(client, SECRET, options)
    await client.query('begin')
    await until('it reports why', () => flake.lease.lastError !== null)
    assert.deepEqual([flake.lease.lastError.code, flake.lease.renewals], ['INVALID_ARGUMENT', 0])
    await client.query('rollback')
    await until('it is renewed', () => flake.lease.renewals > 0)
    await release(flake)
  })

  const connections = {
    mysql2: (url) => mysql.createConnection(url),
    mariadb: (url) => mariadb.createConnection(ofMariadb(url)),
    'mariadb with callbacks': (url) => callbacks.createConnection(ofMariadb(url)),
  }
  for (const [what, connect] of Object.entries(connections)) {
    const name = `a connection of ${what} inside a transaction, from the start or later`
    live('mysql', name, async (t, url) => {
      const connection = await connect(url)
      t.after(() => connection.end())
      await initStore(connection, SECRET, 'new', { namespace: what, ...SKEW })
      const options = { ...SHORT, namespace: what }
      await connection.query('begin')
      await refused(
        Randflake.leased(connection, SECRET, options),
        'INVALID_ARGUMENT',
        /transaction/,
      )
      await connection.query('rollback')
      const flake = await Randflake.leased(connection, SECRET, options)
      await connection.query('begin')
      await until('it reports why', () => flake.lease.lastError !== null)
      assert.deepEqual([flake.lease.lastError.code, flake.lease.renewals], ['INVALID_ARGUMENT', 0])
      await connection.query('rollback')
      await until('it is renewed', () => flake.lease.renewals > 0)
      await release(flake)
    })

    live('mysql', `a transaction that begins amid the statements on ${what}`, async (t, url) => {
      const connection = await connect(url)
      t.after(() => connection.end())
      const table = `amid_${what.replaceAll(' ', '_')}`
      connection.query(`create table ${table} (it varchar(9))`)
      const { run } = serverOf(connection, native)
      const write = { text: `insert into ${table} values (?)`, parameters: ['one'] }
      assert.deepEqual((await run(write)).rows, [['0']])
      // The program's own, right before and after the write: it is rolled back when the write is
      // answered.
      const inner = connection.connection ?? connection
      const query = inner.query.bind(inner)
      const sent = []
      inner.query = (options, ...rest) => {
        const isWrite = options.sql === write.text
        if (isWrite) query('begin')
        const answer = query(options, ...rest)
        sent.push(options.sql)
        // What mariadb is sent after it is sent at once.
        if (isWrite) queueMicrotask(() => query('rollback'))
        return answer
      }
      assert.equal((await run(write)).refused?.[0], '25000')
      inner.query = query
      assert(sent.includes(write.text))
      const count = { text: `select concat(count(*), '') from ${table}`, parameters: [] }
      assert.deepEqual((await run(count)).rows, [['1']])
    })
  }

  for (const [what, { createPool }] of Object.entries({ promises: mariadb, callbacks })) {
    live('mysql', `mariadb with ${what}: cells and insert ids are exact`, async (t, url) => {
      const pool = createPool({ ...ofMariadb(url), ...PECULIAR })
      t.after(() => pool.end())
      const { run } = serverOf(pool, native)
      const ask = async (text, ...parameters) => (await run({ text, parameters })).rows
      await ask(`create table exact_${what} (it bigint primary key auto_increment)`)
      const largest = '9007199254740995' // 2^53 + 3
      const add = `insert into exact_${what} values (last_insert_id(?))`
      assert.deepEqual(await ask(add, largest), [[largest]])
      const { failed, refused } = await run({ text: add, parameters: [largest] })
      assert.deepEqual([failed, refused?.[0]], [undefined, '1062'])
      assert(!refused[1].includes(add), 'the statement is not repeated')
      const select = `select it, null, cast('2026-01-02' as date), it as it from exact_${what}`
      assert.deepEqual(await ask(select), [[largest, null, '2026-01-02', largest]])
    })
  }

  live('postgresql', 'goes on after its connection was closed', async (_, url) => {
    const named = `${url}?application_name=closed`
    await initStore(named, SECRET, 'new', { namespace: 'closed', ...SKEW })
    const flake = await Randflake.leased(named, SECRET, { ...SHORT, namespace: 'closed' })
    const sql = postgres(url)
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'closed'`
    await sql.end()
    await until('it is renewed', () => flake.lease.renewals > 0)
    assert.equal(flake.lease.state, 'holding')
    await release(flake)
  })

  live('postgresql', 'a JavaScript thread that is blocked for long', async (_, url) => {
    await initStore(url, SECRET, 'new', { namespace: 'blocked', maxSkewSeconds: 1 })
    const { stdout, stderr, code } = await run(
      url,
      `const options = { ttlSeconds: 6, maxSkewSeconds: 1, maxDriftSeconds: 0, maxWaitMs: 0 }
      const flake = await Randflake.leased(STORE, SECRET, { ...options, namespace: 'blocked' })
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6500)
      try { flake.generate() } catch (error) { say(error.code) }
      await flake.ready()
      say(typeof flake.generate(), flake.lease.state)`,
    )
    assert.deepEqual([stdout, code], ['LEASE_UNAVAILABLE\nbigint holding\n', 0], stderr)
  })

  live('postgresql', 'a batch goes on over renewals on another thread', async (_, url) => {
    await initStore(url, SECRET, 'new', { namespace: 'long', maxSkewSeconds: 1 })
    const options = { namespace: 'long', maxSkewSeconds: 1, ttlSeconds: 6, maxDriftSeconds: 0 }
    const flake = await Randflake.leased(url, SECRET, { ...options, maxWaitMs: 60_000 })
    const { endExclusive } = flake.lease
    for (const call of [
      () => flake.generateMany(6 * 131_072), // on the thread that would renew the lease
      () => flake.fill(new BigInt64Array(6 * 131_072)),
    ]) {
      assert.throws(call, {
        code: 'INVALID_ARGUMENT',
        message: /takes 6 seconds.*in the background/,
      })
    }
    const tooMany = { code: 'INVALID_ARGUMENT', message: /may take at most 3600; ask for fewer/ }
    assert.throws(() => flake.generateMany(1e9), tooMany) // nor on another thread
    const ids = await flake.generateManyAsync(7 * 131_072)
    assert.equal(new Set(ids).size, ids.length)
    assert(flake.inspect(ids.at(-1)).timestamp >= endExclusive)
    await flake[Symbol.asyncDispose]()
  })

  live('postgresql', 'a lease is released by dispose, and not at the exit', async (_, url) => {
    await initStore(url, SECRET, 'new', { namespace: 'given' })
    const sql = postgres(url)
    const held = async () => {
      const rows = await sql`
        select value from randflake_leases.entry where namespace = 'given' and key like 'node/%'`
      return rows.filter(({ value }) => value.split(' ')[3] !== '-').length
    }
    const script = (ending) => `
      const flake = await Randflake.leased(STORE, SECRET, { namespace: 'given' })
      ${ending}
      say(flake.lease?.state ?? 'closed')
      process.exit(3)`
    const disposed = await run(url, script('await flake[Symbol.asyncDispose]()'))
    assert.deepEqual([disposed.stdout, disposed.code, await held()], ['closed\n', 3, 0])
    const exited = await run(url, script(''))
    assert.deepEqual([exited.stdout, exited.code, await held()], ['holding\n', 3, 1])
    // It takes milliseconds. To give the lease back, it could wait for five seconds.
    assert(exited.secondsToEnd < 4, `took ${exited.secondsToEnd} s`)
    await sql.end()
  })
})
