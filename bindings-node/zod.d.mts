// Ids in schemas of zod. Needs `zod` 4.1 or later.

import type { ZodBigInt, ZodCodec, ZodString } from 'zod'
import type { TextForm } from './text.js'

/**
 * Returns the schema of an id: text outside, a bigint inside. `parse` and `decode` read the text
 * strictly, `z.encode` writes it; anything else is an issue of zod that shows what an id looks like.
 * In a JSON schema it is the text, whether `io` is `input` or `output`.
 *
 * Keys of an object are text: `z.record(id().in, …)` checks them.
 *
 * @param options `form`: how the ids of the column look outside; as `encodeString` writes them unless
 *   set.
 * @throws an `Error` with the code `INVALID_ARGUMENT` for other options.
 * @example
 * const Order = z.object({ id: id({ form: new TextForm({ prefix: 'order' }) }) })
 * Order.parse({ id: 'order_3vgoe12ccb8gh' }) // { id: 4594531474933654033n }
 * z.encode(Order, { id: -1n }) // { id: 'order_fvvvvvvvvvvvv' }
 */
export function id(options?: {
  readonly form?: TextForm | undefined
}): ZodCodec<ZodString, ZodBigInt>
