// As drizzle.d.mts, for `require`: drizzle-orm declares its classes once for each.

import type { customType as mysqlType } from 'drizzle-orm/mysql-core'
import type { customType as pgType } from 'drizzle-orm/pg-core'
import type { customType as sqliteType } from 'drizzle-orm/sqlite-core'
import type { AsBigint, AsText } from './drizzle.mjs' with { 'resolution-mode': 'import' }

/** Declares a column of PostgreSQL for ids; see `drizzle.d.mts`. */
export const pgId: ReturnType<typeof pgType<AsText>> & ReturnType<typeof pgType<AsBigint>>

/** Declares a column of MySQL or MariaDB for ids; see `drizzle.d.mts`. */
export const mysqlId: ReturnType<typeof mysqlType<AsText>> & ReturnType<typeof mysqlType<AsBigint>>

/** Declares a column of SQLite for ids; see `drizzle.d.mts`. */
export const sqliteId: ReturnType<typeof sqliteType<AsText>> &
  ReturnType<typeof sqliteType<AsBigint>>
