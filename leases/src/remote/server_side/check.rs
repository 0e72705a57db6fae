//! The check of a namespace before the first operation, and after the server has changed.

use super::{
    super::{
        Engine, Response, Statement, TRIES,
        context::{Context, KnownNamespace},
        hex::{hex, unhex},
    },
    UNDEFINED_TABLE,
    responses::{cells, decision, number, refused, status_is_ok, unexpected},
    run,
    settings::check_settings,
    statements::{StatementKind, statement},
};
use crate::{
    ErrorKind, InitMode, Limits, NamespaceMetadata, Result, Token,
    rules::{self, Quarantine},
};

/// Checks that the namespace is ours and that the server keeps what it acknowledges. Creates a missing
/// namespace as `init` says, or if the protocol may.
pub(in super::super) async fn check(
    context: &Context,
    init: Option<InitMode>,
) -> Result<KnownNamespace> {
    let client_now = context.now;
    // A database that has leases alone has no table of counters.
    let mut lacks_tables =
        context.engine() == Engine::Postgres && context.namespace().is_for_tickets();
    let mut weak_as = None;
    for _ in 0..TRIES {
        let token = Token::random();
        let parameters = vec![client_now.to_string()];
        let check = statement(context, StatementKind::Check, token, parameters);
        let response = run(context, check).await?;
        if matches!(&response, Response::Refused { code, .. } if code == UNDEFINED_TABLE) {
            context.may_create(init)?;
            create_tables(context, token).await?;
            lacks_tables = false;
            continue;
        }
        let rows: Vec<[String; 13]> = cells(context, response, StatementKind::Check, token)?;
        let [_, _, status, now, incarnation, metadata_cells @ .., durability] = &rows[0];
        let now = number(context, now, "now")?;
        let settings = check_settings(context, durability).await;
        if settings.as_ref().is_err_and(|error| error.kind() == ErrorKind::WeakStore) {
            // In a failover, one server has said what it is and another one its settings. Only one
            // that says the same again is weak.
            let server = Some((incarnation.clone(), durability.clone()));
            if weak_as != server {
                weak_as = server;
                continue;
            }
        }
        match status.as_str() {
            "OK" => {
                let known = KnownNamespace {
                    metadata: metadata_of(context, metadata_cells)?,
                    incarnation: incarnation.clone(),
                    replicas: settings?,
                    meta_revision: 0,
                    quarantine: Quarantine::default(),
                    revision: 0,
                    ahead: None,
                };
                if context.known().is_some_and(|before| is_before(&known, &before)) {
                    rules::check_clocks(known.metadata.limits, now, client_now)?;
                    let salt = vec![hex(&known.metadata.salt)];
                    let fence = statement(context, StatementKind::Fence, token, salt);
                    let response = run(context, fence).await?;
                    let fenced = decision(context, response, StatementKind::Fence, token)?;
                    status_is_ok(context, &fenced)?;
                }
                context.remember(&known)?;
                return Ok(known);
            }
            "NOT_INITIALIZED" => {
                let init_mode = context.may_create(init)?;
                settings?;
                let metadata = context.new_metadata();
                if init_mode == InitMode::Quarantine {
                    rules::check_clocks(metadata.limits, now, client_now)?;
                }
                if lacks_tables {
                    create_tables(context, token).await?;
                    lacks_tables = false;
                }
                let create = create(context, token, &metadata, init_mode);
                let response = run(context, create).await?;
                let decision = decision(context, response, StatementKind::Create, token)?;
                status_is_ok(context, &decision)?;
            }
            // The server is another one, and must be fenced. With a wrong clock, that fence could end
            // too early.
            "CLOCK_SKEW" => {
                let metadata = metadata_of(context, metadata_cells)?;
                context.namespace().check(&metadata)?;
                return Err(rules::skewed(client_now, now, metadata.limits.max_skew));
            }
            _ => return Err(unexpected(context, status)),
        }
    }
    Err(context.contended())
}

/// Returns whether a PostgreSQL is in an earlier line of the history in which it was known: a primary from
/// before a promotion is back in the place of its successor. It lacks what that one granted, and says so
/// nowhere: its own line is the one that its namespace knows.
pub(in super::super) fn is_before(known: &KnownNamespace, before: &KnownNamespace) -> bool {
    let line = |known: &KnownNamespace| {
        let (system, timeline) = known.incarnation.split_once('/')?;
        Some((system.to_owned(), u32::from_str_radix(timeline, 16).ok()?))
    };
    known.metadata.salt == before.metadata.salt
        && line(known)
            .zip(line(before))
            .is_some_and(|((system, timeline), (before, last))| system == before && timeline < last)
}

async fn create_tables(context: &Context, token: Token) -> Result<()> {
    let create = statement(context, StatementKind::CreateTables, token, vec![]);
    match run(context, create).await? {
        Response::Refused { code, message } => Err(refused(context, &code, &message)),
        _ => Ok(()),
    }
}

fn create(
    context: &Context,
    token: Token,
    metadata: &NamespaceMetadata,
    init_mode: InitMode,
) -> Statement {
    let Limits { max_ttl, max_skew, max_node_id } = metadata.limits;
    let mut rest: Vec<String> =
        [max_ttl, max_skew, max_node_id].iter().map(ToString::to_string).collect();
    rest.extend([metadata.layout.clone(), hex(&metadata.salt), hex(&metadata.key_check)]);
    let quarantine = init_mode == InitMode::Quarantine;
    rest.extend([quarantine.to_string(), metadata.format.to_string()]);
    statement(context, StatementKind::Create, token, rest)
}

pub(super) fn metadata_of(context: &Context, cells: &[String; 7]) -> Result<NamespaceMetadata> {
    let [format, max_ttl, max_skew, max_node_id, layout, salt, key_check] = cells;
    let limit = |cell: &String| cell.parse().map_err(|_| context.malformed("a limit"));
    Ok(NamespaceMetadata {
        format: limit(format)?,
        limits: Limits {
            max_ttl: limit(max_ttl)?,
            max_skew: limit(max_skew)?,
            max_node_id: limit(max_node_id)?,
        },
        layout: layout.clone(),
        salt: unhex(salt).ok_or_else(|| context.malformed("salt"))?,
        key_check: unhex(key_check).ok_or_else(|| context.malformed("key_check"))?,
    })
}
