'use strict'

// The clients of servers, and a suite of tests for each server.

const { after, before, suite, test } = require('node:test')
const Redis = require('ioredis')
const mariadb = require('mariadb')
const callbacks = require('mariadb/callback')
const mysql = require('mysql2')
const promises = require('mysql2/promise')
const { Client, Pool } = require('pg')
const { createClient } = require('redis')
const { servers } = require('./servers.js')
const { adapterOf, ofMariadb } = require('./store.js')

/** Settings of mariadb under which it gives rows and numbers in another form. */
const PECULIAR = {
  bigNumberStrings: true,
  bigIntAsNumber: true,
  checkNumberRange: true,
  dateStrings: true,
  insertIdAsNumber: true,
  metaAsArray: true,
  metaEnumerable: true,
  namedPlaceholders: true,
  nestTables: true,
  pipelining: false, // each statement is sent when the one before it is answered
  supportBigNumbers: true,
  typeCast: () => 'cast',
}

/** The argument that selects the store, for each client, and how to close it. */
const clients = {
  postgresql: {
    url: (url) => [url, () => {}],
    'a URL object': (url) => [new URL(url), () => {}],
    'a Pool': (url) => {
      const pool = new Pool({ connectionString: url })
      return [pool, () => pool.end()]
    },
    'a Client': async (url) => {
      const client = new Client(url)
      await client.connect()
      return [client, () => client.end()]
    },
    'an adapter of postgres': (url) => {
      const adapter = adapterOf(url)
      return [adapter, adapter.end]
    },
  },
  mysql: {
    url: (url) => [url, () => {}],
    'a Pool': (url) => {
      const pool = mysql.createPool(url)
      return [pool, () => pool.end()]
    },
    'a Pool of promises': (url) => {
      const pool = promises.createPool(url)
      return [pool, () => pool.end()]
    },
    'a connection without autocommit': (url) => {
      const connection = mysql.createConnection(url)
      connection.query('set autocommit = 0')
      return [connection, () => connection.end()]
    },
    'a connection of promises': async (url) => {
      const connection = await promises.createConnection(url)
      return [connection, () => connection.end()]
    },
    'a Pool of mariadb': (url) => {
      const pool = mariadb.createPool(ofMariadb(url))
      return [pool, () => pool.end()]
    },
    'a Pool of mariadb with callbacks': (url) => {
      const pool = callbacks.createPool({ ...ofMariadb(url), ...PECULIAR })
      return [pool, () => pool.end()]
    },
    'a connection of mariadb without autocommit': async (url) => {
      const connection = await mariadb.createConnection({ ...ofMariadb(url), ...PECULIAR })
      await connection.query('set autocommit = 0')
      return [connection, () => connection.end()]
    },
    'a connection of mariadb with callbacks': (url) => {
      const connection = callbacks.createConnection(ofMariadb(url))
      return [connection, () => connection.end()]
    },
  },
  redis: {
    url: (url) => [url, () => {}],
    ioredis: (url) => {
      const client = new Redis(url)
      return [client, () => client.disconnect()]
    },
    redis: async (url) => {
      const client = createClient({ url })
      await client.connect()
      return [client, () => client.destroy()]
    },
  },
  etcd: { url: (url) => [url, () => {}] },
}

/**
 * Runs a suite for each kind of server. `tests` gets its name, its clients, and `live`: a test that
 * needs the server, which it gets after the context of the test.
 */
function suites(options, tests) {
  for (const [name, table] of Object.entries(clients)) {
    suite(name, options, () => {
      let server
      before(async () => {
        server = await servers[name]()
      })
      after(() => server?.stop())

      const live = (what, body) =>
        test(what, (t) =>
          server === undefined ? t.skip('the server is missing') : body(t, server),
        )

      tests({ name, table, live })
    })
  }
}

module.exports = { clients, PECULIAR, suites }
