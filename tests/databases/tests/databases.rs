//! Ids in columns of real databases, through sqlx and diesel.

mod diesel_columns;
mod sqlx_columns;

#[cfg(feature = "newest")]
#[path = "../../../leases/tests/servers/mod.rs"]
mod servers;

use randflake::Id;

/// Ids whose numbers or texts something could take for something else, each but one with another
/// one beside it.
fn rows() -> Vec<(Id, Option<Id>)> {
    let digits: Id = "1234567890123".parse().expect("a text of digits alone is one, too");
    let negative = Id::from(-4_594_531_474_933_654_033);
    let numbers = [0, -1, i64::MIN, i64::MAX].map(Id::from);
    let ids = [&[digits, negative], &numbers[..]].concat();
    let parents = ids.iter().skip(1).copied().map(Some).chain([None]);
    ids.iter().copied().zip(parents).collect()
}

#[test]
fn every_id_comes_back_from_sqlite() {
    sqlx_columns::test_sqlite();
    diesel_columns::test_sqlite();
}

#[cfg(feature = "newest")]
#[test]
fn every_id_comes_back_from_postgres() {
    let Some(server) = servers::Server::postgres(&[]) else { return };
    sqlx_columns::test_postgres(&server.url());
    diesel_columns::test_postgres(&server.url());
}

#[cfg(feature = "newest")]
#[test]
fn every_id_comes_back_from_mariadb() {
    let Some(server) = servers::Server::mariadb(&[]) else { return };
    sqlx_columns::test_mariadb(&server.url());
    diesel_columns::test_mariadb(&server.url());
}
