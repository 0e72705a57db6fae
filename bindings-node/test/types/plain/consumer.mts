// A program without the types of Node.js, whose lib does not declare Symbol.dispose.

import { Randflake, Snowflake } from '../../../index.js'

const lazy: Randflake = Randflake.lazy({ create: false, nodeCount: 2 })
const leased: Randflake = await Randflake.leased({ namespace: 'orders' })
const snowflake: Snowflake = Snowflake.lazy({ layout: 'twitter' })
// @ts-expect-error: no option is called so
Randflake.lazy({ creat: false })

lazy[Symbol.dispose]()
const ended: Promise<void> = leased.closeAsync()
await Promise.all([ended, snowflake[Symbol.asyncDispose]()])
