//! What an operator should know about a Redis.

use super::{
    run,
    settings::{self, RedisSettings},
};
use crate::{findings::Finding, remote::context::Context};
use randflake::Result;

/// The oldest supported version.
const OLDEST: u32 = 6;

/// Looks at the server, and changes nothing.
pub(crate) async fn examine(context: &Context) -> Result<Vec<Finding>> {
    let (cells, _) = run(context, include_str!("examine.lua"), vec![], None).await?;
    let cells =
        <[String; 9]>::try_from(cells).map_err(|_| context.malformed("the number of cells"))?;
    let [redis, valkey, durability, writes @ .., kind, may_write] = &cells;
    let [append_status, save_status, used, most] = writes;
    let server =
        if valkey.is_empty() { format!("Redis {redis}") } else { format!("Valkey {valkey}") };
    let major = redis.split('.').next().unwrap_or_default();
    let mut findings = vec![if major.parse::<u32>().is_ok_and(|major| major < OLDEST) {
        Finding::wrong("server", format!("{server} is too old: use 6 or newer"))
    } else {
        Finding::fine("server", server)
    }];

    match durability.parse::<u32>() {
        Err(_role) => {
            let error = settings::no_master(context).await;
            findings.push(Finding::wrong("replicas", error.to_string()));
        }
        Ok(connected) => findings.extend(examine_settings(context, connected).await),
    }
    for (status, what) in [(append_status, "append-only file"), (save_status, "snapshot")] {
        if status == "err" {
            findings.push(Finding::wrong(
                "persistence",
                format!("its last write of the {what} failed; its log says why"),
            ));
        }
    }

    if let (Ok(used), Ok(most)) = (used.parse::<u64>(), most.parse::<u64>())
        && most > 0
        && used >= most / 10 * 9
    {
        findings.push(Finding::wrong(
            "memory",
            format!(
                "it uses {used} of {most} bytes (maxmemory); when it is full, it grants nothing"
            ),
        ));
    }

    findings.push(if !matches!(kind.as_str(), "hash" | "none") {
        Finding::wrong(
            "permissions",
            format!(
                "the key of the namespace is a {kind} of another program; use another --namespace"
            ),
        )
    } else if may_write == "false" {
        Finding::wrong("permissions", "its user may not HSET the key of the namespace; allow it")
    } else if may_write == "true" {
        Finding::fine("permissions", "its user may read and write the key of the namespace")
    } else {
        Finding::fine("permissions", "its user may read; only Redis 7 says whether it may write")
    });
    Ok(findings)
}

/// Looks at all settings of a master.
async fn examine_settings(context: &Context, connected: u32) -> Vec<Finding> {
    let settings = match RedisSettings::read(context).await {
        Ok(settings) => settings,
        Err(error) => return vec![Finding::wrong("persistence", error.to_string())],
    };
    let mut findings: Vec<Finding> =
        settings.weaknesses(connected > 0).iter().map(|why| context.weakness(why)).collect();
    if findings.is_empty() {
        findings.push(Finding::fine(
            "persistence",
            format!(
                "{settings}; after a restart nothing is granted until earlier leases have ended"
            ),
        ));
    }
    findings.push(match settings.check_confirmation(context).await {
        Err(error) => Finding::wrong("replicas", error.to_string()),
        Ok(0) => Finding::fine("replicas", format!("it is a master with {connected} replicas")),
        Ok(needed) => Finding::fine(
            "replicas",
            format!("it is a master with {connected} replicas, and {needed} confirm each grant"),
        ),
    });
    findings
}
