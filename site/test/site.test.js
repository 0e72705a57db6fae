// The built site in a browser: every page, on a phone and on a desktop, in light and in dark.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { writeForPrograms } from '../build/llms.js'
import { HANGS_MS, startBrowser } from './browser.js'
import { fileFor, serve } from './server.js'

const SITE = fileURLToPath(new URL('../../target/site', import.meta.url))
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const PHONE = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }
const DESKTOP = { viewport: { width: 1280, height: 900 }, colorScheme: 'light' }

/** The addresses of all pages. */
const pages = readdirSync(SITE, { recursive: true })
  .map((name) => name.replaceAll(sep, '/'))
  .filter((name) => name.endsWith('.html') && name !== '404.html')
  .map((name) => `/${name.replace(/(index)?\.html$/, '')}`)

let server
let browser
let origin

before(async () => {
  server = await serve(SITE)
  origin = `http://127.0.0.1:${server.address().port}`
  browser = await startBrowser()
})

after(async () => {
  await browser?.close()
  server?.close()
})

/** Opens a window that notes what goes wrong in it, and what it asks others for. */
async function open(settings) {
  const context = await browser.newContext(settings)
  context.setDefaultTimeout(HANGS_MS)
  const page = await context.newPage()
  const complaints = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) complaints.push(url)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`)
  })
  return { page, complaints, close: () => context.close() }
}

/** Opens a page, and waits until its components are there. */
async function visit(page, path) {
  await page.goto(origin + path)
  await page.waitForFunction(() => document.querySelector('#app')?.__vue_app__)
}

// Pages with all that pages consist of. What a program would see as wrong in them is looked for in full.
const SAMPLE = [
  '/',
  '/benchmarks',
  '/chooser',
  '/concepts/how-it-works',
  '/contents',
  '/guides/tickets',
  '/reference/options',
  '/inspector',
  '/api/python/text',
  '/api/node/text',
]

/** What hinders people in the page that is open. */
async function barriers(page) {
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    const { violations } = await window.axe.run({
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
      rules: {
        // VitePress names its search without the shortcut that it shows.
        'label-content-name-mismatch': { enabled: false },
        // What folds in its sidebar is a button, and has another one that does the same.
        'nested-interactive': { enabled: false },
      },
    })
    const of = ({ id, nodes }) => nodes.map(({ html, target }) => `${id}: ${target} ${html}`)
    return violations.flatMap(of)
  })
}

for (const [name, settings] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
  test(`every page is in order on a ${name}, in ${settings.colorScheme}`, async () => {
    const { page, complaints, close } = await open(settings)
    const found = []
    for (const path of pages) {
      await visit(page, path)
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      if (width > settings.viewport.width) found.push(`${path} is ${width} pixels wide`)
      if (SAMPLE.includes(path)) complaints.push(...(await barriers(page)))
      found.push(...complaints.splice(0).map((text) => `${path} ${text}`))
    }
    await close()
    assert.equal(found.join('\n'), '')
    assert.ok(pages.length > 40)
  })
}

const ids = new Map()

/** The anchors of a page of the built site. */
function anchors(file) {
  if (!ids.has(file)) {
    const found = readFileSync(file, 'utf8').matchAll(/ id="([^"]+)"/g)
    ids.set(file, new Set([...found].map(([, id]) => id)))
  }
  return ids.get(file)
}

test('every link within the site leads to a page and to a place in it', () => {
  const dead = []
  for (const path of pages) {
    const html = readFileSync(fileFor(SITE, path), 'utf8')
    for (const [, link] of html.matchAll(/ href="([^"]*)"/g)) {
      if (/^(?!https?:)[a-z]+:/.test(link)) continue
      const url = new URL(link, `http://site${path}`)
      if (url.host !== 'site') continue
      const file = fileFor(SITE, url.pathname)
      const anchor = decodeURIComponent(url.hash.slice(1))
      if (!file || (anchor && !anchors(file).has(anchor))) dead.push(`${path} ${link}`)
    }
  }
  assert.deepEqual(dead, [])
})

test('the sidebar names every page', () => {
  const html = readFileSync(fileFor(SITE, '/contents'), 'utf8')
  const named = new Set([...html.matchAll(/ href="(\/[^"#]*)"/g)].map(([, link]) => link))
  assert.deepEqual(
    pages.filter((path) => !named.has(path)),
    [],
  )
})

test('tabs switch by click and by keyboard, together, and on the next page', async () => {
  const { page, complaints, close } = await open(DESKTOP)
  const shown = () => page.locator('[role=tab][aria-selected=true]').allTextContents()
  await visit(page, '/')
  assert.deepEqual(await shown(), ['Python', 'Python'])
  await page.getByRole('tab', { name: 'Node.js' }).first().click()
  assert.deepEqual(await shown(), ['Node.js', 'Node.js'])
  assert.ok(await page.getByText("const { Randflake } = require('randflake')").isVisible())
  assert.ok(await page.getByText('flake = Randflake.leased').isHidden())

  const focused = () => page.evaluate(() => document.activeElement.textContent.trim())
  for (const [key, name] of [
    ['ArrowRight', 'Rust'],
    ['ArrowRight', 'Python'],
    ['ArrowLeft', 'Rust'],
    ['Home', 'Python'],
    ['End', 'Rust'],
  ]) {
    await page.keyboard.press(key)
    assert.equal(await focused(), name, key)
  }
  // The second group of the page has no Rust: it shows its first language.
  assert.deepEqual(await shown(), ['Rust', 'Python'])
  await page.keyboard.press('Tab')
  assert.notEqual(await page.evaluate(() => document.activeElement.role), 'tab')

  await visit(page, '/guides/tickets')
  assert.ok((await shown()).includes('Rust'))
  assert.deepEqual(complaints, [])
  await close()
})

const CHOICES = [
  ['in no order', 'learn nothing', 'Randflake'],
  ['sorted by time', 'learn nothing', 'Snowflake with a Cloak'],
  ['sorted by time', 'may learn time and node, and predict others', 'Snowflake'],
  ['1, 2, 3 …', 'learn nothing', 'Tickets with a Cloak'],
  ['1, 2, 3 …', 'may count them', 'Tickets'],
  ['on one machine', 'a SQLite file on a local disk'],
  ['on several machines', 'PostgreSQL', 'no asynchronous standby takes over', 'PostgreSQL'],
  ['on several machines', 'etcd', 'etcd, of three members'],
  [
    'on several machines',
    'Redis or Valkey',
    'a replica does, and all replicas must confirm a write',
    'Redis with min-replicas-to-write set to the number of replicas, and min-replicas-max-lag 10',
  ],
  ['on several machines', 'none of these', 'nothing: assign node ids manually'],
  ['Python', 'Django', 'id = RandflakeField(primary_key=True)'],
  ['another language', "curl -s -X POST 'http://127.0.0.1:8080/v1/ids?count=3'"],
]

test('the chooser gives the answer of its tables', async () => {
  const { page, complaints, close } = await open(PHONE)
  await visit(page, '/chooser')
  for (const choice of CHOICES) {
    const answer = choice.at(-1)
    const chooser = page.locator('.chooser').filter({ hasText: choice[0] })
    for (const option of choice.slice(0, -1)) {
      await chooser.getByRole('radio', { name: option, exact: true }).check()
    }
    assert.equal(await chooser.locator('.use').textContent(), answer, choice.join(', '))
  }
  assert.deepEqual(complaints, [])
  await close()
})

test('without JavaScript every language and every answer is shown', async () => {
  const { page, close } = await open({ ...PHONE, javaScriptEnabled: false })
  await page.goto(`${origin}/`)
  for (const panel of await page.getByRole('tabpanel').all()) assert.ok(await panel.isVisible())
  await page.goto(`${origin}/chooser`)
  assert.ok(await page.getByRole('cell', { name: 'may count them' }).isVisible())
  await close()
})

for (const [word, path] of [
  ['quarantine', /./],
  ['backfill', /moving-over/],
  ['dockerfile', /tutorials|containers/],
  ['grant', /postgresql|mysql|tutorials/],
]) {
  test(`the search finds ${word}, and leads to its page`, async () => {
    const { page, complaints, close } = await open(DESKTOP)
    await visit(page, '/')
    await page.getByRole('button', { name: 'Search' }).first().click()
    await page.getByRole('searchbox').fill(word)
    await page.locator('.VPLocalSearchBox .result').first().click()
    await page.waitForURL((url) => url.pathname !== '/')
    assert.match(page.url(), path)
    assert.match((await page.locator('main').textContent()).toLowerCase(), new RegExp(word))
    assert.deepEqual(complaints, [])
    await close()
  })
}

test('code is not clipped on a desktop, and bars are not on a phone', async () => {
  const { page, close } = await open(DESKTOP)
  await visit(page, '/tutorials/fastapi')
  const clipped = (boxes) =>
    boxes.filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.textContent)
  assert.deepEqual(await page.locator('pre').evaluateAll(clipped), [])
  await close()
  const phone = await open(PHONE)
  await visit(phone.page, '/benchmarks')
  const bars = await phone.page.locator('.bars, .bar, .bar-name').evaluateAll(clipped)
  assert.deepEqual(bars, [])
  const lengths = await phone.page
    .locator('.bar-box > span')
    .evaluateAll((all) => all.map((bar) => Math.round(bar.getBoundingClientRect().width)))
  assert.ok(new Set(lengths).size > 20, 'the bars differ')
  await phone.close()
})

test('llms.txt names every page, as Markdown that is there', () => {
  const text = readFileSync(fileFor(SITE, '/llms.txt'), 'utf8')
  const listed = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link)
  for (const link of listed) assert.ok(existsSync(fileFor(SITE, link) ?? link), link)
  const missing = pages.filter((path) => {
    const name = path.endsWith('/') ? `${path}index.md` : `${path}.md`
    return !['/contents.md', ...listed].includes(name)
  })
  assert.deepEqual(missing, [])
  const all = readFileSync(fileFor(SITE, '/llms-full.txt'), 'utf8')
  assert.ok(all.includes('# Sequential numbers') && all.length > 200_000)
})

test('below a path, Markdown leads to Markdown that is there', () => {
  const outDir = mkdtempSync(join(tmpdir(), 'randflake-site-'))
  writeForPrograms({ outDir, site: { base: '/below/', title: 'T', description: 'D' } })
  const dead = []
  for (const name of readdirSync(outDir, { recursive: true })) {
    if (!/\.(md|txt)$/.test(name)) continue
    for (const [, link] of readFileSync(join(outDir, name), 'utf8').matchAll(/\]\((\/[^)#]*)/g)) {
      if (!/^\/below\/./.test(link) || !existsSync(link.replace('/below', outDir))) {
        dead.push(`${name} ${link}`)
      }
    }
  }
  rmSync(outDir, { recursive: true })
  assert.deepEqual(dead, [])
})

test('on a phone, rows of wide tables are lists that need no scrolling', async () => {
  const { page, close } = await open(PHONE)
  const wide = (tables) => tables.map((table) => table.scrollWidth > table.clientWidth)
  for (const path of ['/reference/options', '/reference/errors', '/guides/servers']) {
    await visit(page, path)
    const found = await page.locator('table:has([data-head])').evaluateAll(wide)
    assert.ok(found.length > 0 && !found.includes(true), path)
  }
  await close()
})
