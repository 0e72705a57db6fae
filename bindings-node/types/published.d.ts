import type { Clock } from '../v2.js'

export {
  ErrConsistencyViolation,
  ErrInvalidID,
  ErrInvalidLease,
  ErrInvalidNode,
  ErrInvalidSecret,
  ErrRandflakeDead,
  ErrResourceExhausted,
  RANDFLAKE_EPOCH_OFFSET,
  RANDFLAKE_MAX_NODE,
  RANDFLAKE_MAX_SEQUENCE,
  RANDFLAKE_MAX_TIMESTAMP,
} from '../v2.js'

/** How many bits of an id are its time, its node id and its sequence. */
export const RANDFLAKE_TIMESTAMP_BITS: number
export const RANDFLAKE_NODE_BITS: number
export const RANDFLAKE_SEQUENCE_BITS: number

/** A lease in the words of the published 2.1: `leaseEnd` is its last second. */
export interface LeaseInfo {
  nodeID: number
  leaseStart: number
  leaseEnd: number
}

/**
 * A generator with the names of the published 2.1, for programs that were written for it.
 *
 * @deprecated Use {@link Randflake}, or `Generator` of `randflake/v2`.
 */
export class Generator {
  /**
   * @param nodeID 0 to 131071.
   * @param leaseStart the first unix second of the lease.
   * @param leaseEnd its last one.
   * @param secret 16 bytes, which are copied.
   * @throws `ErrRandflakeDead` for an end after the last second of ids, `ErrInvalidLease`,
   *   `ErrInvalidNode`, `ErrInvalidSecret`
   */
  constructor(nodeID: number, leaseStart: number, leaseEnd: number, secret: Uint8Array)
  /** Returns the unix second; the machine's clock unless set. */
  timeSource: Clock | undefined
  /** Sets a later end, for the same start. Returns whether that changed anything. */
  updateLease(leaseStart: number, leaseEnd: number): boolean
  /** Returns the lease as it is now. */
  getLeaseInfo(): LeaseInfo
  /** Returns an id. Throws as `generate` of `randflake/v2`. */
  generate(): bigint
  /** Returns the text of an id. Throws as {@link generate}. */
  generateString(): string
  /** Returns the unix second, the node id and the sequence of an id. Throws `ErrInvalidID`. */
  inspect(id: bigint): [timestamp: number, nodeID: number, sequence: number]
  /**
   * Does the same for a text: in any case, up to the first `=`, modulo 2^64. Throws `ErrInvalidID`.
   */
  inspectString(text: string): [timestamp: number, nodeID: number, sequence: number]
}
