//! The settings that a server needs in order not to lose an acknowledged lease.

use std::fmt;

use crate::remote::{
    context::{ALLOW, Context},
    exchange::{Response, Statement, WaitForReplicas},
    step::{Seen, refused},
};
use randflake::{Error, ErrorKind, Result};

/// Settings of Redis that decide whether it keeps what it has acknowledged.
const SETTINGS: [&str; 5] =
    ["maxmemory-policy", "appendonly", "save", "min-replicas-to-write", "min-replicas-max-lag"];
/// Largest lag, in seconds, after which a master without replicas must stop.
const MAX_LAG: u32 = 10;
/// For this many seconds after a replica was promoted, the old master may still grant: the lag, one
/// second until it next checks its replicas, and one for rounded clocks. It is a constant because
/// the old master can no longer be asked for its settings.
pub(crate) const LAST_GRANT: u32 = MAX_LAG + 2;
/// How long replicas have to confirm a grant, in milliseconds. They take about one round trip.
const CONFIRM_TIMEOUT: u32 = 1000;

/// Refuses a server that may lose acknowledged writes, and returns how many replicas must confirm a
/// grant. `durability` is `master`, `master with replicas`, or another role.
pub(crate) async fn check_settings(context: &Context, durability: &str) -> Result<u32> {
    let has_replicas = match durability {
        "master" => false,
        "master with replicas" => true,
        _ => return Err(no_master(context).await),
    };
    let settings = RedisSettings::read(context).await?;
    if let Some(why) = settings.weaknesses(has_replicas).first() {
        return Err(context.weak(why));
    }
    settings.check_confirmation(context).await
}

/// The settings of a Redis, as it reports them.
pub(super) struct RedisSettings {
    policy: String,
    appendonly: String,
    save: String,
    min_replicas: u32,
    max_lag: u32,
}

impl RedisSettings {
    pub(super) async fn read(context: &Context) -> Result<Self> {
        let mut values: [String; SETTINGS.len()] = Default::default();
        for (setting, value) in SETTINGS.iter().zip(&mut values) {
            *value = read_setting(context, setting).await?;
        }
        let [policy, appendonly, save, min_replicas, max_lag] = values;
        Ok(Self {
            policy,
            appendonly,
            save,
            min_replicas: min_replicas.parse().unwrap_or(0),
            max_lag: max_lag.parse().unwrap_or(0),
        })
    }

    /// Returns every reason why a master may lose what it has acknowledged.
    pub(super) fn weaknesses(&self, has_replicas: bool) -> Vec<String> {
        let Self { policy, appendonly, save, min_replicas, max_lag } = self;
        let mut found = vec![];
        if policy != "noeviction" {
            found
                .push(format!("evicts keys: maxmemory-policy is {policy}, and must be noeviction"));
        }
        if appendonly != "yes" && save.is_empty() {
            found.push("does not persist to disk: appendonly is no, and save is empty".into());
        }
        if has_replicas && (*min_replicas == 0 || !(1..=MAX_LAG).contains(max_lag)) {
            found.push(format!(
                "has replicas and waits for none: min-replicas-to-write is {min_replicas} and must \
                 be at least 1, min-replicas-max-lag is {max_lag} and must be 1 to {MAX_LAG}"
            ));
        }
        found
    }

    /// Checks before the first grant that this client can wait for replicas, and is allowed to.
    /// Returns how many must confirm a grant.
    pub(super) async fn check_confirmation(&self, context: &Context) -> Result<u32> {
        if self.min_replicas == 0 {
            return Ok(0);
        }
        let wait =
            Some(WaitForReplicas { replicas: self.min_replicas, milliseconds: CONFIRM_TIMEOUT });
        match context.run(Statement { text: "TIME", parameters: vec![], wait }).await {
            Response::Confirmed { .. } => Ok(self.min_replicas),
            Response::Rows(_) => Err(unable_to_confirm()),
            Response::Refused { code, message } => Err(refused(context, &code, &message)),
        }
    }
}

impl fmt::Display for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, appendonly, save, .. } = self;
        write!(f, "appendonly is {appendonly}, save is {save:?}, maxmemory-policy is {policy}")
    }
}

async fn read_setting(context: &Context, setting: &str) -> Result<String> {
    let parameters = vec!["GET".into(), setting.into()];
    let response = context.run(Statement { text: "CONFIG", parameters, wait: None }).await;
    let row = match response {
        Response::Rows(rows) | Response::Confirmed { rows, .. } => {
            rows.into_iter().next().unwrap_or_default()
        }
        Response::Refused { code, message } => {
            return Err(context.weak(&format!(
                "refuses CONFIG GET {setting}, so this cannot be checked ({code}: {message})"
            )));
        }
    };
    let [Some(name), Some(found)] = &row[..] else {
        return Err(context.malformed("CONFIG GET"));
    };
    if name != setting {
        return Err(context.foreign());
    }
    Ok(found.clone())
}

/// Makes the error for a replica: it may be about to be promoted, unless it is writable.
pub(super) async fn no_master(context: &Context) -> Error {
    let parameters = vec!["GET".into(), "replica-read-only".into()];
    let response = context.run(Statement { text: "CONFIG", parameters, wait: None }).await;
    let value = match response {
        Response::Rows(rows) | Response::Confirmed { rows, .. } => {
            rows.into_iter().flatten().nth(1)
        }
        Response::Refused { .. } => None,
    };
    if value.flatten().as_deref() == Some("no") {
        return context.weak("is a writable replica, and loses writes made to it");
    }
    context.unavailable(
        "it is a replica, which grants nothing; use its master, unless a promotion is in progress",
    )
}

/// Returns the confirmation that a grant needs: a replica that is promoted must have it, and a grant of the
/// old master must not count after that.
pub(crate) fn wait_for(replicas: u32) -> Option<WaitForReplicas> {
    (replicas > 0).then_some(WaitForReplicas { replicas, milliseconds: CONFIRM_TIMEOUT })
}

/// Refuses what too few replicas have confirmed.
pub(crate) fn check_confirmed(
    context: &Context,
    wait: Option<WaitForReplicas>,
    seen: &Seen,
    what: &str,
) -> Result<()> {
    let Some(WaitForReplicas { replicas, .. }) = wait else { return Ok(()) };
    let confirmed = seen.replicas.ok_or_else(unable_to_confirm)?;
    if seen.written.is_empty() || confirmed >= replicas {
        return Ok(());
    }
    Err(context.unavailable(&format!(
        "only {confirmed} of its replicas have confirmed {what}, and {replicas} must \
         (min-replicas-to-write), so it is not used"
    )))
}

fn unable_to_confirm() -> Error {
    Error::new(
        ErrorKind::WeakStore,
        "replicas of this Redis must confirm a lease (min-replicas-to-write), and its client \
         cannot wait for them: make it run WAIT after a statement, as the documentation of custom \
         clients says, or "
            .to_owned()
            + ALLOW,
    )
}
