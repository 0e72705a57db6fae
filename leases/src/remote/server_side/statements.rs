//! Which SQL statement or Lua script an operation runs.

use super::super::{Engine, Statement, context::Context, hex::hex};
use crate::Token;

/// Which statement or script.
#[derive(Clone, Copy)]
pub(super) enum StatementKind {
    Check,
    CreateTables,
    Create,
    Acquire,
    Renew,
    Release,
    Fence,
    List,
    Examine,
    Shorten,
    LowerFloor,
    Swap,
    ListCounters,
}

macro_rules! sql {
    ($($file:literal),*) => { concat!($(include_str!(concat!("../postgres/", $file, ".sql"))),*) };
}

macro_rules! lua {
    ($($file:literal),*) => { concat!($(include_str!(concat!("../redis/", $file, ".lua"))),*) };
}

impl StatementKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::CreateTables | Self::Create => "create",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Fence => "fence",
            Self::List => "list",
            Self::Examine => "examine",
            Self::Shorten => "shorten",
            Self::LowerFloor => "lower_floor",
            Self::Swap => "swap",
            Self::ListCounters => "list_counters",
        }
    }

    const fn sql(self) -> &'static str {
        match self {
            Self::Check => sql!("session", "metadata", "check"),
            Self::CreateTables => sql!("create_tables"),
            Self::Create => sql!("session", "create_namespace"),
            Self::Acquire => sql!("session", "request", "acquire"),
            Self::Renew => sql!("session", "request", "renew"),
            Self::Release => sql!("session", "request", "release"),
            Self::Fence => sql!("session", "fence"),
            Self::List => sql!("session", "metadata", "list"),
            Self::Examine => sql!("examine"),
            Self::Shorten => sql!("session", "shorten", "changed"),
            Self::LowerFloor => sql!("session", "lower_floor", "changed"),
            Self::Swap => sql!("session", "counters", "swap"),
            Self::ListCounters => sql!("session", "counters", "list_counters"),
        }
    }

    const fn lua(self) -> &'static str {
        match self {
            Self::Check => lua!("session", "notice", "metadata", "check"),
            Self::CreateTables | Self::Create => lua!("session", "notice", "create"),
            Self::Acquire => lua!("session", "notice", "unchanged", "request", "acquire"),
            Self::Renew => lua!("session", "notice", "unchanged", "request", "renew"),
            Self::Release => lua!("session", "notice", "unchanged", "request", "release"),
            Self::Fence => lua!("session", "notice", "fence"),
            Self::List => lua!("session", "notice", "metadata", "list"),
            Self::Examine => lua!("examine"),
            Self::Shorten => lua!("session", "shorten"),
            Self::LowerFloor => lua!("session", "notice", "lower_floor"),
            Self::Swap => lua!("session", "notice", "unchanged", "swap"),
            Self::ListCounters => lua!("session", "notice", "unchanged", "list_counters"),
        }
    }
}

/// Returns a statement with the parameters that all have, followed by `rest`.
pub(super) fn statement(
    context: &Context,
    kind: StatementKind,
    token: Token,
    rest: Vec<String>,
) -> Statement {
    let name = context.namespace().name();
    let token = hex(token.as_bytes());
    let (text, mut parameters) = match context.engine() {
        Engine::Redis => {
            let key = format!("randflake:{{{name}}}");
            let script = vec![kind.lua().into(), "1".into(), key, kind.name().into(), token];
            ("EVAL", script)
        }
        _ if matches!(kind, StatementKind::CreateTables) => (kind.sql(), vec![]),
        _ => (kind.sql(), vec![name.into(), token]),
    };
    parameters.extend(rest);
    Statement { text, parameters, wait: None }
}
