//! What an operator should know about a PostgreSQL.

use super::run;
use crate::{
    findings::Finding,
    remote::{context::Context, exchange::Response, step::Nonce},
};
use randflake::Result;

/// The oldest supported version, as PostgreSQL numbers them.
const OLDEST: u32 = 120_000;

/// Looks at the server, and changes nothing.
pub(crate) async fn examine(context: &Context) -> Result<Vec<Finding>> {
    let nonce = Nonce::new();
    let response = run(context, include_str!("examine.sql"), vec![nonce.0.clone()]).await?;
    findings(context, &nonce, response)
}

fn findings(context: &Context, nonce: &Nonce, response: Response) -> Result<Vec<Finding>> {
    let cells = <[String; 12]>::try_from(nonce.cells(context, response)?);
    let cells = cells.map_err(|_| context.malformed("the number of columns"))?;
    let [version, number, role, is_standby, is_read_only, durability @ .., missing] = &cells;
    let [fsync, synchronous_commit, full_page_writes, standbys, synchronous_standbys, has_table] =
        durability;
    let server = format!("PostgreSQL {version}, as the role {role}");
    let is_old = number.parse::<u32>().is_ok_and(|number| number < OLDEST);
    let mut findings = vec![if is_old {
        Finding::wrong("server", format!("{server}; it is too old: use 12 or newer"))
    } else {
        Finding::fine("server", server)
    }];

    findings.push(match super::weakness(fsync) {
        Some(why) => context.weakness(&why),
        None if full_page_writes == "off" => Finding::note(
            "persistence",
            "full_page_writes is off: a crash of the machine may damage tables, unless the file \
             system writes whole pages; turn it on",
        ),
        None => Finding::fine(
            "persistence",
            format!(
                "fsync is on; synchronous_commit is {synchronous_commit}, and on for every grant"
            ),
        ),
    });

    findings.push(if is_standby == "true" {
        Finding::wrong(
            "replicas",
            "it is a standby, which grants nothing; use the primary, unless a promotion is in \
             progress",
        )
    } else if standbys == "0" {
        Finding::fine("replicas", "it is a primary, and no standby is connected")
    } else if synchronous_standbys.is_empty() {
        Finding::note(
            "replicas",
            format!(
                "it is a primary with {standbys} standbys, but waits for none; after a failover \
                 nothing is granted until the leases that the new primary may lack have ended; set \
                 synchronous_standby_names to make it wait"
            ),
        )
    } else {
        Finding::fine("replicas", format!("it is a primary with {standbys} standbys"))
    });

    findings.push(if !missing.is_empty() {
        Finding::wrong("permissions", format!("the role {role} lacks {missing}; grant it"))
    } else if is_read_only == "on" && is_standby != "true" {
        Finding::wrong(
            "permissions",
            "its sessions are read-only; turn default_transaction_read_only off for the role and \
             the database",
        )
    } else if has_table == "false" {
        Finding::note(
            "permissions",
            format!(
                "the privileges of the role {role} are unknown until the table exists: run init"
            ),
        )
    } else {
        Finding::fine("permissions", format!("the role {role} may read and write the rows"))
    });
    Ok(findings)
}
