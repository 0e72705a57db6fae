import type { Randflake } from './generators.js'

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

  /**
   * Returns the ids of many sortable forms; undoes {@link decryptMany}.
   *
   * @param raws unsigned 64-bit numbers.
   * @throws {RandflakeError} `INVALID_ID`, with the index, for what {@link encrypt} refuses;
   *   `INVALID_ARGUMENT` for another kind of array, one over a `SharedArrayBuffer`, and one whose
   *   buffer was transferred.
   * @example
   * const inspector = new Inspector('dffd6021bb2bd5b0af676290809ec3a5')
   * inspector.encryptMany([63673697622556673n])[0] // 4594531474933654033n
   */
  encryptMany(raws: BigInt64Array | BigUint64Array | readonly bigint[]): BigInt64Array

  /**
   * Returns the sortable forms of many ids. Never give them to anyone who must not know them.
   *
   * @param ids signed 64-bit numbers or texts, not both in one array.
   * @throws {RandflakeError} as {@link encryptMany}.
   * @example
   * const inspector = new Inspector('dffd6021bb2bd5b0af676290809ec3a5')
   * inspector.decryptMany(['3vgoe12ccb8gh'])[0] // 63673697622556673n
   */
  decryptMany(
    ids: BigInt64Array | BigUint64Array | readonly bigint[] | readonly string[],
  ): BigUint64Array

  /** The same as {@link encryptMany}, in place. Takes what {@link decryptInPlace} takes. */
  encryptInPlace(raws: BigInt64Array): void

  /**
   * The same as {@link decryptMany}, in place: `new BigUint64Array(ids.buffer)` shows the unsigned
   * numbers.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` for another kind of array, one over a
   *   `SharedArrayBuffer`, and one whose buffer was transferred.
   * @example
   * const inspector = new Inspector('dffd6021bb2bd5b0af676290809ec3a5')
   * const ids = BigInt64Array.of(4594531474933654033n)
   * inspector.decryptInPlace(ids)
   * ids[0] // 63673697622556673n
   */
  decryptInPlace(ids: BigInt64Array): void
}

/** The parts of many ids, in the order of the ids. */
export interface PartsColumns {
  timestamp: BigInt64Array
  nodeId: Uint32Array
  sequence: Uint32Array
}

/**
 * Hides any 64-bit ids: sortable Snowflakes and auto-increment keys inside, ids that reveal nothing
 * outside.
 *
 * Each number has one hidden form and each hidden form one number, so nothing collides, and the
 * database keeps the number and its index. Hiding does not authenticate: every 64-bit number
 * reveals some number. Look up the result, and check who may see it.
 *
 * @example
 * const cloak = new Cloak(process.env.RANDFLAKE_SECRET, 'orders.id')
 * const text = cloak.hideString(42n) // for a URL
 * cloak.reveal(text) // 42n
 */
export class Cloak {
  /**
   * @param secret 16 bytes, or 32 hex digits in either case. May also be the secret of a
   *   {@link Randflake}, whose ids use a key of their own.
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

/** What {@link Codes} are like. */
export interface CodesOptions {
  /**
   * How many symbols a code has, 4 to 24; 8 unless set. There must be at least a million texts of
   * that length, so 6 digits are the fewest.
   */
  length?: number | undefined
  /**
   * The symbols; `digits` unless set. `crockford`: 0-9 and A-Z without I, L, O and U; it reads O as
   * 0, and I and L as 1. `letters`: A-Z without A, E, I, O, U and Y, so that codes contain no words.
   * Or 10 to 62 ASCII letters and digits of your own, each once.
   */
  alphabet?: 'digits' | 'crockford' | 'letters' | (string & {}) | undefined
  /**
   * How many of the symbols are a check, 0 to length - 1; 0 unless set. One guess in
   * alphabet.length ** check is a code.
   */
  check?: number | undefined
}

/**
 * Turns the numbers 0, 1, 2 and so on into codes of a fixed length, and back: vouchers, order
 * numbers, invitations, which people type.
 *
 * The codes look random. Each number has one code and each code at most one number, so nothing
 * collides. The numbers come from a counter of yours, such as `Tickets` or a sequence of the
 * database. A code is not a permission: whoever guesses one has one.
 *
 * Its properties are frozen.
 *
 * @example
 * const codes = new Codes('dffd6021bb2bd5b0af676290809ec3a5', 'orders')
 * codes.encode(1n) // '86483743'
 * codes.decode('86483743') // 1n
 */
export class Codes {
  /**
   * @param secret 16 bytes, or 32 hex digits in either case. May also be the secret of a
   *   {@link Randflake}, whose ids use a key of their own.
   * @param label the purpose, such as `vouchers`: another label is another key. Use one label for one
   *   kind of code.
   * @throws {RandflakeError} `INVALID_SECRET`, `INVALID_ARGUMENT`
   */
  constructor(secret: Uint8Array | string, label: string, options?: CodesOptions)

  /** How many symbols a code has. */
  readonly length: number
  /** The symbols, in the order of their values. */
  readonly alphabet: string
  /** How many of the symbols are a check. */
  readonly check: number
  /** How many numbers have codes: alphabet.length ** (length - check), at most 2^64. */
  readonly capacity: bigint
  /** A regular expression that matches all that `decode` reads, and texts with a wrong check. */
  readonly pattern: string

  /**
   * Returns the code of a number.
   *
   * @param number 0n to capacity - 1n.
   * @throws {RandflakeError} `INVALID_ID`
   */
  encode(number: bigint): string

  /**
   * Returns the codes of many numbers.
   *
   * @throws {RandflakeError} `INVALID_ID`, with the index, for what {@link encode} refuses;
   *   `INVALID_ARGUMENT` for anything that is not an array.
   */
  encodeMany(numbers: BigInt64Array | BigUint64Array | readonly bigint[]): string[]

  /**
   * Returns the number of a code.
   *
   * @param code of this length. If the alphabet has no letter in both cases, either case is read.
   *   Spaces and hyphens are refused.
   * @throws {RandflakeError} `INVALID_ID`, also for a check that is not right.
   */
  decode(code: string): bigint

  /**
   * Returns the numbers of many codes.
   *
   * @throws {RandflakeError} `INVALID_ID`, with the index, for what {@link decode} refuses;
   *   `INVALID_ARGUMENT` for anything that is not an array.
   */
  decodeMany(codes: readonly string[]): bigint[]
}

/**
 * An id of Boundary's flake, of 128 bits: time, network address of the worker, sequence. For
 * reading and converting such ids; this package does not generate them.
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

  /** When it was made, in unix milliseconds: 64 bits, which do not fit in a number. */
  readonly unixMs: bigint
  /** When it was made; invalid after the last date, {@link unixMs} 8640000000000000. */
  readonly date: Date
  /** The network address (MAC) of the worker that made it: 6 bytes. */
  readonly worker: Uint8Array
  /** The index of the id within its worker and millisecond, 0 to 65535. */
  readonly sequence: number

  /** Returns the 16 bytes, which sort as the ids do. */
  toBytes(): Uint8Array
  /** Returns the text in base 62, of the digits 0-9A-Za-z. */
  toString(): string
  /** What `JSON.stringify` shows: the text. */
  toJSON(): string
}

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

/**
 * Returns the texts of many ids; see {@link encodeString}.
 *
 * @throws {RandflakeError} `INVALID_ID`, with the index, for what {@link encodeString} refuses;
 *   `INVALID_ARGUMENT` for another kind of array, one over a `SharedArrayBuffer`, and one whose
 *   buffer was transferred.
 * @example
 * encodeStrings([4594531474933654033n, 0n]) // ['3vgoe12ccb8gh', '0']
 */
export function encodeStrings(ids: BigInt64Array | BigUint64Array | readonly bigint[]): string[]

/**
 * Returns the ids of many texts; see {@link decodeString}.
 *
 * @throws {RandflakeError} `INVALID_ID`, with the index, for what {@link decodeString} refuses;
 *   `INVALID_ARGUMENT` for anything that is not an array.
 * @example
 * decodeStrings(['3vgoe12ccb8gh', '0']) // BigInt64Array.of(4594531474933654033n, 0n)
 */
export function decodeStrings(texts: readonly string[]): BigInt64Array

/** Returns a new secret from the system's random source: 32 hex digits. Keep it secret. */
export function generateSecret(): string

/**
 * Declares that this process may be one of several copies. Call it after the process was restored
 * from a snapshot or a checkpoint, or its machine was cloned, and before it makes the next id.
 *
 * Leased generators, and `Tickets`, give up what they had and start over: `await ready()` first.
 * They release nothing, since another copy may be using it. Generators with manually assigned node
 * ids throw `FORKED`, and so does making a generator with one of them: give each copy node ids of
 * its own. Call it in every copy of the process, the original included, and in each copy of this
 * package.
 *
 * @example
 * const flake = new Randflake(9, generateSecret())
 * afterRestore()
 * flake.generate() // throws FORKED
 */
export function afterRestore(): void
