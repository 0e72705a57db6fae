// Generators, and sequential numbers, for the tests of programs that lease. Never for production.

import type { RandflakeErrorCode } from './types/errors.js'
import {
  type Clock,
  type LeaseOptions,
  type LeaseStatus,
  Randflake,
  Snowflake,
  type SnowflakeLeaseOptions,
  type SnowflakeOptions,
} from './types/generators.js'
import { Tickets, type TicketsMetrics, type TicketsOptions } from './types/tickets.js'

/** What a test sets of a {@link FakeRandflake} or a {@link FakeSnowflake}. */
export interface Fake {
  /**
   * The time that its clock shows, in unix milliseconds. Unless a clock was given, set it to a
   * `Date` or to unix milliseconds.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` if a clock was given.
   */
  get time(): number
  set time(time: Date | number)

  /**
   * Sets the clock forward.
   *
   * @throws {RandflakeError} `INVALID_ARGUMENT` if a clock was given.
   */
  advance(ms: number): void

  /**
   * Makes the next call that would generate ids throw, or the next `times` calls.
   *
   * @param code `LEASE_UNAVAILABLE` (with the error of a store as its `cause`), `SEQUENCE_EXHAUSTED`,
   *   `CLOCK_MOVED_BACK` or `LEASE_NOT_STARTED`, with `retryAfterMs`, 1000 unless set; or an error
   *   that waiting does not help.
   * @throws {RandflakeError} `INVALID_ARGUMENT` for a code that no call throws.
   * @example
   * const flake = new FakeRandflake()
   * flake.failNext('LEASE_UNAVAILABLE', { retryAfterMs: 2000 })
   */
  failNext(code: FakeFailure, options?: { retryAfterMs?: number; times?: number }): void

  /**
   * Makes the store grant nothing from now on: the lease is `retrying` until its end, then
   * `expired`, and calls throw `LEASE_UNAVAILABLE`. Advance the clock to get there.
   *
   * @param code the code of the store's error; `STORE_UNAVAILABLE` unless set.
   */
  breakStore(code?: RandflakeErrorCode): void

  /** Lets the store grant leases again, at once. */
  mendStore(): void
}

/** The errors with which a call that generates ids can fail. */
export type FakeFailure = Extract<
  RandflakeErrorCode,
  | 'LEASE_UNAVAILABLE'
  | 'SEQUENCE_EXHAUSTED'
  | 'CLOCK_MOVED_BACK'
  | 'LEASE_NOT_STARTED'
  | 'LIFETIME_OVER'
  | 'CLOCK_BEFORE_EPOCH'
  | 'FORKED'
  | 'CLOSED'
  | 'INTERNAL'
>

/** How a fake is made. */
export interface FakeOptions {
  /**
   * What its clock shows first, a `Date` or unix milliseconds; 2025-11-20T12:00:00Z unless set. The
   * clock stands still; where a call would wait, it advances by that much at once.
   */
  start?: Date | number | undefined
  /**
   * By how many milliseconds the clock advances after each call that has generated ids; 0 unless
   * set.
   */
  tickMs?: number | undefined
  /**
   * Another clock instead, as in the constructor of {@link Randflake}, such as
   * `() => (Date.now() + 0.5) / 1000` under the fake timers of jest and vitest.
   */
  clock?: Clock | undefined
  /** The node id, or several; 1 unless set. */
  nodeId?: number | readonly number[] | undefined
  /** The length of a lease in whole seconds; 300 unless set. */
  ttlSeconds?: number | undefined
  /** What the status of the lease says; `default` unless set. */
  namespace?: string | undefined
  /** As in {@link LeaseOptions}. */
  maxWaitMs?: number | undefined
  /** As in {@link LeaseOptions}. */
  maxDriftSeconds?: number | undefined
}

/** How a {@link FakeRandflake} is made. */
export interface FakeRandflakeOptions extends FakeOptions {
  /** 16 bytes, or 32 hex digits; never one that is used elsewhere. A published one unless set. */
  secret?: Uint8Array | string | undefined
}

/** How a {@link FakeSnowflake} is made. */
export interface FakeSnowflakeOptions extends FakeOptions {
  /** How ids are laid out; `twitter` unless set. */
  layout?: SnowflakeOptions['layout']
}

/**
 * Replaces the result of `Randflake.leased` in a test: no store, and the same ids in each run.
 *
 * It is a {@link Randflake} whose clock and failures the test sets. Unless others are given, all of
 * them share one secret, node id and time, and make the same ids. So it is not for production:
 * where `NODE_ENV` is `production` the constructor throws `INVALID_ARGUMENT`.
 *
 * @example
 * const flake = new FakeRandflake({ tickMs: 500 })
 * flake.inspect(flake.generate()).date.toISOString() // '2025-11-20T12:00:00.000Z'
 */
export class FakeRandflake extends Randflake implements Fake {
  /** @throws {RandflakeError} as the constructor of {@link Randflake}. */
  constructor(options?: FakeRandflakeOptions)

  /**
   * Stands in for `Randflake.leased`: resolves to a fake with this secret. Ignores the store, and
   * options that mean nothing here.
   *
   * @example
   * jest.spyOn(Randflake, 'leased').mockImplementation(FakeRandflake.leased)
   */
  static leased(
    store?: unknown,
    secret?: Uint8Array | string,
    options?: LeaseOptions,
  ): Promise<FakeRandflake>

  /** Stands in for `Randflake.lazy`, but has a lease at once; see {@link FakeRandflake.leased}. */
  static lazy(store?: unknown, secret?: Uint8Array | string, options?: LeaseOptions): FakeRandflake

  /** How the lease is doing at this moment, frozen; `null` once closed. */
  get lease(): LeaseStatus | null
  get time(): number
  set time(time: Date | number)
  advance(ms: number): void
  failNext(code: FakeFailure, options?: { retryAfterMs?: number; times?: number }): void
  breakStore(code?: RandflakeErrorCode): void
  mendStore(): void
}

/**
 * Replaces the result of `Snowflake.leased` in a test; see {@link FakeRandflake}. A layout whose
 * sequence begins at random has other ids in each run.
 */
export class FakeSnowflake extends Snowflake implements Fake {
  /** @throws {RandflakeError} as the constructor of {@link Snowflake}. */
  constructor(options?: FakeSnowflakeOptions)

  /** Stands in for `Snowflake.leased`; see {@link FakeRandflake.leased}. */
  static leased(store?: unknown, options?: SnowflakeLeaseOptions): Promise<FakeSnowflake>

  /** Stands in for `Snowflake.lazy`; see {@link FakeRandflake.lazy}. */
  static lazy(store?: unknown, options?: SnowflakeLeaseOptions): FakeSnowflake

  /** How the lease is doing at this moment, frozen; `null` once closed. */
  get lease(): LeaseStatus | null
  get time(): number
  set time(time: Date | number)
  advance(ms: number): void
  failNext(code: FakeFailure, options?: { retryAfterMs?: number; times?: number }): void
  breakStore(code?: RandflakeErrorCode): void
  mendStore(): void
}

/** The errors with which a call that hands out numbers can fail. */
export type FakeTicketsFailure = Extract<
  RandflakeErrorCode,
  'LEASE_UNAVAILABLE' | 'LIFETIME_OVER' | 'FORKED' | 'CLOSED' | 'INTERNAL'
>

/** How a {@link FakeTickets} is made. */
export interface FakeTicketsOptions {
  /**
   * The first number, 1 to 2 ** 53 - 1; 1 unless set. With the last one the second call throws
   * `LIFETIME_OVER`.
   */
  start?: number | bigint | undefined
  /** The difference from one number to the next; 1 unless set. */
  step?: number | bigint | undefined
}

/**
 * Replaces the result of `Tickets.leased` in a test: no store, and the same numbers in each run.
 *
 * It is a {@link Tickets} whose failures the test sets. Each begins at its start, even if others of
 * the same name have handed out numbers. So it is not for production: where `NODE_ENV` is
 * `production` the constructor throws `INVALID_ARGUMENT`.
 *
 * @example
 * const orders = new FakeTickets('orders', { start: 7, step: 2 })
 * orders.generate() // 7n
 */
export class FakeTickets extends Tickets {
  /**
   * @param name its name, as that of the counter of a real one; `tickets` unless set.
   * @throws {RandflakeError} as {@link Tickets.leased}.
   */
  constructor(name?: string, options?: FakeTicketsOptions)

  /**
   * Stands in for `Tickets.leased`: resolves to a fake with this name, start and step. Ignores the
   * store, and options that mean nothing here.
   *
   * @example
   * jest.spyOn(Tickets, 'leased').mockImplementation(FakeTickets.leased)
   */
  static leased(store?: unknown, name?: string, options?: TicketsOptions): Promise<FakeTickets>

  /** Stands in for `Tickets.lazy`; see {@link FakeTickets.leased}. */
  static lazy(store?: unknown, name?: string, options?: TicketsOptions): FakeTickets

  /**
   * Makes the next call that would hand out numbers throw, or the next `times` calls.
   *
   * @param code `LEASE_UNAVAILABLE`, with the error of a store as its `cause` and with
   *   `retryAfterMs`, 1000 unless set; or an error that waiting does not help.
   * @throws {RandflakeError} `INVALID_ARGUMENT` for a code that no call throws.
   */
  failNext(code: FakeTicketsFailure, options?: { retryAfterMs?: number; times?: number }): void

  /**
   * Makes the store give no block from now on. Once the numbers that were drawn before are used up,
   * calls throw `LEASE_UNAVAILABLE`, with the error of the store as its `cause`; or that error
   * itself where waiting does not help, such as `STORE_QUARANTINED` for a counter that must be
   * fenced.
   *
   * @param code the code of the store's error; `STORE_UNAVAILABLE` unless set.
   * @param options `left`: how many numbers were drawn before; 0 unless set.
   * @example
   * const orders = new FakeTickets()
   * orders.breakStore('STORE_UNAVAILABLE', { left: 2 })
   */
  breakStore(code?: RandflakeErrorCode, options?: { left?: number }): void

  /** Lets the store give blocks again, at once. */
  mendStore(): void

  /** What it has done, as if each block had ten numbers. */
  metrics(): TicketsMetrics
}
