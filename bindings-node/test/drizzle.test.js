'use strict'

// Columns of Drizzle, in real databases.

const assert = require('node:assert/strict')
const { after, before, suite, test } = require('node:test')
const libsql = require('@libsql/client')
const mysql = require('mysql2/promise')
const { Pool } = require('pg')
const postgres = require('postgres')
const { Cloak, Codes, decodeString, Layout, Randflake, Snowflake } = require('../index.js')
const { TextForm } = require('../text.js')
const columnsWith = require('../lib/drizzle-id.js')
const { servers } = require('./servers.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const cloak = new Cloak(SECRET, 'posts.id')
const form = new TextForm({ prefix: 'post', cloak })
const plain = new TextForm()
const layout = new Layout('twitter')
const INVALID = { name: 'Error', code: 'INVALID_ID' }

/** Its text has only digits, but is not a number. */
const ALL_DIGITS = decodeString('1234567890123')
const IDS = [ALL_DIGITS, -1n, 4594531474933654033n, 2n ** 63n - 1n, -(2n ** 63n)]

/** For each dialect: what runs it, `rows` of plain SQL, and what relational queries need. */
const DIALECTS = {
  pg: {
    table: 'pgTable',
    type: 'bigint',
    driver: 'node-postgres',
    column: 'pgId',
    async start() {
      const server = await servers.postgresql()
      if (server === undefined) return undefined
      const client = new Pool({ connectionString: server.url })
      const stop = async () => {
        await client.end()
        await server.stop()
      }
      const rows = async (text) => (await client.query(text)).rows
      return { client, stop, rows, url: server.url }
    },
  },
  mysql: {
    table: 'mysqlTable',
    type: 'bigint',
    driver: 'mysql2',
    column: 'mysqlId',
    async start() {
      const server = await servers.mysql()
      if (server === undefined) return undefined
      const exact = { supportBigNumbers: true, bigNumberStrings: true }
      const client = mysql.createPool({ uri: server.url, ...exact })
      const rounding = mysql.createPool(server.url)
      const stop = async () => {
        await Promise.all([client.end(), rounding.end()])
        await server.stop()
      }
      return { client, rounding, stop, rows: async (text) => (await client.query(text))[0] }
    },
  },
  sqlite: {
    table: 'sqliteTable',
    type: 'integer',
    driver: 'libsql',
    column: 'sqliteId',
    async start() {
      const client = libsql.createClient({ url: ':memory:', intMode: 'bigint' })
      const stop = () => client.close()
      return { client, stop, rows: async (text) => (await client.execute(text)).rows }
    },
  },
}

for (const [dialect, kind] of Object.entries(DIALECTS)) {
  suite(dialect, async () => {
    let started
    before(async () => {
      started = await kind.start()
    })
    after(() => started?.stop())

    for (const installed of ['drizzle-orm', 'drizzle-orm-0-36', 'drizzle-orm-1']) {
      describeColumns(installed, kind, () => started)
    }
  })
}

function describeColumns(installed, kind, startedNow) {
  const orm = require(installed)
  const { between, eq, inArray, sql } = orm
  const { drizzle } = require(`${installed}/${kind.driver}`)
  const dialect = kind.driver === 'node-postgres' ? 'pg' : kind.table.replace('Table', '')
  const table = require(`${installed}/${dialect}-core`)[kind.table]
  const typeOf = (core) => require(`${installed}/${core}-core`).customType
  const types = { pg: typeOf('pg'), mysql: typeOf('mysql'), sqlite: typeOf('sqlite') }
  const id = columnsWith(types)[kind.column]
  const isOld = installed !== 'drizzle-orm-1'

  const flake = new Randflake(1, SECRET, { maxWaitMs: 1000 })
  const users = table('users', {
    id: id()
      .primaryKey()
      .$defaultFn(() => flake.generate()),
  })
  const posts = table('posts', {
    id: id({ form })
      .primaryKey()
      .$defaultFn(() => form.encode(flake.generate())),
    author: id('author_id').notNull(),
    parent: id('parent_id', { form: plain }),
  })

  function connect(client) {
    if (!isOld) {
      const relations = orm.defineRelations({ posts, users }, (r) => ({
        users: { posts: r.many.posts({ from: r.users.id, to: r.posts.author }) },
        posts: { user: r.one.users({ from: r.posts.author, to: r.users.id }) },
      }))
      return drizzle({ client, relations })
    }
    const schema = {
      posts,
      users,
      ofUsers: orm.relations(users, ({ many }) => ({ posts: many(posts) })),
      ofPosts: orm.relations(posts, ({ one }) => ({
        user: one(users, { fields: [posts.author], references: [users.id] }),
      })),
    }
    // MySQL has lateral joins, but MariaDB does not; this mode does not need them.
    return drizzle({ client, schema, mode: 'planetscale' })
  }

  /** A test with empty tables; skipped without a server. */
  function testEmpty(name, run) {
    test(`${installed}: ${name}`, async (t) => {
      const started = startedNow()
      if (started === undefined) return t.skip('no server')
      for (const statement of [
        'drop table if exists posts',
        'drop table if exists users',
        `create table users (id ${kind.type} primary key)`,
        `create table posts (id ${kind.type} primary key, author_id ${kind.type} not null,
          parent_id ${kind.type})`,
      ]) {
        await started.rows(statement)
      }
      await run(connect(started.client), started)
    })
  }

  const sorted = (ids) => [...ids].sort()

  testEmpty('an id is the same bigint again', async (database) => {
    await database.insert(users).values(IDS.map((number) => ({ id: number })))
    const rows = await database.select().from(users)
    assert.deepEqual(sorted(rows.map((row) => row.id)), sorted(IDS))
    for (const number of IDS) {
      assert.deepEqual(await database.select().from(users).where(eq(users.id, number)), [
        { id: number },
      ])
    }
    const some = await database
      .select()
      .from(users)
      .where(inArray(users.id, IDS.slice(0, 2)))
    assert.equal(some.length, 2)
    await database.update(users).set({ id: 7n }).where(eq(users.id, -1n))
    assert.equal((await database.select().from(users).where(eq(users.id, 7n))).length, 1)
  })

  testEmpty(
    'with a form it is the text, and the number in the database',
    async (database, { rows }) => {
      for (const number of IDS) {
        const post = { id: form.encode(number), author: number, parent: plain.encode(number) }
        await database.insert(posts).values(post)
        assert.deepEqual(await database.select().from(posts).where(eq(posts.id, post.id)), [post])
        assert.deepEqual(await database.select().from(posts).where(eq(posts.parent, post.parent)), [
          post,
        ])
      }
      const stored = await rows('select id, author_id, parent_id from posts')
      for (const row of stored) {
        const numbers = Object.values(row).map(BigInt)
        assert.deepEqual(numbers, Array(3).fill(numbers[0]))
      }
      assert.equal(stored.length, IDS.length)
    },
  )

  testEmpty('a generator gives the default, and null stays null', async (database) => {
    await database.insert(users).values([{}, {}])
    await database.insert(posts).values({ author: 1n })
    const ids = (await database.select().from(users)).map((user) => user.id)
    const [post] = await database.select().from(posts)
    const nodes = [...ids, form.decode(post.id)].map((number) => flake.inspect(number).nodeId)
    assert.deepEqual(nodes, [1, 1, 1])
    assert.equal(post.parent, null)
    await database.insert(posts).values({ author: 2n, parent: null })
    await database.update(posts).set({ parent: '10' })
    await database.update(posts).set({ parent: null })
    const all = await database.select().from(posts)
    assert.deepEqual(
      all.map((row) => row.parent),
      [null, null],
    )
  })

  testEmpty('a range of ids that sort by time is one of numbers', async (database) => {
    const snowflake = new Snowflake(1, { layout, maxWaitMs: 1000 })
    const made = Array.from(snowflake.generateMany(3))
    const now = Date.now()
    const old = layout.firstIdAt(now - 86_400_000)
    await database
      .insert(posts)
      .values([old, ...made].map((number) => ({ id: form.encode(number), author: 1n })))
    const [first, last] = [layout.firstIdAt(now - 3_600_000), layout.lastIdAt(now + 3_600_000)]
    const expected = made.map((number) => form.encode(number))
    const byText = between(posts.id, form.encode(first), form.encode(last))
    const byNumber = sql`${posts.id} between ${first} and ${last}`
    for (const where of [byText, byNumber]) {
      const found = await database.select().from(posts).where(where).orderBy(posts.id)
      assert.deepEqual(
        found.map((post) => post.id),
        expected,
      )
    }
  })

  testEmpty('a prepared statement takes what its column takes', async (database) => {
    const post = { id: form.encode(-1n), author: 1n, parent: plain.encode(ALL_DIGITS) }
    await database.insert(posts).values(post)
    // As the guide says: a bare placeholder would send the text of digits as a number.
    const where = eq(posts.parent, sql.param(sql.placeholder('parent'), posts.parent))
    const query = database.select().from(posts).where(where)
    const prepared = kind.driver === 'node-postgres' ? query.prepare('one') : query.prepare()
    assert.deepEqual(await prepared.execute({ parent: post.parent }), [post])
    await refused(() => prepared.execute({ parent: 5 }))
  })

  testEmpty('anything else is refused before it is sent', async (database) => {
    const wrongNumbers = [5, '10', '5', 2n ** 63n, -(2n ** 63n) - 1n, true, {}, Number.NaN]
    for (const wrong of wrongNumbers) {
      await refused(() => database.select().from(users).where(eq(users.id, wrong)))
      await refused(() => database.insert(users).values({ id: wrong }))
    }
    for (const wrong of [5n, 5, '10', 'post_', 'post_01', 'user_10', '4594531474933654033', {}]) {
      await refused(() => database.select().from(posts).where(eq(posts.id, wrong)))
      await refused(() => database.insert(posts).values({ id: wrong, author: 1n }))
    }
    assert.deepEqual(await database.select().from(users), [])
  })

  testEmpty('a relational query gives the right ids, or none', async (database) => {
    if (kind.driver === 'mysql2' && !isOld) {
      const { sql } = database.query.users.findMany({ with: { posts: true } }).toSQL()
      return assert.match(sql, /select cast\(`d1`\.`id` as char\) as `id`, cast\(/)
    }
    await database.insert(users).values({ id: ALL_DIGITS })
    await database.insert(users).values({ id: 5n })
    const post = {
      id: form.encode(-(3n ** 39n)),
      author: ALL_DIGITS,
      parent: plain.encode(2n ** 61n + 1n),
    }
    await database.insert(posts).values(post)
    await database.insert(posts).values({ id: form.encode(6n), author: 5n })
    const small = { where: isOld ? eq(users.id, 5n) : { id: 5n }, with: { posts: true } }
    assert.deepEqual(await database.query.users.findMany(small), [
      { id: 5n, posts: [{ id: form.encode(6n), author: 5n, parent: null }] },
    ])
    const where = isOld ? eq(users.id, ALL_DIGITS) : { id: ALL_DIGITS }
    const nested = () => database.query.users.findMany({ where, with: { posts: true } })
    const expected = [{ id: ALL_DIGITS, posts: [post] }]
    const ofPost = { where: isOld ? eq(posts.id, post.id) : { id: post.id }, with: { user: true } }
    if (!isOld) {
      assert.deepEqual(await nested(), expected)
      const [{ user }] = await database.query.posts.findMany(ofPost)
      assert.equal(user.id, ALL_DIGITS)
      return
    }
    await assert.rejects(nested, { ...INVALID, message: /is rounded: .*with a join/ })
    // In that mode MariaDB does not accept the SQL of this one.
    if (kind.driver !== 'mysql2') {
      await assert.rejects(() => database.query.posts.findMany(ofPost), INVALID)
    }
    // As the guide says.
    const rows = await database
      .select()
      .from(users)
      .leftJoin(posts, eq(posts.author, users.id))
      .where(eq(users.id, ALL_DIGITS))
    assert.deepEqual(rows, [{ users: { id: ALL_DIGITS }, posts: post }])
  })

  testEmpty('every path of the table in the guide', async (database) => {
    const post = { id: form.encode(-5n), author: ALL_DIGITS, parent: plain.encode(ALL_DIGITS) }
    const other = { id: form.encode(6n), author: -1n, parent: null }
    await database.insert(users).values([{ id: ALL_DIGITS }, { id: -1n }])
    await database.insert(posts).values([post, other])
    const select = (fields) => database.select(fields).from(posts)
    const is = eq(posts.id, post.id)

    const both = await select().innerJoin(users, eq(posts.author, users.id)).where(is)
    assert.deepEqual(both, [{ posts: post, users: { id: ALL_DIGITS } }])
    assert.deepEqual(await select().where(orm.notInArray(posts.id, [other.id])), [post])
    assert.deepEqual(await select().where(orm.and(orm.gt(posts.id, other.id), is)), [])
    assert.deepEqual(await select({ id: orm.max(posts.id) }), [{ id: other.id }])
    assert.deepEqual(await select({ id: posts.id }).where(is).groupBy(posts.id), [{ id: post.id }])
    assert.deepEqual(await select().orderBy(posts.id), [post, other])
    const ofUsers = database.select({ id: users.id }).from(users)
    assert.equal((await select().where(inArray(posts.author, ofUsers))).length, 2)
    assert.equal((await select().where(orm.exists(ofUsers.where(eq(users.id, -1n))))).length, 2)
    const inner = select({ key: posts.id, by: posts.author }).as('inner')
    const found = await database.select().from(inner).where(eq(inner.key, post.id))
    assert.deepEqual(found, [{ key: post.id, by: ALL_DIGITS }])
    const named = database.$with('named').as(select())
    assert.equal((await database.with(named).select().from(named)).length, 2)
    const ids = select({ id: posts.author })
    assert.equal((await ids.union(database.select({ id: users.id }).from(users))).length, 2)

    const raw = await select({
      id: sql`${posts.author}`,
      mapped: sql`${posts.author}`.mapWith(posts.author),
    }).where(is)
    assert.equal(BigInt(raw[0].id), ALL_DIGITS)
    assert.equal(raw[0].mapped, ALL_DIGITS)

    await database.update(posts).set({ author: 7n, parent: '7' }).where(is)
    assert.deepEqual(await select().where(eq(posts.parent, '7')), [
      { ...post, author: 7n, parent: '7' },
    ])
    if (kind.driver !== 'mysql2') {
      const set = { author: sql`excluded.author_id`, parent: 'a' }
      const upsert = database
        .insert(posts)
        .values(post)
        .onConflictDoUpdate({ target: posts.id, set })
      assert.deepEqual(await upsert.returning(), [{ ...post, parent: 'a' }])
      const gone = database.delete(posts).where(inArray(posts.id, [post.id]))
      assert.deepEqual(await gone.returning({ id: posts.id }), [{ id: post.id }])
    }
  })

  if (kind.driver === 'mysql2') {
    testEmpty('a column without a sign is found out', async (database, { rows }) => {
      await rows('alter table users modify id bigint unsigned')
      await rows('insert into users values (9223372036854775808)')
      await assert.rejects(() => database.select().from(users), INVALID)
    })

    testEmpty('a driver that rounds is found out', async (database, { rounding }) => {
      await database.insert(users).values([{ id: 5n }])
      const rounded = connect(rounding)
      assert.deepEqual(await rounded.select().from(users), [{ id: 5n }])
      await database.insert(users).values([{ id: ALL_DIGITS }])
      await assert.rejects(() => rounded.select().from(users), {
        ...INVALID,
        message: /have the driver/,
      })
    })
  }

  if (kind.driver === 'node-postgres') {
    testEmpty('postgres.js is exact, too', async (_, { url }) => {
      const client = postgres(url, { onnotice() {} })
      try {
        const database = require(`${installed}/postgres-js`).drizzle({ client })
        await database.insert(users).values(IDS.map((number) => ({ id: number })))
        for (const number of IDS) {
          const rows = await database.select().from(users).where(eq(users.id, number))
          assert.deepEqual(rows, [{ id: number }])
        }
      } finally {
        await client.end()
      }
    })

    testEmpty('an array of ids', async (database, { rows }) => {
      const lists = table('lists', { ids: id().array(), texts: id({ form }).array() })
      await rows('drop table if exists lists')
      await rows('create table lists (ids bigint[], texts bigint[])')
      const list = { ids: IDS, texts: IDS.map((number) => form.encode(number)) }
      await drizzle({ client: database.$client }).insert(lists).values(list)
      assert.deepEqual(await database.select().from(lists), [list])
    })
  }

  test(`${installed}: a name, options, both or neither`, () => {
    const given = [
      [],
      ['a'],
      [{ form }],
      ['a', { form }],
      [undefined, { form }],
      [undefined],
      ['a', {}],
    ]
    const columns = given.map((args) => table('t', { b: id(...args).notNull() }).b)
    const names = columns.map((column) => column.name)
    assert.deepEqual(names, ['b', 'a', 'b', 'a', 'b', 'b', 'a'])
    const read = columns.map((column) => column.mapFromDriverValue('5'))
    const text = form.encode(5n)
    assert.deepEqual(read, [5n, 5n, text, text, text, 5n, 5n])
  })

  test(`${installed}: codes are texts`, () => {
    const codes = new Codes(SECRET, 'posts', { length: 6 })
    const { b } = table('t', { b: id({ form: new TextForm({ codes }) }) })
    for (const number of [0n, 1n, 999_999n]) {
      const code = codes.encode(number)
      for (const read of [String(number), Number(number), number]) {
        assert.equal(b.mapFromDriverValue(read), code)
      }
      assert.equal(b.mapToDriverValue(code), number)
    }
    for (const wrong of ['', '12345', 'abcdef', 1n]) {
      assert.throws(() => b.mapToDriverValue(wrong), { code: 'INVALID_ID' })
    }
  })

  test(`${installed}: drizzle-zod knows what an id is`, () => {
    const { createInsertSchema } = require(isOld ? 'drizzle-zod' : `${installed}/zod`)
    const ofUsers = createInsertSchema(users)
    const ofPosts = createInsertSchema(posts)
    const post = { id: form.encode(5n), author: 5n, parent: null }
    assert.deepEqual(ofUsers.parse({ id: 5n }), { id: 5n })
    assert.deepEqual(ofPosts.parse(post), post)
    for (const wrong of [5, '5', null]) assert(!ofUsers.safeParse({ id: wrong }).success)
    for (const wrong of [5, 5n, null]) assert(!ofPosts.safeParse({ ...post, id: wrong }).success)
  })

  test(`${installed}: what is no integer in the database is refused`, () => {
    const { b } = table('t', { b: id() })
    for (const value of ['', 'a', '0x7', ' 7', '1.5', '9223372036854775808', true, ['7'], {}]) {
      assert.throws(() => b.mapFromDriverValue(value), { code: 'INVALID_ID' }, String(value))
    }
  })

  test(`${installed}: other options are refused`, () => {
    for (const options of [null, 5, [], cloak, { from: form }, { form: null }, { form: SECRET }]) {
      assert.throws(() => id('a', options), { name: 'Error', code: 'INVALID_ARGUMENT' })
      assert.throws(() => id(options), { name: 'Error', code: 'INVALID_ARGUMENT' })
    }
  })
}

/** A query that throws before it is sent. */
async function refused(query) {
  await assert.rejects(
    async () => await query(),
    (error) => {
      assert.equal((error.cause ?? error).code, 'INVALID_ID', String(error))
      return true
    },
  )
}

test('import has columns for the drizzle-orm that a module imports', async () => {
  const { pgId } = await import('randflake/drizzle')
  const { PgCustomColumnBuilder } = await import('drizzle-orm/pg-core')
  assert.ok(pgId() instanceof PgCustomColumnBuilder)
  assert.deepEqual(Object.keys(require('randflake/drizzle')), ['pgId', 'mysqlId', 'sqliteId'])
})
