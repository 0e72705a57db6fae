#!/usr/bin/env node
// The engine of `prisma db push`, `db pull` and `migrate` on PostgreSQL, in WebAssembly.
//
// The one that Prisma downloads is in no package, so this stands for it, as PRISMA_SCHEMA_ENGINE_BINARY:
// it speaks on stdin and stdout as that one does. What compares and changes databases is the same code,
// of the same commit, in `@prisma/schema-engine-wasm`. It knows neither MySQL nor MariaDB.

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils'
import * as glue from '@prisma/schema-engine-wasm/schema_engine_bg'
import pg from 'pg'

const { builtins } = pg.types

/** The engine asks for columns of type "char", which the adapter does not know. */
class Client extends pg.Client {
  constructor(...options) {
    super(...options)
    this.connection.on('rowDescription', ({ fields }) => {
      for (const field of fields) {
        if (field.dataTypeID === builtins.CHAR) field.dataTypeID = builtins.BPCHAR
      }
    })
  }
}

class Adapter extends PrismaPg {
  #login

  constructor(login) {
    super({ ...login, Client })
    this.#login = login
  }

  /** Makes a database to try migrations in. That of the adapter is still in use when it drops it. */
  async connectToShadowDb() {
    const main = await this.connect()
    const database = `shadow_${randomUUID()}`
    await main.executeScript(`create database "${database}"`)
    const shadow = await new Adapter({ ...this.#login, database }).connect()
    const close = shadow.dispose.bind(shadow)
    shadow.dispose = async () => {
      await close()
      await main.executeScript(`drop database "${database}"`)
      await main.dispose()
    }
    return shadow
  }
}

function adapterOf(url) {
  const { hostname: host, port, username: user, password, pathname } = new URL(url)
  const login = { host, port: Number(port), user, password, database: pathname.slice(1) }
  return bindMigrationAwareSqlAdapterFactory(new Adapter(login))
}

async function startEngine(url, datamodels) {
  globalThis.PRISMA_WASM_PANIC_REGISTRY = { set_message: (text) => console.error(text) }
  const file = import.meta.resolve('@prisma/schema-engine-wasm').replace(/\.js$/, '_bg.wasm')
  const imports = { './schema_engine_bg.js': glue }
  const { instance } = await WebAssembly.instantiate(readFileSync(fileURLToPath(file)), imports)
  glue.__wbg_set_wasm(instance.exports)
  instance.exports.__wbindgen_start()
  return glue.SchemaEngine.new({ datamodels }, () => {}, adapterOf(url))
}

async function answerOf(engine, { id, method, params }) {
  try {
    return { jsonrpc: '2.0', id, result: (await engine[method](params)) ?? null }
  } catch (error) {
    const { message, code } = error
    const data = { is_panic: false, message, error_code: code }
    return { jsonrpc: '2.0', id, error: { code: 1, message, data } }
  }
}

const options = {
  datasource: { type: 'string' },
  datamodels: { type: 'string', multiple: true, default: [] },
}
// Not strict: there are more, which change nothing here.
const { values, positionals } = parseArgs({ options, allowPositionals: true, strict: false })
const datamodels = values.datamodels.map((path) => [path, readFileSync(path, 'utf8')])
const engine = await startEngine(
  JSON.parse(values.datasource).url,
  datamodels.length > 0 ? datamodels : undefined,
)
if (positionals[0] === 'cli') {
  // Prisma asks whether the database is there.
  await engine.version()
} else {
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answerOf(engine, JSON.parse(line))))
  }
}
process.exit()
