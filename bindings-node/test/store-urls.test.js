'use strict'

// URLs of stores: all languages read or refuse them alike.

const assert = require('node:assert/strict')
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { after, test } = require('node:test')
const { Layout, Randflake, Snowflake } = require('..')
const { native } = require('../lib/native.js')
const { SECRET } = require('./store.js')

const vectors = join(__dirname, '../../tests/vectors/stores.json')
const { engines, no_urls: noUrls, no_stores: noStores } = JSON.parse(readFileSync(vectors))
// A file that looks like what a URL may name: `{pem}` in the vectors.
const folder = mkdtempSync(join(tmpdir(), 'randflake-urls-'))
const pem = join(folder, 'pem')
writeFileSync(pem, '-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n')
after(() => rmSync(folder, { recursive: true }))
const named = (url) => url.replaceAll('{pem}', encodeURIComponent(pem))

const PARTS = ['schemes', 'logins', 'hosts', 'paths', 'queries']

async function refused(store) {
  const leased = Randflake.leased(named(store), SECRET, { acquireTimeoutMs: 0 })
  await assert.rejects(leased, ({ code, message }) => {
    assert.equal(code, 'INVALID_ARGUMENT', store)
    assert(!message.includes('hunter2'), store)
    return true
  })
}

for (const [name, engine] of Object.entries(engines)) {
  test(`a URL of ${name} has one place`, () => {
    let all = [['', '']]
    for (const part of PARTS) {
      const pairs = Object.entries(engine[part])
      all = all.flatMap(([url, place]) => pairs.map(([a, b]) => [url + a, place + b]))
    }
    all.push(...Object.entries(engine.whole))
    assert(all.length >= 200)
    for (const [url, place] of all) {
      const address = native.addressOf(named(url))
      assert.deepEqual([address.engine, address.place], [name, place], url)
    }
  })

  test(`a wrong URL of ${name} is refused before anything is opened`, async () => {
    for (const [index, parts] of engine.wrong.entries()) {
      for (const part of parts)
        await refused(engine.example.map((one, at) => (at === index ? part : one)).join(''))
    }
  })
}

test('what is no store is refused', async () => {
  for (const path of noUrls) assert(!native.addressOf(path))
  for (const store of noStores) await refused(store)
})

for (const secret of [SECRET, SECRET.toUpperCase(), 'a 16-byte secret', `id=${SECRET};`]) {
  test(`a secret in the wrong place is not shown: ${secret.length} characters`, async () => {
    const wrong = [
      () => new Layout(secret),
      () => new Layout(`twitter,${secret}`),
      () => new Snowflake(1, { layout: secret }),
      () => Randflake.leased('ids.db', SECRET, { namespace: ` ${secret}` }),
      ...(secret.length !== 32
        ? []
        : [
            () => Randflake.leased('ids.db', SECRET, { namespace: secret }),
            () => Randflake.leased(secret, SECRET),
          ]),
    ]
    for (const call of wrong) {
      await assert.rejects(
        async () => call(),
        ({ code, message }) => {
          assert.equal(code, 'INVALID_ARGUMENT')
          assert(!message.toLowerCase().includes(secret.slice(0, 12).toLowerCase()), message)
          return true
        },
      )
    }
  })
}
