// Generator metrics for Prometheus, through prom-client. Needs `prom-client` 14 or later.

import type { Registry } from 'prom-client'
import type { Randflake, Snowflake } from './types/generators.js'
import type { Tickets } from './types/tickets.js'

/** What has metrics. */
type Collected = Randflake | Snowflake | Tickets

/**
 * Registers metrics of generators and of tickets. They are read when Prometheus scrapes, and cost
 * nothing until then. Metrics of generators have the label `generator`: `default`, or the name of
 * each in an object. Metrics of {@link Tickets} have the label `counter`: their own name, or the
 * name in the object.
 *
 * | name | type |
 * |---|---|
 * | `randflake_ids_generated_total` | counter |
 * | `randflake_waits_total{reason}` | counter |
 * | `randflake_lease_remaining_seconds` | gauge |
 * | `randflake_lease_renewals_total` | counter |
 * | `randflake_lease_losses_total` | counter |
 * | `randflake_lease_replacements_total` | counter |
 * | `randflake_store_errors_total{code}` | counter |
 * | `randflake_store_request_duration_seconds` | summary: sum and count |
 * | `randflake_clock_skew_seconds` | gauge |
 * | `randflake_layout_end_timestamp_seconds` | gauge |
 * | `randflake_build_info{version}` | gauge |
 * | `randflake_tickets_issued_total` | counter |
 * | `randflake_tickets_blocks_total` | counter |
 * | `randflake_tickets_waits_total` | counter |
 * | `randflake_tickets_reserve` | gauge |
 * | `randflake_tickets_store_errors_total{code}` | counter |
 *
 * Generator metrics appear if a generator is given, ticket metrics if tickets are. Call it once for
 * a registry, with all generators: prom-client refuses a second metric of a name. Lease metrics
 * appear while a lease is held or being acquired.
 *
 * @param options `register`: a registry of prom-client; its own default one unless set.
 * @throws {RandflakeError} `INVALID_ARGUMENT` for anything else.
 * @example
 * const orders = await Randflake.leased('/var/lib/shop/ids.db', secret)
 * collect({ orders })
 * app.get('/metrics', async (_request, response) => response.send(await register.metrics()))
 */
export function collect(
  flakes: Collected | Readonly<Record<string, Collected>>,
  options?: { readonly register?: Registry | undefined },
): void
