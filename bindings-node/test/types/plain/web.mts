// The module for browsers, without the types of Node.js.

import {
  Cloak,
  Codes,
  Inspector,
  Layout,
  type Parts,
  RandflakeError,
  type RawParts,
  ServedGenerator,
  type ServedOptions,
  TextForm,
} from '../../../web.mjs'

const secret = new Uint8Array(16)
const parts: Parts = new Inspector(secret).inspect('3vgoe12ccb8gh')
const raw: RawParts = new Layout('twitter').inspect(1n)
const form = new TextForm({ prefix: 'order', cloak: new Cloak(secret, 'orders.id') })
const codes = new Codes(secret, 'vouchers', { length: 10, alphabet: 'crockford', check: 3 })
const code: string = codes.encode(1n)
const numbers: bigint[] = codes.decodeMany([code])
const options: ServedOptions = { token: 'x', batch: 10, timeoutMs: 1000, fetch }
const flake = new ServedGenerator(new URL('https://ids.internal'), options)
const id: bigint = await flake.generate({ signal: AbortSignal.timeout(1000) })
const ids: bigint[] = await flake.generateMany(3)
console.log(parts.date, raw.date, form.encode(id), numbers, ids, codes.capacity)
// @ts-expect-error: no option is called so
new ServedGenerator('https://ids.internal', { tokn: 'x' })
// @ts-expect-error: a number has no label
new Codes(secret, 5)

export function isBusy(error: unknown): boolean {
  return error instanceof RandflakeError && error.code === 'BUSY'
}
