'use strict'

// Runs statements of the native half on the client of a server: the caller's, or its own for a URL.
// The native half writes the statements, and reads the rows.

const { randomUUID } = require('node:crypto')
const { readFileSync } = require('node:fs')

/** How long to wait for a connection, and for an answer; for tests to change. */
const timeout = { ms: 3000 }

/** How long the server has to accept the request to cancel a statement. */
const CANCELLING_MS = 500

/** The longest answer of etcd, in bytes: twice that of a thousand node ids. */
const LONGEST_ANSWER = 2 ** 20

/**
 * The most rows in an answer of a store, and the most cells in a row; no statement asks for as
 * many.
 */
const MOST_ROWS = 2 ** 20

/** PostgreSQL's answer to a statement in a transaction that has failed. */
const IN_TRANSACTION = '25P02'

/** The answers of poolers to an option of a connection: protocol violation, feature not supported. */
const REFUSES_OPTIONS = ['08P01', '0A000']

/**
 * Distinguishes the clients of this module from the clients of its copies in other threads and
 * contexts.
 */
const here = randomUUID()

const ignore = () => {}

/** An error that the server itself reports. */
class Refusal {
  constructor(code, message) {
    this.code = code
    this.message = message
  }
}

/** Does what `promise` does, but rejects with `why` when that takes too long, and then gives up. */
async function inTime(promise, why, giveUp) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`${why} within ${timeout.ms / 1000} seconds`))
      giveUp().catch(ignore)
    }, timeout.ms).unref()
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Runs a statement of PostgreSQL; every cell is text, no matter what types the program has set. */
function runPostgres(client, text, values) {
  const types = { getTypeParser: () => String }
  // No matter who cancels a commit's wait for its standbys, the statement still succeeds, with a
  // warning. Its text is in the language of the server, but the name of PostgreSQL's source file is
  // not.
  let isConfirmed = true
  const notice = ({ file }) => {
    if (file?.endsWith('syncrep.c')) isConfirmed = false
  }
  client.on('notice', notice)
  return new Promise((resolve, reject) => {
    client.query({ text, values, rowMode: 'array', types }, (error, result) => {
      client.off('notice', notice)
      if (!error && !isConfirmed) {
        return reject(new Error('its wait for standbys was cancelled, and they may lack the write'))
      }
      // Checked afterwards: a BEGIN may have been queued before the statement. Checked here: after
      // a promise, another statement may have been answered, such as a ROLLBACK. A client that does
      // not report it is from our own pool, in which nothing begins a transaction.
      if (error) reject(error)
      else if ((client.getTransactionStatus?.() ?? 'I') === 'I') resolve(result.rows)
      else reject(new Refusal(IN_TRANSACTION, ''))
    })
  })
}

/**
 * Runs statements on a client of the caller's. A statement that takes too long is ended on the
 * server, or withdrawn if the client has not sent it yet: queries of the caller may be ahead of it.
 */
function runPostgresClient(client, text, values) {
  let isSent = false
  let isGivenUp = false
  const watched = {
    getTransactionStatus: () => client.getTransactionStatus(),
    on: (...listener) => client.on(...listener),
    off: (...listener) => client.off(...listener),
    query(config, callback) {
      const query = new client.constructor.Query(config, undefined, callback)
      const submit = query.submit.bind(query)
      query.submit = (connection) => {
        if (isGivenUp) return new Error('it was given up')
        isSent = true
        return submit(connection)
      }
      client.query(query)
    },
  }
  const itself = { Client: client.constructor, options: client.connectionParameters }
  const giveUp = async () => {
    isGivenUp = true
    if (isSent) await cancel(itself, client)
  }
  return inTime(runPostgres(watched, text, values), 'there is no answer', giveUp)
}

/** Runs a statement on a client of a pool, which gets it back, or loses it, after some seconds. */
async function runPostgresPool(pool, text, values) {
  const lending = pool.connect()
  const giveBack = async () => (await lending).release()
  const client = await inTime(lending, 'the pool provided no connection', giveBack)
  // The pool listens only to idle clients. An error event without a listener ends the process.
  client.on('error', ignore)
  let failed = true
  let cancelled
  try {
    const running = runPostgres(client, text, values)
    const giveUp = () => (cancelled = cancel(pool, client))
    const rows = await inTime(running, 'there is no answer', giveUp)
    failed = false
    return rows
  } finally {
    // When the connection is gone, a pooler forgets whose statement to cancel.
    await cancelled?.catch(ignore)
    client.release(failed)
    client.off('error', ignore)
  }
}

/**
 * Makes the server end what it does for a client of a pool: while it waits for a lock, it does not
 * notice that a connection was closed.
 */
async function cancel(pool, { host, port, processID, secretKey }) {
  if (!(processID > 0)) return
  const { connection } = new pool.Client(pool.options)
  const { stream } = connection
  connection.on('error', ignore)
  connection.on('connect', () => connection.cancel(processID, secretKey))
  const closed = new Promise((resolve) => stream.once('close', resolve))
  connection.connect(...(host.startsWith('/') ? [`${host}/.s.PGSQL.${port}`] : [port, host]))
  stream.setTimeout(CANCELLING_MS, () => stream.destroy()).unref()
  await closed
}

/** The error that refuses a client of MySQL whose statements are not committed by themselves. */
const NOT_COMMITTED = '25000'

/**
 * Errors of MySQL after which the server closes the connection: it is shutting down, or somebody
 * has ended the connection.
 */
const CLOSING = [1053, 1079, 1927, 4031]

/** Runs a statement with mysql2; every cell of the answer is text. */
function queryMysql2(connection, sql, values) {
  const typeCast = (field) => field.string()
  const options = { sql, values, rowsAsArray: true, typeCast, namedPlaceholders: false }
  return new Promise((resolve, reject) => {
    connection.query(options, (error, answer) => {
      if (!error) resolve(answer)
      else if (error.sqlState === undefined || error.fatal || CLOSING.includes(error.errno)) {
        reject(error)
      } else reject(new Refusal(error.errno, error.sqlMessage))
    })
  })
}

/**
 * Resolves to the answer of a client of MySQL, which calls back or, with mariadb, may return a
 * promise.
 */
function answerOf(call) {
  return new Promise((resolve, reject) => {
    const promised = call((error, answer) => (error ? reject(error) : resolve(answer)))
    promised?.then?.(resolve, reject)
  })
}

/**
 * Does what `queryMysql2` does, with mariadb. An answer does not have its status; the connection
 * has the status of its last answer, which may be an answer to the caller by the time we are told.
 * So a second statement follows, for the moment in which the answer before it is the last one.
 */
async function queryMariadb(connection, sql, values = []) {
  const text = (column) => column.string()
  let serverStatus
  const lastStatus = (column) => {
    serverStatus = connection.info.status
    return text(column)
  }
  const ask = (sql, values, typeCast) => {
    const options = { sql, values, rowsAsArray: true, typeCast, namedPlaceholders: false }
    // An insert id stays a BigInt, no matter how the connection converts insert ids.
    const exact = { metaAsArray: false, insertIdAsNumber: false, supportBigNumbers: false }
    return answerOf((callback) => connection.query({ ...options, ...exact }, callback))
  }
  try {
    const both = [ask(sql, values, text), ask('select 0', [], lastStatus)]
    const [answer] = await Promise.all(both)
    return Array.isArray(answer) ? answer : { insertId: answer.insertId, serverStatus }
  } catch (error) {
    const { errno, sqlState, sqlMessage } = error
    // Numbers from 45000 on are its own; after errors of class 08 there is no connection.
    const isSaid = errno >= 1000 && errno < 45000 && !sqlState?.startsWith('08')
    if (isSaid && !CLOSING.includes(errno)) throw new Refusal(errno, sqlMessage)
    // Its message contains the statement, with the token of a lease.
    throw sqlMessage ? new Error(sqlMessage) : error
  }
}

/** Runs a statement of MySQL; one without rows answers with its insert id. */
async function runMysql(query, connection, text, values) {
  const answer = await query(connection, text, values)
  if (Array.isArray(answer)) return answer
  // A program may have begun a transaction before it.
  if (answer.serverStatus & 1) throw new Refusal(NOT_COMMITTED, '')
  return [[String(answer.insertId)]]
}

/** The last task for stores on a connection of the caller: several stores may have the same one. */
const turns = new WeakMap()

/**
 * Runs a statement on a connection of the caller once the statements of other stores are answered.
 */
function runMysqlInTurn(query, connection, text, values) {
  let isGivenUp = false
  const run = () => {
    if (isGivenUp) throw new Error('it was given up')
    return runMysqlClient(query, connection, text, values)
  }
  const answer = (turns.get(connection) ?? Promise.resolve()).then(run)
  turns.set(connection, answer.catch(ignore))
  return inTime(answer, 'there is no answer', async () => {
    isGivenUp = true
  })
}

/** Runs a statement on a connection of the caller, no matter how it is set. */
async function runMysqlClient(query, connection, text, values) {
  const { serverStatus } = await query(connection, 'do 0')
  if (serverStatus & 1) throw new Refusal(NOT_COMMITTED, '')
  if (serverStatus & 2) return runMysql(query, connection, text, values)
  await query(connection, 'set autocommit = 1')
  try {
    return await runMysql(query, connection, text, values)
  } finally {
    await query(connection, 'set autocommit = 0')
  }
}

/** Runs a statement on a connection of a pool, which gets it back, or loses it, after some seconds. */
async function runMysqlPool(query, pool, text, values) {
  const lending = answerOf((callback) => pool.getConnection(callback))
  const giveBack = async () => (await lending).release()
  const connection = await inTime(lending, 'the pool provided no connection', giveBack)
  try {
    const running = runMysqlClient(query, connection, text, values)
    const rows = await inTime(running, 'there is no answer', async () => connection.destroy())
    connection.release()
    return rows
  } catch (error) {
    if (error instanceof Refusal) connection.release()
    else connection.destroy()
    throw error
  }
}

/** Makes rows from Redis's reply: lists of lists as they are, anything else as one row. */
function rowsOfReply(reply) {
  const cells = (value) => {
    if (value instanceof Map) return [...value].flat().map(cell)
    if (Array.isArray(value)) return value.map(cell)
    if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return [cell(value)]
    return Object.entries(value).flat().map(cell)
  }
  const cell = (value) => (value === null ? null : String(value))
  return Array.isArray(reply) && reply.every(Array.isArray) ? reply.map(cells) : [cells(reply)]
}

/**
 * Runs a command of Redis. With `wait`, the parameters of a WAIT, that WAIT is sent after it on the
 * same connection, and its answer is returned, too, for the native half to judge. `pipe` sends
 * several commands; where a WAIT is needed, a client that cannot do that is refused.
 */
async function runRedis(send, pipe, command, wait) {
  try {
    if (wait.length === 0 || pipe === undefined) return rowsOfReply(await send(command))
    const [reply, replicas] = await pipe([command, ['WAIT', ...wait]])
    return { rows: rowsOfReply(reply), replicas: String(replicas) }
  } catch (error) {
    const [, code, message] = /^([A-Z]{2,}) (.*)/s.exec(error?.message) ?? []
    throw code === undefined ? error : new Refusal(code, message)
  }
}

function runIoredis(client, text, parameters, wait) {
  const pipe = async (commands) => {
    const replies = await client.pipeline(commands.map((command) => ['call', ...command])).exec()
    return replies.map(([error, reply]) => {
      if (error !== null) throw error
      return reply
    })
  }
  const send = (command) => client.call(...command)
  return runRedis(send, client.pipeline && pipe, [text, ...parameters], wait)
}

function runNodeRedis(client, text, parameters, wait) {
  const pipe = (commands) =>
    commands
      .reduce((pipeline, command) => pipeline.addCommand(command), client.multi())
      .execAsPipeline()
  const send = (command) => client.sendCommand(command)
  return runRedis(send, client.multi && pipe, [text, ...parameters], wait)
}

/** Runs a command on the master that a Sentinel names. */
function runSentinelOfNodeRedis(sentinel, text, parameters, wait) {
  const pipe = (commands) =>
    commands
      .reduce((pipeline, command) => pipeline.addCommand(false, command), sentinel.multi())
      .execAsPipeline()
  const send = (command) => sentinel.sendCommand(false, command)
  return runRedis(send, pipe, [text, ...parameters], wait)
}

/**
 * Runs commands of a generator on a cluster. A namespace is one key, and a command without a key is
 * about the node of the script before it. So all are sent by `pipelineOf` a key, which has one
 * node.
 */
function runCluster(pipelineOf) {
  let key
  return (cluster, text, parameters, wait) => {
    if (text === 'EVAL') key = parameters[2]
    const pipe = (commands) => pipelineOf(cluster, key, commands)
    const send = async (command) => (await pipe([command]))[0]
    return runRedis(send, pipe, [text, ...parameters], wait)
  }
}

/** Sends a command with the key first, which decides where a pipeline goes. */
async function pipelineOfIoredis(cluster, key, commands) {
  const routed = [['hget', key, 'floor'], ...commands.map((command) => ['call', ...command])]
  const replies = await cluster.pipeline(routed).exec()
  return replies.slice(1).map(([error, reply]) => {
    if (error !== null) throw error
    return reply
  })
}

function pipelineOfNodeRedis(cluster, key, commands) {
  return commands
    .reduce((pipeline, command) => pipeline.addCommand(key, false, command), cluster.multi(key))
    .execAsPipeline()
}

/**
 * Keeps one connection, opened when it is needed, and replaces it after a failure, or once it is no
 * longer open: other generators may have used it since the server last answered.
 */
function reconnecting(open, run, close, isOpen = () => true) {
  let opening
  // A connection that was already discarded has a successor, on which another statement may run.
  const discard = (unwanted = opening) => {
    if (unwanted !== opening) return
    unwanted?.then(close).catch(() => {})
    opening = undefined
  }
  return {
    discard,
    async run(...statement) {
      opening ??= open()
      let mine = opening
      try {
        if (!isOpen(await mine)) {
          discard(mine)
          mine = opening ??= open()
        }
        return await run(await mine, ...statement)
      } catch (error) {
        if (!(error instanceof Refusal)) discard(mine)
        throw error
      }
    },
  }
}

/** Loads the first driver that is installed. */
function driver(RandflakeError, ...names) {
  for (const name of names) {
    try {
      return [name, require(name)]
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  throw new RandflakeError(
    'DRIVER_MISSING',
    `${names.join(' or ')}, which talks to that server, is not installed: npm install ${names[0]}`,
  )
}

/** The certificates that are trusted in addition to the machine's, if a URL names some. */
const trusted = ({ options: { sslrootcert } }) => sslrootcert && { ca: readFileSync(sslrootcert) }

function postgresOf(address, RandflakeError) {
  const [, { Client, Pool }] = driver(RandflakeError, 'pg')
  const [{ host, port }] = address.hosts
  const { user, password, database, tls, options } = address
  class Own extends Client {
    constructor(config) {
      super(config)
      // PGOPTIONS would move the store.
      this.connectionParameters.options = undefined
    }
  }
  // The server ends a statement that no client waits for any longer, as where the tables are
  // locked. This is an option of the connection: SET through a pooler would stay with a connection
  // that others are given later.
  let limit = { statement_timeout: Math.trunc((timeout.ms * 5) / 6) }
  const open = async () =>
    new Pool({
      Client: Own,
      host,
      port,
      user,
      password,
      database,
      ssl: tls && { ...trusted(address) },
      application_name: options.application_name,
      enableChannelBinding: ['prefer', 'require'].includes(options.channel_binding),
      max: 1,
      allowExitOnIdle: true,
      connectionTimeoutMillis: timeout.ms,
      ...limit,
    }).on('error', ignore)
  const { run, discard } = reconnecting(open, runPostgresPool, (pool) => pool.end())
  return {
    engine: 'postgresql',
    discard,
    async run(text, values) {
      try {
        return await run(text, values)
      } catch (error) {
        // This is a pooler that refuses options for a connection: statements are cancelled instead.
        if (limit === undefined || !REFUSES_OPTIONS.includes(error.code)) throw error
        limit = undefined
        return run(text, values)
      }
    },
  }
}

function mysqlOf(address, RandflakeError) {
  const [, { createConnection }] = driver(RandflakeError, 'mysql2')
  const [{ host, port }] = address.hosts
  const { user, password, database, tls, options } = address
  // The server gives up what this client no longer waits for.
  const limit = Math.max(1, Math.trunc((timeout.ms * 5) / 6000))
  const open = async () => {
    const verifyIdentity = options['ssl-mode'] !== 'VERIFY_CA'
    const connection = createConnection({
      ...(host.startsWith('/') ? { socketPath: host } : { host, port }),
      user,
      password,
      database,
      ...(tls && { ssl: { ...trusted(address), verifyIdentity } }),
      connectTimeout: timeout.ms,
    }).on('error', ignore)
    const settings = `set session autocommit = 1, innodb_lock_wait_timeout = ${limit}`
    try {
      await inTime(queryMysql2(connection, settings), 'there is no answer', async () => {})
    } catch (error) {
      connection.destroy()
      throw error instanceof Refusal ? new Error(error.message) : error
    }
    connection.stream.unref?.()
    return connection
  }
  const run = (connection, text, values) =>
    inTime(runMysql(queryMysql2, connection, text, values), 'there is no answer', async () => {})
  const close = (connection) => connection.destroy()
  return { engine: 'mysql', ...reconnecting(open, run, close, ({ stream }) => !stream.destroyed) }
}

function redisOf(address, RandflakeError) {
  const [name, loaded] = driver(RandflakeError, 'ioredis', 'redis')
  return { engine: 'redis', ...(name === 'ioredis' ? ioredisOf : nodeRedisOf)(address, loaded) }
}

function ioredisOf(address, { Redis }) {
  const [{ host, port }] = address.hosts
  const { user: username, password, tls, database: db } = address
  const open = async () => {
    let cause
    const client = new Redis({
      host,
      port,
      username,
      password,
      ...(tls && { tls: { ...trusted(address) } }),
      lazyConnect: true,
      connectTimeout: timeout.ms,
      commandTimeout: timeout.ms,
      retryStrategy: null,
    }).on('error', (error) => {
      cause = error
    })
    // Its own error only says that the connection is closed.
    await client.connect().catch((error) => Promise.reject(cause ?? error))
    client.stream.unref()
    // By itself it would continue in database 0 if there is no database of that number.
    await client.select(db).catch((error) => {
      client.disconnect()
      throw error
    })
    return client
  }
  return reconnecting(
    open,
    runIoredis,
    (client) => client.disconnect(),
    ({ status }) => status === 'ready',
  )
}

function nodeRedisOf(address, { createClient }) {
  const [{ host, port }] = address.hosts
  const { user: username, password, tls, database } = address
  const open = async () => {
    const socket = {
      host,
      port,
      ...(tls && { tls, ...trusted(address) }),
      connectTimeout: timeout.ms,
      reconnectStrategy: false,
    }
    const options = { username, password, database: Number(database), socket }
    const client = createClient(options).on('error', ignore)
    await client.connect()
    client.unref()
    return client
  }
  return reconnecting(
    open,
    runNodeRedis,
    (client) => client.destroy(),
    ({ isReady }) => isReady,
  )
}

/**
 * Posts to a member of an etcd, and reads its answer, which may never end if something else listens
 * there.
 */
async function post(request, options, body) {
  const signal = AbortSignal.timeout(timeout.ms)
  const answer = await new Promise((resolve, reject) => {
    request({ ...options, method: 'POST', signal }, resolve)
      .on('error', reject)
      .end(body)
  })
  const chunks = []
  let left = LONGEST_ANSWER
  for await (const chunk of answer) {
    left -= chunk.length
    if (left < 0) throw new Error(`the answer is longer than ${LONGEST_ANSWER} bytes`)
    chunks.push(chunk)
  }
  return {
    status: answer.statusCode,
    text: Buffer.concat(chunks).toString(),
    date: answer.headers.date,
  }
}

function etcdOf(address) {
  const { user: name, password, tls, options } = address
  const { request, Agent } = require(tls ? 'node:https' : 'node:http')
  const shown = options.sslcert && {
    cert: readFileSync(options.sslcert),
    key: readFileSync(options.sslkey),
  }
  const agent = new Agent({ keepAlive: true, ...(tls && { ...trusted(address), ...shown }) })
  let members = address.hosts
  let token

  /** Asks the first member that answers: any operation may be repeated. */
  const ask = async (path, body) => {
    const headers = { 'Content-Type': 'application/json', ...(token && { Authorization: token }) }
    let failure
    for (const [turn, { host, port }] of members.entries()) {
      try {
        const answer = await post(request, { host, port, path, headers, agent }, body)
        members = [...members.slice(turn), ...members.slice(0, turn)]
        return answer
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  const logIn = async () => {
    token = undefined
    const { text } = await ask('/v3/auth/authenticate', JSON.stringify({ name, password }))
    token = JSON.parse(text).token
    if (token === undefined) throw new Error('it does not accept the user and the password')
  }

  return {
    engine: 'etcd',
    discard: () => agent.destroy(),
    async run(path, [body]) {
      if (name && token === undefined) await logIn()
      let answer = await ask(path, body)
      // A token expires after a while.
      if (name && answer.status === 401) {
        await logIn()
        answer = await ask(path, body)
      }
      return [[answer.text, answer.date]]
    },
  }
}

const OPENERS = {
  __proto__: null,
  postgresql: postgresOf,
  mysql: mysqlOf,
  redis: redisOf,
  etcd: etcdOf,
}

/** Returns how to run statements on a client that the caller has. */
function clientOf(store, RandflakeError) {
  const has = (name) => typeof store[name] === 'function'
  const bind = (engine, run) => ({ engine, run: (...statement) => run(store, ...statement) })
  if (has('run')) {
    if (!['postgresql', 'mysql', undefined].includes(store.server)) {
      throw new RandflakeError(
        'INVALID_ARGUMENT',
        "the server of an adapter is 'postgresql', which it is unless set, or 'mysql'",
      )
    }
    return {
      engine: store.server ?? 'postgresql',
      run: (text, parameters) => store.run(text, parameters),
    }
  }
  if (has('query') && has('execute')) {
    // Clients of mysql2 with promises have one with callbacks inside.
    const inner = [store.pool, store.connection].find((it) => typeof it?.query === 'function')
    const client = inner ?? store
    const canDo = (name) => typeof client[name] === 'function'
    const query = canDo('promise') ? queryMysql2 : canDo('importFile') ? queryMariadb : undefined
    if (query === undefined) {
      throw new RandflakeError(
        'INVALID_ARGUMENT',
        'a client of MySQL must be a pool or a connection of mysql2, or of mariadb 3.2 or newer, ' +
          'which this is not; pass the URL',
      )
    }
    const run = canDo('getConnection') ? runMysqlPool : runMysqlInTurn
    return { engine: 'mysql', run: (...statement) => run(query, client, ...statement) }
  }
  if (has('query') && has('connect')) {
    const isPool = 'totalCount' in store
    const client = isPool ? store.Client?.prototype : store
    // A grant in a transaction of the caller may be rolled back, and then others get it, too.
    if (typeof client?.getTransactionStatus === 'function') {
      return bind('postgresql', isPool ? runPostgresPool : runPostgresClient)
    }
    throw new RandflakeError(
      'INVALID_ARGUMENT',
      `this ${isPool ? 'Pool lends clients that' : 'client'} cannot tell whether ` +
        'it is inside a transaction; use pg 8.18 or newer, or pass the URL',
    )
  }
  if (has('call') && has('eval')) {
    if (!store.options?.keyPrefix && !store.options?.redisOptions?.keyPrefix) {
      return bind('redis', store.isCluster ? runCluster(pipelineOfIoredis) : runIoredis)
    }
    throw new RandflakeError(
      'INVALID_ARGUMENT',
      'this client has a keyPrefix: clients without it would lease the same node ids; pass one without',
    )
  }
  if (has('sendCommand')) {
    if (has('getSentinelNode')) return bind('redis', runSentinelOfNodeRedis)
    return bind('redis', 'slots' in store ? runCluster(pipelineOfNodeRedis) : runNodeRedis)
  }
  throw new RandflakeError(
    'INVALID_ARGUMENT',
    'a store is the path of a SQLite file, the URL or a client of PostgreSQL, MySQL, Redis or etcd, or an ' +
      'adapter with run(text, parameters); this object is none of them',
  )
}

function open(store, { RandflakeError, addressOf }) {
  if (typeof store === 'object' && store !== null && !(store instanceof URL)) {
    return { ...clientOf(store, RandflakeError), passwords: [] }
  }
  const text = typeof store === 'string' || store instanceof URL ? String(store) : ''
  // URLs are read in one place for all clients: none of them is given a URL.
  const address = addressOf(text)
  if (!address) return undefined
  const { password, place, key } = address
  const passwords = !password ? [] : [password, encodeURIComponent(password)]
  const opened = OPENERS[address.engine](address, RandflakeError)
  return { ...opened, passwords, place, url: `${here} ${key}` }
}

/** Returns a copy of the rows that a client has answered: arrays, all of strings or null. */
function rowsOf(answered) {
  const refuse = () => {
    throw new Error(
      'the client must answer with an array of rows, each an array of strings or null',
    )
  }
  const copy = (list, item) =>
    Array.isArray(list) && list.length <= MOST_ROWS ? Array.from(list, item) : refuse()
  const cell = (value) => (value === null || typeof value === 'string' ? value : refuse())
  return copy(answered, (row) => copy(row, cell))
}

/** Returns what the native half needs for a store with a server; undefined for any other store. */
function serverOf(store, native) {
  const opened = open(store, native)
  if (opened === undefined) return undefined
  const { engine, run, discard, url, place, passwords } = opened
  const explain = ({ message, code, name } = {}) =>
    passwords.reduce(
      (text, password) => text.replaceAll(password, '***'),
      String(message || code || name),
    )

  const ask = async ({ text, parameters, wait }) => {
    try {
      const answered = await run(text, parameters, wait)
      const { rows, replicas } = Array.isArray(answered) ? { rows: answered } : (answered ?? {})
      return { rows: rowsOf(rows), replicas }
    } catch (error) {
      const refused =
        error instanceof Refusal ||
        (typeof error?.severity === 'string' && error.code?.length === 5)
      if (refused) return { refused: [String(error.code), explain(error)] }
      return { failed: explain(error ?? {}) }
    }
  }
  // Without a statement, give up the connection. Among the generators with one URL, only one is
  // asked.
  const either = async (statement) => (statement === null ? discard?.() : ask(statement))
  return { engine, url, place, run: either }
}

module.exports = { timeout, serverOf }
