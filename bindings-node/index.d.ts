/** What {@link Randflake} and {@link Snowflake} share; it is not exported. */
declare abstract class IdGenerator {
  /**
   * Generates `n` ids, in the order in which they are claimed: as signed numbers, which a BIGINT
   * column holds. Those of a {@link Snowflake} differ from its `generate` only where the layout
   * uses all 64 bits.
   *
   * Takes the seconds that so many ids need, 131072 for each node id of a {@link Randflake}, or the
   * ticks of the layout, and `maxWaitMs` besides. With a `maxWaitMs` of 0 it never waits, and more
   * ids than are ever available at once are `INVALID_ARGUMENT`. So are more than an hour has, before
   * there is memory for them. A lease is renewed meanwhile; but where its store is a server, this
   * thread renews it: use {@link generateManyAsync} for more ids than a lease has seconds for.
   *
   * @throws {RandflakeError} as {@link Randflake.generate}; no id is returned then.
   */
  generateMany(n: number): BigInt64Array

  /**
   * Like {@link generateMany}, but works and waits on another thread, of which a generator has eight
   * at most; not one of libuv's pool. A process or a worker that ends does not wait for it. With an
   * injected clock, which only this thread can ask, it works on this one.
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
   * caller may take that id first. With a leased generator whose lease is over, it waits, without
   * end, for the store to grant another one.
   *
   * @throws {RandflakeError} as {@link Randflake.generate}, for what waiting does not help.
   */
  ready(): Promise<void>

  /**
   * Raises the end of the lease; an earlier end than the present one changes nothing.
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
   * Ends the generator for good: no call that comes after returns an id. Reading ids goes on;
   * closing twice does nothing. What was leased is given back in the background.
   */
  close(): void
  /** See {@link close}. */
  [Symbol.dispose](): void
  /**
   * Closes, and resolves once the store has what was leased, or after 5 seconds without an answer;
   * then its node ids are free at the end of the lease. `await using` calls it.
   */
  [Symbol.asyncDispose](): Promise<void>
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
 * const flake = await Randflake.leased('ids.db', process.env.RANDFLAKE_SECRET)
 * const id = flake.generate() // a bigint, negative for half of all ids
 */
export class Randflake extends IdGenerator {
  /**
   * Leases node ids from a store and resolves to a generator that uses them. No other generator has
   * them meanwhile. Each call takes a lease of its own.
   *
   * A background thread renews the lease, at a third of its length. It replaces a lost lease by
   * another one, with other node ids; {@link LeasedRandflake.lease} shows the status. When the store
   * is unreachable, the generator continues to the end of the lease, then throws
   * `LEASE_UNAVAILABLE`, and recovers by itself. The JavaScript thread never waits for the store,
   * and for a lease only with a batch where the store is a file: up to `maxWaitMs`.
   *
   * Until it settles the promise keeps the process alive; a lease does not. It is given back, and
   * the generator closed, when the process ends by itself, by `process.exit()` or by an uncaught
   * exception: at the event `exit`, which waits some seconds at most. A process that is killed, also
   * by a signal without a handler, gives nothing back: its node id is free once the lease is over.
   * The lease of a worker ends with the worker, however that ends; others continue. A generator that
   * is no longer reachable is closed some time later.
   *
   * A lease from a store with a server goes through its client, on the JavaScript thread: one that
   * is blocked for long cannot renew it, and at the exit of the process, or the end of a worker,
   * nothing is given back. `await using`, or `await flake[Symbol.asyncDispose]()`, does that before.
   *
   * @param store the path of a SQLite file on a local disk, or its `file:` URL. The file is made
   *   if it is missing, its directory is not. All processes of the machine that make ids for one
   *   column use one file. It does not protect from copies of the file, removing it while in use,
   *   machines cloned while running, containers with a file system each, and other SQLite
   *   libraries that open it in this process. Or a server, for
   *   many machines: see {@link StoreClient} and `initStore`.
   * @param secret 16 bytes, or 32 hex digits in either case. For the life of the id column. It is
   *   not kept in the store.
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
    store: string | URL | StoreClient,
    secret: Uint8Array | string,
    options?: LeaseOptions,
  ): Promise<LeasedRandflake>

  /**
   * @param nodeId 0 to 131071, or up to 16384 of them, each once: k node ids give k times 131072
   *   ids a second.
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
   *   `retryAfterMs` if none can be had within `maxWaitMs`. `LEASE_EXPIRED`, `LIFETIME_OVER`,
   *   `CLOCK_BEFORE_EPOCH`, `CLOSED`, `FORKED`, which waiting does not help. Of a generator from
   *   {@link leased} that has no lease now `LEASE_UNAVAILABLE` at once, with `retryAfterMs` and, as
   *   `cause`, the error of the store. {@link ready} waits for the lease.
   */
  generate(): bigint

  /** Generates an id as text of 1 to 13 characters, for JSON and URLs; see {@link generate}. */
  generateString(): string

  /**
   * Reads an id of this secret back. Every 64-bit number has such parts: reading does not
   * show whether an id was ever issued.
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
   * unencrypted. Never hand it to anyone who must not know them.
   *
   * @throws {RandflakeError} `INVALID_ID`
   */
  decrypt(id: bigint | string): bigint

  /** What `JSON.stringify` shows: never the secret. */
  toJSON(): { nodeIds: number[] }
}

/** What {@link Randflake.leased} resolves to. */
export interface LeasedRandflake extends Randflake {
  /** How the lease is doing at this moment, frozen; `null` once closed. */
  readonly lease: LeaseStatus | null
}

/** What {@link Snowflake.leased} resolves to. */
export interface LeasedSnowflake extends Snowflake {
  /** How the lease is doing at this moment, frozen; `null` once closed. */
  readonly lease: LeaseStatus | null
}

/** How a lease from a store is doing. Unix seconds, from `start` up to `endExclusive`. */
export interface LeaseStatus extends Readonly<Lease> {
  /**
   * `holding`: all is well. `retrying`: the store did not grant what it was last asked, or the
   * lease was lost; the generator goes on to the end of what it has, and the store is asked again.
   * `acquiring`: there is no lease yet. `stopped`: there will be none.
   */
  readonly state: 'acquiring' | 'holding' | 'retrying' | 'stopped'
  /** The node ids, sorted. */
  readonly nodeIds: readonly number[]
  /** The time to the end by the machine's clock, with a fraction; 0 if it is over. */
  readonly secondsLeft: number
  /** How many renewals the store has granted. */
  readonly renewals: number
  /** How many node ids another holder got before they were given back. */
  readonly losses: number
  /** Why the store did not grant what it was last asked; `null` while all is well. */
  readonly lastError: RandflakeError | null
  /** The unix second of that, on the machine's clock. */
  readonly lastErrorAt: number | null
}

/** How node ids are leased. */
export interface LeaseOptions {
  /**
   * How many node ids, 1 to 16384, each worth 131072 ids a second; 1 unless set. While the store
   * has fewer, the generator does with fewer. A {@link Snowflake} may have as many as its layout
   * has room for, each worth the ids of its sequence a tick.
   */
  nodeCount?: number | undefined
  /**
   * For how many whole seconds a lease is asked, 1 to 86400 and at least six times
   * `maxSkewSeconds`; 300 unless set. The generator survives a store outage of up to two thirds of
   * it. The node id of a killed process stays reserved for up to that long.
   */
  ttlSeconds?: number | undefined
  /**
   * By how many whole seconds the clocks of the store's users may differ, 0 to a sixth of
   * `ttlSeconds`; 5 unless set. A namespace keeps what it was made with.
   */
  maxSkewSeconds?: number | undefined
  /**
   * Which part of the store, 1 to 200 bytes; `default` unless set. One for each secret or
   * layout: node ids of two namespaces have nothing to do with each other.
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
   * How many whole seconds ahead of the clock ids may be stamped, 0 to a third of the ttl; 10, or
   * that third, unless set, and for a {@link Snowflake} 0. It absorbs clocks that step back and
   * lets a burst borrow coming seconds, which the lease covers. Ids that run ahead are out of order
   * with those of other nodes.
   */
  maxDriftSeconds?: number | undefined
  /**
   * Makes the namespace, and for PostgreSQL its tables, with the first lease if it is not there.
   * Unless set, that is done in a file, which is made, too, and not in a server. A process that
   * finds an empty store cannot distinguish a new one from one that has lost everything: call
   * {@link initStore} once instead, which is safer.
   * With `false` a file that was lost is `STORE_NOT_INITIALIZED`. `true` is not for Redis.
   */
  create?: boolean | undefined
  /**
   * Allows a server that may lose what it has acknowledged: a Redis that evicts keys, keeps nothing
   * on a disk, or has replicas and does not wait for any, and a PostgreSQL whose fsync is off. False
   * unless set; not for files.
   */
  allowWeakStore?: boolean | undefined
}

/** How node ids of a layout are leased. */
export interface SnowflakeLeaseOptions extends LeaseOptions {
  /**
   * How ids are laid out, with node ids, of which at most the lowest 131072 are leased; `twitter`
   * unless set. A namespace has one layout. Where its ticks are longer than a second, a lease lasts
   * at least six of them.
   */
  layout?: Layout | LayoutName | LayoutFields | undefined
}

/**
 * A store with a server besides its URL, `postgresql://` (or `postgres://`), `redis://` (or
 * `rediss://`) and `etcd://host:port,host:port` (or `etcds://`): a `Pool` or a connected `Client`
 * of `pg`, a client of `ioredis` or a connected one of `redis`, or a {@link StoreAdapter}.
 *
 * For a Redis with replicas the client must have `pipeline`, as that of `ioredis`, or `multi`, as that
 * of `redis`: a WAIT follows each request for a lease on its connection.
 *
 * A client stays its owner's: nothing here closes it. It must not be inside a transaction, where a
 * grant could be rolled back. A client of `pg` must report that: version 8.18 and later do.
 * A `Pool` has 3 seconds to lend a client, which goes back after 3 seconds at most, or is destroyed.
 */
export type StoreClient =
  | StoreAdapter
  | { query(...query: never[]): unknown; connect(...how: never[]): unknown }
  | { call(...command: never[]): unknown; eval(...script: never[]): unknown }
  | { sendCommand(...command: never[]): unknown }

/** Runs SQL with any other client of PostgreSQL. */
export interface StoreAdapter {
  /**
   * Runs one statement outside of any transaction, so that it is committed when the promise
   * resolves; never retries a part of it. With `postgres` that is `sql` itself, never what
   * `sql.begin` or `sql.reserve` gives.
   *
   * @param text SQL with `$1`, `$2`…; all are of type text.
   * @param parameters their values. They hold the token of a lease: do not log them.
   * @returns the rows, each an array of its columns, which are all text.
   * @throws what the client throws: PostgreSQL's own errors with `code`, the SQLSTATE, and
   *   `severity`. The message is shown, and must hold no password.
   * @example
   * const sql = postgres('postgresql://app@localhost/app')
   * const store = { run: async (text, parameters) => sql.unsafe(text, parameters).values() }
   */
  run(text: string, parameters: string[]): Promise<(string | null)[][]>
}

/** How a namespace of a store is made. */
export interface InitOptions {
  /** How ids of a {@link Snowflake} are laid out. The `secret` is `undefined` then. */
  layout?: Layout | LayoutName | LayoutFields | undefined
  /** Its name, 1 to 200 bytes; `default` unless set. */
  namespace?: string | undefined
  /** The longest lease, 1 to 86400 whole seconds, at least six times the skew; 300 unless set. */
  maxTtlSeconds?: number | undefined
  /** By how many whole seconds clocks may differ, 0 to a sixth of that; 5 unless set. */
  maxSkewSeconds?: number | undefined
  /** As in {@link LeaseOptions}; not for files. */
  allowWeakStore?: boolean | undefined
}

/**
 * How a namespace is made: `new` if the store has never had it; `quarantine` if it may have had it
 * and lost it, as after a restart without its data or where the file was removed, or if you do not
 * know. Then it grants nothing for the longest lease and the largest skew, until every earlier
 * lease is over.
 */
export type InitMode = 'new' | 'quarantine'

/**
 * Makes a namespace, and for PostgreSQL its tables, if it is not there. One that is there is
 * checked, and stays as it is. Called once, when the store is set up, and not with each start or
 * deploy: after a loss of the store `new` repeats ids. A SQLite file is made if it is missing; its
 * first lease does that as well, as `new`.
 *
 * @param store the path of a SQLite file or its `file:` URL, the URL of a server, or a
 *   {@link StoreClient}.
 * @param secret that of the id column; it is not kept in the store. `undefined` for a namespace of
 *   {@link Snowflake}, which has a `layout` instead.
 * @param mode there is no default: see {@link InitMode}.
 * @throws {RandflakeError} as a rejection, always: `STORE_UNAVAILABLE`, `SECRET_MISMATCH`,
 *   `WEAK_STORE`, `DRIVER_MISSING`, `INVALID_SECRET`, `INVALID_ARGUMENT`.
 * @example
 * await initStore('postgresql://app@localhost/app', secret, 'new', { namespace: 'orders' })
 * await initStore('redis://localhost', undefined, 'new', { namespace: 'posts', layout: 'twitter' })
 * await initStore('ids.db', secret, 'quarantine')
 */
export function initStore(
  store: string | URL | StoreClient,
  secret: Uint8Array | string | undefined,
  mode: InitMode,
  options?: InitOptions,
): Promise<void>

/** Which part of a store. */
export interface OperatorOptions {
  /** Its name, 1 to 200 bytes; `default` unless set. */
  namespace?: string | undefined
}

/** How the end of a node id is set back. */
export interface RepairLeaseOptions extends OperatorOptions {
  /** The new end, a unix second; the lowest unless set. */
  endExclusive?: number | undefined
}

/** How the end of a quarantine is set back. */
export interface RepairStoreOptions extends OperatorOptions {
  /** The new floor, a unix second; the lowest unless set. */
  floor?: number | undefined
}

/** What a store knows of one node id. */
export interface NodeStatus extends Readonly<Lease> {
  /** The node id. */
  readonly nodeId: number
  /**
   * `held`: a generator holds it. `expired`: its lease is over and was not given back; it can be
   * leased. `free`: it was given back, and can be leased from `endExclusive` on.
   */
  readonly state: 'held' | 'expired' | 'free'
  /** Whole seconds to the end by the store's clock; 0 if it has passed. */
  readonly secondsLeft: number
  /** Whether the end is implausible: only a wrong clock can have set it. See {@link repairLease}. */
  readonly isFar: boolean
  /** What the last holder reported: its host name and process id. Do not trust it. */
  readonly note: string
}

/** What a store knew of a namespace when it was asked. */
export interface StoreStatus {
  /** The unix second on the store's clock. */
  readonly now: number
  /** Every node id that was ever leased, sorted. */
  readonly leases: readonly NodeStatus[]
  /** How many node ids are held. */
  readonly held: number
  /** How many were given back, with an end that is still to come. */
  readonly waiting: number
  /** How many can be leased now, were it not for a quarantine: the headroom. */
  readonly free: number
  /** How many have an implausible end. */
  readonly far: number
  /** No lease starts before this unix second: until then the store is in quarantine. */
  readonly floor: number
  /** Whether the floor is implausible: see {@link repairStore}. */
  readonly floorIsFar: boolean
  /**
   * Whether the server is no longer the one that granted these leases. The next request of a
   * generator fences the namespace then.
   */
  readonly incarnationChanged: boolean
  /** What the namespace was made with. */
  readonly limits: StoreLimits
}

/** What a namespace was made with. */
export interface StoreLimits {
  /** Seconds of the longest lease. */
  readonly maxTtlSeconds: number
  /** Seconds by which clocks may differ. */
  readonly maxSkewSeconds: number
  /** The largest node id. */
  readonly maxNodeId: number
  /** The epoch in unix seconds, and the bits of time, node id and sequence. */
  readonly layout: string
  /** The version of what the store keeps. */
  readonly format: number
}

/**
 * Lists what a store knows of the node ids of a namespace. No secret is needed.
 *
 * @param store the path of a SQLite file, the URL of a server, or a {@link StoreClient}.
 * @throws {RandflakeError} as a rejection, always: `STORE_NOT_INITIALIZED` if there is no such
 *   namespace, `STORE_UNAVAILABLE`, `DRIVER_MISSING`, `INVALID_ARGUMENT`.
 * @example
 * const { held, free, leases } = await listLeases('/var/lib/shop/ids.db')
 */
export function listLeases(
  store: string | URL | StoreClient,
  options?: OperatorOptions,
): Promise<StoreStatus>

/**
 * Returns what a store knows of one node id; null if it was never leased.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @param nodeId 0 to the largest node id of the namespace.
 */
export function inspectLease(
  store: string | URL | StoreClient,
  nodeId: number,
  options?: OperatorOptions,
): Promise<NodeStatus | null>

/**
 * Quarantines a namespace whose store may have forgotten leases: call it after a backup was
 * restored, before anything starts. Leases that clearly run are renewed meanwhile.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @returns the unix second from which on it grants leases again.
 */
export function fenceStore(
  store: string | URL | StoreClient,
  options?: OperatorOptions,
): Promise<number>

/**
 * Shortens the lease of a node id whose end is implausible: only a wrong clock can have set it.
 *
 * No right clock sets an end beyond the store's clock, the longest lease and the largest skew. Such
 * an end keeps the node id reserved until then. By calling this you state that no id with that node
 * id carries a second at or after the new end, and that no process that was given the implausible
 * end still runs. If one does, ids will repeat.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @param nodeId one whose status has `isFar`.
 * @returns the end that it has now.
 * @throws {RandflakeError} as a rejection, always: `INVALID_ARGUMENT` if there is nothing to repair
 *   or the new end is too low, `CLOCK_SKEW` if one of the clocks is wrong now.
 */
export function repairLease(
  store: string | URL | StoreClient,
  nodeId: number,
  options?: RepairLeaseOptions,
): Promise<number>

/**
 * Shortens a quarantine whose end is implausible: as {@link repairLease}, for a whole namespace, as
 * if it had been fenced now. By calling this you state that no id at all carries a second at or
 * after the new floor.
 *
 * @param store as in {@link listLeases}, with the errors of {@link repairLease}.
 * @returns the floor that it has now.
 */
export function repairStore(
  store: string | URL | StoreClient,
  options?: RepairStoreOptions,
): Promise<number>

/**
 * Gives a node id back for a process that has certainly ended.
 *
 * By calling this you state that the holder, and every copy of its memory, has ended. If it still
 * runs, ids will repeat. The last second that it stamped is not known: the lease is shortened to
 * the first second it cannot have stamped, which of the usual 300 seconds leaves 107, and never
 * extended.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @param lease what {@link listLeases} or {@link inspectLease} returned of the node id. A holder
 *   that has leased it since keeps it.
 * @returns the end that it has now.
 * @throws {RandflakeError} as a rejection, always: `INVALID_ARGUMENT` if it is not held, it has
 *   another lease by now or its end is implausible, `CLOCK_SKEW` if one of the clocks is wrong now.
 */
export function releaseLease(
  store: string | URL | StoreClient,
  lease: NodeStatus,
  options?: OperatorOptions,
): Promise<number>

/** How a generator with manually assigned node ids is made. */
export interface Options {
  /** The seconds that may be used; without it, all from the one after the generator was made. */
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
   * the generator is made, in which an earlier holder of the node id may have ended; true unless set.
   * Nothing is skipped while another generator of this process with the same node ids, made
   * earlier, is open.
   */
  restartSafe?: boolean | undefined
  /** The time, for tests. What it throws is thrown on. */
  clock?: Clock | undefined
}

/**
 * The unix seconds from `start` up to, but not including, `endExclusive`. One lease serves one
 * process; a fork is another one.
 */
export interface Lease {
  start: number
  endExclusive: number
}

/**
 * Returns unix seconds, with or without a fraction. A call that has to wait calls `sleep`. Where
 * there is none, as for a bare function, the call reads the clock once more and then throws.
 *
 * A number is rounded down: for the tick of a millisecond return `(unixMs + 0.5) / 1000`, since
 * `unixMs / 1000` may be a bit before it.
 */
export type Clock = (() => number) | { now(): number; sleep?(seconds: number): void }

/** The parts of an id, for a holder of the secret. */
export interface Parts {
  /** Unix seconds; up to `maxDriftSeconds` ahead of the clock that it was made by. */
  timestamp: number
  /** 0 to 131071. */
  nodeId: number
  /** 0 to 131071: the zero-based index of the id within its node and second. */
  sequence: number
  /** The timestamp as a date. */
  date: Date
}

/**
 * Reads ids back; needs the secret, and no node id.
 *
 * @example
 * const inspector = new Inspector(process.env.RANDFLAKE_SECRET)
 * const { date, nodeId, sequence } = inspector.inspect('3vgoe12ccb8gh')
 */
export class Inspector {
  /**
   * @param secret 16 bytes, or 32 hex digits in either case.
   * @throws {RandflakeError} `INVALID_SECRET`
   */
  constructor(secret: Uint8Array | string)

  /** See {@link Randflake.inspect}. */
  inspect(id: bigint | string): Parts

  /**
   * Reads many ids back, one column for each part.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` for another kind of array, one over a
   *   `SharedArrayBuffer`, and one whose buffer was transferred.
   */
  inspectMany(ids: BigInt64Array): PartsColumns

  /** See {@link Randflake.encrypt}. */
  encrypt(raw: bigint): bigint

  /** See {@link Randflake.decrypt}. */
  decrypt(id: bigint | string): bigint
}

/** The parts of many ids, in the order of the ids. */
export interface PartsColumns {
  timestamp: BigInt64Array
  nodeId: Uint32Array
  sequence: Uint32Array
}

/** The layouts that have a name. */
export type LayoutName =
  | 'randflake'
  | 'twitter'
  | 'discord'
  | 'leaf'
  | 'baidu'
  | 'sonyflake'
  | 'sonyflake2'
  | 'instagram'
  | 'simpleflake'

/**
 * The initial sequence of each tick. With any of them, one thread gets rising ids of a node.
 *
 * `zero`: with 0. Where a node makes few ids, most of them end alike, and shards by the low bits of
 * an id are uneven; the other two spread them. `continuing`: with the one after the last; a tick
 * ends when the sequence wraps. `['random', n]`: with a number drawn for each tick from 0 to n - 1;
 * a node has n - 1 ids fewer in a tick then.
 */
export type Sequence = 'zero' | 'continuing' | readonly ['random', number]

/** A layout that has no name. */
export interface LayoutFields {
  /**
   * The fields from high to low, each once, with their widths in bits: the time, at most 61, and a
   * node and a sequence of at most 32 each, which may be missing. Together at most 63 bits.
   */
  fields: readonly (readonly ['time' | 'node' | 'sequence', number])[]
  /** The length of a tick, 1 to 86400000 ms; 1 unless set. */
  tickMs?: number | undefined
  /** The unix milliseconds, in UTC and from 1970 on, at which tick 0 begins; 0 unless set. */
  epochMs?: number | undefined
  /** The initial sequence of each tick; `zero` unless set. */
  sequence?: Sequence | undefined
  /** Whether the fields may have 64 bits, so that ids are or become negative in a BIGINT column. */
  unsigned?: boolean | undefined
  /** The widths of a datacenter and a worker, which fill the node id. */
  nodeSplit?: readonly [number, number] | undefined
}

/**
 * How time, node id and sequence share the 64 bits of an id of the Snowflake family, and how time
 * is counted. Ids are unsigned 64-bit bigints.
 *
 * Its properties are frozen. A time is a `Date`, or unix milliseconds.
 *
 * @example
 * const { date, nodeId } = new Layout('discord').inspect(175928847299117063n) // 2016-04-30, 32
 */
export class Layout {
  /**
   * @param layout a name, or what describes another layout.
   * @throws {RandflakeError} `INVALID_ARGUMENT`, also for a time that goes on after the last `Date`,
   *   and a time and a sequence too wide to be counted together in 64 bits.
   * @example
   * // The example of UidGenerator's README, whose epoch is 2016-09-20 in China.
   * new Layout({
   *   fields: [['time', 29], ['node', 21], ['sequence', 13]],
   *   tickMs: 1000,
   *   epochMs: Date.parse('2016-09-20T00:00+08:00'),
   * })
   */
  constructor(layout: LayoutName | LayoutFields)

  /** The name, or `custom`. */
  readonly name: LayoutName | 'custom'
  /** The width of the time, in bits. */
  readonly timeBits: number
  /** The width of the node id, in bits; 0 where there is none. */
  readonly nodeBits: number
  /** The width of the sequence, in bits; 0 where there is none. */
  readonly sequenceBits: number
  /** The length of a tick, in milliseconds. */
  readonly tickMs: number
  /** The unix milliseconds at which tick 0 begins. */
  readonly epochMs: number
  /** The initial sequence of each tick. */
  readonly sequence: Sequence
  /** Whether ids use all 64 bits; otherwise they are positive in every BIGINT column. */
  readonly unsigned: boolean
  /** The largest node id. */
  readonly maxNodeId: number
  /** The largest sequence. */
  readonly maxSequence: number
  /**
   * The first unix milliseconds that no id can carry. Generators refuse with `LIFETIME_OVER` from
   * there on, and a process warning, `RANDFLAKE_LIFETIME`, comes from two years before.
   */
  readonly endsAt: number
  /**
   * The unix milliseconds from which on ids are negative in a BIGINT column, and so come before all
   * others there; `null` if they never are, or if another field than the time decides it.
   */
  readonly negativeFrom: number | null

  /**
   * Reads an id. Every number without bits above the fields has parts: reading does not show
   * whether it is an id.
   *
   * @param id an unsigned 64-bit bigint, or the signed one of a BIGINT column; never a number,
   *   which would lose digits. Text goes through `BigInt(…)`.
   * @throws {RandflakeError} `INVALID_ID`
   */
  inspect(id: bigint): RawParts

  /**
   * Packs an id of a time, which is rounded down to its tick, a node id and a sequence. For tests
   * and conversions: nothing ensures that the id is unique.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` if the time or the sequence is out of range;
   *   `INVALID_NODE`.
   */
  pack(time: Date | number, nodeId: number, sequence: number): bigint

  /**
   * Returns the smallest id of the tick at a time, to find rows by their time of making. As unsigned
   * numbers ids are in the order of time; in a BIGINT column, up to {@link negativeFrom}.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` if the time is not the top field, or out of range.
   * @example
   * const first = layout.firstIdAt(new Date('2025-11-20T00:00:00Z'))
   * const last = layout.lastIdAt(Date.parse('2025-11-21T00:00:00Z') - 1)
   * // SELECT … WHERE id BETWEEN first AND last
   */
  firstIdAt(time: Date | number): bigint

  /** Returns the largest id of the tick at a time; see {@link firstIdAt}. */
  lastIdAt(time: Date | number): bigint

  /**
   * Returns the node id of a datacenter and a worker (a worker and a process, for Discord).
   *
   * @throws {RandflakeError} `INVALID_NODE` also if node ids of this layout have no such parts.
   */
  joinNode(datacenter: number, worker: number): number

  /**
   * Returns the datacenter and the worker of a node id; `null` where node ids have no such parts.
   *
   * @throws {RandflakeError} `INVALID_NODE`
   */
  splitNode(nodeId: number): [datacenter: number, worker: number] | null

  /**
   * Returns the same layout with ticks that begin otherwise. Ids of both read the same.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT`
   */
  withSequence(sequence: Sequence): Layout
}

/** The parts of an id of a layout, for everyone. */
export interface RawParts {
  /** The unix milliseconds at which the id's tick begins. */
  unixMs: number
  /** 0 to {@link Layout.maxNodeId}; 0 where the layout has no node ids. */
  nodeId: number
  /** 0 to {@link Layout.maxSequence}. */
  sequence: number
  /** The time as a date. */
  date: Date
}

/** How a {@link Snowflake} is made. */
export interface SnowflakeOptions extends Options {
  /** How ids are laid out; `twitter` unless set. */
  layout?: Layout | LayoutName | LayoutFields | undefined
}

/**
 * A generator of unique 64-bit ids that sort by time, of any {@link Layout} of the Snowflake family.
 *
 * What holds for {@link Randflake} holds here, under the same names. But ids are not encrypted:
 * anyone who sees one can read and predict others. {@link Cloak} hides them.
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
   * Resolves to a generator with leased node ids, which no other generator has: from the stores,
   * and with the renewals, replacements and ends, of {@link Randflake.leased}.
   *
   * @throws {RandflakeError} as a rejection, always: what {@link Randflake.leased} rejects with.
   *   `INVALID_ARGUMENT` also if the namespace has another layout, and for a layout without node
   *   ids; `LIFETIME_OVER` if the layout has ended.
   * @example
   * await using flake = await Snowflake.leased('posts.db', { layout: 'discord' })
   * const id = flake.generate()
   */
  static leased(
    store: string | URL | StoreClient,
    options?: SnowflakeLeaseOptions,
  ): Promise<LeasedSnowflake>

  /**
   * @param nodeId 0 to {@link Layout.maxNodeId}, or several of them, each once; may be `undefined`
   *   where the layout has no node ids.
   * @throws {RandflakeError} `INVALID_NODE`, `INVALID_LEASE`, `INVALID_ARGUMENT`; `LIFETIME_OVER` if
   *   the layout has ended or is in its last tick; `NODE_IN_USE` if this process has some of the node
   *   ids in another list, or with ticks that begin with another sequence, or leases them.
   */
  constructor(nodeId: number | readonly number[] | undefined, options?: SnowflakeOptions)

  /**
   * Generates an id: an unsigned 64-bit bigint, larger than all before where the layout has its time
   * on top (with several node ids, where those lie above the sequence).
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

/**
 * Hides any 64-bit ids: sortable Snowflakes and auto-increment keys inside, ids that say nothing
 * outside.
 *
 * Each number has one hidden form and each hidden form one number, so nothing collides, and the
 * database keeps the number and its index. Hiding does not authenticate: every 64-bit number
 * reveals to something. Look up what comes back, and check who may see it.
 *
 * @example
 * const cloak = new Cloak(process.env.RANDFLAKE_SECRET, 'orders.id')
 * const text = cloak.hideString(42n) // for a URL
 * cloak.reveal(text) // 42n
 */
export class Cloak {
  /**
   * @param secret 16 bytes, or 32 hex digits in either case. May also be that of a
   *   {@link Randflake}, whose ids are under a key of their own.
   * @param label the purpose, such as `orders.id`: another label is another key.
   * @throws {RandflakeError} `INVALID_SECRET`, `INVALID_ARGUMENT`
   */
  constructor(secret: Uint8Array | string, label: string)

  /**
   * Hides a number.
   *
   * @param number an unsigned 64-bit bigint, or the signed one with the same bits.
   * @returns any signed 64-bit number.
   * @throws {RandflakeError} `INVALID_ID`
   */
  hide(number: bigint): bigint

  /** Hides a number as text of 1 to 13 characters, for JSON and URLs; see {@link hide}. */
  hideString(number: bigint): string

  /**
   * Hides many numbers, in place.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` for another kind of array, one over a
   *   `SharedArrayBuffer`, and one whose buffer was transferred.
   */
  hideInPlace(numbers: BigInt64Array): void

  /**
   * Returns the number that was hidden, unsigned: `BigInt.asIntN(64, …)` makes it signed again where
   * negative ones were hidden.
   *
   * @param hidden a signed 64-bit bigint, or its text.
   * @throws {RandflakeError} `INVALID_ID`
   */
  reveal(hidden: bigint | string): bigint

  /** Reveals many numbers, in place; see {@link hideInPlace}. */
  revealInPlace(hidden: BigInt64Array): void
}

/**
 * An id of Boundary's flake, of 128 bits: time, network address of the worker, sequence. To read
 * such ids and to convert them; they are not made here.
 *
 * Its properties are frozen.
 *
 * @example
 * const { date, sequence } = new BoundaryFlake('8HFaR8qWtRlGDHnO57') // 2012-01-12T22:56:53.776Z, 5
 */
export class BoundaryFlake {
  /**
   * @param flake its text in base 62, or its 16 bytes.
   * @throws {RandflakeError} `INVALID_ID`
   */
  constructor(flake: string | Uint8Array)

  /** When it was made, in unix milliseconds: 64 bits, which no number holds. */
  readonly unixMs: bigint
  /** When it was made; invalid after the last date, {@link unixMs} 8640000000000000. */
  readonly date: Date
  /** The network address (MAC) of the worker that made it: 6 bytes. */
  readonly worker: Uint8Array
  /** As which one of its worker and millisecond it was made, 0 to 65535. */
  readonly sequence: number

  /** Returns the 16 bytes, which sort as the ids do. */
  toBytes(): Uint8Array
  /** Returns the text in base 62, of the digits 0-9A-Za-z. */
  toString(): string
  /** What `JSON.stringify` shows: the text. */
  toJSON(): string
}

/** Everything that this package throws by itself. */
export class RandflakeError extends Error {
  constructor(
    code: RandflakeErrorCode,
    message: string,
    retryAfterMs?: number,
    options?: { cause?: unknown },
  )
  readonly name: 'RandflakeError'
  /** What kind of failure this is; stable, and the same in every language. */
  readonly code: RandflakeErrorCode
  /**
   * After how many whole milliseconds the same call can succeed; absent where waiting does not help.
   * With `LEASE_UNAVAILABLE` when it is worth another try: at most 5000.
   */
  readonly retryAfterMs?: number
}

export type RandflakeErrorCode =
  /** The secret is not 16 bytes or 32 hex digits. */
  | 'INVALID_SECRET'
  /** A node id is no integer of the range, listed twice, or missing. */
  | 'INVALID_NODE'
  /** A lease is backwards or outside the format's lifetime, or there is none to extend. */
  | 'INVALID_LEASE'
  /** Text is not the text of an id, or a number is no 64-bit bigint. */
  | 'INVALID_ID'
  /** Another argument is of the wrong type or out of its range. */
  | 'INVALID_ARGUMENT'
  /** Another generator of this process has some of these node ids in another list. */
  | 'NODE_IN_USE'
  /** The first second of the generator is still to come. */
  | 'LEASE_NOT_STARTED'
  /** The last second of a lease of your own is over. */
  | 'LEASE_EXPIRED'
  /** All ids of the seconds that may be used now are taken. */
  | 'SEQUENCE_EXHAUSTED'
  /** The clock is behind the last id. */
  | 'CLOCK_MOVED_BACK'
  /** The clock shows a time before 2024-10-27T03:33:20Z, or before the epoch of the layout. */
  | 'CLOCK_BEFORE_EPOCH'
  /** The format's last second, 2058-11-05T17:10:23Z, is over, or the last tick of the layout. */
  | 'LIFETIME_OVER'
  /** The generator, or its node id, belongs to a process this one was forked from. */
  | 'FORKED'
  /** The generator was closed. */
  | 'CLOSED'
  /** A defect of this library. */
  | 'INTERNAL'
  /** A generator with a leased node id has no lease now; the store is asked again by itself. */
  | 'LEASE_UNAVAILABLE'
  /** The store did not answer, could not write, or answered something else. */
  | 'STORE_UNAVAILABLE'
  /** Every node id is leased. */
  | 'NODES_EXHAUSTED'
  /** This machine's clock and the store's differ by more than the store allows. */
  | 'CLOCK_SKEW'
  /** Another holder has the lease, or it was given back. */
  | 'LEASE_LOST'
  /** The store may have lost what it had acknowledged and grants nothing for a while. */
  | 'STORE_QUARANTINED'
  /** Another store is where the lease came from. */
  | 'STORE_REPLACED'
  /** The store has no such namespace and does not make one by itself. */
  | 'STORE_NOT_INITIALIZED'
  /** The namespace belongs to another secret. */
  | 'SECRET_MISMATCH'
  /** The store may lose or double what it has acknowledged. */
  | 'WEAK_STORE'
  /** What talks to the store is not installed. */
  | 'DRIVER_MISSING'

/**
 * Returns the text of an id: lower-case base32hex digits of the id as an unsigned number.
 *
 * @throws {RandflakeError} `INVALID_ID`
 * @example
 * encodeString(4594531474933654033n) // '3vgoe12ccb8gh'
 */
export function encodeString(id: bigint): string

/**
 * Returns the id of a text, strictly: only what {@link encodeString} writes is accepted.
 *
 * @throws {RandflakeError} `INVALID_ID`
 * @example
 * decodeString('3vgoe12ccb8gh') // 4594531474933654033n
 */
export function decodeString(text: string): bigint

/** Returns a new secret from the system's random source: 32 hex digits. Keep it secret. */
export function generateSecret(): string
