import type { Lease, LeaseOptions, Snowflake } from './generators.js'
import type { Layout, LayoutFields, LayoutText } from './layouts.js'

/**
 * A store with a server, other than by its URL, `postgresql://` (or `postgres://`), `mysql://` (or
 * `mariadb://`), `redis://` (or `rediss://`) and `etcd://host:port,host:port` (or `etcds://`): a
 * `Pool` or a connected `Client` of `pg`, a pool or a connection of `mysql2` or, from 3.2 on, of
 * `mariadb`, with callbacks or promises, a client or `Cluster` of `ioredis`, a connected client,
 * cluster or sentinel of `redis`, or a {@link StoreAdapter}.
 *
 * For a Redis with replicas, the client must have `pipeline`, as in `ioredis`, or `multi`, as in
 * `redis`: a WAIT follows each request for a lease on its connection.
 *
 * A client stays its owner's: nothing here closes it. It must not be inside a transaction, where a
 * grant could be rolled back. A client of `pg` must report that: version 8.18 and later do.
 * A connection of `mysql2` or `mariadb` without autocommit has it during each statement. A `Pool`
 * has 3 seconds to lend a client, which goes back after 3 seconds at most, or is destroyed.
 */
export type StoreClient =
  | StoreAdapter
  | { query(...query: never[]): unknown; connect(...how: never[]): unknown }
  | { query(...query: never[]): unknown; execute(...query: never[]): unknown }
  | { call(...command: never[]): unknown; eval(...script: never[]): unknown }
  | { sendCommand(...command: never[]): unknown }

/** Runs SQL with any other client of PostgreSQL or MySQL. */
export interface StoreAdapter {
  /** Which of the two; PostgreSQL unless set. */
  server?: 'postgresql' | 'mysql' | undefined
  /**
   * Runs one statement outside of any transaction, so that it is committed when the promise
   * resolves; never retries a part of it. With `postgres` use `sql` itself, never what `sql.begin`
   * or `sql.reserve` gives. Throw on a warning of PostgreSQL from the source file `syncrep.c`:
   * somebody cancelled the wait for standbys.
   *
   * @param text SQL with `$1`, `$2`…, or with `?` for MySQL; all are of type text.
   * @param parameters their values. They hold the token of a lease: do not log them.
   * @returns the rows, each an array of its columns, all of them text. For a MySQL statement
   *   without rows, one row of one cell: the insert id of its answer, `'0'` if it has none.
   * @throws what the client throws: PostgreSQL's own errors with `code`, the SQLSTATE, and
   *   `severity`. The message is shown, and must not contain a password.
   * @example
   * const sql = postgres('postgresql://app@localhost/app')
   * const store = { run: async (text, parameters) => sql.unsafe(text, parameters).values() }
   */
  run(text: string, parameters: string[]): Promise<(string | null)[][]>
}

/** How a namespace of a store is made. */
export interface InitOptions {
  /** How ids of a {@link Snowflake} are laid out. The `secret` is `undefined` then. */
  layout?: Layout | LayoutText | LayoutFields | undefined
  /** Its name, 1 to 200 bytes; `default` unless set. */
  namespace?: string | undefined
  /** The longest lease, 1 to 86400 whole seconds, at least six times the skew; 300 unless set. */
  maxTtlSeconds?: number | undefined
  /** By how many whole seconds clocks may differ, 0 to a sixth of `maxTtlSeconds`; 5 unless set. */
  maxSkewSeconds?: number | undefined
  /**
   * Which node ids are leased, as `0-6,8-1023`: 1 to 16 ranges. The others are free for generators
   * to which you assign one. All unless set; {@link setNodeIds} changes them.
   */
  nodeIds?: string | undefined
  /** As in {@link LeaseOptions}; not for files. */
  allowWeakStore?: boolean | undefined
}

/**
 * How a namespace is made: `new` if the store has never had it; `quarantine` if it may have had it
 * and lost it, as after a restart without its data or where the file was removed, or if you do not
 * know. It then grants nothing for the longest lease plus the largest skew, until every earlier
 * lease has ended.
 */
export type InitMode = 'new' | 'quarantine'

/**
 * Creates a namespace, and for PostgreSQL and MySQL its table, if it is missing. An existing one is
 * checked, and stays as it is. Call this once, when the store is set up, and not with each start or
 * deploy: after a loss of the store, `new` repeats ids. A SQLite file is created if it is missing;
 * its first lease does that, too, as `new`.
 *
 * @param store the path of a SQLite file or its `file:` URL, the URL of a server, or a
 *   {@link StoreClient}.
 * @param secret the secret of the id column; it is not kept in the store. `undefined` for a
 *   namespace of {@link Snowflake}, which has a `layout` instead.
 * @param mode required: see {@link InitMode}.
 * @throws {RandflakeError} as a rejection, always: `STORE_UNAVAILABLE`, `SECRET_MISMATCH`,
 *   `WEAK_STORE`, `DRIVER_MISSING`, `INVALID_SECRET`, `INVALID_ARGUMENT`.
 * @example
 * await initStore('postgresql://app@localhost/app', secret, 'new', { namespace: 'orders' })
 * await initStore('redis://localhost', undefined, 'new', { namespace: 'posts', layout: 'twitter' })
 * await initStore('/var/lib/shop/ids.db', secret, 'quarantine')
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

/** How the end of a node id is lowered. */
export interface RepairLeaseOptions extends OperatorOptions {
  /** The new end, a unix second; the lowest unless set. */
  endExclusive?: number | undefined
}

/** How the end of a quarantine is lowered. */
export interface RepairStoreOptions extends OperatorOptions {
  /** The new floor, a unix second; the lowest unless set. */
  floor?: number | undefined
}

/** What a store knows of one node id. */
export interface NodeStatus extends Readonly<Lease> {
  /** The node id. */
  readonly nodeId: number
  /**
   * `held`: a generator holds it. `expired`: its lease has ended and was not given back; it can be
   * leased. `free`: it was given back, and can be leased from `endExclusive` on.
   */
  readonly state: 'held' | 'expired' | 'free'
  /** Whole seconds to the end by the store's clock; 0 if it has passed. */
  readonly secondsLeft: number
  /** Whether the end is implausible: only a wrong clock can have set it. See {@link repairLease}. */
  readonly isImplausible: boolean
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
  /** How many were given back, with an end in the future. */
  readonly waiting: number
  /** How many could be leased now without a quarantine: the headroom. */
  readonly free: number
  /** How many have an implausible end. */
  readonly implausible: number
  /** No lease starts before this unix second: until then the store is in quarantine. */
  readonly floor: number
  /** Whether the floor is implausible: see {@link repairStore}. */
  readonly floorIsImplausible: boolean
  /**
   * Whether the server is no longer the one that granted these leases. If so, the next request of a
   * generator fences the namespace.
   */
  readonly incarnationChanged: boolean
  /** The bounds of the namespace. */
  readonly limits: StoreLimits
}

/** The bounds of a namespace. */
export interface StoreLimits {
  /** Seconds of the longest lease. */
  readonly maxTtlSeconds: number
  /** Seconds by which clocks may differ. */
  readonly maxSkewSeconds: number
  /** The node ids that are leased, as in {@link InitOptions}. */
  readonly nodeIds: string
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
 * Quarantines a namespace whose store may have forgotten leases. Call it after a backup was
 * restored, before anything starts. Leases that are clearly running are renewed meanwhile.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @returns the unix second from which it grants leases again.
 */
export function fenceStore(
  store: string | URL | StoreClient,
  options?: OperatorOptions,
): Promise<number>

/**
 * Sets which node ids a namespace leases, as for moving over from another generator.
 *
 * Before you add a node id, stop the generator that had it and wait for twice the largest skew plus
 * a second: ids that it made later could repeat. That is 11 seconds, unless the namespace was made
 * with another skew. A node id that is left out is no longer leased or renewed. A generator that
 * has it uses it until its lease ends, and leases another one.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @param nodeIds all node ids that are leased from now on, as `0-6,8-1023`: 1 to 16 ranges of node
 *   ids of the layout.
 * @returns the unix second from which the node ids that were left out have no lease; do not use
 *   them for anything else before then.
 * @example
 * const unusedFrom = await setNodeIds('/var/lib/shop/ids.db', '0-6,8-1023')
 */
export function setNodeIds(
  store: string | URL | StoreClient,
  nodeIds: string,
  options?: OperatorOptions,
): Promise<number>

/**
 * Shortens the lease of a node id whose end is implausible: only a wrong clock can have set it.
 *
 * No correct clock sets an end beyond the store's clock plus the longest lease and the largest
 * skew. Such an end keeps the node id reserved until then. By calling this you state that no id
 * with that node id carries a second at or after the new end, and that no process that was given
 * the implausible end still runs. If one does, ids will repeat.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @param nodeId a node id whose status has `isImplausible`.
 * @returns its new end.
 * @throws {RandflakeError} as a rejection, always: `INVALID_ARGUMENT` if there is nothing to repair
 *   or the new end is too low, `CLOCK_SKEW` if one of the clocks is wrong now.
 */
export function repairLease(
  store: string | URL | StoreClient,
  nodeId: number,
  options?: RepairLeaseOptions,
): Promise<number>

/**
 * Shortens a quarantine whose end is implausible: like {@link repairLease}, but for a whole
 * namespace, as if it had been fenced now. By calling this you state that no id at all carries a
 * second at or after the new floor.
 *
 * @param store as in {@link listLeases}, with the errors of {@link repairLease}.
 * @returns the new floor.
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
 * the first second it cannot have stamped, which leaves 107 of the usual 300 seconds, and never
 * extended.
 *
 * @param store as in {@link listLeases}, with its errors.
 * @param lease what {@link listLeases} or {@link inspectLease} returned for the node id. A holder
 *   that has leased it since keeps it.
 * @returns its new end.
 * @throws {RandflakeError} as a rejection, always: `INVALID_ARGUMENT` if it is not held, has
 *   another lease by now, or has an implausible end, `CLOCK_SKEW` if one of the clocks is wrong
 *   now.
 */
export function releaseLease(
  store: string | URL | StoreClient,
  lease: NodeStatus,
  options?: OperatorOptions,
): Promise<number>
