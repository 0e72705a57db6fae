// What browsers and edge runtimes can have of `randflake`: WebAssembly of the same core, and ids from
// `randflake serve`. There are no leases, and so no generators of its own.
//
// A secret in a browser is for tools of operators, never for visitors: whoever has it reads the time
// of every id, and makes ids.

import type { RandflakeErrorCode } from './types/errors.js'

export { type Coding, decodeString, encodeString, type Hiding, TextForm } from './text.js'
export type { RandflakeErrorCode } from './types/errors.js'
export {
  Cloak,
  Codes,
  type CodesOptions,
  Inspector,
  type Parts,
  type PartsColumns,
} from './types/ids.js'
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
 * and so are ids of a call that was aborted. It cannot see that a process was copied with its memory,
 * as by a fork or a snapshot: make it after that. An id has the time at which the service made it,
 * which may be long before it is handed out.
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
