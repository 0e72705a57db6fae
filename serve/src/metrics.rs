//! The metrics for Prometheus, under the names that the packages for Python and Node.js use.

use std::fmt::{self, Write as _};

use randflake::layout;
use randflake_leases::LeaseStatus;
use randflake_tickets::TicketsMetrics;

use super::service::Service;

/// More bytes than all metrics take: five families have a line for each counter, whose name has up
/// to 200 bytes, any of which may be escaped.
pub(super) const LONGEST: usize = 512 << 10;

type NumberOf = fn(&TicketsMetrics) -> u64;

/// The families of metrics, one after another.
struct Text<'a> {
    text: String,
    generator: &'a str,
}

impl Text<'_> {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, label: Option<(&str, &str)>, number: impl fmt::Display) {
        let generator = self.generator;
        let _ = write!(self.text, "{name}{{generator=\"{generator}\"");
        if let Some((label, value)) = label {
            let _ = write!(self.text, ",{label}=\"{value}\"");
        }
        let _ = writeln!(self.text, "}} {number}");
    }

    fn tickets(&mut self, counters: &[(String, TicketsMetrics)]) {
        let families: [(_, _, _, NumberOf); 4] = [
            (
                "randflake_tickets_issued_total",
                "counter",
                "Numbers that were handed out.",
                |metrics| metrics.numbers_generated,
            ),
            (
                "randflake_tickets_blocks_total",
                "counter",
                "Blocks of numbers that were drawn.",
                |metrics| metrics.blocks_drawn,
            ),
            (
                "randflake_tickets_waits_total",
                "counter",
                "Calls that waited for a block.",
                |metrics| metrics.waits,
            ),
            (
                "randflake_tickets_reserve",
                "gauge",
                "Numbers that are drawn but not yet handed out.",
                |metrics| metrics.reserve,
            ),
        ];
        for (name, kind, help, number) in families {
            self.family(name, kind, help);
            for (counter, metrics) in counters {
                let (counter, number) = (escaped(counter), number(metrics));
                let _ = writeln!(self.text, "{name}{{counter=\"{counter}\"}} {number}");
            }
        }
        let name = "randflake_tickets_store_errors_total";
        self.family(name, "counter", "Requests for blocks that failed, by code.");
        for (counter, metrics) in counters {
            for (kind, count) in &metrics.store_errors {
                let (counter, code) = (escaped(counter), kind.code());
                let _ =
                    writeln!(self.text, "{name}{{counter=\"{counter}\",code=\"{code}\"}} {count}");
            }
        }
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, number: Option<impl fmt::Display>) {
        self.family(name, kind, help);
        if let Some(number) = number {
            self.sample(name, None, number);
        }
    }
}

/// Returns a text without line ends as the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Writes the metrics of this process.
pub(super) fn text(service: &Service) -> String {
    let (metrics, lease) = (service.flake.metrics(), service.flake.lease());
    let generator = escaped(&service.namespace);
    let mut text = Text { text: String::with_capacity(4096), generator: &generator };
    let of = |number: fn(&LeaseStatus) -> u64| lease.as_ref().map(number);

    text.one(
        "randflake_ids_generated_total",
        "counter",
        "Ids that were claimed.",
        Some(metrics.ids_generated),
    );
    let name = "randflake_waits_total";
    text.family(name, "counter", "Calls that waited, by the code of what they waited for.");
    for (reason, count) in service.counts.waits() {
        text.sample(name, Some(("reason", reason.code())), count);
    }
    text.one(
        "randflake_lease_remaining_seconds",
        "gauge",
        "Time to the end of the lease.",
        lease.as_ref().map(|lease| lease.time_left.as_secs_f64()),
    );
    text.one(
        "randflake_lease_renewals_total",
        "counter",
        "Renewals that the store has granted.",
        of(|lease| lease.renewals),
    );
    text.one(
        "randflake_lease_losses_total",
        "counter",
        "Node ids that another process leased too early.",
        of(|lease| lease.losses),
    );
    text.one(
        "randflake_lease_replacements_total",
        "counter",
        "Times that other node ids replaced lost ones.",
        of(|lease| lease.replacements),
    );
    let name = "randflake_store_errors_total";
    text.family(name, "counter", "Requests that the store did not grant, by code.");
    for (kind, count) in &metrics.store_errors {
        text.sample(name, Some(("code", kind.code())), count);
    }
    let name = "randflake_store_request_duration_seconds";
    text.family(name, "summary", "How long requests to the store took.");
    text.sample(&format!("{name}_sum"), None, metrics.store_request_seconds);
    text.sample(&format!("{name}_count"), None, metrics.store_requests);
    text.one(
        "randflake_clock_skew_seconds",
        "gauge",
        "The store's clock minus this machine's.",
        metrics.clock_skew_seconds,
    );
    text.one(
        "randflake_layout_end_timestamp_seconds",
        "gauge",
        "The unix second in which ids end.",
        Some(service.flake.layout_of_ids().map_or(layout::LIFETIME_END, |it| it.ends_at() / 1000)),
    );
    text.tickets(&service.tickets.metrics());
    let name = "randflake_http_requests_total";
    text.family(name, "counter", "Requests that were answered, by status.");
    for (status, count) in service.counts.answers() {
        if count > 0 {
            text.sample(name, Some(("status", &status.to_string())), count);
        }
    }
    text.one(
        "randflake_http_connections",
        "gauge",
        "Connections that are open.",
        Some(service.places.count()),
    );
    let name = "randflake_build_info";
    text.family(name, "gauge", "The version of the command.");
    let _ = writeln!(text.text, "{name}{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    text.text
}
