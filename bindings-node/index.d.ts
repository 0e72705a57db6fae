/// <reference lib="esnext.disposable" />

/**
 * A generator of unique 64-bit ids that outsiders cannot predict, order or count.
 *
 * **A node id given by hand is safe for one live process at a time, on a machine whose clock has
 * not stepped back over the last id.** Two live processes with one node id and one secret repeat
 * each other's ids: `cluster` and `pm2` start such processes. Worker threads of one process may
 * share a node id.
 *
 * Generators are not copied (`structuredClone`, `postMessage`); make one in each thread.
 *
 * @example
 * const flake = new Randflake(1, process.env.RANDFLAKE_SECRET)
 * const id = flake.generate() // a bigint, negative for half of all ids
 */
export class Randflake {
  /**
   * @param nodeId 0 to 131071, or up to 16384 of them, each once: k node ids give k times 131072
   *   ids a second.
   * @param secret 16 bytes, or 32 hex digits in either case. For the life of the id column.
   * @throws {RandflakeError} `INVALID_NODE`, `INVALID_SECRET`, `INVALID_LEASE`,
   *   `INVALID_ARGUMENT`; `NODE_IN_USE` if this process has some of the node ids in another list.
   */
  constructor(nodeId: number | readonly number[], secret: Uint8Array | string, options?: Options)

  /**
   * Generates an id: any signed 64-bit number.
   *
   * @throws {RandflakeError} `SEQUENCE_EXHAUSTED`, `CLOCK_MOVED_BACK` or `LEASE_NOT_STARTED` with
   *   `retryAfterMs` if none can be had within `maxWaitMs`. `LEASE_EXPIRED`, `LIFETIME_OVER`,
   *   `CLOCK_BEFORE_EPOCH`, `CLOSED`, `FORKED`, which waiting does not help.
   */
  generate(): bigint

  /** Generates an id as text of 1 to 13 characters, for JSON and URLs; see {@link generate}. */
  generateString(): string

  /**
   * Generates `n` ids, in the order in which they are claimed.
   *
   * Takes the seconds that so many ids need, 131072 for each node id, and `maxWaitMs` besides.
   * With a `maxWaitMs` of 0 it never waits, and more ids than can ever be had at once are
   * `INVALID_ARGUMENT`.
   *
   * @throws {RandflakeError} as {@link generate}; no id is returned then.
   */
  generateMany(n: number): BigInt64Array

  /**
   * Like {@link generateMany}, but works and waits on a thread of libuv's pool. With an injected
   * clock, which only this thread can ask, it works on this one.
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
   * Resolves once an id can be had, without blocking; keeps the process alive until then. Another
   * caller may take that id first.
   *
   * @throws {RandflakeError} as {@link generate}, for what waiting does not help.
   */
  ready(): Promise<void>

  /**
   * Reads an id of this secret back. Every 64-bit number has such parts: reading does not tell
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
   * unencrypted. Never hand it to anyone who must not know them.
   *
   * @throws {RandflakeError} `INVALID_ID`
   */
  decrypt(id: bigint | string): bigint

  /**
   * Raises the end of the lease; an earlier end than the present one changes nothing.
   *
   * @param endExclusive unix seconds.
   * @throws {RandflakeError} `INVALID_LEASE` also if there is no lease; `CLOSED`, `FORKED`.
   */
  extendLease(endExclusive: number): void

  /** The lease; `null` without one, and once closed. */
  get lease(): Lease | null

  /** The node ids, sorted; none once closed. */
  get nodeIds(): number[]

  /** Ends the generator for good. Reading ids goes on; closing twice does nothing. */
  close(): void
  [Symbol.dispose](): void
  [Symbol.asyncDispose](): Promise<void>

  /** What `JSON.stringify` shows: never the secret. */
  toJSON(): { nodeIds: number[] }
}

export interface Options {
  /** The seconds that may be used; without it, all from the one after this library was loaded. */
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
   * Whether to skip, without a lease, the rest of the second in which this library was loaded, in
   * which an earlier life of the node id may have ended; true unless set.
   */
  restartSafe?: boolean | undefined
  /** The time, for tests. What it throws is thrown on. */
  clock?: Clock | undefined
}

/**
 * The unix seconds from `start` up to, but not including, `endExclusive`. One lease serves one
 * process life.
 */
export interface Lease {
  start: number
  endExclusive: number
}

/**
 * Tells unix seconds, with or without a fraction. One that can `sleep` is slept on when a call has
 * to wait; a bare function cannot, so that the call asks once more and then throws.
 */
export type Clock = (() => number) | { now(): number; sleep?(seconds: number): void }

/** What an id says to a holder of the secret. */
export interface Parts {
  /** Unix seconds; up to `maxDriftSeconds` ahead of the clock that it was made by. */
  timestamp: number
  /** 0 to 131071. */
  nodeId: number
  /** 0 to 131071: which one of this node in this second, counted from 0. */
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

/** Everything that this package throws by itself. */
export class RandflakeError extends Error {
  constructor(code: RandflakeErrorCode, message: string, retryAfterMs?: number)
  readonly name: 'RandflakeError'
  /** What kind of failure this is; stable, and the same in every language. */
  readonly code: RandflakeErrorCode
  /** After how many whole milliseconds the same call can succeed; absent where waiting does not help. */
  readonly retryAfterMs?: number
}

export type RandflakeErrorCode =
  /** The secret is not 16 bytes or 32 hex digits. */
  | 'INVALID_SECRET'
  /** A node id is no integer from 0 to 131071, listed twice, or missing. */
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
  /** The last second of the lease is over. */
  | 'LEASE_EXPIRED'
  /** All ids of the seconds that may be used now are taken. */
  | 'SEQUENCE_EXHAUSTED'
  /** The clock is behind the last id. */
  | 'CLOCK_MOVED_BACK'
  /** The clock shows a time before 2024-10-27T03:33:20Z. */
  | 'CLOCK_BEFORE_EPOCH'
  /** The format's last second, 2058-11-05T17:10:23Z, is over. */
  | 'LIFETIME_OVER'
  /** The generator, or its node id, belongs to a process this one was forked from. */
  | 'FORKED'
  /** The generator was closed. */
  | 'CLOSED'
  /** A defect of this library. */
  | 'INTERNAL'

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
