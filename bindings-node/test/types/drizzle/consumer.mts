// Compiled separately, never run: the declarations of drizzle-orm have errors of their own.
import { between, eq, relations } from 'drizzle-orm'
import { mysqlTable } from 'drizzle-orm/mysql-core'
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable } from 'drizzle-orm/pg-core'
import { sqliteTable } from 'drizzle-orm/sqlite-core'
import { createInsertSchema, createSelectSchema } from 'drizzle-zod'
import { Cloak, generateSecret, Layout, Randflake } from 'randflake'
import { mysqlId, pgId, sqliteId } from 'randflake/drizzle'
import { TextForm } from 'randflake/text'

const flake = Randflake.lazy()
const cloak = new Cloak(generateSecret(), 'orders.id')
const form = new TextForm({ prefix: 'order', cloak })
const id: bigint = flake.generate()

const users = pgTable('users', {
  id: pgId()
    .primaryKey()
    .$defaultFn(() => flake.generate()),
})
const orders = pgTable('orders', {
  id: pgId({ form })
    .primaryKey()
    .$defaultFn(() => form.encode(flake.generate())),
  user: pgId('user_id')
    .notNull()
    .references(() => users.id),
  gift: pgId('gift_id', { form }),
})
const ordersOfUsers = relations(users, ({ many }) => ({ orders: many(orders) }))
const newOrder: typeof orders.$inferInsert = { user: id }
const schema = { orders, ordersOfUsers, users }
const database = drizzle('postgresql://app@localhost/app', { schema })
const rows: { id: string; user: bigint; gift: string | null }[] = await database
  .insert(orders)
  .values(newOrder)
  .returning()
await database.insert(users).values({})
await database.select().from(orders).where(eq(orders.user, id))
await database.select().from(orders).where(eq(orders.id, 'order_10'))
const day = new Layout('twitter').firstIdAt(new Date())
await database
  .select()
  .from(orders)
  .where(between(orders.id, form.encode(day), form.encode(day)))
const found = await database.query.users.findFirst({ with: { orders: true } })
const nested: string | undefined = found?.orders[0]?.id
const bigintOfMysql: bigint = mysqlTable('a', { id: mysqlId().notNull() }).$inferSelect.id
const textOfSqlite: string = sqliteTable('a', { id: sqliteId({ form }).notNull() }).$inferSelect.id
console.log(rows, found?.id === id, nested, bigintOfMysql, textOfSqlite)
const order = createSelectSchema(orders).parse({})
const parsed: { id: string; user: bigint; gift: string | null } = order
const user: bigint | undefined = createInsertSchema(orders).partial().parse({}).user
console.log(parsed, user)
// @ts-expect-error a bigint, and not anything
const anything: string = order.user
console.log(anything)
// @ts-expect-error its data are texts
await database.select().from(orders).where(eq(orders.id, id))
// @ts-expect-error ids are never numbers
await database.insert(users).values({ id: 5 })
// @ts-expect-error another name
pgId({ from: form })
// @ts-expect-error no form
pgId('user_id', { form: cloak })
