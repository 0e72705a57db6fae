import type { RandflakeErrorCode } from './errors.js'
import type { LeaseStatus, Randflake, Snowflake } from './generators.js'

/** What a generator has done in this process. */
export interface Metrics {
  /**
   * How many ids were claimed. A {@link Randflake} claims a few ahead for its next single calls.
   * Generators with the same manually assigned node ids, in any workers of this process, make one
   * sequence of ids, and each shows the total.
   */
  readonly idsGenerated: number
  /**
   * How many calls waited, by the code of the error that they would otherwise have thrown:
   * `SEQUENCE_EXHAUSTED`, `CLOCK_MOVED_BACK`, `LEASE_NOT_STARTED`, and for a leased generator
   * `LEASE_UNAVAILABLE`.
   */
  readonly waits: Readonly<Partial<Record<RandflakeErrorCode, number>>>
  /** How many requests were made to the store; 0 for a generator that is not leased. */
  readonly storeRequests: number
  /** How long these took in all, in seconds. */
  readonly storeRequestSeconds: number
  /** How many of them the store did not grant, by the code of the error. */
  readonly storeErrors: Readonly<Partial<Record<RandflakeErrorCode, number>>>
  /**
   * By how many whole seconds the store's clock was ahead of this machine's at its last answer;
   * negative if it was behind, `null` before the first answer.
   */
  readonly clockSkewSeconds: number | null
}

/** What the channel `randflake:lease` of `node:diagnostics_channel` publishes. */
export interface LeaseChange {
  /** The lease as it is now. */
  readonly status: LeaseStatus
  /**
   * A sentence for a log: what has changed, the node ids, until when ids are available, the store's
   * error.
   */
  readonly message: string
  /**
   * `info`: all is well. `warning`: ids continue, but something needs a look. `error`: there are no
   * ids, or soon will be none.
   */
  readonly level: 'info' | 'warning' | 'error'
  /**
   * The generator that has the lease; `undefined` while it is being made, as with the first lease.
   */
  readonly generator: Randflake | Snowflake | undefined
}
