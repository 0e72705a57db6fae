// The names of the published `randflake/v2`, version 2.1, for programs that were written for it. New
// programs use `Randflake` of `randflake`.

import { RandflakeError } from './types/errors.js'

export { RandflakeError }
/** The unix second at which ids begin. */
export const RANDFLAKE_EPOCH_OFFSET: number
/** The last unix second of an id. */
export const RANDFLAKE_MAX_TIMESTAMP: number
export const RANDFLAKE_MAX_NODE: number
export const RANDFLAKE_MAX_SEQUENCE: number

/** The end of a lease lies after the last second of ids. */
export class ErrRandflakeDead extends RandflakeError {
  constructor()
}
/** The secret is not a `Uint8Array` of 16 bytes. */
export class ErrInvalidSecret extends RandflakeError {
  constructor()
}
/** The lease is not valid, belongs to another node, or does not cover the current second. */
export class ErrInvalidLease extends RandflakeError {
  constructor()
}
/** The node id is out of range. */
export class ErrInvalidNode extends RandflakeError {
  constructor()
}
/** The second has no more ids; the next second has. */
export class ErrResourceExhausted extends RandflakeError {
  constructor()
}
/** The clock moved back, or does not show a whole second. */
export class ErrConsistencyViolation extends RandflakeError {
  constructor()
}
/** The value is not a valid id or its text. */
export class ErrInvalidID extends RandflakeError {
  constructor()
}

/** Returns the unix second. */
export type Clock = () => number

/**
 * The seconds in which a node id may be used: the first unix second, and the one after the last.
 */
export interface Lease {
  /** 0 to 131071. */
  readonly nodeID: number
  readonly start: number
  readonly endExclusive: number
}

export interface Config {
  /** Only this generator may use its node id in its seconds. */
  readonly lease: Lease
  /** 16 bytes, which are copied. */
  readonly secret: Uint8Array
  /** The machine's clock unless set. `generate` throws what it throws. */
  readonly clock?: Clock | undefined
}

/** What an id is made of: the unix second, the node id, and its number in that second. */
export interface Parts {
  readonly timestamp: number
  readonly nodeID: number
  readonly sequence: number
}

/**
 * Generates ids of one node id while its lease holds, and never waits.
 *
 * @example
 * const start = Math.floor(Date.now() / 1000)
 * const secret = crypto.getRandomValues(new Uint8Array(16))
 * const generator = new Generator({ lease: { nodeID: 42, start, endExclusive: start + 600 }, secret })
 * generator.inspect(generator.generate()).nodeID // 42
 */
export class Generator {
  /**
   * @throws {@link ErrInvalidLease}, {@link ErrInvalidNode}, {@link ErrInvalidSecret}, and
   *   {@link ErrConsistencyViolation} for a clock that is not a function
   */
  constructor(config: Config)
  /**
   * Returns an id, a signed 64-bit bigint.
   *
   * @throws {@link ErrInvalidLease} outside the lease, {@link ErrResourceExhausted} where the second
   *   has no more ids, {@link ErrConsistencyViolation} where the clock moved back
   */
  generate(): bigint
  /** Returns the text of an id. Throws as {@link generate}. */
  generateString(): string
  /**
   * Sets a later end. One that is not later changes nothing.
   *
   * @param lease with the same node id and start.
   * @throws {@link ErrInvalidLease} for any other
   */
  extendLease(lease: Lease): void
  /** Returns the lease as it is now, frozen. */
  lease(): Lease
  /** Returns what an id is made of, no matter who made it, frozen. Throws {@link ErrInvalidID}. */
  inspect(id: bigint): Parts
  /** Returns what the id of a text is made of. Throws {@link ErrInvalidID}. */
  inspectString(text: string): Parts
}

/** Returns the text of an id. Throws {@link ErrInvalidID}. */
export function encodeString(id: bigint): string
/** Returns the id of a text, strictly. Throws {@link ErrInvalidID}. */
export function decodeString(text: string): bigint
