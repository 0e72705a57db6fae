//! A column of ids in the queries of diesel: the column of an `i64`, in any database.

use diesel::{
    backend::Backend,
    deserialize::{self, FromSql},
    serialize::{self, Output, ToSql},
    sql_types::BigInt,
};

use super::Id;

/// As its signed number.
impl<DB: Backend> ToSql<BigInt, DB> for Id
where
    i64: ToSql<BigInt, DB>,
{
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, DB>) -> serialize::Result {
        self.0.to_sql(out)
    }
}

/// From a signed number. Diesel trusts the schema: it does not check that the column is a `BIGINT`.
impl<DB: Backend> FromSql<BigInt, DB> for Id
where
    i64: FromSql<BigInt, DB>,
{
    fn from_sql(bytes: DB::RawValue<'_>) -> deserialize::Result<Self> {
        i64::from_sql(bytes).map(Self)
    }
}
