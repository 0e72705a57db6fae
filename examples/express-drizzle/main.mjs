/**
 * A shop with Express, Drizzle and zod: ids in URLs, in JSON and in the database.
 *
 * An item has an id of Randflake. An order has a Snowflake, so that the database finds the orders of
 * a day by their primary key; outside, a cloak hides it. Settings: DATABASE_URL, PORT,
 * RANDFLAKE_STORE and RANDFLAKE_SECRET. Once:
 *
 *     npm install drizzle-orm express pg randflake zod
 *     npx randflake lease init --new
 *     node -e "require('randflake').initStore(process.env.RANDFLAKE_STORE, undefined, 'new',
 *       { namespace: 'orders', layout: 'twitter' })"
 *     psql "$DATABASE_URL" -f schema.sql
 *
 * Then: node main.mjs
 */

import { between, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable, text } from 'drizzle-orm/pg-core'
import express from 'express'
import { Cloak, Layout, Randflake, Snowflake } from 'randflake'
import { pgId } from 'randflake/drizzle'
import { TextForm } from 'randflake/text'
import { id } from 'randflake/zod'
import { z } from 'zod'

const { DATABASE_URL = '', PORT = '3000', RANDFLAKE_SECRET = '' } = process.env

const layout = new Layout('twitter')
// They lease with their first ids. No call waits: until there is a lease, the answer is 503.
const itemIds = Randflake.lazy({ maxWaitMs: 0 })
const orderIds = Snowflake.lazy({ layout, namespace: 'orders', maxWaitMs: 0 })

// Inside: bigints, in rows and in the database.
const orders = pgTable('shop_order', {
  id: pgId()
    .primaryKey()
    .$defaultFn(() => orderIds.generate()),
  customer: text().notNull(),
})
const items = pgTable('shop_item', {
  id: pgId()
    .primaryKey()
    .$defaultFn(() => itemIds.generate()),
  order_id: pgId().notNull(),
  name: text().notNull(),
})
const database = drizzle(DATABASE_URL)

// Outside: texts, in URLs and in JSON.
const ItemId = id()
const cloak = new Cloak(RANDFLAKE_SECRET, 'orders.id')
const OrderId = id({ form: new TextForm({ prefix: 'order', cloak }) })
const Item = z.object({ id: ItemId, order_id: OrderId, name: z.string() })
const Order = z.object({ id: OrderId, customer: z.string(), items: z.array(Item) })
const NewOrder = z.object({ customer: z.string(), items: z.array(z.string()) })

/** @param {import('drizzle-orm').SQL} where */
async function ordersWhere(where) {
  const join = database.select().from(orders).leftJoin(items, eq(items.order_id, orders.id))
  /** @type {Map<bigint, z.output<typeof Order>>} */
  const found = new Map()
  for (const { shop_order, shop_item } of await join.where(where).orderBy(orders.id)) {
    const order = found.get(shop_order.id) ?? { ...shop_order, items: [] }
    found.set(order.id, order)
    if (shop_item) order.items.push(shop_item)
  }
  return [...found.values()]
}

const app = express().use(express.json())

app.post('/orders', async (request, response) => {
  const { customer, items: names } = NewOrder.parse(request.body)
  const made = await database.transaction(async (transaction) => {
    const [order] = await transaction.insert(orders).values({ customer }).returning()
    const rows = names.map((name) => ({ order_id: order.id, name }))
    if (rows.length === 0) return { ...order, items: [] }
    return { ...order, items: await transaction.insert(items).values(rows).returning() }
  })
  response.status(201).json(z.encode(Order, made)) // committed
})

app.get('/orders', async (request, response) => {
  const start = Date.parse(z.iso.date().parse(request.query.day))
  const end = start + 86_400_000 - 1
  const found = await ordersWhere(between(orders.id, layout.firstIdAt(start), layout.lastIdAt(end)))
  response.json(z.encode(z.array(Order), found))
})

app.get('/orders/:id', async (request, response) => {
  const [found] = await ordersWhere(eq(orders.id, OrderId.parse(request.params.id)))
  response.status(found ? 200 : 404).json(found ? z.encode(Order, found) : {})
})

app.get('/items/:id', async (request, response) => {
  const where = eq(items.id, ItemId.parse(request.params.id))
  const [found] = await database.select().from(items).where(where)
  response.status(found ? 200 : 404).json(found ? z.encode(Item, found) : {})
})

/** @type {express.ErrorRequestHandler} */
const answerError = (error, _request, response, next) => {
  if (error instanceof z.ZodError) response.status(422).json({ issues: error.issues })
  else if (error.retryAfterMs === undefined) next(error)
  else
    response
      .status(503)
      .set('Retry-After', `${Math.max(1, Math.ceil(error.retryAfterMs / 1000))}`)
      .json({})
}

const server = app.use(answerError).listen(Number(PORT))

async function exit() {
  await Promise.all([itemIds.closeAsync(), orderIds.closeAsync()])
  process.exit() // with its node ids given back
}
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => server.close(exit))
