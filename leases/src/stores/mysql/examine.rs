//! Whether a MySQL keeps what it has acknowledged, and what else an operator should know about it.

use std::collections::BTreeMap;

use super::{read, run};
use crate::{
    findings::Finding,
    remote::{
        context::Context,
        exchange::{Response, Statement},
    },
};
use randflake::Result;

/// The oldest supported versions of MySQL and of MariaDB.
const OLDEST: [(u32, u32); 2] = [(8, 0), (10, 6)];

/// The global variables that say how a server is replicated. Each of them may be missing.
const VARIABLES: &str = "show global variables where variable_name in ('version', 'version_comment', \
    'binlog_format', 'wsrep_on', 'group_replication_group_name', \
    'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled', 'rpl_semi_sync_master_timeout', \
    'rpl_semi_sync_source_timeout', 'read_only')";

/// Says whether a server waits for its replicas now. Newer versions of MySQL say `source`.
const STATUS: &str = "show global status where variable_name in ('rpl_semi_sync_master_status', \
    'rpl_semi_sync_source_status')";

/// Says how the table is stored, if this user may see that.
const ENGINE: &str = "select concat('engine', ''), engine from information_schema.tables \
    where table_schema = database() and table_name = 'randflake_entry'";

/// Refuses a server that may lose acknowledged writes. `durability` is as server.sql says it.
pub(crate) async fn check_settings(context: &Context, durability: &str) -> Result<()> {
    let variables = variables(context).await?;
    match weaknesses(durability, &variables).first() {
        Some(why) => Err(context.weak(why)),
        None => Ok(()),
    }
}

async fn variables(context: &Context) -> Result<BTreeMap<String, String>> {
    let mut rows = run(context, VARIABLES, vec![]).await?.unwrap_or_default();
    rows.extend(run(context, ENGINE, vec![]).await?.unwrap_or_default());
    rows.extend(run(context, STATUS, vec![]).await?.unwrap_or_default());
    // A statement without rows answers with one cell, its insert id.
    rows.retain(|row| row.len() > 1);
    let pair = |row: Vec<Option<String>>| {
        let [name, value] = <[_; 2]>::try_from(row).ok()?;
        Some((name?.to_lowercase(), value?))
    };
    let variables: Option<_> = rows.into_iter().map(pair).collect();
    variables.ok_or_else(|| context.malformed("the variables"))
}

fn is_on(value: &str) -> bool {
    matches!(value, "1" | "ON" | "DETECT_AND_RECOVER")
}

/// Returns every reason why this server may lose what it has acknowledged.
fn weaknesses(durability: &str, variables: &BTreeMap<String, String>) -> Vec<String> {
    let cells: Vec<&str> = durability.split(',').collect();
    let [flush, doublewrite, log_bin, sync_binlog] = cells[..] else {
        return vec!["does not report how it writes".to_owned()];
    };
    let mut found = vec![];
    if flush != "1" {
        found.push(format!(
            "does not wait for its disk: innodb_flush_log_at_trx_commit is {flush}, and must be 1"
        ));
    }
    if !is_on(doublewrite) {
        found.push("may damage pages when it crashes: innodb_doublewrite is off".to_owned());
    }
    if is_on(log_bin) && sync_binlog != "1" {
        found.push(format!(
            "does not wait for its binary log: sync_binlog is {sync_binlog}, and must be 1"
        ));
    }
    if is_on(log_bin) && variables.get("binlog_format").is_some_and(|it| it == "STATEMENT") {
        found.push(
            "lets replicas decide what is written: binlog_format is STATEMENT, and must be ROW or \
             MIXED"
                .to_owned(),
        );
    }
    if let Some(engine) = variables.get("engine").filter(|engine| *engine != "InnoDB") {
        found.push(format!(
            "has the table randflake_entry in {engine}, which is not tested with leases: `alter \
             table randflake_entry engine = InnoDB`"
        ));
    }
    let is = |name: &str| variables.get(name).is_some_and(|value| is_on(value));
    if is("wsrep_on") {
        found.push("is a node of a Galera cluster, which is not tested with leases".to_owned());
    }
    // All members of a group write under its name, so nothing shows which follows which.
    if variables.get("group_replication_group_name").is_some_and(|name| !name.is_empty()) {
        found.push("is a member of a group, which is not tested with leases".to_owned());
    }
    found
}

/// Statements that the server refuses to a user who lacks a right. They change nothing, whatever is
/// there.
const RIGHTS: [(&str, &str); 2] = [
    ("insert", "insert into randflake_entry select * from randflake_entry where false"),
    ("update", "update randflake_entry set writes = writes where false"),
];

/// Reports which rights this user lacks.
async fn permissions(context: &Context) -> Finding {
    let mut missing = vec![];
    for (right, text) in RIGHTS {
        let asked = Statement { text, parameters: vec![], wait: None };
        if let Response::Refused { code, .. } = context.run(asked).await
            && ["1142", "1143"].contains(&code.as_str())
        {
            missing.push(right);
        }
    }
    if missing.is_empty() {
        return Finding::fine("permissions", "this user may read and write the rows");
    }
    let missing = missing.join(", ");
    let text = format!("this user lacks {missing} on randflake_entry; grant it");
    Finding::wrong("permissions", text)
}

/// Looks at the server, and changes nothing.
pub(crate) async fn examine(context: &Context) -> Result<Vec<Finding>> {
    let (seen, _) = read(context, [].iter()).await?;
    let variables = variables(context).await?;
    let get = |name: &str| variables.get(name).map_or("", String::as_str);
    let either = |name: &str| {
        let names = ["master", "source"].map(|who| format!("rpl_semi_sync_{who}_{name}"));
        names.iter().find_map(|name| variables.get(name).map(String::as_str))
    };
    let version = get("version");
    let is_maria = version.contains("MariaDB") || get("version_comment").contains("MariaDB");
    let name = if is_maria { "MariaDB" } else { "MySQL" };
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    let mut parts = version.split(['.', '-']);
    let found = (number(parts.next()), number(parts.next()));
    let oldest = OLDEST[usize::from(is_maria)];
    let server = format!("{name} {version}");
    let mut findings = vec![if found < oldest {
        Finding::wrong(
            "server",
            format!("{server} is too old: use {}.{} or newer", oldest.0, oldest.1),
        )
    } else {
        Finding::fine("server", server)
    }];
    if !seen.has_table {
        findings.push(Finding::note(
            "permissions",
            "privileges are unknown until the table exists: run init",
        ));
        return Ok(findings);
    }
    findings.push(permissions(context).await);
    let weak = weaknesses(seen.durability(), &variables);
    findings.extend(weak.iter().map(|why| context.weakness(why)));
    if weak.is_empty() {
        findings.push(Finding::fine(
            "persistence",
            "innodb_flush_log_at_trx_commit is 1, innodb_doublewrite is on",
        ));
    }
    findings.push(if is_on(get("read_only")) {
        Finding::wrong(
            "replicas",
            "it is read-only, which grants nothing; use the primary, unless a promotion is in progress",
        )
    } else if either("enabled").is_some_and(is_on) {
        let timeout = either("timeout").unwrap_or("some");
        match either("status") {
            Some(status) if is_on(status) => Finding::fine(
                "replicas",
                format!("it waits for a replica, and continues without one after {timeout} ms"),
            ),
            _ => Finding::note(
                "replicas",
                "it is set to wait for a replica, but none answers in time, so it does not wait \
                 now",
            ),
        }
    } else {
        Finding::note(
            "replicas",
            "it waits for no replica; after a failover nothing is granted until the leases that \
             the new primary may lack have ended, and the old one must be off by then",
        )
    });
    Ok(findings)
}
