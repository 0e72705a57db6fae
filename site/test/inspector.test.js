// The page of the inspector in a browser: what it shows, and that nothing leaves it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { HANGS_MS, startBrowser } from './browser.js'
import { serve } from './server.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const vectors = (name) => JSON.parse(readFileSync(join(ROOT, 'tests/vectors', name))).cases
const NEGATIVE = vectors('ids.json').find(({ id }) => id.startsWith('-'))
const SONYFLAKE = vectors('layouts.json').find(({ layout }) => layout === 'sonyflake')
const TWITTER = vectors('layouts.json').find(({ layout }) => layout === 'twitter')

let server, browser, address

before(async () => {
  server = await serve(join(ROOT, 'target/site'))
  address = `http://127.0.0.1:${server.address().port}/inspector`
  browser = await startBrowser()
})

after(async () => {
  await browser?.close()
  server?.close()
})

/** Opens the page; `requests` are those that follow once all is loaded. */
async function open(hash = '', options = {}) {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(HANGS_MS)
  const page = await context.newPage()
  const requests = []
  await page.goto(address + hash, { waitUntil: 'networkidle' })
  await page.locator('option[value=twitter]').waitFor({ state: 'attached' })
  page.on('request', (request) => {
    const isPlain = request.method() === 'GET' && !request.postData()
    requests.push(isPlain ? request.url() : `${request.method()} ${request.url()}`)
  })
  return { context, page, requests }
}

/** What the page shows: the terms and their descriptions. */
async function shown(page) {
  await page.locator('dl').waitFor()
  const texts = (selector) => page.locator(selector).allTextContents()
  const [terms, values] = [await texts('.inspector dt'), await texts('.inspector dd')]
  return Object.fromEntries(terms.map((term, index) => [term, values[index]]))
}

const utc = (unixMs) => new Date(unixMs).toISOString().replace('.000Z', 'Z')

test('an encrypted id is read with its secret', async () => {
  const { context, page } = await open()
  const { secret, timestamp, node_id, sequence, id, text, raw } = NEGATIVE
  await page.getByLabel('Id', { exact: true }).fill(id)
  assert.match(await page.locator('.answer').textContent(), /secret/)
  await page.getByLabel('Secret').fill(secret)
  const { 'Local time': local, ...others } = await shown(page)
  assert.deepEqual(others, {
    'Time (UTC)': utc(timestamp * 1000),
    'Node id': String(node_id),
    Sequence: String(sequence),
    Number: id,
    Text: text,
    'Sortable form': raw,
  })
  assert.ok(local)
  const bits = await page.locator('.bits .bit').allTextContents()
  assert.equal(BigInt(`0b${bits.join('')}`), BigInt(raw))
  const drawn = await page.getByRole('img', { name: /64 bits/ }).getAttribute('aria-label')
  assert.match(drawn, /30 bits time, 17 bits node, 17 bits sequence/)

  // The text form says the same, and another secret something else.
  await page.getByLabel('Id', { exact: true }).fill(` ${text} `)
  assert.equal((await shown(page)).Number, id)
  await page.getByLabel('Secret').fill('0'.repeat(32))
  assert.notEqual((await shown(page))['Node id'], String(node_id))
  await page.getByLabel('Secret').fill('abc')
  await page.getByText('a secret must be 16 bytes or 32 hex digits').waitFor()
  await context.close()
})

test('a layout needs no secret, and a link shows the id', async () => {
  const { context, page } = await open()
  await page.getByLabel('Layout').selectOption('sonyflake')
  assert.equal(await page.getByLabel('Secret').count(), 0)
  await page.getByLabel('Id', { exact: true }).fill(SONYFLAKE.id)
  const sony = await shown(page)
  assert.equal(sony['Time (UTC)'], utc(SONYFLAKE.unix_ms))
  assert.equal(sony['Node id'], String(SONYFLAKE.node_id))
  assert.equal(sony.Sequence, String(SONYFLAKE.sequence))
  const link = await page.getByRole('link', { name: 'Link to this id' }).getAttribute('href')
  assert.equal(link, `#layout=sonyflake&id=${SONYFLAKE.id}`)
  await context.close()

  const linked = await open(`#layout=twitter&id=${TWITTER.id}`)
  assert.equal(
    (await shown(linked.page))['Node id'],
    `${TWITTER.node_id} (${TWITTER.node_parts.join(', ')})`,
  )
  await linked.context.close()
})

test('ids are made in the page, and read back', async () => {
  const { context, page } = await open()
  const began = Date.now()
  await page.getByLabel('Node id').fill('4711')
  const make = page.getByRole('button', { name: /^Make/ })
  await make.click()
  const list = page.locator('.inspector ol li')
  const first = await list.allTextContents()
  await make.click()
  await page.waitForFunction(
    (text) => !document.querySelector('ol').textContent.includes(text),
    first[0],
  )
  const all = [...first, ...(await list.allTextContents())]
  assert.equal(new Set(all).size, 10)
  for (const item of await list.all()) {
    await item.getByRole('button').click()
    const { 'Node id': node, Number: number, ...rest } = await shown(page)
    assert.equal(node, '4711')
    assert.match(await item.textContent(), new RegExp(number))
    const time = Date.parse(rest['Time (UTC)'])
    assert.ok(Math.floor(began / 1000) * 1000 <= time && time <= Date.now(), rest['Time (UTC)'])
  }
  const secret = await page.getByLabel('Secret').inputValue()
  assert.match(secret, /^[0-9a-f]{32}$/)
  await page.getByRole('button', { name: 'New secret' }).click()
  assert.notEqual(await page.getByLabel('Secret').inputValue(), secret)
  assert.equal(await list.count(), 0, 'those belong to the secret before')
  await page.getByLabel('Node id').fill('131072')
  await make.click()
  await page.getByRole('alert').filter({ hasText: '131071' }).waitFor()
  await context.close()
})

test('no request is made, and nothing is kept', async () => {
  const { context, page, requests } = await open()
  const { id, secret } = NEGATIVE
  const field = page.getByLabel('Secret')
  assert.equal(await field.getAttribute('type'), 'password')
  assert.equal(await field.getAttribute('autocomplete'), 'off')
  const before = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
  await page.getByLabel('Id', { exact: true }).fill(id)
  await field.fill(secret)
  await shown(page)
  await page.getByRole('button', { name: 'Show the secret' }).click()
  assert.equal(await field.getAttribute('type'), 'text')
  await page.getByRole('button', { name: /^Make/ }).click()
  await page.locator('.inspector ol li').first().waitFor()
  await page.getByRole('link', { name: 'Link to this id' }).click()
  await page.waitForURL(/#layout=randflake&id=/)

  // Of what VitePress fetches ahead, pages that links in sight lead to, none carries anything.
  const isAhead = (url) => /^http:\/\/127\.0\.0\.1:\d+\/assets\/[\w.-]+\.js$/.test(url)
  assert.deepEqual(
    requests.filter((url) => !isAhead(url)),
    [],
  )
  const kept = await page.evaluate(async () => {
    const databases = (await indexedDB.databases?.()) ?? []
    return {
      storage: JSON.stringify({ ...localStorage, ...sessionStorage }),
      cookies: document.cookie,
      databases,
      history: JSON.stringify(history.state),
    }
  })
  assert.equal(kept.storage, before)
  assert.equal(kept.cookies, '')
  assert.deepEqual(kept.databases, [])
  for (const text of [page.url(), kept.history, kept.storage]) assert.ok(!text.includes(secret))

  // Another page of the site, and back: the secret is gone, and the id is in the link.
  await page.getByRole('link', { name: 'How it works' }).first().click()
  await page.getByRole('heading', { level: 1, name: 'How it works' }).waitFor()
  await page.goBack()
  await page.waitForURL(/#layout=randflake&id=/)
  await page.getByRole('heading', { level: 1, name: 'Inspector' }).waitFor()
  assert.equal(await page.getByLabel('Secret').inputValue(), '')
  await context.close()
})

test('it fits a phone', async () => {
  const { context, page } = await open('', { viewport: { width: 360, height: 740 } })
  await page.getByRole('button', { name: 'Example' }).click()
  await page.getByRole('button', { name: /^Make/ }).click()
  assert.equal((await shown(page))['Node id'].length > 0, true)
  const [width, shownWidth] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ])
  assert.ok(width <= shownWidth, `${width} of ${shownWidth} pixels`)
  await context.close()
})
