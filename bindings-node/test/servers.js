'use strict'

// Servers for tests: started on free ports of the loopback interface, in a directory that is gone
// afterwards, and stopped with the test.

const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const {
  accessSync,
  chownSync,
  constants,
  mkdirSync,
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
const { until } = require('./store.js')

/** Of all servers that have one. */
const PASSWORD = 'open-sesame-4711'
/** The user `nobody`: not every server runs as root. */
const NOBODY = 65534

/** Finds a program; undefined where a test has to be skipped, which in CI is a failure. */
function program(name, debianPackage) {
  const folders = process.env.PATH.split(delimiter)
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

async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address()
  await new Promise((resolve) => listener.close(resolve))
  return port
}

/** Starts a program and waits until its log says that it is ready. */
async function start(folder, path, args, ready, { user = {}, signal = 'SIGTERM' } = {}) {
  const logPath = join(folder, 'log')
  const log = openSync(logPath, 'w')
  const child = spawn(path, args, { cwd: folder, stdio: ['ignore', log, log], ...user })
  const ended = once(child, 'exit')
  await until(`${path} answers`, () => {
    if (child.exitCode !== null) throw new Error(readFileSync(logPath, 'utf8'))
    return readFileSync(logPath, 'utf8').includes(ready)
  })
  return async () => {
    child.kill(signal)
    await ended
    rmSync(folder, { recursive: true })
  }
}

const newFolder = () => mkdtempSync(join(tmpdir(), 'randflake-server-'))

/** Each starts a server and returns its URL, and how to stop it; undefined if there is none. */
const servers = {
  async postgresql() {
    const initdb = program('initdb', 'postgresql')
    if (initdb === undefined) return undefined
    const [folder, port] = [newFolder(), await freePort()]
    const [data, passwords] = [join(folder, 'data'), join(folder, 'password')]
    writeFileSync(passwords, PASSWORD)
    mkdirSync(data)
    const user = process.getuid() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
    if (user.uid) for (const path of [folder, data, passwords]) chownSync(path, NOBODY, NOBODY)
    const how = ['--no-sync', '--no-locale', '--encoding=UTF8', '--username=randflake']
    how.push('--auth=scram-sha-256', '--pwfile', passwords, '-D', data)
    execFileSync(initdb, how, { cwd: folder, stdio: 'pipe', ...user })
    const args = ['-D', data, '-p', port, '-h', '127.0.0.1', '-k', folder]
    const how2 = { user, signal: 'SIGINT' }
    const path = program('postgres', 'postgresql')
    const stop = await start(folder, path, args, 'ready to accept', how2)
    return { stop, url: `postgresql://randflake:${PASSWORD}@127.0.0.1:${port}/postgres` }
  },

  async redis(...settings) {
    const path = program('redis-server', 'redis-server')
    if (path === undefined) return undefined
    const [folder, port] = [newFolder(), await freePort()]
    const args = ['--port', port, '--bind', '127.0.0.1', '--dir', folder]
    args.push('--requirepass', PASSWORD, ...settings)
    const stop = await start(folder, path, args, 'Ready to accept connections')
    return { stop, url: `redis://:${PASSWORD}@127.0.0.1:${port}/0` }
  },

  async etcd() {
    const path = program('etcd', 'etcd-server')
    if (path === undefined) return undefined
    const [folder, port, peerPort] = [newFolder(), await freePort(), await freePort()]
    const [client, peer] = [port, peerPort].map((number) => `http://127.0.0.1:${number}`)
    const args = ['--data-dir', join(folder, 'data'), '--listen-client-urls', client]
    args.push('--advertise-client-urls', client, '--listen-peer-urls', peer)
    args.push('--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`)
    const stop = await start(folder, path, args, 'ready to serve client requests')
    return { stop, url: `etcd://127.0.0.1:${port}` }
  },
}

module.exports = { PASSWORD, servers }
