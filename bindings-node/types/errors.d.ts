/** Every error that this package itself throws. */
export class RandflakeError extends Error {
  /** With only a message, the code is `INTERNAL`. */
  constructor(message: string)
  constructor(
    code: RandflakeErrorCode,
    message: string,
    retryAfterMs?: number,
    options?: { cause?: unknown },
  )
  readonly name: string
  /** What kind of failure this is; stable, and the same in every language. */
  readonly code: RandflakeErrorCode
  /**
   * After how many whole milliseconds the same call can succeed; absent where waiting does not
   * help. With `LEASE_UNAVAILABLE`, when another try makes sense: at most 5000.
   */
  readonly retryAfterMs?: number
}

export type RandflakeErrorCode =
  /** The secret is not 16 bytes or 32 hex digits. */
  | 'INVALID_SECRET'
  /** A node id is not an integer in the range, is listed twice, or is missing. */
  | 'INVALID_NODE'
  /** A lease is backwards or outside the format's lifetime, or there is none to extend. */
  | 'INVALID_LEASE'
  /** Text is not that of an id or a code, or a number is not a bigint in range. */
  | 'INVALID_ID'
  /** Another argument is of the wrong type or out of its range. */
  | 'INVALID_ARGUMENT'
  /** Another generator of this process has some of these node ids in another list. */
  | 'NODE_IN_USE'
  /** The first second of the generator is still to come. */
  | 'LEASE_NOT_STARTED'
  /** The last second of a lease of your own has passed. */
  | 'LEASE_EXPIRED'
  /** All ids of the seconds that may be used now are taken. */
  | 'SEQUENCE_EXHAUSTED'
  /** The clock is behind the last id. */
  | 'CLOCK_MOVED_BACK'
  /** The clock shows a time before 2024-10-27T03:33:20Z, or before the epoch of the layout. */
  | 'CLOCK_BEFORE_EPOCH'
  /** The format's last second, 2058-11-05T17:10:23Z, or the layout's last tick, has passed. */
  | 'LIFETIME_OVER'
  /** The generator, or its node id, belongs to a process this one was forked or restored from. */
  | 'FORKED'
  /** The generator was closed. */
  | 'CLOSED'
  /** A defect of this library. */
  | 'INTERNAL'
  /** A generator with a leased node id has no lease now; it asks the store again by itself. */
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
  /** The store is not the one that granted the lease. */
  | 'STORE_REPLACED'
  /** The store has no such namespace and does not make one by itself. */
  | 'STORE_NOT_INITIALIZED'
  /** The namespace belongs to another secret. */
  | 'SECRET_MISMATCH'
  /** The store may lose or double what it has acknowledged. */
  | 'WEAK_STORE'
  /** What talks to the store is not installed. */
  | 'DRIVER_MISSING'
