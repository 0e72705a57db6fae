// As zod.d.mts, for `require`: zod declares its classes once for each.

import type { ZodBigInt, ZodCodec, ZodString } from 'zod'
import type { TextForm } from './text.js'

/** Returns the schema of an id; see `zod.d.mts`. */
export function id(options?: {
  readonly form?: TextForm | undefined
}): ZodCodec<ZodString, ZodBigInt>
