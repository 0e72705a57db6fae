// Ids in entities of TypeORM, with the databases that it is mostly used with.

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { after, before, suite, test } = require('node:test')
const { Cloak, Codes, decodeString, encodeString, RandflakeError } = require('../../bindings-node')
const { servers } = require('../../bindings-node/test/servers.js')
const { TextForm } = require('../../bindings-node/text.js')
const { id, loadByQueries } = require('../../bindings-node/typeorm.js')

const VERSIONS = ['typeorm', 'typeorm-0-3-20']
const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'

const NEGATIVE = -4594531474933654033n
const ALL_DIGITS = decodeString('1234567890123')
/** Neighbours are one number for what rounds. */
const NEIGHBOUR = ALL_DIGITS + 1n
const IDS = [NEGATIVE, ALL_DIGITS, NEIGHBOUR, 2n ** 63n - 1n]

const cloak = new Cloak(SECRET, 'posts.id')
const form = new TextForm({ prefix: 'post', cloak })

const formOf = (number) => form.encode(number)

const refused = (pattern) => (error) => {
  assert(error instanceof RandflakeError, String(error))
  assert.equal(error.code, 'INVALID_ID')
  assert.match(error.message, pattern)
  return true
}

const SQLITE = {
  type: 'better-sqlite3',
  database: ':memory:',
  prepareDatabase: (database) => database.defaultSafeIntegers(),
}

/** Returns a data source with its entities, and the statements that it has run. */
async function open(version, options, entities) {
  const { DataSource } = require(version)
  const statements = []
  const ignore = () => {}
  const logger = {
    logQuery: (text, parameters) => statements.push([text, parameters]),
    logQueryError: ignore,
    logQuerySlow: ignore,
    logSchemaBuild: ignore,
    logMigration: ignore,
    log: ignore,
  }
  const source = new DataSource({
    ...options,
    entities,
    logger,
    logging: true,
    synchronize: true,
    dropSchema: true,
  })
  await source.initialize()
  loadByQueries(source)
  const written = async (act) => {
    statements.length = 0
    await act()
    return statements.map(([text]) => text).filter((text) => /^(insert|update|delete)/i.test(text))
  }
  return { source, statements, written }
}

function entitiesOf({ EntitySchema }) {
  const name = { type: 'varchar', length: 20 }
  const User = new EntitySchema({
    name: 'member',
    columns: { id: { ...id(), primary: true }, name },
    relations: {
      posts: { type: 'one-to-many', target: 'post', inverseSide: 'author', cascade: true },
    },
  })
  const Post = new EntitySchema({
    name: 'post',
    columns: {
      id: { ...id({ form }), primary: true },
      name,
      authorId: { ...id(), nullable: true },
      parentId: { ...id({ form }), nullable: true },
    },
    relations: {
      author: {
        type: 'many-to-one',
        target: 'member',
        inverseSide: 'posts',
        joinColumn: { name: 'authorId' },
      },
      parent: { type: 'many-to-one', target: 'post', joinColumn: { name: 'parentId' } },
    },
  })
  const Line = new EntitySchema({
    name: 'line',
    columns: {
      orderId: { ...id(), primary: true },
      postId: { ...id({ form }), primary: true },
      // TypeORM reads the row again for these, and for what the database fills in.
      state: { ...name, default: 'new' },
      version: { type: 'int', version: true },
    },
  })
  const Event = new EntitySchema({
    name: 'event',
    columns: { id: { ...id({ asBigint: true }), primary: true }, name },
  })
  const Plain = new EntitySchema({
    name: 'plain',
    columns: { id: { type: 'bigint', primary: true }, name },
  })
  return [User, Post, Event, Line, Plain]
}

function withDatabase(version, name, optionsOf) {
  suite(version, () => {
    const { Between, Equal, In, Not } = require(version)
    const entities = entitiesOf(require(version))
    let opened

    before(async () => {
      const options = optionsOf()
      if (options !== undefined) opened = await open(version, options, entities)
    })

    after(() => opened?.source.destroy())

    const live = (title, act) =>
      test(title, async (t) => {
        if (opened === undefined) return t.skip(`${name} is not installed`)
        const [users, ofPosts, events, lines] = entities.map((one) =>
          opened.source.getRepository(one),
        )
        await ofPosts.createQueryBuilder().delete().execute()
        await users.createQueryBuilder().delete().execute()
        await events.createQueryBuilder().delete().execute()
        await lines.createQueryBuilder().delete().execute()
        await act({ users, posts: ofPosts, events, lines, ...opened })
      })

    live('what is saved twice is inserted once and updated once', async ({ users, written }) => {
      for (const number of IDS) {
        const user = { id: encodeString(number), name: 'new' }
        const [insert, ...more] = await written(() => users.save(user))
        assert.match(insert, /^insert/i)
        assert.deepEqual(more, [])
        assert.deepEqual(await written(() => users.save(user)), [])
        const read = await users.findOneBy({ id: encodeString(number) })
        assert.deepEqual({ ...read }, user)
        assert.deepEqual(await written(() => users.save(read)), [])
        read.name = 'changed'
        const [update, ...others] = await written(() => users.save(read))
        assert.match(update, /^update/i)
        assert.deepEqual(others, [])
      }
      assert.equal(await users.countBy({ name: 'changed' }), IDS.length)
    })

    if (name !== 'better-sqlite3') {
      live('a bigint in a column without id() is inserted again', async ({ source }) => {
        const repository = source.getRepository(entities.at(-1))
        const plain = { id: NEGATIVE, name: 'a' }
        await repository.save(plain)
        await assert.rejects(repository.save({ ...plain, name: 'b' }), /duplicate/i)
      })
    }

    live('the number is in the database, and the text in the entity', async ({ posts, source }) => {
      for (const number of IDS) await posts.save({ id: formOf(number), name: 'a' })
      const rows = await source.query('select id from post')
      assert.deepEqual(new Set(rows.map((row) => BigInt(row.id))), new Set(IDS))
      const found = await posts.find()
      assert.deepEqual(new Set(found.map((post) => post.id)), new Set(IDS.map(formOf)))
    })

    live('rows are found by ids, each by its own', async ({ posts }) => {
      for (const number of IDS) await posts.save({ id: formOf(number), name: `${number}` })
      const names = (found) => found.map((post) => post.name).sort()
      for (const number of IDS) {
        const text = formOf(number)
        assert.equal((await posts.findOneBy({ id: text })).name, `${number}`)
        assert.deepEqual(names(await posts.findBy({ id: Equal(text) })), [`${number}`])
        assert.deepEqual(names(await posts.findBy({ id: number })), [`${number}`])
        const all = In([text, formOf(NEGATIVE)])
        for (const again of [1, 2]) {
          const expected = [...new Set([`${number}`, `${NEGATIVE}`])].sort()
          assert.deepEqual(names(await posts.findBy({ id: all })), expected, `${again}`)
        }
      }
      const others = await posts.findBy({ id: Not(In([formOf(ALL_DIGITS)])) })
      assert.equal(others.length, IDS.length - 1)
      const range = await posts.findBy({ id: Between(ALL_DIGITS, NEIGHBOUR) })
      assert.deepEqual(names(range), [`${ALL_DIGITS}`, `${NEIGHBOUR}`])
    })

    live('rows are updated and deleted by ids, and no others', async ({ posts }) => {
      for (const number of IDS) await posts.save({ id: formOf(number), name: 'a' })
      await posts.update(formOf(ALL_DIGITS), { name: 'b' })
      await posts.update({ id: formOf(NEGATIVE) }, { name: 'b' })
      assert.equal(await posts.countBy({ name: 'b' }), 2)
      const two = In([formOf(ALL_DIGITS), formOf(NEGATIVE)])
      await posts.update({ id: two }, { name: 'c' })
      await posts.update({ id: Not(two) }, { name: 'd' })
      assert.equal(await posts.countBy({ name: 'c' }), 2)
      assert.equal(await posts.countBy({ name: 'd' }), IDS.length - 2)
      await posts.delete({ id: In([formOf(NEIGHBOUR)]) })
      assert.equal(await posts.findOneBy({ id: formOf(NEIGHBOUR) }), null)
      await posts.insert({ id: formOf(NEIGHBOUR), name: 'a' })
      await posts.delete(formOf(ALL_DIGITS))
      await posts.delete([formOf(NEGATIVE)])
      assert.equal(await posts.count(), IDS.length - 2)
      await posts.remove(await posts.findOneBy({ id: formOf(NEIGHBOUR) }))
      assert.deepEqual(
        (await posts.find()).map((post) => post.id),
        [formOf(IDS.at(-1))],
      )
    })

    live('relations lead to their rows', async ({ users, posts, written }) => {
      for (const number of IDS) {
        const author = { id: encodeString(number), name: 'a' }
        await users.save(author)
        const parent = { id: formOf(number), name: 'parent', author }
        await posts.save(parent)
        const child = { id: formOf(number - 1_000_000n), name: 'child', author, parent }
        await posts.save(child)
        assert.deepEqual(await written(() => posts.save(child)), [])

        const relations = { author: true, parent: true }
        const read = await posts.findOne({ where: { id: child.id }, relations })
        assert.equal(read.author.id, author.id)
        assert.equal(read.authorId, author.id)
        assert.equal(read.parent.id, parent.id)
        assert.equal(read.parentId, parent.id)
        assert.deepEqual(await written(() => posts.save(read)), [])
        const byParent = await posts.findOneBy({ parent: { id: parent.id } })
        assert.equal(byParent.id, child.id)

        const [whole] = await users.find({
          where: { id: author.id },
          relations: { posts: true },
          take: 1,
        })
        assert.deepEqual(whole.posts.map((post) => post.id).sort(), [parent.id, child.id].sort())
        assert.deepEqual(await written(() => users.save(whole)), [])
        whole.posts = whole.posts.filter((post) => post.id === child.id)
        await users.save(whole)
        assert.equal((await posts.findOneBy({ id: parent.id })).authorId, null)
        assert.equal((await posts.findOneBy({ id: child.id })).authorId, author.id)
      }
    })

    live('what the database fills in is read into the same entity', async ({ lines }) => {
      const keys = IDS.map((number) => ({ orderId: encodeString(number), postId: formOf(number) }))
      const saved = await lines.save(keys.map((key) => ({ ...key })))
      const row = ({ version, ...others }) => ({ ...others, version: Number(version) })
      for (const [n, key] of keys.entries()) {
        assert.deepEqual(row(saved[n]), { ...key, state: 'new', version: 1 })
        saved[n].state = 'sent'
        assert.deepEqual(row(await lines.save(saved[n])), { ...key, state: 'sent', version: 2 })
        assert.deepEqual({ ...(await lines.findOneBy(key)) }, saved[n])
        await lines.update(key, { state: 'done' })
        assert.equal(await lines.countBy({ ...key, state: 'done' }), 1)
      }
      await lines.remove(saved.slice(1))
      assert.deepEqual(await lines.find({ select: { orderId: true } }), [
        { orderId: keys[0].orderId },
      ])
    })

    live('what is related is saved and loaded along', async ({ users, posts }) => {
      const [one, two] = [encodeString(ALL_DIGITS), encodeString(NEGATIVE)]
      const ofOne = [ALL_DIGITS, NEIGHBOUR].map((number) => ({ id: formOf(number), name: 'a' }))
      await users.save([
        { id: one, name: 'a', posts: ofOne },
        { id: two, name: 'b', posts: [] },
      ])
      const texts = ofOne.map((post) => post.id).sort()
      const ofUser = (user) => user.posts.map((post) => post.id ?? post).sort()
      const order = { name: 'ASC' }
      const byId = await users.find({ loadRelationIds: true, order })
      assert.deepEqual(byId.map(ofUser), [texts, []])
      const relation = users.createQueryBuilder().relation('posts')
      assert.deepEqual(ofUser({ posts: await relation.of(one).loadMany() }), texts)
      await posts.createQueryBuilder().relation('author').of(texts[0]).set(two)
      const joined = await users.find({ relations: { posts: true }, order })
      assert.deepEqual(joined.map(ofUser), [[texts[1]], [texts[0]]])
      await users.upsert({ id: one, name: 'upserted' }, ['id'])
      assert.equal((await users.preload({ id: one })).name, 'upserted')

      const relationLoadStrategy = 'query'
      const authors = await posts.find({ relations: { author: true }, relationLoadStrategy })
      assert.deepEqual(authors.map((post) => post.author.id).sort(), [one, two].sort())
      const lists = await users.find({ relations: { posts: true }, relationLoadStrategy, order })
      assert.deepEqual(lists.map(ofUser), [[texts[0]], [texts[1]]])
      const nested = { author: { posts: true } }
      const read = await posts.find({ relations: nested, relationLoadStrategy })
      assert.deepEqual(read.flatMap((post) => ofUser(post.author)).sort(), texts)
      const select = { id: true, posts: { id: true } }
      await assert.rejects(
        users.find({ relations: { posts: true }, relationLoadStrategy, select }),
        {
          code: 'INVALID_ARGUMENT',
          message: /select authorId/,
        },
      )
    })

    if (name === 'PostgreSQL') {
      live('lists of ids', async ({ users }) => {
        const { Any } = require(version)
        await users.insert(IDS.map((number) => ({ id: encodeString(number), name: 'a' })))
        const two = [encodeString(ALL_DIGITS), encodeString(NEGATIVE)]
        assert.equal(await users.countBy({ id: Any(two) }), 2)
      })
    }

    live('a query builder takes numbers', async ({ posts }) => {
      for (const number of IDS) await posts.save({ id: formOf(number), name: `${number}` })
      for (const number of IDS) {
        const query = () => posts.createQueryBuilder('post')
        const one = await query().where('post.id = :number', { number }).getMany()
        assert.deepEqual(
          one.map((post) => post.id),
          [formOf(number)],
        )
        const many = await query()
          .where('post.id in (:...numbers)', { numbers: [number] })
          .getOne()
        assert.equal(many.id, formOf(number))
        const raw = await query().select('post.id', 'id').where('post.id = :number', { number })
        assert.equal(BigInt((await raw.getRawOne()).id), number)
        const byId = await query()
          .whereInIds([formOf(number)])
          .getOne()
        assert.equal(byId.name, `${number}`)
      }
    })

    live('bigints are saved once where nothing is related', async ({ events, written }) => {
      for (const number of IDS) {
        const event = { id: number, name: 'new' }
        await events.save(event)
        const read = await events.findOneBy({ id: number })
        assert.deepEqual({ ...read }, event)
        read.name = 'changed'
        assert.equal((await written(() => events.save(read))).length, 1)
      }
      assert.equal(await events.count(), IDS.length)
      const found = await events.findBy({ id: In([NEGATIVE, ALL_DIGITS]) })
      assert.equal(found.length, 2)
      await events.delete({ id: NEGATIVE })
      assert.equal(await events.count(), IDS.length - 1)
    })

    live('what is no id is refused', async ({ events, posts }) => {
      const values = [5, 2n ** 63n, {}, true, '']
      for (const value of [...values, '1234567890123', 'user_1', '-5']) {
        await assert.rejects(posts.findOneBy({ id: value }), { code: 'INVALID_ID' }, String(value))
        await assert.rejects(posts.save({ id: value, name: '' }), { code: 'INVALID_ID' })
      }
      for (const value of [...values, '1234567890123', encodeString(NEGATIVE)]) {
        await assert.rejects(events.findOneBy({ id: value }), { code: 'INVALID_ID' }, String(value))
        await assert.rejects(events.save({ id: value, name: '' }), { code: 'INVALID_ID' })
      }
    })
  })
}

const SERVERS = [
  ['PostgreSQL', 'postgres', servers.postgresql],
  ['MariaDB', 'mariadb', servers.mysql],
]

for (const [name, type, start] of SERVERS) {
  suite(name, () => {
    let server
    before(async () => {
      server = await start()
    })
    after(() => server?.stop())
    for (const version of VERSIONS) {
      withDatabase(version, name, () => server && { type, url: server.url })
    }
  })
}

suite('better-sqlite3', () => {
  for (const version of VERSIONS) withDatabase(version, 'better-sqlite3', () => SQLITE)
})

test('an id that a driver has rounded is refused', async () => {
  const drivers = [{ type: 'better-sqlite3', database: ':memory:' }, { type: 'sqljs' }]
  for (const [version, options] of VERSIONS.flatMap((one) => drivers.map((d) => [one, d]))) {
    const entities = entitiesOf(require(version))
    const { source } = await open(version, options, entities)
    for (const [entity, own] of [
      [entities[0], encodeString(NEGATIVE)],
      [entities[2], NEGATIVE],
    ]) {
      const repository = source.getRepository(entity)
      await repository.insert({ id: own, name: 'a' })
      await assert.rejects(repository.find(), refused(/defaultSafeIntegers/))
    }
    await source.destroy()
  }
})

test('one row leads to another by a query of its own', async () => {
  for (const version of VERSIONS) {
    const { EntitySchema } = require(version)
    const key = { ...id(), primary: true }
    const user = { type: 'one-to-one', target: 'person', inverseSide: 'card', joinColumn: true }
    const Card = new EntitySchema({
      name: 'card',
      columns: { userId: { ...id(), nullable: true }, id: key },
      relations: { user: { ...user, joinColumn: { name: 'userId' } } },
    })
    const Person = new EntitySchema({
      name: 'person',
      columns: { id: key },
      relations: { card: { type: 'one-to-one', target: 'card', inverseSide: 'user' } },
    })
    const { source } = await open(version, SQLITE, [Card, Person])
    const people = source.getRepository(Person)
    const texts = [NEGATIVE, ALL_DIGITS].map(encodeString)
    await people.insert(texts.map((text) => ({ id: text })))
    await source.getRepository(Card).insert({ id: texts[0], userId: texts[1] })
    const relationLoadStrategy = 'query'
    const found = await people.find({ relations: { card: true }, relationLoadStrategy })
    const card = { id: texts[0], userId: texts[1] }
    assert.deepEqual(
      found.map((person) => person.card && { ...person.card }),
      [null, card],
    )
    await source.destroy()
  }
  assert.throws(() => loadByQueries({}), { code: 'INVALID_ARGUMENT', message: /DataSource/ })
  assert.throws(() => loadByQueries(), { code: 'INVALID_ARGUMENT' })
})

test('TypeORM has the traps of bigints that its page names', async () => {
  for (const version of VERSIONS) {
    const { EntitySchema, In } = require(version)
    const column = { ...id({ asBigint: true }), primary: true }
    const Node = new EntitySchema({
      name: 'node',
      columns: { id: column, parentId: { ...column, primary: false, nullable: true } },
      relations: {
        parent: { type: 'many-to-one', target: 'node', joinColumn: { name: 'parentId' } },
      },
    })
    const { source } = await open(version, SQLITE, [Node])
    const nodes = source.getRepository(Node)
    await nodes.insert([{ id: 1n }, { id: 2n, parentId: 1n }])
    const read = await nodes.findOne({ where: { id: 2n }, relations: { parent: true } })
    await assert.rejects(nodes.save(read), /serialize a BigInt/)
    await nodes.delete({ id: 2n })
    await nodes.insert([{ id: 2n }, { id: 3n }])
    const update = () => nodes.update(2n, { parentId: 3n })
    if (version === 'typeorm') {
      await assert.rejects(update(), /Empty criteria/)
      await assert.rejects(nodes.delete(2n), /Empty criteria/)
      assert.equal(await nodes.count(), 3)
    } else {
      await update()
      assert.equal(await nodes.countBy({ parentId: 3n }), 3)
      await nodes.update({ id: In([1n, 2n, 3n]) }, { parentId: null })
      await nodes.delete(2n)
      assert.equal(await nodes.count(), 0)
    }
    await source.destroy()
  }
})

test('a foreign key that TypeORM makes by itself takes no text', async () => {
  for (const version of VERSIONS) {
    const { EntitySchema } = require(version)
    const Node = new EntitySchema({
      name: 'node',
      columns: { id: { ...id(), primary: true } },
      relations: {
        parent: { type: 'many-to-one', target: 'node', joinColumn: true },
        mates: { type: 'many-to-many', target: 'node', joinTable: true },
      },
    })
    const { source } = await open(version, SQLITE, [Node])
    const nodes = source.getRepository(Node)
    const parent = await nodes.save({ id: encodeString(NEGATIVE) })
    await assert.rejects(nodes.save({ id: '1', parent }), /FOREIGN KEY/)
    await assert.rejects(nodes.save({ id: '2', mates: [parent] }), /FOREIGN KEY/)
    await source.destroy()
  }
})

test('what a driver returns is read exactly', () => {
  const { to, from } = id({ asBigint: true }).transformer
  for (const read of ['-5', -5, -5n]) assert.equal(from(read), -5n)
  for (const nothing of [null, undefined]) {
    assert.equal(from(nothing), nothing)
    assert.equal(to(nothing), nothing)
  }
  for (const read of ['', ' 5', '5.0', '0x5', '1e3', {}, true, '9223372036854775808', 2n ** 63n]) {
    assert.throws(() => from(read), refused(/signed BIGINT/), String(read))
  }
  assert.throws(() => from(2 ** 53), refused(/rounded/))
  assert.throws(() => to('3vgoe12ccb8gh'), refused(/decodeString/))
  assert.equal(id().transformer.from('1228503247364293699'), '1234567890123')
  const lists = id({ form }).transformer
  const texts = IDS.map(formOf)
  assert.deepEqual(lists.to(texts), IDS)
  assert.deepEqual(lists.from(IDS.map(String)), texts)
  assert.equal(id().transformer.to('1234567890123'), 1228503247364293699n)
})

test('codes are read once, also where they look like other numbers', () => {
  const codes = new Codes(SECRET, 'posts', { length: 6 })
  const { from, to } = id({ form: new TextForm({ prefix: 'post', codes }) }).transformer
  for (let number = 0n; number < 2000n; number++) {
    const text = `post_${codes.encode(number)}`
    for (const read of [String(number), Number(number), number, text])
      assert.equal(from(read), text)
    assert.equal(to(text), number)
    assert.equal(from(codes.encode(number)), `post_${codes.encode(BigInt(codes.encode(number)))}`)
  }
})

test('the example in the declarations runs', () => {
  const declarations = readFileSync(require.resolve('../../bindings-node/typeorm.d.ts'), 'utf8')
  const [, example] = declarations.match(/@example\n((?: \* .*\n)+?) \*\//)
  const code = `${example.replace(/^ \* /gm, '')}; return Post`
  for (const version of VERSIONS) {
    const { EntitySchema } = require(version)
    const Post = new Function('EntitySchema', 'TextForm', 'id', code)(EntitySchema, TextForm, id)
    const { id: key, authorId } = Post.options.columns
    assert.equal(key.transformer.from(String(ALL_DIGITS)), 'post_1234567890123')
    assert.equal(authorId.transformer.to('1234567890123'), ALL_DIGITS)
  }
})

test('what is no option is refused', () => {
  for (const options of [
    null,
    5,
    [],
    cloak,
    { forms: 1 },
    { form: null },
    { form: {} },
    { asBigint: 1 },
  ]) {
    assert.throws(() => id(options), { code: 'INVALID_ARGUMENT' }, String(options))
  }
  const codes = new Codes(SECRET, 'posts', { length: 6 })
  for (const form of [new TextForm({ codes }), new TextForm({ prefix: undefined, codes })]) {
    assert.throws(() => id({ form }), { code: 'INVALID_ARGUMENT', message: /prefix/ })
  }
  const both = { form: new TextForm(), asBigint: true }
  assert.throws(() => id(both), { code: 'INVALID_ARGUMENT' })
})
