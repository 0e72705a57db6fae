//! `randflake lease doctor`.

use std::{io, sync::Arc};

use randflake::bindings;
use randflake::{Clock as _, SystemClock};
use randflake_leases::{
    Finding, LeaseStore, Namespace, Result, Verdict,
    environment::{Environment, LAYOUT},
    operator::{self, Listed},
};
use serde::Serialize;

use super::{faults, variables};
use crate::{
    Failure, OpenServer,
    output::{Style, print, print_json},
    store::StoreArguments,
};

/// A store that takes longer, in milliseconds, is slow: clients give up after 3 seconds.
const SLOW_MS: i64 = 1000;
/// Columns of text next to verdict and subject.
const TEXT_COLUMNS: usize = 58;

/// Examines a store: what is wrong, and what to do
#[derive(clap::Args)]
#[command(after_help = "\
Looks at the environment, how fast the store answers, server or file,
persistence, replicas, permissions, the namespace, clocks, ends, quarantine, the
secret if the environment has one, and, with --namespace tickets, the counters.
Writes nothing. Run it on the machine and as the user of the service. Each
finding is ok, a note, or wrong. Exit code 0, or 1 if something is wrong.

--json prints one object: ok, and findings, each with subject, verdict and text.

Examples:
  randflake lease doctor --store ids.db
  randflake lease doctor --store ids.db --json")]
pub(crate) struct Doctor {
    #[command(flatten)]
    store: StoreArguments,

    /// Prints JSON instead of lines
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(&self, open_server: Arc<OpenServer>) -> Result<(), Failure> {
        let mut findings = variables::examine(&self.store);
        match self.store.open(Arc::clone(&open_server)) {
            Ok(mut store) => {
                let listed = examine(&mut *store, &mut findings)?;
                if let Some(listed) = listed {
                    findings.extend(Self::compare_layouts(&listed));
                    findings.extend(if listed.has_counters() {
                        self.counters(&listed, open_server)
                    } else {
                        self.compare_secrets(&listed, open_server)
                    });
                }
            }
            Err(Failure::Error(error)) => findings.push(failed("store", &error)),
            Err(other) => return Err(other),
        }
        let is_well = findings.iter().all(|finding| finding.verdict != Verdict::Wrong);
        if self.json {
            let findings = findings.iter().map(finding_json).collect();
            print_json(&FindingsJson { ok: is_well, findings })?;
        } else {
            print(&findings.iter().map(lines).collect::<String>().trim_end())?;
        }
        if is_well { Ok(()) } else { Err(Failure::Reported) }
    }
}

impl Doctor {
    /// Finds out whether the secret in the environment, if any, belongs to the namespace.
    fn compare_secrets(&self, listed: &Listed, open_server: Arc<OpenServer>) -> Option<Finding> {
        let secret = Environment::default().secret().ok()?;
        let own = Namespace::new(&self.store.namespace, &secret).ok()?;
        if own.layout() != listed.layout {
            return None; // it has no secret
        }
        let mut store = self.store.open_with_secret(&secret, open_server).ok()?;
        Some(match operator::inspect(&mut *store, 0) {
            Ok(_) => {
                Finding::fine("secret", "the secret in the environment is that of the namespace")
            }
            Err(error) => failed("secret", &error),
        })
    }

    /// Finds out whether the layout in the environment, if any, is that of the namespace.
    fn compare_layouts(listed: &Listed) -> Option<Finding> {
        if listed.has_counters() {
            return None; // it has no layout
        }
        let layout = Environment::default().layout().ok()??;
        if layout.fingerprint() == listed.layout {
            return Some(Finding::fine("layout", format!("{LAYOUT} is that of the namespace")));
        }
        Some(Finding::wrong(
            "layout",
            format!(
                "{LAYOUT} is {layout}, and the namespace has {}: name another namespace, or correct \
                 the layout",
                bindings::layout_of_fingerprint(&listed.layout)
                    .map_or_else(|| listed.layout.clone(), |layout| layout.to_string())
            ),
        ))
    }

    /// Finds out which counters cannot be drawn from. `None` if looking would fence the namespace.
    fn counters(&self, listed: &Listed, open_server: Arc<OpenServer>) -> Option<Finding> {
        if listed.incarnation_changed {
            return None;
        }
        let mut store = self.store.open_tickets(open_server).ok()?;
        Some(match randflake_tickets::operator::list_tickets(&mut *store) {
            Err(error) => failed("counters", &error),
            Ok(counters) => {
                let refused = counters.iter().filter(|counter| counter.must_be_fenced);
                match (counters.len(), refused.clone().count(), refused.clone().next()) {
                    (all, count, Some(first)) => Finding::wrong(
                        "counters",
                        format!(
                            "the store may have lost blocks of {count} of {all} counters, such as \
                             {:?}: nothing is drawn from them until `randflake tickets fence` has \
                             raised each; `randflake tickets list` lists them",
                            first.name
                        ),
                    ),
                    (all, ..) => Finding::fine(
                        "counters",
                        format!("{all} in all, and none has to be fenced"),
                    ),
                }
            }
        })
    }
}

/// Examines a store, and returns its listing, if it gives one.
fn examine(store: &mut dyn LeaseStore, findings: &mut Vec<Finding>) -> Result<Option<Listed>> {
    let begun = SystemClock.now()?;
    let examined = match store.examine() {
        Ok(examined) => examined,
        Err(error) => {
            findings.push(failed("reach", &error));
            return Ok(None);
        }
    };
    let before = SystemClock.unix_seconds()?;
    let listed = operator::list(store);
    let after = SystemClock.unix_seconds()?;
    findings.push(reach(&store.name(), SystemClock.now()? - begun));
    findings.extend(examined);
    match listed {
        Err(error) => {
            findings.push(failed("namespace", &error));
            Ok(None)
        }
        Ok(listed) => {
            findings.push(namespace(&listed));
            findings.push(clocks(&listed, before, after));
            let faults = faults::of(&listed);
            if faults.is_empty() && !listed.has_counters() {
                findings.push(Finding::fine(
                    "ends",
                    "no end is implausible, and there is no quarantine",
                ));
            }
            findings.extend(faults);
            findings.extend(faults::history(&listed).map(|text| Finding::note("history", text)));
            Ok(Some(listed))
        }
    }
}

fn failed(subject: &'static str, error: &randflake::Error) -> Finding {
    Finding::wrong(subject, format!("{}: {error}", error.code()))
}

fn reach(place: &str, nanoseconds: i64) -> Finding {
    let milliseconds = nanoseconds / 1_000_000;
    let text = format!("asking {place} took {milliseconds} ms");
    if milliseconds > SLOW_MS {
        return Finding::note(
            "reach",
            format!("{text}, which is slow: clients wait 3 seconds for an answer"),
        );
    }
    Finding::fine("reach", text)
}

fn namespace(listed: &Listed) -> Finding {
    if listed.has_counters() {
        let text = format!("it is for counters, and has no node ids; format {}", listed.format);
        return Finding::fine("namespace", text);
    }
    let (counts, limits) = (listed.counts(), listed.limits);
    let text = format!(
        "{} node ids: {} held, headroom {}; leases of at most {} s, layout {}, format {}",
        counts.all, counts.held, counts.free, limits.max_ttl, listed.layout, listed.format
    );
    if counts.free == 0 {
        return Finding::wrong(
            "namespace",
            format!(
                "{text}; all node ids are leased: wait, or find out which processes are killed so \
                 often"
            ),
        );
    }
    Finding::fine("namespace", text)
}

/// Compares the store's clock with this machine's, read before and after its answer.
fn clocks(listed: &Listed, before: i64, after: i64) -> Finding {
    let max_skew = listed.limits.max_skew;
    if !listed.has_clock {
        return Finding::note(
            "clocks",
            "the answers of etcd have no date, so its clock cannot be compared with this \
             machine's; fence, repair and release are refused",
        );
    }
    let (ahead, behind) = (listed.now.saturating_sub(after), before.saturating_sub(listed.now));
    let apart = ahead.max(behind).max(0);
    if apart == 0 {
        let text = format!("the store's and this machine's agree; they may differ by {max_skew} s");
        return Finding::fine("clocks", text);
    }
    let which = if ahead > 0 { "ahead of" } else { "behind" };
    let text =
        format!("the store's is {apart} s {which} this machine's; they may differ by {max_skew} s");
    if apart > i64::from(max_skew) {
        let advice = "requests fail with CLOCK_SKEW: correct the wrong one";
        return Finding::wrong("clocks", format!("{text}; {advice}"));
    }
    Finding::note("clocks", format!("{text}; let both follow a time server"))
}

/// What is found, as JSON.
#[derive(Serialize)]
struct FindingsJson<'a> {
    ok: bool,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    subject: &'a str,
    verdict: &'a str,
    text: &'a str,
}

fn finding_json(finding: &Finding) -> FindingJson<'_> {
    let Finding { subject, verdict, text } = finding;
    FindingJson { subject, verdict: verdict.name(), text }
}

/// Returns a finding as lines for a terminal.
fn lines(finding: &Finding) -> String {
    let mut lines = vec![String::new()];
    for word in bindings::one_line(&finding.text).split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= TEXT_COLUMNS {
            *line += " ";
            *line += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    let verdict = format!("{:5}", finding.verdict.name());
    let verdict = match finding.verdict {
        Verdict::Wrong => Style::RED.paint(&verdict, &io::stdout()),
        Verdict::Fine | Verdict::Note => verdict,
    };
    let text = lines.join(&format!("\n{:22}", ""));
    format!("{verdict}  {:13}  {text}\n", finding.subject)
}
