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
 * A name, or the fields of another layout from high to low with their widths in bits; then options.
 * All are separated by commas.
 *
 * | option | for | |
 * |---|---|---|
 * | `epoch_ms=1577836800000` | all | the unix milliseconds at which tick 0 begins |
 * | `sequence=zero`, `=continuing`, `=random:100` | all | the initial sequence of each tick |
 * | `tick_ms=10` | fields | the length of a tick |
 * | `unsigned=true` | fields | whether the fields may have 64 bits |
 * | `node_split=5:5` | fields | the widths of a datacenter and a worker |
 *
 * @example
 * new Layout('twitter,epoch_ms=1577836800000')
 * new Layout('time:41,node:10,sequence:12,tick_ms=1,sequence=random:100')
 */
export type LayoutText =
  | LayoutName
  | `${LayoutName},${string}`
  | `${'time' | 'node' | 'sequence'}:${string}`

/**
 * The initial sequence of each tick. With any of them, one thread gets rising ids of a node.
 *
 * `zero`: with 0. If a node makes few ids, most of them end alike, and shards by the low bits of an
 * id are uneven; the other two spread them. `continuing`: with the one after the last; a tick ends
 * when the sequence wraps. `['random', n]`: with a number drawn for each tick from 0 to n - 1; a
 * node then has n - 1 fewer ids in a tick.
 */
export type Sequence = 'zero' | 'continuing' | readonly ['random', number]

/** A layout that has no name. */
export interface LayoutFields {
  /**
   * The fields from high to low, each once, with their widths in bits: the time, at most 61, and
   * optionally a node and a sequence, at most 32 each. Together at most 63 bits.
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
   * @param layout a name or another text, or the description of another layout.
   * @param options another epoch, or another initial sequence, as {@link withEpochMs} and
   *   {@link withSequence} take them.
   * @throws {RandflakeError} `INVALID_ARGUMENT`, also for a time that extends beyond the last
   *   `Date`. A layout whose time and sequence are too wide to be counted together in 64 bits is
   *   only for reading.
   * @example
   * // The example of UidGenerator's README, whose epoch is 2016-09-20 in China.
   * new Layout({
   *   fields: [['time', 29], ['node', 21], ['sequence', 13]],
   *   tickMs: 1000,
   *   epochMs: Date.parse('2016-09-20T00:00+08:00'),
   * })
   */
  constructor(
    layout: LayoutText | LayoutFields,
    options?: { epochMs?: number | undefined; sequence?: Sequence | undefined },
  )

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
   * The unix milliseconds from which ids are negative in a BIGINT column, and so come before all
   * others there; `null` if they never are, or if a field other than the time decides it.
   */
  readonly negativeFrom: number | null

  /**
   * Reads an id. Every number without bits outside the fields has parts: reading does not show
   * whether it is an id.
   *
   * @param id an unsigned 64-bit bigint, or the signed one of a BIGINT column; never a number,
   *   which would lose digits. Text goes through `BigInt(…)`.
   * @throws {RandflakeError} `INVALID_ID`
   */
  inspect(id: bigint): RawParts

  /**
   * Packs an id from a time, which is rounded down to its tick, a node id and a sequence. For tests
   * and conversions: nothing ensures that the id is unique.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` if the time or the sequence is out of range;
   *   `INVALID_NODE`.
   */
  pack(time: Date | number, nodeId: number, sequence: number): bigint

  /**
   * Returns the smallest id of the tick at a time, to find rows by the time at which their ids were
   * made. As unsigned numbers, ids are in the order of time; in a BIGINT column, up to
   * {@link negativeFrom}.
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
   * @throws {RandflakeError} `INVALID_NODE`, also if node ids of this layout do not have these
   *   parts.
   */
  joinNode(datacenter: number, worker: number): number

  /**
   * Returns the datacenter and the worker of a node id; `null` where node ids do not have these
   * parts.
   *
   * @throws {RandflakeError} `INVALID_NODE`
   */
  splitNode(nodeId: number): [datacenter: number, worker: number] | null

  /**
   * Returns the same layout with time counted from other unix milliseconds, as most sites that copy
   * a published layout do.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT`
   */
  withEpochMs(epochMs: number): Layout

  /**
   * Returns the same layout with another initial sequence. Ids of both read the same.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT`
   */
  withSequence(sequence: Sequence): Layout

  /** Returns the text that describes the layout, which the constructor takes. */
  toString(): string
}

/** The parts of an id of a layout, which everyone can read. */
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
