//! A column of ids in the queries of sqlx: the column of an `i64`, in any database.

use super::Id;

/// Implements the traits of one version of sqlx, given that version's name for its argument buffer,
/// and the lifetime that the name may contain.
macro_rules! column {
    ($sqlx:ident, $q:lifetime, $Buffer:ty) => {
        const _: () = {
            use $sqlx::{
                Database, Decode, Encode, Type, ValueRef,
                encode::IsNull,
                error::{BoxDynError, UnexpectedNullError},
            };

            /// A signed 64-bit column. Reading an unsigned or a floating-point column is an error.
            impl<DB: Database> Type<DB> for Id
            where
                i64: Type<DB>,
            {
                fn type_info() -> DB::TypeInfo {
                    i64::type_info()
                }

                fn compatible(column: &DB::TypeInfo) -> bool {
                    i64::compatible(column)
                }
            }

            /// As its signed number.
            impl<$q, DB: Database> Encode<$q, DB> for Id
            where
                i64: Encode<$q, DB>,
            {
                fn encode_by_ref(&self, buffer: &mut $Buffer) -> Result<IsNull, BoxDynError> {
                    self.0.encode_by_ref(buffer)
                }

                fn produces(&self) -> Option<DB::TypeInfo> {
                    self.0.produces()
                }

                fn size_hint(&self) -> usize {
                    self.0.size_hint()
                }
            }

            /// From a signed number. `NULL` is an error, unless an `Option<Id>` is read.
            impl<$q, DB: Database> Decode<$q, DB> for Id
            where
                i64: Decode<$q, DB>,
            {
                fn decode(value: DB::ValueRef<$q>) -> Result<Self, BoxDynError> {
                    // Otherwise SQLite's NULL would be the id 0.
                    if value.is_null() {
                        return Err(UnexpectedNullError.into());
                    }
                    i64::decode(value).map(Self)
                }
            }
        };
    };
}

#[cfg(feature = "sqlx-0_8")]
column!(sqlx_0_8, 'q, DB::ArgumentBuffer<'q>);

#[cfg(feature = "sqlx-0_9")]
column!(sqlx_0_9, 'q, DB::ArgumentBuffer);
