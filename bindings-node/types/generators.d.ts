/// <reference lib="esnext.disposable" />

import type { RandflakeError } from './errors.js'
import type { Cloak, Parts } from './ids.js'
import type { Layout, LayoutFields, LayoutText, RawParts } from './layouts.js'
import type { Metrics } from './metrics.js'
import type { initStore, StoreClient } from './stores.js'

/** What {@link Randflake}, {@link Snowflake} and {@link Tickets} share; it is not exported. */
declare abstract class NumberGenerator {
  /**
   * Generates `n` ids, in the order in which they are claimed: as signed numbers, which a BIGINT
   * column holds. For a {@link Snowflake} they differ from what `generate` returns only where the
   * layout uses all 64 bits.
   *
   * Takes up to the seconds that this many ids need (a second has 131072 for each node id of a
   * {@link Randflake}), or the ticks of the layout, plus `maxWaitMs`. If that is too long, use more
   * node ids: `nodeCount`. With a `maxWaitMs` of 0 it never waits, and more ids than can be
   * available at once are `INVALID_ARGUMENT`. So are more ids than an hour has, before memory is
   * allocated for them. A lease is renewed meanwhile; but where its store is a server, this thread
   * renews it: use {@link generateManyAsync} for more ids than fit in the seconds of a lease.
   *
   * @throws {RandflakeError} as {@link Randflake.generate}; no id is returned then.
   */
  generateMany(n: number): BigInt64Array

  /**
   * Like {@link generateMany}, but works and waits on another thread, not one of libuv's pool; a
   * generator has at most eight. A process or a worker that ends does not wait for it. With an
   * injected clock, which only this thread can call, it works on this thread.
   */
  generateManyAsync(n: number): Promise<BigInt64Array>

  /**
   * Fills an array with ids; see {@link generateMany}. After an error it holds zeros.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` also for another kind of array, one over a
   *   `SharedArrayBuffer`, and one whose buffer was transferred.
   */
  fill(ids: BigInt64Array): void

  /**
   * Resolves once an id is available, without blocking; keeps the process alive until then. Another
   * caller may take that id first. With a leased generator whose lease has ended, it waits, without
   * limit, for the store to grant another one. With a generator from {@link Randflake.lazy}, it
   * waits up to `acquireTimeoutMs` for the first lease.
   *
   * @throws {RandflakeError} as {@link Randflake.generate}, for errors that waiting does not help;
   *   `LEASE_UNAVAILABLE` if there is no first lease in time.
   */
  ready(): Promise<void>

  /**
   * Ends the generator for good: no later call returns an id. Ids can still be read; closing twice
   * does nothing. Leases are given back in the background.
   */
  close(): void
  /** See {@link close}. */
  [Symbol.dispose](): void
  /**
   * Closes, and resolves once the store has the lease back, or after 5 seconds without an answer;
   * in that case its node ids are free at the end of the lease. `await using` does this.
   */
  closeAsync(): Promise<void>
  /** See {@link closeAsync}. Some test runners hide this symbol of Node 20. */
  [Symbol.asyncDispose](): Promise<void>
}

/** What {@link Randflake} and {@link Snowflake} share; it is not exported. */
declare abstract class IdGenerator extends NumberGenerator {
  /**
   * Raises the end of the lease; an earlier end than the current one changes nothing.
   *
   * @param endExclusive unix seconds.
   * @throws {RandflakeError} `INVALID_LEASE` also if there is no lease, and for a leased generator,
   *   which is extended by itself; `CLOSED`, `FORKED`.
   */
  extendLease(endExclusive: number): void

  /** The lease; `null` without one, and once closed. */
  get lease(): Lease | null

  /** The node ids, sorted; none once closed. */
  get nodeIds(): number[]

  /**
   * What this generator has done in this process; all numbers but `clockSkewSeconds` only rise.
   * Counting costs an id nothing. `randflake/prometheus` exports them to Prometheus.
   *
   * @example
   * const flake = new Randflake(1, generateSecret())
   * flake.generateMany(1000)
   * flake.metrics().idsGenerated // 1000
   */
  metrics(): Metrics
}

/**
 * A generator of unique 64-bit ids that outsiders cannot predict, order or count.
 *
 * {@link Randflake.leased} takes a node id of its own from a store, and is what most programs want.
 *
 * **A manually assigned node id, the constructor's, is safe for one live process at a time, on a
 * machine whose clock has not stepped back past the last id.** Two live processes with one node id
 * and one secret repeat each other's ids: `cluster` and `pm2` start such processes. Worker threads
 * of one process may share a node id.
 *
 * Generators are not copied (`structuredClone`, `postMessage`); make one in each thread.
 *
 * @example
 * const flake = await Randflake.leased('/var/lib/shop/ids.db', process.env.RANDFLAKE_SECRET)
 * const id = flake.generate() // a bigint, negative for half of all ids
 */
export class Randflake extends IdGenerator {
  /**
   * Leases node ids from a store and resolves to a generator that uses them. No other generator has
   * them meanwhile. Each call takes a lease of its own.
   *
   * A background thread renews the lease, at a third of its length. It replaces a lost lease with
   * another one, with other node ids; {@link LeasedRandflake.lease} shows the status. When the
   * store is unreachable, the generator continues to the end of the lease, then throws
   * `LEASE_UNAVAILABLE`, and recovers by itself. The JavaScript thread never waits for the store.
   * It waits for a lease only in a batch, and only where the store is a file: up to `maxWaitMs`.
   *
   * Until it settles, the promise keeps the process alive; a lease does not. When the process ends
   * by itself, by `process.exit()` or by an uncaught exception, the lease is given back and the
   * generator closed: at the event `exit`, which waits some seconds at most. A process that is
   * killed, also by a signal without a handler, gives nothing back: its node id is free once the
   * lease has ended. The lease of a worker ends with the worker, however it ends; other leases
   * continue. A generator that is no longer reachable is closed some time later.
   *
   * A lease from a store with a server goes through its client, on the JavaScript thread. If that
   * thread is blocked for long, it cannot renew the lease, and when the process exits, or a worker
   * ends, nothing is given back. `await using`, or `await flake.closeAsync()`, does that before.
   *
   * @param store the path of a SQLite file on a local disk, or its `file:` URL. The file is created
   *   if it is missing, but its directory is not. All processes of the machine that make ids for
   *   one column use one file. It does not protect against copies of the file, its removal while in
   *   use, machines cloned while running, containers that each have their own file system, or other
   *   SQLite libraries that open it in this process. Or a server, for many machines: see
   *   {@link StoreClient} and `initStore`. If undefined, `RANDFLAKE_STORE` of `process.env`.
   * @param secret 16 bytes, or 32 hex digits in either case. For the life of the id column. It is
   *   not kept in the store. If undefined, `RANDFLAKE_SECRET`, or the contents of the file
   *   `RANDFLAKE_SECRET_FILE`. Where the store or the secret comes from the environment, so does
   *   the namespace, `RANDFLAKE_NAMESPACE`, unless the option is set.
   * @returns a `Randflake`, also when called on a class that extends it.
   * @throws {RandflakeError} as a rejection, always: `NODES_EXHAUSTED`, `STORE_UNAVAILABLE`,
   *   `CLOCK_SKEW`, `STORE_QUARANTINED` if no lease is available within
   *   `acquireTimeoutMs`; `SECRET_MISMATCH`, `STORE_REPLACED`, `STORE_NOT_INITIALIZED`,
   *   `WEAK_STORE`, `DRIVER_MISSING`, `INVALID_SECRET`, `INVALID_ARGUMENT` at once; `CLOSED` if the
   *   process, or the worker, is ending.
   * @example
   * await using flake = await Randflake.leased('/var/lib/shop/ids.db', secret, {
   *   namespace: 'orders',
   *   maxWaitMs: 0,
   * })
   */
  static leased(
    store?: string | URL | StoreClient,
    secret?: Uint8Array | string,
    options?: LeaseOptions,
  ): Promise<LeasedRandflake>
  /** With settings from the environment. */
  static leased(options: LeaseOptions): Promise<LeasedRandflake>

  /**
   * Makes a generator that leases with its first id. Until then it has no node ids and no lease, and
   * reads neither the environment nor the store; {@link inspect} needs only the secret. For a
   * module that is also loaded where nothing should be leased, as in a build.
   *
   * A thread takes the first lease. Where the store is a file, the call waits for it, up to
   * `maxWaitMs`. It never does where the store is a server, whose client runs on this thread: it throws
   * `LEASE_UNAVAILABLE` with `retryAfterMs` while the lease is on its way. `await flake.ready()`
   * before the first id, and {@link generateManyAsync}, wait without blocking. Each call tries again.
   *
   * @param store as for {@link leased}; a relative path is relative to the current directory.
   * @param secret as for {@link leased}. Bytes are copied.
   * @throws {RandflakeError} `INVALID_ARGUMENT` for options at once. The first id throws what
   *   {@link leased} rejects with; where waiting helps, as the `cause` of `LEASE_UNAVAILABLE`.
   * @example
   * const flake = Randflake.lazy() // settings: RANDFLAKE_STORE, RANDFLAKE_SECRET
   * export const newOrder = () => flake.generate()
   */
  static lazy(
    store?: string | URL | StoreClient,
    secret?: Uint8Array | string,
    options?: LeaseOptions,
  ): LeasedRandflake
  /** With settings from the environment. */
  static lazy(options: LeaseOptions): LeasedRandflake

  /**
   * @param nodeId 0 to 131071, or up to 16384 of them, without repeats: k node ids give k times
   *   131072 ids a second.
   * @param secret 16 bytes, or 32 hex digits in either case. For the life of the id column.
   * @throws {RandflakeError} `INVALID_NODE`, `INVALID_SECRET`, `INVALID_LEASE`,
   *   `INVALID_ARGUMENT`; `NODE_IN_USE` if this process has some of the node ids in another list,
   *   or leases them.
   */
  constructor(nodeId: number | readonly number[], secret: Uint8Array | string, options?: Options)

  /**
   * Generates an id: any signed 64-bit number.
   *
   * @throws {RandflakeError} `SEQUENCE_EXHAUSTED`, `CLOCK_MOVED_BACK` or `LEASE_NOT_STARTED` with
   *   `retryAfterMs` if none is available within `maxWaitMs`. `LEASE_EXPIRED`, `LIFETIME_OVER`,
   *   `CLOCK_BEFORE_EPOCH`, `CLOSED`, `FORKED`, which waiting does not help. A generator from
   *   {@link leased} that has no lease now throws `LEASE_UNAVAILABLE` at once, with `retryAfterMs`
   *   and, as `cause`, the error of the store; {@link ready} waits for the lease. For one from
   *   {@link lazy} that has not had a lease yet, see there.
   */
  generate(): bigint

  /** Generates an id as text of 1 to 13 characters, for JSON and URLs; see {@link generate}. */
  generateString(): string

  /**
   * Generates `n` ids as texts; see {@link generateMany}.
   *
   * @throws {RandflakeError} as {@link generateMany}; no id is returned then.
   */
  generateStrings(n: number): string[]

  /**
   * Reads an id of this secret back. Every 64-bit number has these parts: reading does not show
   * whether an id was ever issued.
   *
   * @param id a signed 64-bit bigint, or its text; never a number, which would lose digits.
   * @throws {RandflakeError} `INVALID_ID`
   */
  inspect(id: bigint | string): Parts

  /**
   * Returns the id of a sortable form; undoes {@link decrypt}.
   *
   * @param raw an unsigned 64-bit bigint that came from {@link decrypt}.
   * @throws {RandflakeError} `INVALID_ID`
   */
  encrypt(raw: bigint): bigint

  /**
   * Returns the sortable form of an id, an unsigned 64-bit number: time, node id and sequence,
   * unencrypted. Never give it to anyone who must not know them.
   *
   * @throws {RandflakeError} `INVALID_ID`
   */
  decrypt(id: bigint | string): bigint

  /** Encrypts many; see {@link Inspector.encryptMany}. */
  encryptMany(raws: BigInt64Array | BigUint64Array | readonly bigint[]): BigInt64Array

  /** Decrypts many; see {@link Inspector.decryptMany}. */
  decryptMany(
    ids: BigInt64Array | BigUint64Array | readonly bigint[] | readonly string[],
  ): BigUint64Array

  /** Encrypts many, in place; see {@link Inspector.encryptInPlace}. */
  encryptInPlace(raws: BigInt64Array): void

  /** Decrypts many, in place; see {@link Inspector.decryptInPlace}. */
  decryptInPlace(ids: BigInt64Array): void

  /** What `JSON.stringify` shows: never the secret. */
  toJSON(): { nodeIds: number[] }
}

/** How a generator with manually assigned node ids is made. */
export interface Options {
  /**
   * The seconds that may be used; unless set, all seconds after the one in which the generator was
   * made.
   */
  lease?: Lease | undefined
  /**
   * How long one call may wait in all, 0 to 86400000 ms; 1000 unless set. The wait blocks this
   * thread: servers take 0 and `retryAfterMs`, or `await flake.ready()`.
   */
  maxWaitMs?: number | undefined
  /**
   * How many whole seconds ahead of the clock ids may be stamped, 0 to 3600; 0 unless set. Needs
   * a lease.
   */
  maxDriftSeconds?: number | undefined
  /**
   * Whether to skip, without a lease, the rest of the second (the tick, for a Snowflake) in which
   * the generator is made, since an earlier holder of the node id may have ended in it; true unless
   * set. Nothing is skipped while another generator of this process with the same node ids, made
   * earlier, is open.
   */
  restartSafe?: boolean | undefined
  /** The time, for tests. What it throws is thrown on. */
  clock?: Clock | undefined
}

/**
 * The unix seconds from `start` up to, but not including, `endExclusive`. One lease serves one
 * process; a fork is another process.
 */
export interface Lease {
  start: number
  endExclusive: number
}

/**
 * Returns unix seconds, with or without a fraction. A call that must wait calls `sleep`. If there
 * is none, as with a bare function, the call reads the clock once more and then throws.
 *
 * A number is rounded down: for the tick of a millisecond return `(unixMs + 0.5) / 1000`, since
 * `unixMs / 1000` may be a bit before it.
 */
export type Clock = (() => number) | { now(): number; sleep?(seconds: number): void }

/**
 * A generator of unique 64-bit ids that sort by time, of any {@link Layout} of the Snowflake family.
 *
 * All that applies to {@link Randflake} applies here, under the same names. But ids are not
 * encrypted: anyone who sees one can read and predict others. {@link Cloak} hides them.
 *
 * **A node id is safe for one live process at a time, on a machine whose clock has not stepped back
 * over the last id**; a lease bounds the seconds that may be used. A layout without node ids,
 * `simpleflake`, is unique within one process only.
 *
 * @example
 * const flake = new Snowflake(378, { layout: 'twitter' })
 * const id = flake.generate() // such as 1541815603606036480n; String(id) for JSON
 */
export class Snowflake extends IdGenerator {
  /**
   * Resolves to a generator with leased node ids, which no other generator has. Stores, renewals,
   * replacements and ends are as in {@link Randflake.leased}.
   *
   * @throws {RandflakeError} as a rejection, always: what {@link Randflake.leased} rejects with.
   *   `INVALID_ARGUMENT` also if the namespace has another layout, and for a layout without node
   *   ids; `LIFETIME_OVER` if the layout has ended.
   * @example
   * await using flake = await Snowflake.leased('/var/lib/shop/posts.db', { layout: 'discord' })
   * const id = flake.generate()
   */
  static leased(
    store?: string | URL | StoreClient,
    options?: SnowflakeLeaseOptions,
  ): Promise<LeasedSnowflake>
  /** With a store from the environment. */
  static leased(options: SnowflakeLeaseOptions): Promise<LeasedSnowflake>

  /**
   * Makes a generator that leases with its first id, as {@link Randflake.lazy} does.
   *
   * @throws {RandflakeError} at once: `INVALID_ARGUMENT` for options and a layout without node ids,
   *   and `LIFETIME_OVER`; with the first id: what {@link Randflake.lazy} throws then.
   * @example
   * const flake = Snowflake.lazy(undefined, { layout: 'discord' }) // settings: RANDFLAKE_STORE
   */
  static lazy(store?: string | URL | StoreClient, options?: SnowflakeLeaseOptions): LeasedSnowflake
  /** With a store from the environment. */
  static lazy(options: SnowflakeLeaseOptions): LeasedSnowflake

  /**
   * @param nodeId 0 to {@link Layout.maxNodeId}, or several of them, without repeats; may be
   *   `undefined` where the layout has no node ids.
   * @throws {RandflakeError} `INVALID_NODE`, `INVALID_LEASE`, `INVALID_ARGUMENT`; `LIFETIME_OVER` if
   *   the layout has ended or is in its last tick; `NODE_IN_USE` if this process has some of the node
   *   ids in another list, or with another initial sequence, or leases them.
   */
  constructor(nodeId: number | readonly number[] | undefined, options?: SnowflakeOptions)

  /**
   * Generates an id: an unsigned 64-bit bigint, larger than all earlier ones where the layout has
   * its time on top (with several node ids, where those are above the sequence).
   *
   * @throws {RandflakeError} as {@link Randflake.generate}.
   */
  generate(): bigint

  /** Reads an id back, also once closed; see {@link Layout.inspect}. */
  inspect(id: bigint): RawParts

  /** How ids are laid out. */
  get layout(): Layout

  /** What `JSON.stringify` shows. */
  toJSON(): { layout: string; nodeIds: number[] }
}

/** How a {@link Snowflake} is made. */
export interface SnowflakeOptions extends Options {
  /** How ids are laid out; `twitter` unless set. */
  layout?: Layout | LayoutText | LayoutFields | undefined
}

/** What {@link Randflake.leased} resolves to, and {@link Randflake.lazy} returns. */
export interface LeasedRandflake extends Randflake {
  /** How the lease is doing at this moment, frozen; `null` before the first one and once closed. */
  readonly lease: LeaseStatus | null
}

/** What {@link Snowflake.leased} resolves to, and {@link Snowflake.lazy} returns. */
export interface LeasedSnowflake extends Snowflake {
  /** How the lease is doing at this moment, frozen; `null` before the first one and once closed. */
  readonly lease: LeaseStatus | null
}

/** How a lease from a store is doing. Unix seconds, from `start` up to `endExclusive`. */
export interface LeaseStatus extends Readonly<Lease> {
  /**
   * `holding`: all is well. `waiting`: the lease is held but no id is available within a second, as
   * while the clock is behind the last id of a {@link Snowflake}; `lastError` says why, and its
   * `retryAfter` says when one is. `retrying`: the store did not grant the last request, or the
   * lease was lost; the generator continues to the end of its lease, and asks the store again.
   * `expired`: the lease has ended, there are no ids, and the generator asks the store again.
   * `stopped`: the store will not be asked again. Before the first lease, there is no
   * status, but `null`.
   */
  readonly state: 'holding' | 'waiting' | 'retrying' | 'expired' | 'stopped'
  /** The node ids, sorted. */
  readonly nodeIds: readonly number[]
  /** The time to the end by the machine's clock, with a fraction; 0 if it has passed. */
  readonly secondsLeft: number
  /** How many renewals the store has granted. */
  readonly renewals: number
  /** How many node ids were taken by another holder before they were given back. */
  readonly losses: number
  /**
   * Why no id is available while `waiting`; otherwise why the store did not grant the last request;
   * `null` while all is well.
   */
  readonly lastError: RandflakeError | null
  /** The unix second of `lastError`, on the machine's clock; while `waiting`, of this status. */
  readonly lastErrorAt: number | null
  /**
   * Which store: the absolute path of a file; the URL of a server without its password, as
   * `postgresql://app@db.example.com:5432/app`; of a client, `postgresql`, `mysql`, `redis`
   * or `etcd`.
   */
  readonly store: string
  /** The namespace of the store. */
  readonly namespace: string
  /** How often lost node ids were replaced by others. */
  readonly replacements: number
}

/** How node ids are leased. */
export interface LeaseOptions {
  /**
   * How many node ids, 1 to 16384, each worth 131072 ids a second; 1 unless set. While the store
   * has fewer, the generator works with fewer. A {@link Snowflake} may have as many as its layout
   * has room for, each worth the ids of its sequence a tick.
   */
  nodeCount?: number | undefined
  /**
   * The length of a lease in whole seconds, 1 to 86400 and at least six times `maxSkewSeconds`; 300
   * unless set. The generator survives a store outage of up to two thirds of it. The node id of a
   * killed process stays reserved for up to that long.
   */
  ttlSeconds?: number | undefined
  /**
   * By how many whole seconds the clocks of the store's users may differ, 0 to a sixth of
   * `ttlSeconds`; 5 unless set. A namespace keeps what it was made with.
   */
  maxSkewSeconds?: number | undefined
  /**
   * Which part of the store, 1 to 200 bytes; `default` unless set. One for each secret or layout:
   * the node ids of two namespaces are independent.
   */
  namespace?: string | undefined
  /** How long the first lease may take, 0 to 86400000 ms; 10000 unless set. */
  acquireTimeoutMs?: number | undefined
  /**
   * How long one call may wait in all, 0 to 86400000 ms; 1000 unless set. The wait blocks this
   * thread: servers take 0 and `retryAfterMs`, or `await flake.ready()`.
   */
  maxWaitMs?: number | undefined
  /**
   * How many whole seconds ahead of the clock ids may be stamped, 0 to a third of the ttl, and
   * at most 3600; 10, or that third, unless set, and for a {@link Snowflake} 0. It absorbs clock
   * steps backwards and lets a burst borrow coming seconds, which the lease covers. Ids that run
   * ahead are out of order with ids of other nodes.
   */
  maxDriftSeconds?: number | undefined
  /**
   * Creates the namespace, and for PostgreSQL and MySQL its table, with the first lease if it is
   * missing. Unless set, this happens in a file, which is also created, but not in a server. A
   * process that finds an empty store cannot tell a new one from one that has lost everything: call
   * {@link initStore} once instead, which is safer. With `false`, a file that was lost is
   * `STORE_NOT_INITIALIZED`. `true` is not for Redis.
   */
  create?: boolean | undefined
  /**
   * Allows a server that may lose what it has acknowledged, such as a Redis that evicts keys, keeps
   * nothing on a disk, or has replicas and does not wait for any, a PostgreSQL whose fsync is off,
   * and a MySQL that does not wait for its disk. False unless set; not for files.
   */
  allowWeakStore?: boolean | undefined
  /**
   * Called with the first lease, and then with each change of its state or node ids. It runs on
   * this thread, later, and does not keep the process alive. What it throws, or rejects with,
   * becomes a warning of the process and does not affect the lease. The channel `randflake:lease`
   * of `node:diagnostics_channel` publishes the same as a {@link LeaseChange}.
   */
  onLeaseChange?: ((status: LeaseStatus) => unknown) | undefined
}

/** How node ids of a layout are leased. */
export interface SnowflakeLeaseOptions extends LeaseOptions {
  /**
   * How ids are laid out; `RANDFLAKE_LAYOUT`, or else `twitter`, unless set. The layout needs node
   * ids, of which at most the lowest 131072 are leased.
   * A namespace has one layout. Where its ticks are longer than a second, a
   * lease lasts at least six of them.
   */
  layout?: Layout | LayoutText | LayoutFields | undefined
}

// Only types: the package exports no such values.
export type { IdGenerator, NumberGenerator }
