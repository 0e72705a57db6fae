//! Columns in the queries of diesel.

use diesel::{Connection, prelude::*};
use randflake::Id;

use super::rows;

diesel::table! {
    orders (id) {
        id -> BigInt,
        parent -> Nullable<BigInt>,
    }
}

#[derive(Clone, Debug, Identifiable, Insertable, PartialEq, Queryable, Selectable)]
struct Order {
    id: Id,
    parent: Option<Id>,
}

/// Tests all that every database does.
macro_rules! test_columns {
    ($connection:expr) => {
        let connection = &mut $connection;
        let create = "create table orders (id bigint primary key, parent bigint)";
        diesel::sql_query(create).execute(connection).expect("a table");
        let all: Vec<Order> = rows().into_iter().map(|(id, parent)| Order { id, parent }).collect();
        // One is borrowed, the others are taken, and one is by its columns.
        let insert = diesel::insert_into(orders::table);
        insert.values(&all[0]).execute(connection).expect("a row");
        for order in &all[1..all.len() - 1] {
            insert.values(order.clone()).execute(connection).expect("a row");
        }
        let last = &all[all.len() - 1];
        let columns = (orders::id.eq(last.id), orders::parent.eq(last.parent));
        insert.values(columns).execute(connection).expect("a row");

        for order in &all {
            let found = orders::table.find(order.id).first::<Order>(connection);
            assert_eq!(found.as_ref(), Ok(order));
            let select = orders::table.select(Order::as_select());
            let found = select.filter(orders::id.eq(&order.id)).load(connection);
            assert_eq!(found.as_ref(), Ok(&vec![order.clone()]));
            // As the column has it: a number, and not another one.
            let number = i64::from(order.id);
            let found: Id = orders::table
                .select(orders::id)
                .filter(orders::id.eq(number))
                .first(connection)
                .expect("it is there");
            assert_eq!(found, order.id);
        }

        let ids: Vec<Id> = all.iter().map(|order| order.id).collect();
        let found = orders::table.filter(orders::id.eq_any(&ids)).count().get_result(connection);
        assert_eq!(found, Ok(i64::try_from(ids.len()).expect("a few")));
        let none = Vec::<Id>::new();
        let found = orders::table.filter(orders::id.eq_any(none)).load::<Order>(connection);
        assert_eq!(found, Ok(Vec::new()));

        let of_none = orders::table.select(orders::id).filter(orders::parent.is_null());
        assert_eq!(of_none.load::<Id>(connection), Ok(vec![last.id]));
        let changed = diesel::update(last).set(orders::parent.eq(Some(all[0].id)));
        assert_eq!(changed.execute(connection), Ok(1));
        assert_eq!(of_none.load::<Id>(connection), Ok(Vec::new()));

        diesel::sql_query("drop table orders").execute(connection).expect("it is there");
    };
}

pub(crate) fn test_sqlite() {
    test_columns!(SqliteConnection::establish(":memory:").expect("opens"));
}

#[cfg(feature = "newest")]
pub(crate) fn test_postgres(url: &str) {
    test_columns!(PgConnection::establish(url).expect("connects"));
}

#[cfg(feature = "newest")]
pub(crate) fn test_mariadb(url: &str) {
    test_columns!(MysqlConnection::establish(url).expect("connects"));
}
