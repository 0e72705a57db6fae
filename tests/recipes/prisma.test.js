// Runs what docs/guides/prisma.md says, and asks more of its extension.

const assert = require('node:assert/strict')
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { after, before, suite, test } = require('node:test')
const { pathToFileURL } = require('node:url')
const pg = require('pg')
const { decodeString, encodeString } = require('../../bindings-node')
const { servers } = require('../../bindings-node/test/servers.js')

const PAGE = fs.readFileSync(path.resolve(__dirname, '../../docs/guides/prisma.md'), 'utf8')
const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
// Below the libraries, so that what is written there finds them.
const BUILD = path.join(__dirname, 'build')

const ALL_DIGITS = '1234567890123'
const NEGATIVE = -4594531474933654033n

const TABLES = `
  create table "User" (id bigint primary key, name text not null);
  create table "Post" (id bigint primary key, title text not null,
    "authorId" bigint not null references "User");`

/** Writes the blocks of the page into files, by the names in their first lines. */
function writeBlocks() {
  const folder = fs.mkdtempSync(`${BUILD}-`)
  for (const [, name, code] of PAGE.matchAll(/^```\w+\n\/\/ (\S+)\n(.*?)^```$/gms)) {
    fs.writeFileSync(path.join(folder, name), code)
  }
  const modules = path.join(folder, 'node_modules')
  fs.mkdirSync(modules)
  fs.symlinkSync(path.resolve(__dirname, '../../bindings-node'), path.join(modules, 'randflake'))
  return folder
}

suite('prisma', () => {
  let server
  let folder
  let printed
  let prisma

  before(async () => {
    server = await servers.postgresql()
    if (server === undefined) return
    folder = writeBlocks()
    const prismaCommand = path.join(__dirname, 'node_modules/prisma/build/index.js')
    execFileSync(process.execPath, [prismaCommand, 'generate', '--schema', 'schema.prisma'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...process.env,
        CHECKPOINT_DISABLE: '1',
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
      },
    })
    const client = new pg.Client(server.url)
    await client.connect()
    await client.query(TABLES)
    await client.end()
    Object.assign(process.env, {
      DATABASE_URL: server.url,
      RANDFLAKE_STORE: path.join(folder, 'ids.db'),
      RANDFLAKE_SECRET: SECRET,
    })
    const { log } = console
    console.log = (text) => {
      printed = text
    }
    const main = await import(pathToFileURL(path.join(folder, 'main.mjs')))
    console.log = log
    prisma = main.prisma
  })

  after(async () => {
    await prisma?.$disconnect()
    await server?.stop()
    if (folder) fs.rmSync(folder, { recursive: true, maxRetries: 20 })
  })

  const live = (title, act) =>
    test(title, (t) => (prisma === undefined ? t.skip('no PostgreSQL') : act()))

  live('the page prints what it claims', () => {
    const [, claimed] = PAGE.match(/^```text\n(.*?)^```$/ms)
    const parts = claimed.trim().split('…')
    const pattern = parts.map((part) => part.replace(/[[\]{}]/g, '\\$&')).join('\\w+')
    assert.match(printed, new RegExp(`^${pattern}$`))
  })

  live('ids are set where they are missing, and kept where they are not', async () => {
    const data = [{ name: 'a' }, { name: 'b', id: NEGATIVE }, { name: 'c' }]
    data[2].id = decodeString(ALL_DIGITS)
    assert.deepEqual(await prisma.user.createMany({ data }), { count: 3 })
    const read = (id) => prisma.user.findUnique({ where: { id } })
    assert.equal(
      JSON.stringify(await read(NEGATIVE)),
      `{"id":"${encodeString(NEGATIVE)}","name":"b"}`,
    )
    assert.equal((await read(data[2].id)).id, ALL_DIGITS)
    const [one] = await prisma.user.createManyAndReturn({ data: [{ name: 'd' }] })
    assert.equal((await read(decodeString(one.id))).name, 'd')
    const { id } = await prisma.user.create({ data: { name: 'e' } })
    assert.equal((await read(decodeString(id))).name, 'e')
    assert.equal(await prisma.user.count({ where: { id: decodeString(id) } }), 1)
  })

  live('ids are set in relations', async () => {
    const { id } = await prisma.user.create({ data: { name: 'a' } })
    const where = { id: decodeString(id) }
    const titles = async () => {
      const posts = await prisma.post.findMany({ where: { authorId: where.id } })
      assert(posts.every((post) => post.authorId === id && post.id.startsWith('post_')))
      return posts.map(({ title }) => title).sort()
    }
    const update = (posts) => prisma.user.update({ where, data: { posts } })
    await update({ create: { title: 'create' } })
    await update({ createMany: { data: [{ title: 'many' }, { title: 'many' }] } })
    await update({ connectOrCreate: { where: { id: 1n }, create: { title: 'connect' } } })
    await update({ upsert: { where: { id: 2n }, create: { title: 'upsert' }, update: {} } })
    const both = { create: { name: 'never' }, update: { posts: { create: [{ title: 'both' }] } } }
    await prisma.user.upsert({ where, ...both })
    await prisma.post.create({
      data: { title: 'new', author: { connectOrCreate: { where, create: { name: 'never' } } } },
    })
    const expected = ['both', 'connect', 'create', 'many', 'many', 'new', 'upsert']
    assert.deepEqual(await titles(), expected)
  })

  live('Prisma reads text as the page says', async () => {
    await prisma.user.upsert({
      where: { id: decodeString(ALL_DIGITS) },
      create: { id: decodeString(ALL_DIGITS), name: 'c' },
      update: {},
    })
    assert.equal(await prisma.user.findUnique({ where: { id: ALL_DIGITS } }), null)
    const other = prisma.user.findUnique({ where: { id: 'fvvvvvvvvvvvv' } })
    await assert.rejects(other, /invalid digit/)
  })
})
