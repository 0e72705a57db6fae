// Tools that change a database into what an application declares, where leases are in it, too.

const assert = require('node:assert/strict')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { after, before, suite, test } = require('node:test')
const mysql = require('mysql2/promise')
const pg = require('pg')
const { initStore } = require('../../bindings-node')
const { servers } = require('../../bindings-node/test/servers.js')

const SECRET = 'dffd6021bb2bd5b0af676290809ec3a5'
const MODULES = path.join(__dirname, 'node_modules')

/** Returns the file of a guide that its first line names. */
function fileOf(guide, name) {
  const page = fs.readFileSync(path.resolve(__dirname, `../../docs/guides/${guide}.md`), 'utf8')
  const files = [...page.matchAll(/^```\w+\n\/\/ (\S+)\n(.*?)^```$/gms)]
  const [, , code] = files.find(([, named]) => named === name)
  return code
}

/** Replaces what has to be there once. */
function replaced(text, from, to) {
  assert.equal(text.split(from).length, 2, `${from} in ${text}`)
  return text.replace(from, to)
}

/** Returns a folder below the libraries, so that what is written there finds them. */
function folderOf(t, files) {
  const folder = fs.mkdtempSync(path.join(__dirname, 'build-'))
  t.after(() => fs.rmSync(folder, { recursive: true, maxRetries: 20 }))
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
  return folder
}

/** Runs a tool, which has nobody to ask, and returns its status and what it prints. */
function run(folder, tool, args, environment) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [tool, ...args], {
    cwd: folder,
    env: { ...process.env, ...environment },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    // The runner cannot end a test that waits for this.
    timeout: 300_000,
  })
  return { status, printed: stdout + stderr }
}

/** Each runs statements on a database, and returns the rows of all. */
const runners = {
  async postgresql(url, ...statements) {
    const client = new pg.Client(url)
    await client.connect()
    try {
      const results = []
      for (const text of statements) results.push((await client.query(text)).rows)
      return results
    } finally {
      await client.end()
    }
  },

  async mysql(url, ...statements) {
    const client = await mysql.createConnection(url)
    try {
      const results = []
      for (const text of statements) results.push((await client.query(text))[0])
      return results
    } finally {
      await client.end()
    }
  },
}

const sql = (url, ...statements) => runners[new URL(url).protocol.slice(0, -1)](url, ...statements)

/** What is known of the table of leases, and all that is in it. */
const LEASES = {
  postgresql: [
    'select * from randflake_leases.entry',
    `select attname, format_type(atttypid, atttypmod), attnotnull, attcollation from pg_attribute
      where attrelid = 'randflake_leases.entry'::regclass and attnum > 0 order by attnum`,
    `select reloptions, array(select pg_get_constraintdef(oid) from pg_constraint
      where conrelid = class.oid) from pg_class class where oid = 'randflake_leases.entry'::regclass`,
  ],
  mysql: ['select * from randflake_entry', 'show create table randflake_entry'],
}

let databases = 0

/** Makes a database with leases in it. */
async function makeDatabase(server) {
  const dialect = new URL(server.url).protocol.slice(0, -1)
  databases += 1
  const name = `application_${databases}`
  await sql(server.url, `create database ${name}`)
  const url = new URL(server.url)
  url.pathname = name
  await initStore(url.href, SECRET, 'new')
  const leases = () => sql(url.href, ...LEASES[dialect])
  const expected = await leases()
  assert.equal(expected[0].length, 1)
  return {
    url: url.href,
    dialect,
    sql: (...statements) => sql(url.href, ...statements),
    hasLeases: async () => assert.deepEqual(await leases(), expected),
    hasNone: () => assert.rejects(leases(), { code: /^(42P01|ER_NO_SUCH_TABLE)$/ }),
    tables: async () => {
      const schema = dialect === 'mysql' ? 'database()' : "'public'"
      const [rows] = await sql(
        url.href,
        `select table_name as name from information_schema.tables
          where table_schema = ${schema} and table_name not like 'randflake%' order by 1`,
      )
      return rows.map((row) => row.name)
    },
  }
}

function withServer(name, kind, act) {
  suite(name, () => {
    let server
    before(async () => {
      server = await servers[kind]()
    })
    after(() => server?.stop())
    act((title, check) =>
      test(title, async (t) => {
        if (server === undefined) return t.skip(`${name} is not installed`)
        await check(t, await makeDatabase(server), server)
      }),
    )
  })
}

const DRIZZLE = { 0.31: ['drizzle-kit', 'drizzle-orm'], '1.0': ['drizzle-kit-1', 'drizzle-orm-1'] }

/** Returns what runs a command of drizzle-kit with the settings of the guide, or some lines less. */
function drizzleKit(t, version, { url, dialect }) {
  const library = dialect === 'mysql' ? 'mysql' : 'pg'
  const config = replaced(
    fileOf('drizzle', 'drizzle.config.mjs'),
    "'mysql', // or 'postgresql'",
    `'${dialect}',`,
  )
  const folder = folderOf(t, {
    'drizzle.config.mjs': config,
    'unfiltered.config.mjs': config.replace(/^ *(schema|tables)Filter: .*\n/gm, ''),
    'schema.mjs': `
      import { bigint, ${library}Table } from 'drizzle-orm/${library}-core'
      export const users = ${library}Table('users', { id: bigint({ mode: 'bigint' }).primaryKey() })`,
  })
  // Both by the names that they import each other by.
  const modules = path.join(folder, 'node_modules')
  fs.mkdirSync(modules)
  for (const [n, name] of ['drizzle-kit', 'drizzle-orm'].entries()) {
    fs.symlinkSync(path.join(MODULES, DRIZZLE[version][n]), path.join(modules, name))
  }
  const drizzle = (settings, command, ...more) =>
    run(
      folder,
      path.join(modules, 'drizzle-kit/bin.cjs'),
      [command, '--config', `${settings}.config.mjs`, ...more],
      { DATABASE_URL: url, NODE_OPTIONS: '--preserve-symlinks --preserve-symlinks-main' },
    )
  const pulled = () => fs.readFileSync(path.join(folder, 'drizzle/schema.ts'), 'utf8')
  return { drizzle, pulled }
}

/** Returns what runs a command of TypeORM, and returns the migration if that makes one. */
function typeormOf(t, version, { url, dialect }) {
  const type = dialect === 'mysql' ? 'mariadb' : 'postgres'
  const folder = folderOf(t, {
    'source.cjs': `
      const { DataSource, EntitySchema } = require('${version}')
      const { id } = require(${JSON.stringify(path.resolve(__dirname, '../../bindings-node/typeorm.js'))})
      const User = new EntitySchema({
        name: 'users',
        columns: { id: { ...id(), primary: true } },
      })
      module.exports = new DataSource({
        type: '${type}',
        url: process.env.DATABASE_URL,
        entities: [User],
      })`,
  })
  return (command, ...more) => {
    const args = [command, '--dataSource', 'source.cjs', ...more]
    const { status, printed } = run(folder, path.join(MODULES, version, 'cli.js'), args, {
      DATABASE_URL: url,
    })
    assert.equal(status, 0, printed)
    const migration = fs.readdirSync(folder).find((name) => name.endsWith('.js'))
    return migration && fs.readFileSync(path.join(folder, migration), 'utf8')
  }
}

for (const [name, kind] of [
  ['PostgreSQL', 'postgresql'],
  ['MariaDB', 'mysql'],
]) {
  withServer(name, kind, (live) => {
    for (const version of Object.keys(DRIZZLE)) {
      live(`drizzle-kit ${version} leaves leases alone as its guide says`, async (t, database) => {
        const { drizzle, pulled } = drizzleKit(t, version, database)
        for (const command of ['generate', 'push', 'pull']) {
          const { status, printed } = drizzle('drizzle', command)
          assert.equal(status, 0, printed)
          assert.doesNotMatch(printed, /entry|randflake/)
        }
        assert.match(pulled(), /users/)
        assert.doesNotMatch(pulled(), /entry|randflake/i)
        assert.deepEqual(await database.tables(), ['users'])
        await database.hasLeases()
      })

      if (kind === 'postgresql' && version === '0.31') {
        live(`drizzle-kit ${version} looks into one schema`, async (t, database) => {
          const { drizzle, pulled } = drizzleKit(t, version, database)
          for (const [command, ...more] of [['push', '--force'], ['pull']]) {
            const { status, printed } = drizzle('unfiltered', command, ...more)
            assert.equal(status, 0, printed)
          }
          assert.deepEqual(await database.tables(), ['users'])
          assert.doesNotMatch(pulled(), /entry|randflake/i)
          await database.hasLeases()
        })
        continue
      }

      live(`drizzle-kit ${version} drops leases without it`, async (t, database) => {
        const { drizzle, pulled } = drizzleKit(t, version, database)
        // A table that is new could be that of the leases, renamed.
        const first = drizzle('unfiltered', 'push', '--force')
        assert.match(first.printed, /Interactive prompts|Rename or create/)
        for (const command of ['generate', 'migrate', 'pull']) {
          const { status, printed } = drizzle('unfiltered', command)
          assert.equal(status, 0, printed)
        }
        assert((await database.tables()).includes('users'))
        assert.match(pulled(), /randflake/)
        await database.hasLeases()
        if (version === '0.31') {
          drizzle('unfiltered', 'push', '--force')
        } else {
          const { printed } = drizzle('unfiltered', 'push', '--force')
          const [...wanted] = printed.matchAll(/\{ "type": "confirm_data_loss".*\}/g)
          const hints = `[${wanted.map(([hint]) => hint).join()}]`
          assert.match(hints, /randflake/)
          const { status, printed: done } = drizzle('unfiltered', 'push', '--hints', hints)
          assert.equal(status, 0, done)
        }
        await database.hasNone()
      })
    }

    for (const version of ['typeorm', 'typeorm-0-3-20']) {
      live(`${version} leaves leases alone until it drops everything`, async (t, database) => {
        const typeorm = typeormOf(t, version, database)
        const generated = typeorm('migration:generate', 'First', '--outputJs')
        assert.match(generated, /CREATE TABLE/)
        assert.doesNotMatch(generated, /entry|randflake/)
        typeorm('schema:sync')
        assert.deepEqual(await database.tables(), ['users'])
        await database.hasLeases()
        typeorm('schema:drop')
        assert.deepEqual(await database.tables(), [])
        await (kind === 'mysql' ? database.hasNone() : database.hasLeases())
      })
    }

    if (kind === 'mysql') {
      live(
        'typeorm leaves leases alone in a database of their own',
        async (t, database, server) => {
          const other = await makeDatabase(server)
          const typeorm = typeormOf(t, 'typeorm', other)
          typeorm('schema:sync')
          typeorm('schema:drop')
          await other.hasNone()
          await database.hasLeases()
        },
      )
    }
  })
}

/** Returns what runs a command of Prisma on the schema of the guide. */
function prismaOf(t, { url }) {
  const schema = fileOf('prisma', 'schema.prisma')
  const config = fileOf('prisma', 'prisma.config.mjs')
  const external = "['randflake_entry']"
  const folder = folderOf(t, {
    'schema.prisma': schema,
    // In PostgreSQL the name has to have a schema.
    'external.config.mjs': replaced(config, external, "['public.randflake_entry']"),
    'plain.config.mjs': config.replace(/^ *(experimental|tables): .*\n/gm, ''),
    'both.prisma': `
      datasource db {
        provider = "postgresql"
        schemas  = ["public", "randflake_leases"]
      }`,
  })
  return (settings, ...args) =>
    run(
      folder,
      path.join(MODULES, 'prisma/build/index.js'),
      [...args, '--config', `${settings}.config.mjs`],
      {
        DATABASE_URL: url,
        CHECKPOINT_DISABLE: '1',
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        PRISMA_SCHEMA_ENGINE_BINARY: path.join(__dirname, 'schema-engine.mjs'),
      },
    )
}

test('the engine is that of Prisma', () => {
  const { enginesVersion } = require('@prisma/engines-version')
  const { devDependencies } = require('./package.json')
  assert.equal(devDependencies['@prisma/schema-engine-wasm'].split('.').at(-1), enginesVersion)
})

withServer('Prisma on PostgreSQL', 'postgresql', (live) => {
  live('leaves leases alone', async (t, database) => {
    const prisma = prismaOf(t, database)
    for (const args of [
      ['migrate', 'dev', '--name', 'first'],
      ['migrate', 'deploy'],
      ['db', 'push', '--accept-data-loss'],
      ['db', 'pull', '--print'],
      ['migrate', 'diff', '--from-config-datasource', '--to-schema', 'schema.prisma', '--script'],
      ['migrate', 'reset', '--force'],
    ]) {
      const { status, printed } = prisma('plain', ...args)
      assert.equal(status, 0, printed)
      assert.doesNotMatch(printed, /entry|randflake_/)
      await database.hasLeases()
    }
    assert.deepEqual(await database.tables(), ['Post', 'User', '_prisma_migrations'])
  })

  live('leaves a table alone that is external, and no other', async (t, database) => {
    await database.sql(
      'create table randflake_entry (name text primary key)',
      "insert into randflake_entry values ('meta')",
    )
    const prisma = prismaOf(t, database)
    const pushed = prisma('external', 'db', 'push', '--accept-data-loss')
    assert.equal(pushed.status, 0, pushed.printed)
    assert.deepEqual(await database.tables(), ['Post', 'User'])
    const drifted = prisma('plain', 'migrate', 'dev', '--name', 'first')
    assert.match(drifted.printed, /Drift detected.*randflake_entry.*We need to reset/s)
    await database.sql('drop table "Post", "User"')
    const migrated = prisma('external', 'migrate', 'dev', '--name', 'first')
    assert.equal(migrated.status, 0, migrated.printed)
    const rows = 'select * from randflake_entry'
    assert.deepEqual(await database.sql(rows), [[{ name: 'meta' }]])
    assert.match(prisma('plain', 'db', 'pull', '--print').printed, /model randflake_entry/)
    const dropped = prisma('plain', 'db', 'push', '--accept-data-loss')
    assert.equal(dropped.status, 0, dropped.printed)
    await assert.rejects(database.sql(rows), { code: '42P01' })
    await database.hasLeases()
  })

  live('drops leases whose schema it is told of', async (t, database) => {
    const { status, printed } = prismaOf(t, database)(
      'plain',
      ...['db', 'push', '--accept-data-loss', '--schema', 'both.prisma'],
    )
    assert.equal(status, 0, printed)
    await database.hasNone()
  })
})
