// What browsers and edge runtimes can have of `randflake`: WebAssembly of the same core, and ids from
// `randflake serve`. There are no leases, and so no generators of its own.
//
// A secret in a browser is for tools of operators, never for visitors: whoever has it reads the time
// of every id, and makes ids.

import type { RandflakeErrorCode } from './types/errors.js'

export { decodeString, encodeString, type Hiding, TextForm } from './text.js'
export type { RandflakeErrorCode } from './types/errors.js'
export { Cloak, Inspector, type Parts, type PartsColumns } from './types/ids.js'
export {
  Layout,
  type LayoutFields,
  type LayoutName,
  type LayoutText,
  type RawParts,
  type Sequence,
} from './types/layouts.js'

/**
 * Every error of this module, but for those of {@link TextForm}, {@link encodeString} and
 * {@link decodeString}, which are an `Error` with a `code`.
 *
 * It is not the class of the same name of `randflake`: check the `code`, which is the same.
 */
export class RandflakeError extends Error {
  /** With only a message, the code is `INTERNAL`. */
  constructor(message: string)
  constructor(
    code: RandflakeError['code'],
    message: string,
    retryAfterMs?: number,
    options?: { cause?: unknown },
  )
  readonly name: string
  /**
   * What kind of failure this is. `BUSY` and `UNAUTHORIZED` come only from `randflake serve`: it has
   * too much to answer, or wants another token.
   */
  readonly code: RandflakeErrorCode | 'BUSY' | 'UNAUTHORIZED'
  /** After how many whole milliseconds the same call can succeed; absent where that is unknown. */
  readonly retryAfterMs?: number
}

/**
 * Turns the numbers 0, 1, 2 … into codes of a fixed length that look random, and back: vouchers,
 * order numbers, invitations.
 *
 * Each number has one code and each code at most one number, so nothing collides. A code is not a
 * permission: whoever guesses one has one. With a `check` of n symbols, one guess in radixⁿ is a
 * code. Its properties are frozen.
 *
 * @example
 * const codes = new Codes('dffd6021bb2bd5b0af676290809ec3a5', 'orders')
 * codes.encode(1) // '86483743'
 * codes.decode('86483743') // 1n
 */
export class Codes {
  /**
   * @param secret 16 bytes, or 32 hex digits in either case.
   * @param label the purpose, such as `vouchers`: another label is another key.
   * @param options `length`: the number of symbols, 4 to 24, 8 unless set; there must be at least a
   *   million texts of it. `alphabet`: `digits` unless set, `crockford`, `letters` (A to Z without
   *   vowels and Y), or 10 to 62 ASCII letters and digits of your own. `check`: how many of the
   *   symbols are a check, 0 unless set, fewer than the length.
   * @throws {RandflakeError} `INVALID_SECRET`, `INVALID_ARGUMENT`
   */
  constructor(
    secret: Uint8Array | string,
    label: string,
    options?: {
      readonly length?: number | undefined
      readonly alphabet?: string | undefined
      readonly check?: number | undefined
    },
  )

  /** The number of symbols of each code. */
  readonly length: number
  /** The symbols, in the order of their values. */
  readonly alphabet: string
  /** How many of the symbols are a check. */
  readonly check: number
  /** How many numbers have codes: those from 0 to one less, at most 2^64. */
  readonly capacity: bigint
  /** A regular expression of what {@link decode} reads, but for the check. */
  readonly pattern: string

  /**
   * Returns the code of a number.
   *
   * @param number an integer from 0 to {@link capacity} - 1.
   * @throws {RandflakeError} `INVALID_ID`
   */
  encode(number: bigint | number): string

  /**
   * Returns the number of a code. Either case is read, unless the alphabet has both; `crockford`
   * reads O as 0, and I and L as 1.
   *
   * @throws {RandflakeError} `INVALID_ID` for another length or symbol, and for a wrong check.
   */
  decode(code: string): bigint

  /**
   * Returns the codes of many numbers; see {@link encode}.
   *
   * @throws {RandflakeError} `INVALID_ID`, with the index; `INVALID_ARGUMENT` for anything that is
   *   not an array.
   */
  encodeMany(numbers: readonly (bigint | number)[]): string[]

  /**
   * Returns the numbers of many codes; see {@link decode}.
   *
   * @throws {RandflakeError} as {@link encodeMany}.
   */
  decodeMany(codes: readonly string[]): bigint[]
}

/** Options of a {@link ServedGenerator}. */
export interface ServedOptions {
  /** The token of the service, if it has one: 1 or more visible ASCII characters. */
  readonly token?: string | undefined
  /**
   * How many ids a request takes, 1 to 100000, 1000 unless set; at most the `--max-count` of the
   * service. When half are used, the next are fetched ahead; 1 fetches none ahead.
   */
  readonly batch?: number | undefined
  /** How long one request may take, 1 to 2147483647 ms, 10000 unless set. */
  readonly timeoutMs?: number | undefined
  /** Makes requests; the `fetch` of the runtime unless set. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Options of a call that may have to wait. */
export interface WaitOptions {
  /** Ends the wait: the call then rejects with the signal's `reason`. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Takes ids in batches from `randflake serve`, where no generator can run. It needs no secret.
 *
 * Each id is handed out once, however many calls wait: an answer that was not read whole is dropped,
 * and so are ids of a call that was aborted. An id has the time at which the service made it, which
 * may be long before it is handed out.
 *
 * @example
 * const flake = new ServedGenerator('https://ids.internal', { token: process.env.RANDFLAKE_SERVE_TOKEN })
 * const id = await flake.generate()
 */
export class ServedGenerator {
  /**
   * Makes no request yet.
   *
   * @param url where the service is, http or https, perhaps with a path, and without user, password,
   *   query and fragment.
   * @throws {RandflakeError} `INVALID_ARGUMENT`
   */
  constructor(url: URL | string, options?: ServedOptions)

  /**
   * Returns an id: a signed 64-bit bigint, or from a service with a layout the unsigned one of that
   * layout.
   *
   * A request whose connection breaks is repeated once. Other calls that wait for the same request
   * get the same error; the next call asks again.
   *
   * @throws {RandflakeError} with the code of the service, and its `retryAfterMs`;
   *   `STORE_UNAVAILABLE` if the service cannot be reached, answers too late, with a redirect, or
   *   something other than ids; `INVALID_ARGUMENT`. Or the `reason` of the signal.
   */
  generate(options?: WaitOptions): Promise<bigint>

  /**
   * Returns an id as text; see {@link encodeString}. For a service without a layout, whose ids are
   * encrypted: the text of a sortable id hides nothing.
   *
   * @throws {RandflakeError} as {@link generate}.
   */
  generateString(options?: WaitOptions): Promise<string>

  /**
   * Returns so many ids, or none.
   *
   * @param count an integer, at least 0; more than a batch take several requests, one after the
   *   other.
   * @throws {RandflakeError} as {@link generate}.
   */
  generateMany(count: number, options?: WaitOptions): Promise<bigint[]>
}
