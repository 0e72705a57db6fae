/// <reference lib="esnext.disposable" />

import type { RandflakeError, RandflakeErrorCode } from './errors.js'
import type { NumberGenerator } from './generators.js'
import type { InitMode, StoreClient } from './stores.js'

/**
 * Hands out 1, 2, 3 and so on, from a named counter of a store, each number once.
 *
 * {@link Tickets.leased} or {@link Tickets.lazy} makes one; there is no constructor, since numbers
 * come only from a store.
 *
 * It draws a block of numbers from the counter, hands them out without the store, and draws the next
 * block on a thread before they are used up. The numbers of one object rise. Several processes, and
 * several workers, draw blocks of their own, so their numbers interleave. A clean end gives back
 * what is left; a process that is killed loses at most `maxBlock` numbers. Only if a process is
 * copied while it runs do both copies have the same numbers, for a minute.
 *
 * Sequential numbers tell outsiders how many there are, and they can be guessed; {@link Cloak}
 * hides them.
 */
export class Tickets extends NumberGenerator {
  /** Only the fake of `randflake/testing` can call it. */
  protected constructor()

  /**
   * Draws the first block of a counter, and resolves to the object that hands out its numbers.
   *
   * {@link initTickets} makes a namespace of tickets once; a counter is made with its first number.
   * In a new namespace each counter begins at its start: if a store was lost, every number would
   * come a second time.
   *
   * The remaining numbers are given back, on a thread, when the process or the worker ends as
   * described in {@link Randflake.leased}. Where the store is a server, whose client runs on this
   * thread, nothing is given back at an exit: `await using`, or `await tickets.closeAsync()`, does
   * that before.
   *
   * @param store the path of a SQLite file, its `file:` URL, or a server, as for
   *   {@link Randflake.leased}. If it is undefined, `RANDFLAKE_STORE` of `process.env`.
   * @param name the name of the counter, 1 to 200 bytes without spaces and control characters.
   * @throws {RandflakeError} as a rejection, always: `STORE_NOT_INITIALIZED` if there is no such
   *   namespace; `STORE_QUARANTINED` if the store may have lost blocks of the counter, see
   *   {@link fenceTickets}; `LIFETIME_OVER` if no number is left; `STORE_UNAVAILABLE` if there is no
   *   block within `acquireTimeoutMs`; `STORE_REPLACED`, `WEAK_STORE`, `DRIVER_MISSING`,
   *   `INVALID_ARGUMENT`; `CLOSED` if the process, or the worker, is ending.
   * @example
   * await initTickets('/var/lib/shop/ids.db', 'new') // once
   * await using invoices = await Tickets.leased('/var/lib/shop/ids.db', 'invoices')
   * const number = invoices.generate() // 1n, the first time
   */
  static leased(
    store: string | URL | StoreClient | undefined,
    name: string,
    options?: TicketsOptions,
  ): Promise<Tickets>

  /**
   * Makes an object that draws its first block with its first number. Until then it reads neither
   * the environment nor the store. For a module that is also loaded where nothing should be drawn,
   * as in a build.
   *
   * Where the store is a file, the first call waits for the block, up to `maxWaitMs`. It never does
   * where the store is a server, whose client runs on this thread: it throws `LEASE_UNAVAILABLE` with
   * `retryAfterMs` while the block is on its way. `await tickets.ready()` before the first number, and
   * {@link generateManyAsync}, wait without blocking.
   *
   * @param store as for {@link leased}; a relative path is relative to the current directory.
   * @throws {RandflakeError} `INVALID_ARGUMENT` for the name and the options at once. The first
   *   number throws what {@link leased} rejects with.
   * @example
   * const invoices = Tickets.lazy(undefined, 'invoices') // settings: RANDFLAKE_STORE
   * export const nextInvoice = () => invoices.generate()
   */
  static lazy(
    store: string | URL | StoreClient | undefined,
    name: string,
    options?: TicketsOptions,
  ): Tickets

  /**
   * Hands out a number: `start`, `start + step` and so on, up to 2 ** 53 - 1.
   *
   * @throws {RandflakeError} `LEASE_UNAVAILABLE` if the store gave no block within `maxWaitMs`, at
   *   once where it is a server, with `retryAfterMs` and, as `cause`, the error of the store.
   *   `LIFETIME_OVER`, `STORE_QUARANTINED`, `STORE_REPLACED`, `CLOSED`, which waiting does not help.
   */
  generate(): bigint

  /**
   * Hands out `n` numbers, which rise; there may be gaps between them. More than `maxBlock` come from
   * several blocks; where the store is a server, this many are refused with `INVALID_ARGUMENT`.
   *
   * @throws {RandflakeError} as {@link generate}; the numbers that it had taken are lost then.
   *   `INVALID_ARGUMENT` also where there is no memory. Where the store is a server it does not wait
   *   on this thread: {@link generateManyAsync} does, on another one.
   */
  generateMany(n: number): BigInt64Array

  /**
   * Like {@link generateMany}, but works and waits on another thread. A process or a worker that ends
   * does not wait for it.
   */
  generateManyAsync(n: number): Promise<BigInt64Array>

  /**
   * Fills an array with numbers, which rise; see {@link generateMany}. After an error it holds zeros.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` also for another kind of array, one over a
   *   `SharedArrayBuffer`, and one whose buffer was transferred.
   */
  fill(numbers: BigInt64Array): void

  /**
   * Resolves once a number is available, without blocking; keeps the process alive until then.
   * Another caller may take that number first. While the store is unreachable, it waits without
   * limit; for the first block, up to `acquireTimeoutMs`.
   *
   * @throws {RandflakeError} as {@link generate}, for errors that waiting does not help;
   *   `LEASE_UNAVAILABLE` if there is no first block in time.
   */
  ready(): Promise<void>

  /**
   * Ends it for good: no later call returns a number. Closing twice does nothing. Remaining numbers
   * are given back in the background.
   */
  close(): void
  /** See {@link close}. */
  [Symbol.dispose](): void
  /**
   * Closes, and resolves once the store has the remaining numbers back, or after 5 seconds without
   * an answer; in that case they are lost. `await using` does this.
   */
  closeAsync(): Promise<void>
  /** See {@link closeAsync}. Some test runners hide this symbol of Node 20. */
  [Symbol.asyncDispose](): Promise<void>

  /** The name of the counter. */
  get name(): string

  /**
   * What this object has done. Counting costs a number nothing. `randflake/prometheus` exports this
   * to Prometheus.
   */
  metrics(): TicketsMetrics

  /** What `JSON.stringify` shows. */
  toJSON(): { name: string }
}

/**
 * Hands out sequential numbers that begin anew with each day, month or year, as texts: the prefix, the
 * date, `-` and the number, such as `INV-20261125-000042`.
 *
 * Each date has a counter of its own in the store, such as `invoices/20261125`, so no text repeats,
 * whatever clocks show at the border. A process that has used a later date stays with it, even if
 * its clock steps back.
 *
 * It draws its first block with its first number, and at the border one of the next date. The unused
 * numbers of a date are given back when the next one begins. For the rest, numbers are drawn as by
 * {@link Tickets}, but always on another thread.
 */
export class DatedTickets {
  /**
   * @param store the path of a SQLite file, its `file:` URL, or a server, as for
   *   {@link Randflake.leased}. If it is undefined, `RANDFLAKE_STORE` of `process.env`.
   * @param name what the names of all counters begin with, 1 to 191 bytes without spaces and control
   *   characters.
   * @throws {RandflakeError} `INVALID_ARGUMENT`
   * @example
   * const invoices = new DatedTickets('/var/lib/shop/ids.db', 'invoices', {
   *   period: 'day',
   *   timeZone: 'Europe/Berlin',
   *   prefix: 'INV-',
   * })
   * const number = await invoices.generate() // 'INV-20261125-000001', the first of a day
   */
  constructor(
    store: string | URL | StoreClient | undefined,
    name: string,
    options: DatedTicketsOptions,
  )

  /**
   * Hands out a number with the date that the clock shows.
   *
   * @throws {RandflakeError} as {@link Tickets.generate} throws, as a rejection.
   */
  generate(): Promise<string>

  /**
   * Hands out `n` numbers of one date, which rise.
   *
   * @throws {RandflakeError} as {@link generate}; `INVALID_ARGUMENT`
   */
  generateMany(n: number): Promise<string[]>

  /** See {@link Tickets.close}. */
  close(): void
  /** See {@link close}. */
  [Symbol.dispose](): void
  /** See {@link Tickets.closeAsync}. */
  closeAsync(): Promise<void>
  /** See {@link closeAsync}. */
  [Symbol.asyncDispose](): Promise<void>

  /** What the names of all counters begin with. */
  get name(): string

  /** What `JSON.stringify` shows. */
  toJSON(): { name: string }
}

/** How {@link DatedTickets} are made. */
export interface DatedTicketsOptions extends TicketsOptions {
  /** After which time numbers begin anew. */
  period: 'day' | 'month' | 'year'
  /**
   * Whose midnight is the border: a name of the IANA database, such as `Europe/Berlin`; `UTC` unless
   * set.
   */
  timeZone?: string | undefined
  /** What texts begin with, at most 100 bytes without control characters; nothing unless set. */
  prefix?: string | undefined
  /**
   * To how many digits numbers are padded with zeros, 1 to 16; 6 unless set. Larger numbers have more,
   * and then texts are no longer in the order of their numbers.
   */
  digits?: number | undefined
}

/** How {@link Tickets} are made. */
export interface TicketsOptions {
  /** The part of the store; `tickets` unless set. It belongs to tickets: leases need another one. */
  namespace?: string | undefined
  /**
   * The first number of a new counter, a whole number from 1 to 2 ** 53 - 1; 1 unless set. An
   * existing counter must have this one.
   */
  start?: number | bigint | undefined
  /**
   * By how much numbers rise, 1 to 2 ** 53 - 1; 1 unless set. An existing counter must have this
   * one.
   */
  step?: number | bigint | undefined
  /**
   * For how many seconds, at the current rate, the numbers that this object holds should last, 0 to
   * 86400; 2 unless set. An outage of the store of less than half of that goes unnoticed, but of
   * half a minute at most: the store has to confirm each minute that they are still this object's.
   */
  reserveSeconds?: number | undefined
  /** The smallest number of numbers in a block, 1 to `maxBlock`; 10 unless set. */
  minBlock?: number | undefined
  /**
   * The most numbers that this object has drawn and not handed out, and so the most that are lost
   * when the process is killed; 1000000 unless set.
   */
  maxBlock?: number | undefined
  /**
   * Whether to make the namespace if it is missing, for tests; false unless set. Elsewhere
   * {@link initTickets} makes it: a lost store would start over, and hand out every number twice.
   */
  create?: boolean | undefined
  /** How long the first block may take, 0 to 86400000 ms; 10000 unless set. */
  acquireTimeoutMs?: number | undefined
  /**
   * How long a call may wait for a block, 0 to 86400000 ms; 1000 unless set. On this thread it
   * waits only where the store is a file.
   */
  maxWaitMs?: number | undefined
  /**
   * Whether to accept a server that may lose what it has acknowledged; false unless set. Not for
   * files.
   */
  allowWeakStore?: boolean | undefined
}

/** What {@link Tickets} have done. */
export interface TicketsMetrics {
  /**
   * How many numbers were handed out, including the few that calls on several threads dropped at
   * the end of a block.
   */
  readonly numbersGenerated: number
  /** How many numbers are drawn and not handed out: the numbers that a kill would lose. */
  readonly reserve: number
  /** How many blocks were drawn. */
  readonly blocksDrawn: number
  /** How many calls waited for a block. */
  readonly waits: number
  /** How many requests were made to the store. */
  readonly storeRequests: number
  /** How long these took in all, in seconds. */
  readonly storeRequestSeconds: number
  /** How many of them the store did not grant, by the code of the error. */
  readonly storeErrors: Readonly<Partial<Record<RandflakeErrorCode, number>>>
  /** The last of these errors; `null` if there was none. */
  readonly lastError: RandflakeError | null
}

/** Which namespace of a store is made for tickets. */
export interface InitTicketsOptions {
  /** Its name, 1 to 200 bytes; `tickets` unless set. */
  namespace?: string | undefined
  /** As in {@link TicketsOptions}; not for files. */
  allowWeakStore?: boolean | undefined
}

/**
 * Creates a namespace for tickets, and for PostgreSQL and MySQL its table, if it is missing. An
 * existing one stays as it is. Call this once, when the store is set up, and not with each start or
 * deploy: after a loss of the store, its counters would start over.
 *
 * @param store the path of a SQLite file, which is made if it is missing, or its `file:` URL, the URL
 *   of a server, or a {@link StoreClient}.
 * @param mode `new` if the store has never had it; `quarantine` if it may have had it and lost it:
 *   each counter must then be fenced, by {@link fenceTickets}, before a number is drawn.
 * @throws {RandflakeError} as a rejection, always: `STORE_UNAVAILABLE`, `WEAK_STORE`,
 *   `DRIVER_MISSING`, `INVALID_ARGUMENT`, also if the namespace is for leases.
 * @example
 * await initTickets('postgresql://app@localhost/app', 'new')
 */
export function initTickets(
  store: string | URL | StoreClient,
  mode: InitMode,
  options?: InitTicketsOptions,
): Promise<void>

/** Which namespace of a store has a counter. */
export interface ShowTicketsOptions {
  /** Its name, 1 to 200 bytes; `tickets` unless set. */
  namespace?: string | undefined
  /** As in {@link TicketsOptions}; not for files. */
  allowWeakStore?: boolean | undefined
}

/** Which counter is fenced. */
export interface FenceTicketsOptions extends ShowTicketsOptions {
  /** As in {@link TicketsOptions}, for a counter that the store may not have. */
  start?: number | bigint | undefined
  /** As `start`. */
  step?: number | bigint | undefined
}

/** What a store knows of a counter. */
export interface CounterStatus {
  /** Its name. */
  readonly name: string
  /** Its first number. */
  readonly start: bigint
  /** The difference from one number to the next. */
  readonly step: bigint
  /** The first number that was never drawn; `null` if all up to 2 ** 53 - 1 were. */
  readonly next: bigint | null
  /** How many smaller numbers were given back, and will be drawn again. */
  readonly givenBack: number
  /** How many blocks may still be given back. */
  readonly blocks: number
  /** Whether numbers are refused with `STORE_QUARANTINED`: the store may have lost blocks. */
  readonly mustBeFenced: boolean
}

/**
 * Raises a counter, or makes it, so that every number that is drawn from now on is larger than
 * `above`. A counter that is refused with `STORE_QUARANTINED`, as after a restart without data or a
 * failover, can then be drawn from again. A restored backup, as of a file, can look as if nothing
 * had happened: before anything starts, fence the namespace ({@link fenceStore} with
 * `namespace: 'tickets'`, or `randflake lease fence --namespace tickets`), then each counter.
 *
 * Before that, stop every process that draws from it: one that still runs holds numbers that the
 * store may have forgotten, and continues to hand them out. By calling this you state that none
 * runs, and that no number above `above` was ever handed out. Otherwise numbers will repeat.
 *
 * @param store as in {@link initTickets}, with its errors.
 * @param name the name of the counter.
 * @param above 0 to 2 ** 53 - 1. A counter never falls: one that is already higher stays there.
 * @throws {RandflakeError} as a rejection, always: `STORE_NOT_INITIALIZED` if there is no such
 *   namespace; `STORE_QUARANTINED`, with `retryAfterMs`, while numbers may still be drawn from a
 *   former Redis master.
 * @returns the counter as it is now.
 * @example
 * const { next } = await fenceTickets('/var/lib/shop/ids.db', 'orders', 48_300n)
 */
export function fenceTickets(
  store: string | URL | StoreClient,
  name: string,
  above: number | bigint,
  options?: FenceTicketsOptions,
): Promise<CounterStatus>

/**
 * Returns what a store knows of each counter, sorted by name, without changing anything. Fetches a
 * hundred counters at a time from a server.
 *
 * @param store as in {@link initTickets}, with its errors.
 * @throws {RandflakeError} as a rejection, always: `STORE_NOT_INITIALIZED` if there is no such
 *   namespace.
 * @example
 * for (const { name, next } of await listTickets('/var/lib/shop/ids.db')) console.log(name, next)
 */
export function listTickets(
  store: string | URL | StoreClient,
  options?: ShowTicketsOptions,
): Promise<readonly CounterStatus[]>

/**
 * Returns what a store knows of a counter, without changing it; `null` if it is missing. The first
 * number, or the first fence, makes it.
 *
 * @param store as in {@link initTickets}, with its errors.
 * @param name the name of the counter.
 * @throws {RandflakeError} as a rejection, always: `STORE_NOT_INITIALIZED` if there is no such
 *   namespace.
 * @example
 * const orders = await showTickets('/var/lib/shop/ids.db', 'orders')
 * if (orders?.mustBeFenced) console.log('fence it')
 */
export function showTickets(
  store: string | URL | StoreClient,
  name: string,
  options?: ShowTicketsOptions,
): Promise<CounterStatus | null>
