// The text of ids in plain JavaScript, without the native half: for browsers, edge runtimes and
// schemas that are shared with them.

/**
 * Hides numbers: a `Cloak` of `randflake`, or anything that does the same. A browser has none,
 * since it has no secret: ids stay texts there.
 */
export interface Hiding {
  /** Takes a signed 64-bit bigint, and returns another. */
  hide(number: bigint): bigint
  /** Undoes {@link hide}; what it returns may be signed or unsigned. */
  reveal(hidden: bigint): bigint
}

/** Makes codes of numbers: `Codes` of `randflake`, or anything that does the same. */
export interface Coding {
  /** A regular expression for what {@link decode} reads: `^`, then the symbols, then `$`. */
  readonly pattern: string
  /** Takes an unsigned 64-bit bigint. */
  encode(number: bigint): string
  /** Undoes {@link encode}. */
  decode(code: string): bigint
}

/**
 * How the ids of a column look outside: in JSON and in URLs. Without options, as
 * {@link encodeString} writes them.
 *
 * @example
 * const users = new TextForm({ prefix: 'user' })
 * users.encode(4594531474933654033n) // 'user_3vgoe12ccb8gh'
 * users.decode('user_fvvvvvvvvvvvv') // -1n
 */
export class TextForm {
  /**
   * @param options `prefix`: what comes before an underscore and the id, so that a text shows what
   *   it identifies: 1 to 63 of the characters a-z and _, neither beginning nor ending with an
   *   underscore, as in TypeID. `cloak`: hides the number, so that the number inside can be
   *   sortable, such as a Snowflake. `codes`, in place of a cloak: makes codes of the numbers 0 to
   *   capacity - 1.
   * @throws an `Error` with the code `INVALID_ARGUMENT`
   */
  constructor(options?: {
    readonly prefix?: string | undefined
    readonly cloak?: Hiding | undefined
    readonly codes?: Coding | undefined
  })

  /**
   * A regular expression that matches exactly the texts of this form, for JSON schemas. With codes, it
   * also matches texts whose check is wrong.
   */
  readonly pattern: string

  /**
   * Returns the text of an id.
   *
   * @param id a signed 64-bit bigint.
   * @throws an `Error` with the code `INVALID_ID`
   */
  encode(id: bigint): string

  /**
   * Returns the id of a text, which must be exactly as {@link encode} writes it, or as codes read it.
   *
   * @throws an `Error` with the code `INVALID_ID`
   */
  decode(text: string): bigint
}

/**
 * Returns the text of an id: lower-case base32hex digits of the id as an unsigned number.
 *
 * @param id a signed 64-bit bigint.
 * @throws an `Error` with the code `INVALID_ID`. It is not a `RandflakeError`, whose class comes
 *   with the native half: check its `code`, not `instanceof`.
 * @example
 * encodeString(4594531474933654033n) // '3vgoe12ccb8gh'
 */
export function encodeString(id: bigint): string

/**
 * Returns the id of a text, strictly: only what {@link encodeString} writes is accepted.
 *
 * @throws as {@link encodeString}.
 * @example
 * decodeString('3vgoe12ccb8gh') // 4594531474933654033n
 */
export function decodeString(text: string): bigint
