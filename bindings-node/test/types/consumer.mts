// Compiled, never run: what an ES module may and may not do.
import { Redis } from 'ioredis'
import mariadb from 'mariadb'
import callbacks from 'mariadb/callback'
import mysql from 'mysql2/promise'
import postgres from 'postgres'
import {
  BoundaryFlake,
  Cloak,
  type Clock,
  Codes,
  type CounterStatus,
  decodeString,
  decodeStrings,
  encodeString,
  encodeStrings,
  fenceStore,
  fenceTickets,
  generateSecret,
  type InitMode,
  type InitOptions,
  Inspector,
  initStore,
  initTickets,
  inspectLease,
  Layout,
  type LayoutFields,
  type LayoutName,
  type Lease,
  type LeasedRandflake,
  type LeasedSnowflake,
  type LeaseOptions,
  type LeaseStatus,
  listLeases,
  listTickets,
  type NodeStatus,
  type Options,
  type Parts,
  type PartsColumns,
  Randflake,
  RandflakeError,
  type RandflakeErrorCode,
  type RawParts,
  releaseLease,
  repairLease,
  repairStore,
  type Sequence,
  Snowflake,
  type SnowflakeLeaseOptions,
  type SnowflakeOptions,
  type StoreAdapter,
  type StoreClient,
  type StoreLimits,
  type StoreStatus,
  setNodeIds,
  showTickets,
  Tickets,
  type TicketsMetrics,
  type TicketsOptions,
} from 'randflake'
import { type Fake, FakeRandflake, FakeSnowflake, FakeTickets } from 'randflake/testing'
import * as textOnly from 'randflake/text'
import { loadByQueries, id as typeormId } from 'randflake/typeorm'
import { id as zodId } from 'randflake/zod'
import { createClient } from 'redis'
import { z } from 'zod'

const secret: string = generateSecret()
const lease: Lease = { start: 1763640000, endExclusive: 1763640300 }
const clocks: Clock[] = [() => 1763640000, { now: () => 1763640000.5, sleep: (_seconds) => {} }]
const options: Options = { lease, maxWaitMs: 0, maxDriftSeconds: 1, restartSafe: true }

using flake = new Randflake(1, secret, { ...options, clock: clocks[0] })
await using other = new Randflake([2, 3], Buffer.from(secret, 'hex'))
const leaseOptions: LeaseOptions = {
  nodeCount: 2,
  ttlSeconds: 60,
  maxSkewSeconds: 5,
  namespace: 'orders',
  acquireTimeoutMs: 1000,
  maxWaitMs: 0,
  maxDriftSeconds: 10,
}
await using leased: LeasedRandflake = await Randflake.leased('ids.db', secret, leaseOptions)
const likeAnyOther: Randflake = await Randflake.leased(new URL('file:///ids.db'), secret)
const adapter: StoreAdapter = { run: async (_text, parameters) => [parameters, [null]] }
const pool = { query: async (_text: string) => ({ rows: [] }), connect: async () => {} }
const sql = postgres('postgresql://app@localhost/app')
const adapterOfReadme: StoreAdapter = {
  run: async (text, parameters) => sql.unsafe(text, parameters).values(),
}
const stores: (StoreClient | string | URL)[] = [adapter, adapterOfReadme, pool, new Redis()]
stores.push(createClient(), 'redis://localhost', new URL('etcds://localhost:2379'))
stores.push(mysql.createPool('mysql://app@localhost/app'), { ...adapter, server: 'mysql' })
stores.push(mariadb.createPool('mariadb://app@localhost/app'), await mariadb.createConnection({}))
stores.push(callbacks.createPool({}), callbacks.createConnection({}))
const initOptions: InitOptions = { namespace: 'orders', maxTtlSeconds: 60, nodeIds: '0-6' }
const mode: InitMode = 'quarantine'
for (const store of stores) await initStore(store, secret, mode, initOptions)
const known: StoreStatus = await listLeases(adapter, { namespace: 'orders' })
const one: NodeStatus | null = await inspectLease('ids.db', 7)
const limits: StoreLimits = known.limits
const ends: number[] = [
  await fenceStore('ids.db'),
  await setNodeIds('ids.db', '0-6,8-1023', { namespace: 'orders' }),
  await repairLease('ids.db', 7, { endExclusive: 1763640000 }),
  await repairStore('ids.db', { floor: 1763640000 }),
  await releaseLease('ids.db', one as NodeStatus),
]
console.log(known.leases[0]?.note, one?.state, limits.nodeIds, ends)
// @ts-expect-error no lease that was looked at
await releaseLease('ids.db', 7)
await Randflake.leased(adapter, secret, { create: true, allowWeakStore: true })
const status: LeaseStatus | null = leased.lease
console.log(likeAnyOther.lease?.start, status?.state, status?.lastError?.code)
const id: bigint = flake.generate()
const text: string = other.generateString()
const ids: BigInt64Array = await flake.generateManyAsync(10)
flake.fill(ids)
await flake.ready()
flake.extendLease(1763640600)
const held: Lease | null = flake.lease
const nodeIds: number[] = flake.nodeIds
const inspector = new Inspector(new Uint8Array(16))
const parts: Parts = inspector.inspect(text)
const columns: PartsColumns = inspector.inspectMany(flake.generateMany(3))
const raw: bigint = flake.decrypt(id)
const again: bigint = flake.encrypt(raw)
const round: bigint = decodeString(encodeString(id))
const texts: string[] = flake.generateStrings(3).concat(encodeStrings(ids), encodeStrings([id]))
const raws: BigUint64Array = inspector.decryptMany(decodeStrings(texts))
flake.decryptInPlace(inspector.encryptMany(raws))
inspector.encryptInPlace(flake.encryptMany([...flake.decryptMany(texts)]))
console.log(encodeStrings(raws), flake.decryptMany(raws))
// @ts-expect-error bigints or texts
flake.decryptMany([id, text])
// @ts-expect-error a text has no other text
encodeStrings(texts)

try {
  flake.generate()
} catch (error) {
  if (error instanceof RandflakeError) {
    const code: RandflakeErrorCode = error.code
    const wait: number | undefined = error.retryAfterMs
    console.log(code, wait, error.name)
  }
}
console.log(held, nodeIds, parts.date.toISOString(), columns.timestamp, again, round)

// @ts-expect-error no client
await initStore({ href: 'redis://localhost' }, secret, 'new')
// @ts-expect-error rows are of text
const _numbers: StoreAdapter = { run: async () => [[1]] }
// @ts-expect-error another unit
await initStore(adapter, secret, 'new', { maxTtl: 60 })
// @ts-expect-error without a word
await initStore(adapter, secret)
// @ts-expect-error another word
await initStore(adapter, secret, 'old')
// @ts-expect-error a word, not an option
await initStore(adapter, secret, 'new', { quarantine: true })
// @ts-expect-error of a first lease
await initStore(adapter, secret, 'new', { create: true })
// @ts-expect-error of a namespace that is made
await Randflake.leased(adapter, secret, { quarantine: true })
// @ts-expect-error it is made, or not
await Randflake.leased('etcd://localhost:2379', secret, { create: 'yes' })
const fields: LayoutFields = {
  fields: [
    ['time', 41],
    ['node', 10],
    ['sequence', 12],
  ],
  tickMs: 10,
  epochMs: 1735689600000,
  sequence: ['random', 100],
  unsigned: false,
  nodeSplit: [5, 5],
}
const layoutName: LayoutName = 'sonyflake'
const starts: Sequence = 'continuing'
const layout: Layout = new Layout(layoutName).withSequence(starts)
const made: RawParts = layout.inspect(layout.pack(new Date(), 1, layout.maxSequence))
const [first, last]: bigint[] = [layout.firstIdAt(made.unixMs), layout.lastIdAt(made.date)]
const [datacenter, worker] = layout.splitNode(layout.joinNode(1, 2)) ?? []
const snowflakeOptions: SnowflakeOptions = { ...options, layout: fields }
using snowflake = new Snowflake([1, 2], snowflakeOptions)
await using single = new Snowflake(undefined, { layout: 'simpleflake' })
const many: BigInt64Array = snowflake.generateMany(single.nodeIds.length)
const ofLayout: SnowflakeLeaseOptions = { layout, nodeCount: 2, maxDriftSeconds: 1 }
const lazy: LeasedRandflake = Randflake.lazy()
console.log(lazy.lease?.state, Randflake.lazy('ids.db', secret, leaseOptions).nodeIds)
await using leasedSnowflake: LeasedSnowflake = await Snowflake.leased('posts.db', ofLayout)
const anySnowflake: Snowflake = leasedSnowflake
const lazySnowflake: LeasedSnowflake = Snowflake.lazy(undefined, ofLayout)
console.log(lazySnowflake.lease?.store)
// @ts-expect-error It is synchronous.
Randflake.lazy().then(console.log)
console.log(leasedSnowflake.lease?.state, anySnowflake.lease?.start)
await initStore('redis://localhost', undefined, 'new', { layout: 'twitter', namespace: 'posts' })
await initStore(new URL('file:///ids.db'), secret, 'quarantine')
// @ts-expect-error no secret
await Snowflake.leased('posts.db', secret)
const cloak = new Cloak(secret, 'orders.id')
cloak.hideInPlace(many)
cloak.revealInPlace(many)
const codes = new Codes(secret, 'orders', { length: 10, alphabet: 'crockford', check: 3 })
const decoded: bigint[] = codes.decodeMany(codes.encodeMany([1n]))
const coded: string = codes.encode(codes.capacity - codes.decode(codes.encodeMany(many)[0] ?? ''))
console.log(new textOnly.TextForm({ codes }).encode(1n), coded, decoded, codes.pattern, codes.check)
new Codes(secret, 'orders', { alphabet: '0123456789abcdef' })
// @ts-expect-error a number may have been rounded
codes.encode(1)
// @ts-expect-error no such option
new Codes(secret, 'orders', { size: 8 })
const boundary = new BoundaryFlake('8HFaR8qWtRlGDHnO57')
const madeAt: bigint = boundary.unixMs
const address: Uint8Array = new BoundaryFlake(boundary.toBytes()).worker
const base62: string = `${boundary.sequence} ${boundary.date} ${boundary}`
const hidden: string = cloak.hideString(cloak.reveal(cloak.hide(snowflake.generate())))
console.log(first, last, datacenter, worker, hidden, layout.negativeFrom, snowflake.layout.name)
console.log(madeAt, address, base62)

const fake: LeasedRandflake = new FakeRandflake({ start: new Date(), tickMs: 1, nodeId: [1, 2] })
const fakeSnowflake = new FakeSnowflake({ layout, clock: () => Date.now() / 1000 })
const anyFake: Fake = fakeSnowflake
anyFake.failNext('LEASE_UNAVAILABLE', { retryAfterMs: 2 })
anyFake.time = new Date(anyFake.time + 1)
const fakeTickets: Tickets = new FakeTickets('orders', { start: 7n, step: 2 })
new FakeTickets().breakStore('STORE_UNAVAILABLE', { left: 2 })
const leasedTicketsLike: typeof Tickets.leased = FakeTickets.leased
console.log(fakeTickets.generate(), leasedTicketsLike)
// @ts-expect-error no call of tickets fails with it
new FakeTickets().failNext('SEQUENCE_EXHAUSTED')
const leasedLike: typeof Randflake.leased = FakeRandflake.leased
const leasedSnowflakeLike: typeof Snowflake.leased = FakeSnowflake.leased
console.log(fake.lease?.state, fakeSnowflake.lease?.nodeIds, leasedLike, leasedSnowflakeLike)
// @ts-expect-error no call throws it
anyFake.failNext('INVALID_ARGUMENT')

const form: textOnly.TextForm = new textOnly.TextForm({ prefix: 'order', cloak })
const inBrowser: bigint = textOnly.decodeString(textOnly.encodeString(id))
console.log(form.decode(form.encode(inBrowser)), new textOnly.TextForm().pattern)
// @ts-expect-error ids are never numbers
form.encode(5)
// @ts-expect-error another name
new textOnly.TextForm({ prefx: 'order' })
// @ts-expect-error no cloak
new textOnly.TextForm({ cloak: secret })

const Order = z.object({ id: zodId({ form }), next: zodId().optional(), all: z.array(zodId()) })
const order: { id: bigint; next?: bigint | undefined; all: bigint[] } = Order.parse({})
const sent: { id: string; next?: string | undefined; all: string[] } = z.encode(Order, order)
const counts: Record<string, number> = z.record(zodId().in, z.number()).parse(sent)
console.log(counts, z.toJSONSchema(Order, { io: 'input' }))
// @ts-expect-error keys are not bigints
z.record(zodId(), z.number())
// @ts-expect-error another name
zodId({ from: form })

const { type, transformer } = typeormId({ form: new textOnly.TextForm({ prefix: 'post' }) })
const inEntity: string | null | undefined = transformer.from('5')
const asBigint: bigint | null | undefined = typeormId({ asBigint: true }).transformer.from(5n)
console.log(type, inEntity, asBigint, typeormId().transformer.to(text))
loadByQueries({ relationIdLoader: {} })
// @ts-expect-error no source
loadByQueries({})
// @ts-expect-error bigints have no form
typeormId({ form: new textOnly.TextForm(), asBigint: true })

// @ts-expect-error no such layout
new Layout('mastodon')
// @ts-expect-error frozen
layout.endsAt = 0
// @ts-expect-error ids are never numbers
snowflake.inspect(5)
// @ts-expect-error hidden ids are never numbers
cloak.reveal(5)
// @ts-expect-error neither text nor bytes
new BoundaryFlake(5n)
// @ts-expect-error ids are never numbers
flake.inspect(5)
// @ts-expect-error ids are never numbers
encodeString(5)
// @ts-expect-error node ids are numbers
new Randflake('1', secret)
// @ts-expect-error another unit
new Randflake(1, secret, { maxWait: 1 })
// @ts-expect-error another unit
Randflake.leased('ids.db', secret, { ttl: 300 })
// @ts-expect-error a generator with its own node ids has no status
flake.lease?.state
// @ts-expect-error frozen
if (status) status.renewals = 1
// @ts-expect-error another kind of array
flake.fill(new BigUint64Array(1))
// @ts-expect-error read only
flake.lease = lease
// @ts-expect-error only a class
Randflake(1, secret)
// @ts-expect-error no such code
const _wrong: RandflakeErrorCode = 'WRONG'

const ticketsOptions: TicketsOptions = { start: 2n, step: 2, maxBlock: 1000, create: true }
await initTickets('ids.db', 'new', { namespace: 'tickets' })
await using tickets: Tickets = await Tickets.leased('ids.db', 'orders', ticketsOptions)
using lazyTickets = Tickets.lazy(undefined, 'orders')
const numbers: BigInt64Array = tickets.generateMany(3)
const next: bigint | null = (await fenceTickets('ids.db', 'orders', numbers[0] ?? 1)).next
const counter: bigint | null | undefined = (await showTickets('ids.db', 'orders'))?.next
const every: readonly CounterStatus[] = await listTickets('ids.db', { namespace: 'tickets' })
const drawn: TicketsMetrics = lazyTickets.metrics()
console.log(tickets.generate(), tickets.name, next, counter, every[0]?.name, drawn.reserve)
// @ts-expect-error: they come from a store
new Tickets()
// @ts-expect-error: tickets have no node ids
console.log(tickets.nodeIds)
// @ts-expect-error: a counter has a name
void Tickets.leased('ids.db')
// @ts-expect-error: the mode is required
void initTickets('ids.db')
