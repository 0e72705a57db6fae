//! Formats of ids whose node ids can be leased.

use randflake::{Encrypted, Format, Layout, Plain, Result, Secret};

use crate::namespace::Namespace;

/// A [`Format`] whose node ids can be leased: [`Encrypted`], the ids of
/// [`Randflake`](randflake::Randflake), or [`Plain`], the ids of
/// [`Snowflake`](randflake::Snowflake).
pub trait LeasedFormat: Format {
    /// Largest `max_drift` unless the builder sets another, in seconds.
    const MAX_DRIFT: u32;

    /// Names the namespace that node ids are leased from.
    ///
    /// # Errors
    ///
    /// As [`Namespace::new`] and [`Namespace::for_layout`].
    fn namespace(config: &Self::Config, name: String) -> Result<Namespace>;
}

impl LeasedFormat for Encrypted {
    const MAX_DRIFT: u32 = 10;

    fn namespace(secret: &Secret, name: String) -> Result<Namespace> {
        Namespace::new(name, secret)
    }
}

impl LeasedFormat for Plain {
    /// Ids that run ahead of the clock are out of order with other nodes' ids.
    const MAX_DRIFT: u32 = 0;

    fn namespace(layout: &Layout, name: String) -> Result<Namespace> {
        Namespace::for_layout(name, *layout)
    }
}
