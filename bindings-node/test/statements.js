'use strict'

// Runs statements for the conformance tests of stores, which are in Rust: leases/tests/languages.
//
// Prints the port on which it listens, and ends with its standard input. Each connection is a
// client, and sends one statement per line.

const { createServer } = require('node:net')
const { createInterface } = require('node:readline')
const Redis = require('ioredis')
const mariadb = require('mariadb')
const mysql = require('mysql2')
const { Pool } = require('pg')
const { createClient } = require('redis')
const { native } = require('../lib/native.js')
const { timeout, serverOf } = require('../lib/stores.js')
const { adapterOf, ofMariadb } = require('./store.js')

const [, , client, url] = process.argv

timeout.ms = 20_000 // for a busy machine

const stores = {
  pg: () => new Pool({ connectionString: url }),
  postgres: () => adapterOf(url, 20),
  mariadb: () =>
    mariadb.createPool({ ...ofMariadb(url), connectionLimit: 20, acquireTimeout: timeout.ms }),
  mysql2: () => mysql.createPool({ uri: url, connectionLimit: 20 }),
  ioredis: () => new Redis(url),
  redis: () => createClient({ url }).connect(),
  etcd: () => url,
}

/** Returns the outcome of a statement. */
async function outcomeOf(run, statement) {
  const wait = (statement.wait ?? []).map(String)
  const { replicas, ...outcome } = await run({ ...statement, wait })
  return { ...outcome, replicas: replicas && Number(replicas) }
}

async function main() {
  const store = await stores[client]()
  const server = createServer(async (socket) => {
    const { run } = serverOf(store, native)
    for await (const line of createInterface({ input: socket })) {
      socket.write(`${JSON.stringify(await outcomeOf(run, JSON.parse(line)))}\n`)
    }
    run(null)
  })
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))
  process.stdin.on('end', () => process.exit()).resume()
}
main()
