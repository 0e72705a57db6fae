'use strict'

// Servers for tests: on free ports of the loopback interface, in a directory that is gone
// afterwards, and stopped with the test. `tests/servers/starter.py` starts them.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { readFileSync } = require('node:fs')
const net = require('node:net')
const { join } = require('node:path')
const Redis = require('ioredis')
const mysql = require('mysql2/promise')
const postgres = require('postgres')
const { until } = require('./store.js')

const STARTER = join(__dirname, '..', '..', 'tests', 'servers', 'starter.py')

/** The password of every server that has one. */
const PASSWORD = 'open-sesame-4711'

/** The program that starts a server, and ends it when this process ends. */
class Starter {
  #child
  #said = ''
  #waiting = []

  constructor() {
    const stdio = ['pipe', 'pipe', 'inherit']
    this.#child = spawn(process.env.PYTHON ?? 'python3', [STARTER], { stdio })
    const ended = (error) => this.#end(error)
    this.#child.on('error', ended).on('exit', () => ended(new Error('the starter has ended')))
    this.#child.stdin.on('error', ended)
    this.#child.stdout.setEncoding('utf8').on('data', (text) => this.#hear(text))
    // No test process stays alive for it, except while it is asked something.
    this.#child.unref()
    this.#child.stdin.unref()
    this.#child.stdout.unref()
  }

  /** Returns its answer; undefined where a test must be skipped, which is a failure in CI. */
  async ask(request) {
    const answer = await new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#child.stdout.ref()
      this.#child.stdin.write(`${JSON.stringify(request)}\n`, (error) => error && this.#end(error))
    })
    const { failed, missing, unavailable } = answer
    if (failed !== undefined) throw new Error(failed)
    if (missing !== undefined && process.env.CI === 'true') throw new Error(missing)
    const why = missing ?? unavailable
    if (why === undefined) return answer
    console.error(`\n*** SKIPPED: ${why} ***\n`)
    return undefined
  }

  /** Ends it, and its server. */
  async close() {
    const child = this.#child
    child.ref()
    child.stdin.end()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  #hear(text) {
    const lines = (this.#said + text).split('\n')
    this.#said = lines.pop()
    for (const line of lines) this.#waiting.shift().resolve(JSON.parse(line))
    if (this.#waiting.length === 0) this.#child.stdout.unref()
  }

  #end(error) {
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }
}

/** Holds the ports of this process. */
let portStarter

/**
 * Returns a port that nothing listens on, and never one twice. It is not one of the ports that the
 * system hands out by itself.
 */
async function freePort() {
  portStarter ??= new Starter()
  const { ports } = await portStarter.ask({ ports: 1 })
  return ports[0]
}

/** The servers that are running, and the last ones that were, with their output. */
const said = new Map()

process.on('exit', (code) => {
  if (code === 0) return
  for (const [server, log] of said) console.error(`\n${server.kind} said: ${log ?? server.log()}`)
})

/** A server that runs, or has ended and can be started again. */
class Server {
  #starter
  #state
  #hasEnded = false

  constructor(kind, starter, state) {
    this.kind = kind
    this.#starter = starter
    this.#state = state
    said.set(this, undefined)
  }

  get url() {
    return this.#state.url
  }

  file(name) {
    return join(this.#state.folder, name)
  }

  /** Returns the end of its output since its last start. */
  log() {
    try {
      return readFileSync(this.file('log'), 'utf8').slice(-8_000)
    } catch {
      return ''
    }
  }

  async start() {
    this.#state = await this.#starter.ask({ run: [] })
    this.#hasEnded = false
    return this
  }

  signal(name) {
    process.kill(this.#state.pid, name)
  }

  /** Ends it by a signal. */
  async end(signal) {
    if (this.#hasEnded) return
    this.#hasEnded = true
    await this.#starter.ask({ end: signal })
  }

  /** Ends it, with all of its processes, and removes what it has. */
  async stop() {
    said.set(this, this.log())
    for (const [server, log] of said) {
      if (said.size <= 8) break
      if (log !== undefined) said.delete(server)
    }
    await this.#starter.close()
  }

  /** Returns the end of each node id that was ever leased, and whether it is held. */
  async leases(namespace) {
    const texts = await textsIn[new URL(this.url).protocol](this.url, namespace)
    const nodes = texts.filter(([key]) => key.startsWith('node/'))
    // What a store keeps: leases/src/remote/text.rs.
    return Object.fromEntries(
      nodes.map(([key, text]) => {
        const [end, , , token] = text.split(' ')
        return [Number(key.slice('node/'.length)), [Number(end), token !== '-']]
      }),
    )
  }
}

const textsIn = {
  async 'postgresql:'(url, namespace) {
    const sql = postgres(url)
    const rows = await sql`
      select key, value from randflake_leases.entry where namespace = ${namespace}`.values()
    await sql.end()
    return rows
  },

  async 'mysql:'(url, namespace) {
    const connection = await mysql.createConnection(url)
    const [rows] = await connection.query({
      sql: 'select name, value from randflake_entry where namespace = ?',
      values: [namespace],
      rowsAsArray: true,
      typeCast: (field) => field.string(),
    })
    await connection.end()
    return rows
  },

  async 'redis:'(url, namespace) {
    const client = new Redis(url)
    const fields = Object.entries(await client.hgetall(`randflake:{${namespace}}`))
    client.disconnect()
    return fields
  },

  async 'etcd:'(url, namespace) {
    const encoded = (text) => Buffer.from(text).toString('base64')
    const decoded = (text) => Buffer.from(text, 'base64').toString()
    const folder = `randflake/${namespace}`
    const range = { key: encoded(`${folder}/`), range_end: encoded(`${folder}0`) }
    const { kvs = [] } = await askEtcd(url, 'kv/range', range)
    return kvs.map(({ key, value }) => [decoded(key).slice(folder.length + 1), decoded(value)])
  },
}

/** Asks the gateway of an etcd. */
async function askEtcd(url, path, body) {
  const address = `${url.replace('etcd', 'http')}/v3/${path}`
  const answer = await fetch(address, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(await answer.text())
  return answer.json()
}

/** A Redis that keeps every acknowledged write. */
const DURABLE = ['--appendonly', 'yes', '--save', '']

/** Starts a server of a kind; undefined if there is none. */
async function start(kind, options = {}) {
  const starter = new Starter()
  try {
    const state = await starter.ask({ start: kind, ...options })
    if (state !== undefined) return new Server(kind, starter, state)
  } catch (error) {
    await starter.close()
    throw error
  }
  await starter.close()
  return undefined
}

/** Each starts a server; undefined if there is none. With `tls` it accepts only TLS. */
const servers = {
  postgresql: ({ tls = false } = {}) => start('postgres', { tls }),
  mysql: ({ settings = [] } = {}) => start('mariadb', { arguments: settings }),
  redis: ({ settings = DURABLE, tls = false } = {}) => start('redis', { arguments: settings, tls }),
  etcd: ({ tls = false } = {}) => start('etcd', { tls }),
}

/** A Redis and the replica that must confirm what it grants. */
async function redisWithReplica() {
  const careful = ['--min-replicas-to-write', 1, '--min-replicas-max-lag', 10]
  const master = await servers.redis({ settings: [...DURABLE, ...careful] })
  if (master === undefined) return undefined
  const follow = ['--replicaof', '127.0.0.1', portOf(master)]
  const replica = await servers.redis({ settings: [...DURABLE, ...follow] })
  const client = new Redis(master.url)
  try {
    await until('the replica is heard of', async () =>
      /min_slaves_good_slaves:1/.test(await client.info('replication')),
    )
  } finally {
    client.disconnect()
  }
  return { master, replica }
}

/** Asks a MariaDB, and returns the rows of the last answer. */
async function askMysql({ url }, ...statements) {
  const connection = await mysql.createConnection(url)
  try {
    let rows
    for (const sql of statements) [rows] = await connection.query({ sql, rowsAsArray: true })
    return rows
  } finally {
    await connection.end()
  }
}

/**
 * A MariaDB, its replica, and how to make the replica stop applying what it is sent and promote it
 * without that.
 */
async function mariadbWithReplica() {
  const careful = ['--log-bin=log', '--sync-binlog=1']
  const begin = (id) => servers.mysql({ settings: [...careful, `--server-id=${id}`] })
  const [primary, replica] = await Promise.all([begin(1), begin(2)])
  if (primary === undefined) return undefined
  const { password } = new URL(primary.url)
  await askMysql(
    replica,
    `change master to master_host = '127.0.0.1', master_port = ${portOf(primary)},
      master_user = 'randflake', master_password = '${password}', master_use_gtid = slave_pos`,
    'start slave',
  )
  return {
    primary,
    replica,
    async stopTaking() {
      const [[sent]] = await askMysql(primary, "select concat(@@gtid_binlog_pos, '')")
      // Or more than that: leases are renewed meanwhile.
      const [[late]] = await askMysql(replica, `select master_gtid_wait('${sent}', 180)`)
      assert.equal(late, 0, 'the replica has not taken it')
      await askMysql(replica, 'stop slave sql_thread')
    },
    promote: () => askMysql(replica, 'stop slave', 'reset slave all'),
  }
}

/** A port that leads to one server, and later to another one. */
class Link {
  #listener
  #sockets = new Set()
  #target

  static async to(server) {
    const link = new Link()
    link.#target = server
    link.#listener = net.createServer((near) => {
      const far = net.connect(portOf(link.#target), '127.0.0.1')
      for (const [from, other] of [
        [near, far],
        [far, near],
      ]) {
        link.#sockets.add(from)
        from.pipe(other)
        from
          .on('error', () => {})
          .on('close', () => {
            link.#sockets.delete(from)
            other.destroy()
          })
      }
    })
    link.#listener.listen(0, '127.0.0.1')
    await once(link.#listener, 'listening')
    return link
  }

  get url() {
    const url = new URL(this.#target.url)
    url.port = this.#listener.address().port
    return url.href
  }

  move(server) {
    this.#target = server
    for (const socket of this.#sockets) socket.destroy()
  }

  close() {
    this.#listener.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}

/** A PgBouncer in front of a PostgreSQL, with these additional settings. */
const pgbouncer = (postgresql, ...settings) =>
  start('pgbouncer', { arguments: settings, target: portOf(postgresql) })

/** A Redis Cluster of three masters. */
async function redisCluster() {
  const settings = [...DURABLE, '--cluster-enabled', 'yes']
  const nodes = await Promise.all([0, 1, 2].map(() => servers.redis({ settings })))
  if (nodes.includes(undefined)) return undefined
  const clients = nodes.map(({ url }) => new Redis(url))
  try {
    const bounds = [0, 5461, 10923, 16384]
    for (const [number, client] of clients.entries()) {
      await client.cluster('ADDSLOTSRANGE', bounds[number], bounds[number + 1] - 1)
      await clients[0].cluster('MEET', '127.0.0.1', new URL(nodes[number].url).port)
    }
    await until('the nodes find each other', async () => {
      const states = await Promise.all(clients.map((client) => client.cluster('INFO')))
      return states.every((state) => /cluster_state:ok/.test(state))
    })
  } finally {
    for (const client of clients) client.disconnect()
  }
  return nodes
}

/** A Sentinel that promotes the replica of a master called "leases" after half a second. */
const redisSentinel = (master) => start('sentinel', { target: portOf(master) })

function portOf(server) {
  return Number(new URL(server.url).port)
}

module.exports = {
  askEtcd,
  freePort,
  Link,
  mariadbWithReplica,
  PASSWORD,
  pgbouncer,
  redisCluster,
  redisSentinel,
  redisWithReplica,
  servers,
}
