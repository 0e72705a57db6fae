// With the copy of drizzle-orm that a module imports.

import { customType as mysql } from 'drizzle-orm/mysql-core'
import { customType as pg } from 'drizzle-orm/pg-core'
import { customType as sqlite } from 'drizzle-orm/sqlite-core'
import columnsWith from './lib/drizzle-id.js'

export const { pgId, mysqlId, sqliteId } = columnsWith({ pg, mysql, sqlite })
