//! Columns in the queries of sqlx.

use randflake::Id;
use sqlx::{Connection, Error, FromRow, query, query_as, query_scalar};

use super::rows;

#[derive(Debug, FromRow, PartialEq)]
struct Order {
    id: Id,
    parent: Option<Id>,
}

/// Tests all that every database does, given how it writes the parameters of a statement.
macro_rules! test_columns {
    ($connection:expr, $first:literal, $second:literal) => {
        let connection = &mut $connection;
        let create = "create table orders (id bigint primary key, parent bigint)";
        query(create).execute(&mut *connection).await.expect("a table");
        let insert = concat!("insert into orders values (", $first, ", ", $second, ")");
        for (id, parent) in rows() {
            query(insert).bind(id).bind(parent).execute(&mut *connection).await.expect("a row");
        }

        for (id, parent) in rows() {
            let select = concat!("select id, parent from orders where id = ", $first);
            let found: Vec<Order> =
                query_as(select).bind(id).fetch_all(&mut *connection).await.expect("it reads");
            assert_eq!(found, [Order { id, parent }]);
            // As the column has it: a number, and not another one.
            let select = concat!("select id from orders where id = ", $first);
            let number: i64 = query_scalar(select)
                .bind(i64::from(id))
                .fetch_one(&mut *connection)
                .await
                .expect("it is there");
            assert_eq!(Id::from(number), id);
        }

        let null = query_scalar::<_, Id>("select parent from orders where parent is null");
        let error = null.fetch_one(&mut *connection).await.expect_err("there is no id");
        assert!(matches!(error, Error::ColumnDecode { .. }), "{error:?}");

        let create = "create table others (fraction double precision, word varchar(20))";
        query(create).execute(&mut *connection).await.expect("a table");
        let insert = "insert into others values (7, '1234567890123')";
        query(insert).execute(&mut *connection).await.expect("a row");
        for select in ["select fraction from others", "select word from others"] {
            let error = query_scalar::<_, Id>(select).fetch_one(&mut *connection).await;
            let error = error.expect_err("it is no BIGINT");
            assert!(matches!(error, Error::ColumnDecode { .. }), "{select}: {error:?}");
        }

        for table in ["drop table orders", "drop table others"] {
            query(table).execute(&mut *connection).await.expect("it is there");
        }
    };
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn test_sqlite() {
    let mut connection = sqlx::SqliteConnection::connect("sqlite::memory:").await.expect("opens");
    test_columns!(connection, "$1", "$2");
}

#[cfg(feature = "newest")]
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn test_postgres(url: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.expect("connects");
    test_columns!(connection, "$1", "$2");

    let (ids, _): (Vec<Id>, Vec<_>) = rows().into_iter().unzip();
    let numbers: Vec<i64> = ids.iter().copied().map(i64::from).collect();
    let select = "select number from unnest($1) as number where number = any($1)";
    let found: Vec<Id> =
        query_scalar(select).bind(numbers).fetch_all(&mut connection).await.expect("it reads");
    assert_eq!(found, ids);
}

#[cfg(feature = "newest")]
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn test_mariadb(url: &str) {
    let mut connection = sqlx::MySqlConnection::connect(url).await.expect("connects");
    test_columns!(connection, "?", "?");

    // The column that ids must not have: half of them do not fit, and none is read.
    let create = "create temporary table counters (id bigint unsigned)";
    query(create).execute(&mut connection).await.expect("a table");
    let insert = "insert into counters values (?)";
    let error = query(insert).bind(Id::from(-1)).execute(&mut connection).await;
    assert!(matches!(error, Err(Error::Database(_))), "{error:?}");
    query(insert).bind(Id::from(7)).execute(&mut connection).await.expect("a row");
    let read = query_scalar::<_, Id>("select id from counters").fetch_one(&mut connection).await;
    assert!(matches!(read, Err(Error::ColumnDecode { .. })), "{read:?}");
}
