//! What an operator should know of a PostgreSQL or a Redis.

use super::{
    super::{Engine, Response, context::Context},
    ServerSideRequest,
    responses::cells,
    run,
    settings::{self, ALLOW, RedisSettings},
    statements::{StatementKind, statement},
};
use crate::{Finding, Result, Token, Verdict, namespace::TICKETS, operator::List};

/// The oldest version of PostgreSQL, as it numbers them.
const OLDEST_POSTGRES: u32 = 120_000;
/// The oldest version of Redis.
const OLDEST_REDIS: u32 = 6;

/// Looks at the server, and changes nothing.
pub(in super::super) async fn examine(context: &Context) -> Result<Vec<Finding>> {
    let token = Token::random();
    let rest = match context.engine() {
        Engine::Redis => vec![],
        _ => vec![what_is_in_namespace(context).await.to_owned()],
    };
    let response = run(context, statement(context, StatementKind::Examine, token, rest)).await?;
    match context.engine() {
        Engine::Redis => examine_redis(context, response, token).await,
        _ => examine_postgres(context, response, token),
    }
}

/// Returns what an operator's namespace has. One that cannot be read is examined as one of leases.
async fn what_is_in_namespace(context: &Context) -> &'static str {
    let list = List { token: Token::random(), node_id: Some(0) };
    match ServerSideRequest::run(&list, context).await {
        Ok(listed) if listed.layout == TICKETS => TICKETS,
        _ => "leases",
    }
}

fn examine_postgres(context: &Context, response: Response, token: Token) -> Result<Vec<Finding>> {
    let rows: Vec<[String; 14]> = cells(context, response, StatementKind::Examine, token)?;
    let [_, _, _, version, number, role, is_standby, is_read_only, durability @ .., missing] =
        &rows[0];
    let [fsync, synchronous_commit, full_page_writes, standbys, synchronous_standbys] = durability;
    let server = format!("PostgreSQL {version}, as the role {role}");
    let is_old = number.parse::<u32>().is_ok_and(|number| number < OLDEST_POSTGRES);
    let mut findings = vec![if is_old {
        Finding::wrong("server", format!("{server}; it is too old: use 12 or newer"))
    } else {
        Finding::fine("server", server)
    }];

    findings.push(match settings::weakness_of_postgres(fsync) {
        Some(why) => weakness(context, &why),
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
                "it is a primary with {standbys} standbys, and waits for none; after a failover \
                 nothing is granted until the leases that the new primary may lack are over; name \
                 some in synchronous_standby_names to have it wait"
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
    } else {
        Finding::fine("permissions", format!("the role {role} may read and write the rows"))
    });
    Ok(findings)
}

async fn examine_redis(
    context: &Context,
    response: Response,
    token: Token,
) -> Result<Vec<Finding>> {
    let rows: Vec<[String; 11]> = cells(context, response, StatementKind::Examine, token)?;
    let [_, _, redis, valkey, durability, writes @ .., kind, may_write] = &rows[0];
    let [append_status, save_status, used, most] = writes;
    let server =
        if valkey.is_empty() { format!("Redis {redis}") } else { format!("Valkey {valkey}") };
    let major = redis.split('.').next().unwrap_or_default();
    let mut findings = vec![if major.parse::<u32>().is_ok_and(|major| major < OLDEST_REDIS) {
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

/// Looks at the settings of a master, all of them.
async fn examine_settings(context: &Context, connected: u32) -> Vec<Finding> {
    let settings = match RedisSettings::read(context).await {
        Ok(settings) => settings,
        Err(error) => return vec![Finding::wrong("persistence", error.to_string())],
    };
    let mut findings: Vec<Finding> =
        settings.weaknesses(connected).iter().map(|why| weakness(context, why)).collect();
    if findings.is_empty() {
        findings.push(Finding::fine(
            "persistence",
            format!("{settings}; after a restart nothing is granted until earlier leases are over"),
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

/// A weak store is what it should be where that is allowed.
fn weakness(context: &Context, why: &str) -> Finding {
    let is_allowed = context.allows_weak_store();
    let verdict = if is_allowed { Verdict::Note } else { Verdict::Wrong };
    let advice = if is_allowed {
        "leases may be lost, which was allowed".to_owned()
    } else {
        format!("change that setting, or {ALLOW}")
    };
    let text = format!("this {} {why}; {advice}", context.engine().name());
    Finding { subject: "persistence", verdict, text }
}
