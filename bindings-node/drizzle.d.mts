// Columns of Drizzle for ids. Needs `drizzle-orm` 0.36 or later.

import type { customType as mysqlType } from 'drizzle-orm/mysql-core'
import type { customType as pgType } from 'drizzle-orm/pg-core'
import type { customType as sqliteType } from 'drizzle-orm/sqlite-core'
import type { TextForm } from './text.js'

/** What a driver takes, and what it gives: never a number that is rounded. */
interface Driver {
  driverData: bigint | string | number
}

/** A column whose ids are texts in rows and queries. */
export interface AsText extends Driver {
  data: string
  config: { readonly form: TextForm }
  configRequired: true
}

/** A column whose ids are bigints in rows and queries. */
export interface AsBigint extends Driver {
  data: bigint
  config: Record<string, never>
}

/**
 * Declares a column of PostgreSQL for ids: `bigint`. In rows and queries an id is a bigint, or with a
 * `form` its text.
 *
 * A value that came as a rounded number, as in relational queries of drizzle-orm before 1.0, throws
 * an `Error` with the code `INVALID_ID`; so does a value in a query that is not a valid id.
 *
 * @param name of the column; the key's unless set.
 * @param options `form`: how the ids of the column look outside.
 * @throws an `Error` with the code `INVALID_ARGUMENT` for other options.
 * @example
 * const form = new TextForm({ prefix: 'post' })
 * const posts = pgTable('posts', {
 *   id: pgId({ form }).primaryKey().$defaultFn(() => form.encode(flake.generate())),
 *   author: pgId('author_id').notNull(), // a bigint
 * })
 */
export const pgId: ReturnType<typeof pgType<AsText>> & ReturnType<typeof pgType<AsBigint>>

/**
 * Declares a column of MySQL or MariaDB for ids: `bigint`; see {@link pgId}. Connect with
 * `supportBigNumbers` and `bigNumberStrings`: without them mysql2 gives numbers that are rounded.
 */
export const mysqlId: ReturnType<typeof mysqlType<AsText>> & ReturnType<typeof mysqlType<AsBigint>>

/** Declares a column of SQLite for ids: `integer`; see {@link pgId}. */
export const sqliteId: ReturnType<typeof sqliteType<AsText>> &
  ReturnType<typeof sqliteType<AsBigint>>
