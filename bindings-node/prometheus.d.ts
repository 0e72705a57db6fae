// The numbers of generators for Prometheus, by prom-client. Needs `prom-client` 14 or later.

import type { Registry } from 'prom-client'
import type { Randflake, Snowflake } from './types/generators.js'

/**
 * Registers metrics of generators. They are read when Prometheus asks, and cost nothing until then.
 * Each has the label `generator`: `default`, or the name of each in an object.
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
 *
 * Call it once for a registry, with all generators: prom-client refuses a second metric of a name.
 * Those of a lease are there while it is held, or tried to be.
 *
 * @param options `register`: a registry of prom-client; its own default one unless set.
 * @throws {RandflakeError} `INVALID_ARGUMENT` for what is no generator.
 * @example
 * const orders = await Randflake.leased('/var/lib/shop/ids.db', secret)
 * collect({ orders })
 * app.get('/metrics', async (_request, response) => response.send(await register.metrics()))
 */
export function collect(
  flakes: Randflake | Snowflake | Readonly<Record<string, Randflake | Snowflake>>,
  options?: { readonly register?: Registry | undefined },
): void
