// Compiled, never run: a CommonJS module has columns from the declarations for `require`.
import core = require('drizzle-orm/pg-core')
import columns = require('randflake/drizzle')

const users = core.pgTable('users', { id: columns.pgId().primaryKey() })
const posts = core.pgTable('posts', { user: columns.pgId('user_id').references(() => users.id) })
const user: bigint | null = posts.$inferSelect.user
console.log(user)
