'use strict'

// Servers for tests: started on free ports of the loopback interface, in a directory that is gone
// afterwards, and stopped with the test.

const { execFile, spawn } = require('node:child_process')
const { randomInt } = require('node:crypto')
const { once } = require('node:events')
const {
  accessSync,
  chownSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} = require('node:fs')
const { createServer } = require('node:net')
const { tmpdir } = require('node:os')
const { delimiter, join } = require('node:path')
const { promisify } = require('node:util')
const Redis = require('ioredis')
const postgres = require('postgres')
const { until } = require('./store.js')

/** The password of every server that has one. */
const PASSWORD = 'open-sesame-4711'
/** The user `nobody`: not every server runs as root. */
const NOBODY = 65534

/** Other tests go on meanwhile, and their timers. */
const runProgram = promisify(execFile)

/** Finds a program; undefined where a test has to be skipped, which in CI is a failure. */
function program(name, debianPackage) {
  const folders = [...process.env.PATH.split(delimiter), '/usr/sbin']
  try {
    const versions = '/usr/lib/postgresql'
    folders.push(...readdirSync(versions).map((version) => join(versions, version, 'bin')))
  } catch {
    // It is not from Debian.
  }
  const found = folders
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
  if (found === undefined) {
    const missing = `${name} is not installed (Debian: apt-get install ${debianPackage})`
    if (process.env.CI === 'true') throw new Error(missing)
    console.error(`\n*** SKIPPED: ${missing} ***\n`)
  }
  return found
}

const givenPorts = new Set()

/**
 * Returns a port that nothing listens on, and never one twice. It is none of those that the system
 * hands out by itself. A node of a Redis Cluster listens on the port that is 10 000 higher as well.
 */
async function freePort() {
  for (;;) {
    const port = randomInt(12_000, 22_000)
    if (givenPorts.has(port)) continue
    givenPorts.add(port)
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port
  }
}

async function isFree(port) {
  const listener = createServer().listen(port, '127.0.0.1')
  try {
    await once(listener, 'listening')
  } catch {
    return false
  }
  await new Promise((resolve) => listener.close(resolve))
  return true
}

/** A server that runs, or has ended and can be started again. */
class Server {
  #fields
  #child
  #ended

  /** Its folder, program, arguments, what its log says once it is ready, URL, and user. */
  constructor(fields) {
    this.#fields = fields
  }

  get url() {
    return this.#fields.url
  }

  file(name) {
    return join(this.#fields.folder, name)
  }

  async start() {
    const { folder, path, args, ready, user } = this.#fields
    const log = this.file('log')
    const isReady = () => {
      // A PostgreSQL that was killed has processes left, for a moment.
      if (this.#child === undefined) {
        const output = openSync(log, 'w')
        const child = spawn(path, args, { cwd: folder, stdio: ['ignore', output, output], ...user })
        closeSync(output)
        this.#child = child
        this.#ended = once(child, 'exit').then(() => {
          this.#child = undefined
        })
      }
      return readFileSync(log, 'utf8').includes(ready)
    }
    await until(`${path} is ready`, isReady).catch((error) => {
      throw new Error(readFileSync(log, 'utf8'), { cause: error })
    })
    return this
  }

  signal(name) {
    this.#child.kill(name)
  }

  /** Ends it by a signal. */
  async end(signal) {
    this.#child?.kill(signal)
    await this.#ended
  }

  /** Ends it, with all of its processes, and removes what it has. */
  async stop() {
    await this.end(this.url.startsWith('postgresql') ? 'SIGQUIT' : 'SIGKILL')
    rmSync(this.#fields.folder, { recursive: true })
  }

  /** Returns the end of each node id that was ever leased, and whether it is held. */
  async leases(namespace) {
    const rows = await leasesIn[new URL(this.url).protocol](this.url, namespace)
    return Object.fromEntries(rows.map(([nodeId, end, held]) => [nodeId, [Number(end), held]]))
  }
}

const leasesIn = {
  async 'postgresql:'(url, namespace) {
    const sql = postgres(url)
    const rows = await sql`
      select node_id, end_exclusive, token is not null from randflake_node
      join randflake_namespace as namespace on namespace.id = namespace
      where name = ${namespace}`.values()
    await sql.end()
    return rows
  },

  async 'redis:'(url, namespace) {
    const client = new Redis(url)
    const fields = Object.entries(await client.hgetall(`randflake:{${namespace}}`))
    client.disconnect()
    return fields
      .filter(([field]) => /^\d+$/.test(field))
      .map(([field, value]) => [Number(field), ...value.split(' ').slice(1)])
      .map(([nodeId, end, token]) => [nodeId, end, token !== '-'])
  },

  async 'etcd:'(url, namespace) {
    const encoded = (text) => Buffer.from(text).toString('base64')
    const decoded = (text) => Buffer.from(text, 'base64').toString()
    const folder = `randflake/${namespace}/node`
    const range = { key: encoded(`${folder}/`), range_end: encoded(`${folder}0`) }
    const { kvs = [] } = await askEtcd(url, 'kv/range', range)
    return kvs.map(({ key, value }) => {
      const [, end, token] = decoded(value).split(' ')
      return [Number(decoded(key).split('/').at(-1)), end, token !== '-']
    })
  },
}

/** Asks the gateway of an etcd. */
async function askEtcd(url, path, body) {
  const address = `${url.replace('etcd', 'http')}/v3/${path}`
  const answer = await fetch(address, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(await answer.text())
  return answer.json()
}

/** Makes `cert.pem` and `key.pem` of a server, and `ca.pem`, which is to be trusted. */
async function makeCertificate(folder) {
  const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test'
  writeFileSync(join(folder, 'extensions'), 'subjectAltName=IP:127.0.0.1\n')
  for (const args of [
    `req -x509 ${newKey} -days 2 -keyout ca.key -out ca.pem`,
    `req ${newKey} -keyout key.pem -out request`,
    'x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 ' +
      '-extfile extensions -out cert.pem',
  ]) {
    await runProgram('openssl', args.split(' '), { cwd: folder })
  }
}

/** Makes a folder with the files of a server, all owned by its user. */
async function newFolder(tls, files = {}, uid = undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-server-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  if (tls) await makeCertificate(folder)
  if (uid) {
    for (const name of ['.', ...readdirSync(folder)]) chownSync(join(folder, name), uid, uid)
  }
  return folder
}

/** A Redis that keeps every acknowledged write. */
const DURABLE = ['--appendonly', 'yes', '--save', '']

/** Each starts a server; undefined if there is none. With `tls` it speaks nothing else. */
const servers = {
  async postgresql({ tls = false } = {}) {
    const initdb = program('initdb', 'postgresql')
    if (initdb === undefined) return undefined
    const user = process.getuid() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
    const [folder, port] = [
      await newFolder(tls, { password: PASSWORD }, user.uid),
      await freePort(),
    ]
    const how = ['--no-sync', '--no-locale', '--encoding=UTF8', '--username=randflake']
    how.push('--auth=scram-sha-256', '--pwfile', 'password', '-D', 'data')
    await runProgram(initdb, how, { cwd: folder, ...user })
    const args = ['-D', 'data', '-p', port, '-h', '127.0.0.1', '-k', folder]
    if (tls) args.push('--ssl=on', '--ssl_cert_file=../cert.pem', '--ssl_key_file=../key.pem')
    const path = program('postgres', 'postgresql')
    const query = tls ? '?sslmode=verify-full' : ''
    const url = `postgresql://randflake:${PASSWORD}@127.0.0.1:${port}/postgres${query}`
    return new Server({ folder, path, args, ready: 'ready to accept', url, user }).start()
  },

  async redis({ settings = DURABLE, tls = false } = {}) {
    const path = program('redis-server', 'redis-server')
    if (path === undefined) return undefined
    const [folder, port] = [await newFolder(tls), await freePort()]
    const args = ['--bind', '127.0.0.1', '--requirepass', PASSWORD, ...settings]
    if (tls) {
      args.push('--port', 0, '--tls-port', port, '--tls-auth-clients', 'no')
      args.push('--tls-cert-file', 'cert.pem', '--tls-key-file', 'key.pem')
      args.push('--tls-ca-cert-file', 'ca.pem')
    } else {
      args.push('--port', port)
    }
    const url = `redis${tls ? 's' : ''}://:${PASSWORD}@127.0.0.1:${port}/0`
    return new Server({ folder, path, args, ready: 'Ready to accept connections', url }).start()
  },

  async etcd({ tls = false } = {}) {
    const path = program('etcd', 'etcd-server')
    if (path === undefined) return undefined
    const [folder, port, peerPort] = [await newFolder(tls), await freePort(), await freePort()]
    const s = tls ? 's' : ''
    const [client, peer] = [`http${s}://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
    const args = ['--data-dir', 'data', '--listen-client-urls', client]
    args.push('--advertise-client-urls', client, '--listen-peer-urls', peer)
    args.push('--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`)
    if (tls) args.push('--cert-file', 'cert.pem', '--key-file', 'key.pem')
    const url = `etcd${s}://127.0.0.1:${port}`
    return new Server({ folder, path, args, ready: 'ready to serve client requests', url }).start()
  },
}

/** A MariaDB, which holds ids, and no leases. */
async function mariadb() {
  const install = program('mariadb-install-db', 'mariadb-server')
  const path = program('mariadbd', 'mariadb-server')
  if (path === undefined) return undefined
  const user = process.getuid() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const grant = `grant all on *.* to randflake@'127.0.0.1' identified by '${PASSWORD}'`
  const files = { 'init.sql': `create database ids;\n${grant};\n` }
  const [folder, port] = [await newFolder(false, files, user.uid), await freePort()]
  const data = ['--no-defaults', `--datadir=${join(folder, 'data')}`]
  const how = [...data, '--auth-root-authentication-method=normal']
  await runProgram(install, how, { cwd: folder, ...user })
  const args = [...data, '--port', port, '--bind-address=127.0.0.1', '--socket=socket']
  args.push(`--init-file=${join(folder, 'init.sql')}`, '--innodb-flush-log-at-trx-commit=0')
  const url = `mysql://randflake:${PASSWORD}@127.0.0.1:${port}/ids`
  return new Server({ folder, path, args, ready: 'ready for connections', url, user }).start()
}

/** A Redis and the replica that must confirm what it grants. */
async function redisWithReplica() {
  const careful = ['--min-replicas-to-write', 1, '--min-replicas-max-lag', 10]
  const settings = [...DURABLE, '--repl-diskless-sync-delay', 0, ...careful]
  const master = await servers.redis({ settings })
  if (master === undefined) return undefined
  const follow = ['--replicaof', '127.0.0.1', new URL(master.url).port, '--masterauth', PASSWORD]
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

/** A PgBouncer in front of a PostgreSQL, with these settings besides. */
async function pgbouncer(postgresql, ...settings) {
  const path = program('pgbouncer', 'pgbouncer')
  if (path === undefined) return undefined
  const user = process.getuid() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const [port, { port: behind }] = [await freePort(), new URL(postgresql.url)]
  const lines = [
    `[databases]\npostgres = host=127.0.0.1 port=${behind} dbname=postgres`,
    `[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    'auth_type = scram-sha-256\nauth_file = users',
    ...settings,
  ]
  const files = { 'pgbouncer.ini': lines.join('\n'), users: `"randflake" "${PASSWORD}"\n` }
  const folder = await newFolder(false, files, user.uid)
  const url = postgresql.url.replace(behind, port)
  return new Server({
    folder,
    path,
    args: ['pgbouncer.ini'],
    ready: 'process up',
    url,
    user,
  }).start()
}

/** A Redis Cluster of three masters. */
async function redisCluster() {
  const settings = [...DURABLE, '--cluster-enabled', 'yes', '--masterauth', PASSWORD]
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
async function redisSentinel(master) {
  const path = program('redis-server', 'redis-server')
  const port = await freePort()
  const lines = [
    `port ${port}\nbind 127.0.0.1`,
    `sentinel monitor leases 127.0.0.1 ${new URL(master.url).port} 1`,
    `sentinel auth-pass leases ${PASSWORD}`,
    'sentinel down-after-milliseconds leases 500',
    'sentinel failover-timeout leases 5000',
  ]
  const folder = await newFolder(false, { 'sentinel.conf': lines.join('\n') })
  const url = `redis://127.0.0.1:${port}`
  const args = ['sentinel.conf', '--sentinel']
  return new Server({ folder, path, args, ready: '+monitor master', url }).start()
}

module.exports = {
  askEtcd,
  mariadb,
  PASSWORD,
  pgbouncer,
  redisCluster,
  redisSentinel,
  redisWithReplica,
  servers,
}
