'use strict'

// Ids from `randflake serve`: of the real one, and of servers that answer anything.

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { existsSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const http = require('node:http')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { before, test } = require('node:test')
const { Inspector, Layout } = require('../index.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const TOKEN = 'open-sesame-4711-and-more'
const UNAVAILABLE = { name: 'RandflakeError', code: 'STORE_UNAVAILABLE' }

let ServedGenerator

before(async () => {
  ;({ ServedGenerator } = await import('randflake/web'))
})

/** The command of cargo, which make builds before these tests. */
const TARGET = join(__dirname, '../../target')
const COMMAND = [process.env.CARGO_BUILD_TARGET ?? '', 'x86_64-unknown-linux-gnu', '']
  .map((platform) => join(TARGET, platform, 'debug/randflake'))
  .find(existsSync)
const skip = COMMAND === undefined && process.env.CI !== 'true' && 'make programs-for-tests'

/** Starts the service with more options, and returns its url. */
async function startService(t, ...options) {
  const folder = mkdtempSync(join(tmpdir(), 'randflake-served-'))
  const token = join(folder, 'token')
  writeFileSync(token, TOKEN, { mode: 0o600 })
  const place = ['--store', join(folder, 'ids.db'), '--listen', '127.0.0.1:0']
  const own = ['--max-wait', '60', '--token-file', token, ...options]
  const env = { ...process.env, RANDFLAKE_SECRET: SECRET }
  const stdio = ['ignore', 'ignore', 'pipe']
  const service = spawn(COMMAND, ['serve', ...place, ...own], { env, stdio })
  const ended = once(service, 'exit')
  t.after(async () => {
    service.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true })
  })
  let said = ''
  for await (const text of service.stderr
    .setEncoding('utf8')
    .iterator({ destroyOnReturn: false })) {
    said += text
    const [, url] = /listening on (\S+)\s/.exec(said) ?? []
    if (url === undefined) continue
    service.stderr.resume()
    return url
  }
  assert.fail(said)
}

/** Starts a server that answers as `answer` does, given the request, the response and how many came before. */
async function startServer(t, answer) {
  let count = 0
  const server = http.createServer((request, response) => answer(request, response, count++))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${server.address().port}`, asked: () => count }
}

let last = 0n

/** Answers as the service does, with numbers that never come again. */
function answerIds({ url }, response) {
  const count = Number(new URL(url, 'http://service').searchParams.get('count'))
  const ids = Array.from({ length: count }, () => String(++last))
  response.end(JSON.stringify({ ids }))
}

const refusal = (response, status, headers, body) => {
  response.writeHead(status, headers)
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

test('ids of the service', { skip }, async (t) => {
  const url = await startService(t)
  const flake = new ServedGenerator(url, { token: TOKEN, batch: 100 })
  const inspector = new Inspector(SECRET)
  const ids = await Promise.all(Array.from({ length: 1000 }, () => flake.generate()))
  ids.push(...(await flake.generateMany(250)))
  assert.equal(new Set(ids).size, 1250)
  for (const id of ids) {
    assert.equal(BigInt.asIntN(64, id), id)
    assert.ok(Math.abs(inspector.inspect(id).date - Date.now()) < 3_600_000)
  }
  assert.match(await flake.generateString(), /^[0-9a-v]{1,13}$/)
  assert.deepEqual(await flake.generateMany(0), [])

  const code = (options) =>
    new ServedGenerator(`${url}/`, options).generate().catch((error) => error.code)
  assert.equal(await code(), 'UNAUTHORIZED')
  assert.equal(await code({ token: `${TOKEN}!` }), 'UNAUTHORIZED')
  assert.equal(await code({ token: TOKEN, batch: 10_001 }), 'INVALID_ARGUMENT')
  assert.equal(await code({ token: TOKEN, batch: 10_000 }).then((id) => typeof id), 'bigint')
  const elsewhere = new ServedGenerator(`${url}/elsewhere`, { token: TOKEN })
  await assert.rejects(elsewhere.generate(), { name: 'RandflakeError', code: 'INVALID_ARGUMENT' })
})

test('ids of a service with a layout', { skip }, async (t) => {
  const text = 'twitter,epoch_ms=1577836800000'
  const flake = new ServedGenerator(await startService(t, '--layout', text), { token: TOKEN })
  const ids = await flake.generateMany(1500)
  assert.equal(new Set(ids).size, 1500)
  assert.ok(Math.abs(new Layout(text).inspect(ids[0]).date - Date.now()) < 3_600_000)
})

test('a thousand calls at a time get each id once', async (t) => {
  for (const batch of [1, 2, 7, 64, 1000]) {
    const { url } = await startServer(t, answerIds)
    const flake = new ServedGenerator(url, { batch })
    const calls = Array.from({ length: 1000 }, (_, index) =>
      index % 10 === 0 ? flake.generateMany(index % 30) : flake.generate().then((id) => [id]),
    )
    const ids = (await Promise.all(calls)).flat()
    assert.equal(new Set(ids).size, ids.length)
  }
})

test('the next batch is there before this one is used up', async (t) => {
  const { url, asked } = await startServer(t, answerIds)
  const flake = new ServedGenerator(url, { batch: 10 })
  const ids = []
  for (let made = 0; made < 4; made++) ids.push(await flake.generate())
  assert.equal(asked(), 1)
  ids.push(await flake.generate())
  while (asked() < 2) await new Promise(setImmediate)
  ids.push(...(await flake.generateMany(5)))
  // In the order in which they were made.
  assert.deepEqual(ids, ids.toSorted?.((a, b) => (a < b ? -1 : 1)) ?? ids)
  const single = await startServer(t, answerIds)
  const fresh = new ServedGenerator(single.url, { batch: 1 })
  for (let made = 0; made < 5; made++) await fresh.generate()
  assert.equal(single.asked(), 5, 'nothing is fetched ahead')
})

test('a call that is aborted gets the reason, and no other call its ids', async (t) => {
  const held = []
  const { url } = await startServer(t, (request, response) => held.push([request, response]))
  const flake = new ServedGenerator(url, { batch: 4 })
  const stop = new AbortController()
  const calls = [
    flake.generate({ signal: stop.signal }),
    flake.generate(),
    flake.generateMany(9, { signal: stop.signal }),
    flake.generateMany(2),
  ].map((call) => call.then((value) => ({ value })).catch((error) => ({ error })))
  while (held.length === 0) await new Promise(setImmediate)
  const reason = new Error('not any more')
  stop.abort(reason)
  assert.deepEqual(await calls[0], { error: reason })
  assert.deepEqual(await calls[2], { error: reason })
  const before = last
  answerIds(...held.shift())
  assert.deepEqual(await calls[1], { value: before + 1n })
  assert.deepEqual(await calls[3], { value: [before + 2n, before + 3n] })
  assert.equal(await flake.generate({ signal: undefined }), before + 4n)
  // At once, also if there are ids.
  while (held.length === 0) await new Promise(setImmediate)
  answerIds(...held.shift())
  const next = await flake.generate()
  await assert.rejects(flake.generate({ signal: stop.signal }), reason)
  assert.equal(await flake.generate(), next + 1n)
})

test('an answer that was cut is dropped, and asked for once more', async (t) => {
  const seen = []
  const cut = (request, response, count) => {
    if (count % 2 === 1) return answerIds(request, response)
    seen.push(request.socket)
    response.writeHead(200, { 'content-length': 1000 })
    response.write('{"ids":["7","8"', () => response.destroy())
  }
  const { url, asked } = await startServer(t, cut)
  const flake = new ServedGenerator(url, { batch: 1 })
  const ids = await flake.generateMany(5)
  assert.equal(new Set(ids).size, 5)
  assert.equal(asked(), 10)
  // One whose end is missing, although the connection ended well.
  const short = await startServer(t, (_, response) => response.end('{"ids":["7","8"'))
  await assert.rejects(new ServedGenerator(short.url).generate(), UNAVAILABLE)
  // And always.
  const never = await startServer(t, (request) => request.socket.destroy())
  await assert.rejects(new ServedGenerator(never.url).generate(), (error) => {
    assert.deepEqual([error.code, error.name], ['STORE_UNAVAILABLE', 'RandflakeError'])
    assert.match(error.message, /cannot be reached/)
    assert.ok(error.cause instanceof Error)
    return true
  })
  assert.ok(never.asked() >= 2, 'a runtime may ask more often by itself')
})

test('an answer that does not come', async (t) => {
  const { url, asked } = await startServer(t, (_, response) => response.write('{"ids":'))
  const flake = new ServedGenerator(url, { timeoutMs: 50 })
  const message = 'the service did not answer within 50 ms'
  await assert.rejects(flake.generate(), { ...UNAVAILABLE, message })
  assert.equal(asked(), 1)
})

test('a fetch that knows no signals is left alone after the time', async () => {
  const body = () => Promise.resolve(new Response(new ReadableStream({})))
  for (const fetch of [() => new Promise(() => {}), body]) {
    const flake = new ServedGenerator('https://ids.internal', { timeoutMs: 20, fetch })
    for (let again = 0; again < 2; again++) {
      await assert.rejects(flake.generate(), { ...UNAVAILABLE, message: /within 20 ms/ })
    }
  }
})

test('an answer that was given out before is refused, however long ago', async () => {
  const answers = [1, 3, 5, 7, 3].map((first) => ({ ids: [String(first), String(first + 1)] }))
  const fetch = () => Promise.resolve(Response.json(answers.shift()))
  const flake = new ServedGenerator('https://ids.internal', { batch: 2, fetch })
  const made = []
  for (let count = 0; count < 8; count++) made.push(await flake.generate())
  assert.equal(new Set(made).size, 8)
  await assert.rejects(flake.generate(), { ...UNAVAILABLE, message: /twice/ })
})

test('a token at the end of a long message, or in place of a code, is not shown', async () => {
  for (const body of [
    { code: 'BUSY', message: `${'x'.repeat(290)}${TOKEN}` },
    { code: TOKEN, message: 'no' },
  ]) {
    const fetch = () => Promise.resolve(Response.json(body, { status: 503 }))
    const flake = new ServedGenerator('https://ids.internal', { token: TOKEN, fetch })
    await assert.rejects(flake.generate(), ({ code, message }) => {
      assert(!`${code} ${message}`.includes(TOKEN.slice(0, 8)), `${code} ${message}`)
      return true
    })
  }
})

test('answers without ids are errors', async (t) => {
  const ids = (...list) => JSON.stringify({ ids: list })
  const bodies = {
    'is not JSON': ['', '<html>', '{"ids":["1","2"]} ?', 'null'],
    'has no list of ids': [
      ...['{}', '[]', '"1"', '{"ids":{}}', '{"ids":"12"}', '{"ids":[1,2]}', '{"ids":[null,"1"]}'],
      ...[ids('1', ''), ids('1', '0x1'), ids('1', '01'), ids('1', ' 2'), ids('1', '-0')],
      ids('1', '1e3'),
      ids('1', '3vgoe12ccb8gh'),
    ],
    'instead of 2': [ids(), ids('1'), ids('1', '2', '3')],
    'more than 64 bits': [ids('1', '18446744073709551616'), ids('-9223372036854775809', '1')],
    twice: [ids('1', '1')],
  }
  for (const [why, all] of Object.entries(bodies)) {
    for (const body of all) {
      const { url } = await startServer(t, (_, response) => response.end(body))
      const flake = new ServedGenerator(url, { batch: 2 })
      const message = new RegExp(why)
      await assert.rejects(flake.generate(), { ...UNAVAILABLE, message }, body)
    }
  }
  // What a cache would do.
  const same = await startServer(t, (_, response) => response.end(ids('1', '2')))
  const flake = new ServedGenerator(same.url, { batch: 2 })
  assert.equal(await flake.generate(), 1n)
  assert.equal(await flake.generate(), 2n)
  await assert.rejects(flake.generate(), { ...UNAVAILABLE, message: /twice/ })
  const wide = await startServer(t, (_, response) =>
    response.end(ids('18446744073709551615', '-9223372036854775808')),
  )
  const signed = new ServedGenerator(wide.url, { batch: 2 })
  assert.deepEqual(await signed.generateMany(2), [2n ** 64n - 1n, -(2n ** 63n)])
})

test('errors of the service come with its code, and never with the token', async (t) => {
  const full = { code: 'SEQUENCE_EXHAUSTED', message: 'no ids are left now' }
  const { url, asked } = await startServer(t, (request, response, count) => {
    if (count === 0) return refusal(response, 503, { 'retry-after': '2' }, full)
    if (count === 1) {
      const message = `not ${request.headers.authorization}`
      return refusal(response, 403, {}, { code: 'UNAUTHORIZED', message })
    }
    if (count === 2) return refusal(response, 502, {}, '<html>Bad Gateway</html>')
    if (count === 3) return refusal(response, 500, {}, { code: 5, message: 'x' })
    return answerIds(request, response)
  })
  const flake = new ServedGenerator(new URL(url), { token: TOKEN })
  const failed = () => flake.generate().catch((error) => error)
  const both = await Promise.all([failed(), failed()])
  for (const { code, message, retryAfterMs, name } of both) {
    assert.deepEqual({ code, message }, full)
    assert.deepEqual([retryAfterMs, name], [2000, 'RandflakeError'])
  }
  const { code, message, retryAfterMs } = await failed()
  assert.deepEqual([code, message, retryAfterMs], ['UNAUTHORIZED', 'not Bearer [token]', undefined])
  await assert.rejects(flake.generate(), { ...UNAVAILABLE, message: /status 502/ })
  await assert.rejects(flake.generate(), { ...UNAVAILABLE, message: /status 500/ })
  assert.equal(asked(), 4, 'an error is not asked for again')
  assert.equal(typeof (await flake.generate()), 'bigint')
})

test('a failure of what is fetched ahead ends no call', async (t) => {
  const broken = (response) => refusal(response, 503, { 'retry-after': '100' }, 'x')
  const { url, asked } = await startServer(t, (request, response, count) =>
    count === 1 ? broken(response) : answerIds(request, response),
  )
  const flake = new ServedGenerator(url, { batch: 4 })
  const ids = []
  for (let made = 0; made < 4; made++) {
    ids.push(await flake.generate())
    while (made > 0 && asked() < 2) await new Promise(setImmediate)
  }
  ids.push(await flake.generate().catch(() => flake.generate()))
  assert.equal(new Set(ids).size, 5)
})

test('no redirect is followed', async (t) => {
  const other = await startServer(t, answerIds)
  for (const status of [301, 302, 303, 307, 308]) {
    const { url } = await startServer(t, (_, response) =>
      refusal(response, status, { location: `${other.url}/v1/ids?count=1000` }, ''),
    )
    const flake = new ServedGenerator(url, { token: TOKEN })
    await assert.rejects(flake.generate(), { ...UNAVAILABLE, message: /redirect/ })
  }
  assert.equal(other.asked(), 0)
})

test('how it asks', async () => {
  const requests = []
  const fetch = async (...request) => {
    requests.push(request)
    return new Response('{"ids":["1"]}')
  }
  for (const [url, address] of [
    ['https://ids.internal', 'https://ids.internal/v1/ids'],
    ['http://ids.internal:8080/', 'http://ids.internal:8080/v1/ids'],
    [new URL('https://ids.internal/below/'), 'https://ids.internal/below/v1/ids'],
  ]) {
    const flake = new ServedGenerator(url, { fetch, batch: 1, token: TOKEN })
    assert.equal(await flake.generateString(), '1')
    const [to, { method, headers, redirect, signal, ...others }] = requests.pop()
    assert.equal(to, `${address}?count=1&format=number`)
    assert.deepEqual(headers, { authorization: `Bearer ${TOKEN}` })
    assert.deepEqual([method, redirect, others], ['POST', 'manual', {}])
    assert.ok(signal instanceof AbortSignal)
  }
  const broken = new ServedGenerator('https://ids.internal', {
    fetch: () => Promise.reject(new TypeError(`header ${TOKEN}`)),
    token: TOKEN,
  })
  await assert.rejects(broken.generate(), ({ message }) => !message.includes(TOKEN))
})

test('arguments that are none', async () => {
  const url = 'https://ids.internal'
  const invalid = { name: 'RandflakeError', code: 'INVALID_ARGUMENT' }
  const urls = ['', 'ids.internal', '/v1', 'ftp://ids.internal', 'https://a:b@ids.internal', null]
  for (const wrong of [
    ...urls,
    undefined,
    5,
    {},
    `${url}?a=b`,
    `${url}#a`,
    `${url}/?`,
    `${url}/#`,
  ]) {
    assert.throws(() => new ServedGenerator(wrong), invalid)
  }
  const options = { token: ['', ' ', 5, null, 'a b', 'a\n', 'ä'], fetch: [5, null, 'x', {}] }
  options.batch = [0, -1, 1.5, '1', 100_001, 1n, null]
  options.timeoutMs = [0, -1, 0.5, '1', 2 ** 31, Infinity]
  for (const [name, values] of Object.entries(options)) {
    for (const wrong of values) {
      assert.throws(
        () => new ServedGenerator(url, { [name]: wrong }),
        (error) => {
          assert.equal(error.code, 'INVALID_ARGUMENT')
          return true
        },
      )
    }
  }
  for (const wrong of [null, [], 'x', { tokn: TOKEN }]) {
    assert.throws(() => new ServedGenerator(url, wrong), invalid)
  }
  assert.throws(() => ServedGenerator(url), invalid)
  const flake = new ServedGenerator(url, { fetch: () => assert.fail('nothing is asked') })
  for (const count of [-1, 0.5, '1', 1n, Number.NaN, undefined, 2 ** 53]) {
    await assert.rejects(flake.generateMany(count), invalid)
  }
  assert.deepEqual(await flake.generateMany(0), [])
  await assert.rejects(flake.generate({ signal: { throwIfAborted() {} } }), invalid)
  await assert.rejects(flake.generate({ sgnal: 1 }), invalid)
  await assert.rejects(flake.generate({ signal: 5 }), invalid)
  await assert.rejects(flake.generate.call({}), invalid)
  assert.doesNotMatch(
    require('node:util').inspect(new ServedGenerator(url, { token: TOKEN }), { depth: 9 }),
    /sesame/,
  )
})
