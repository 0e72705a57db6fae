//! Unique 64-bit ids that outsiders cannot predict, order or count. Generating an id contacts no
//! database.
//!
//! An id is a (second, node id, sequence), packed into 64 bits and encrypted with SPARX-64/128. It is
//! unique because no such triple is issued twice and the cipher maps no two triples to one number.
//! Holders of the secret can [read it back](Inspector); to others it is a random number.
//!
//! ```
//! use randflake::{Randflake, Secret};
//!
//! let secret = Secret::random(); // store it: an id column keeps its secret forever
//! let flake = Randflake::new(1, &secret)?;
//! let id = flake.generate()?;
//! println!("{id} is {} in a BIGINT column", i64::from(id));
//!
//! let parts = flake.inspect(id);
//! assert_eq!(parts.node_id, 1);
//! # Ok::<(), randflake::Error>(())
//! ```
//!
//! **A manual node id is safe for one live process at a time, on a machine whose clock has not
//! stepped back over the last id.** See [`Randflake`].
//!
//! [`Snowflake`] makes ids that sort by time, of Twitter's, Discord's or another [`Layout`] of the
//! Snowflake family. A [`Cloak`] hides them, or any other 64-bit ids, from outsiders:
//!
//! ```
//! use randflake::{Cloak, Layout, Secret, Snowflake};
//!
//! let flake = Snowflake::new(378, Layout::twitter())?;
//! let id = flake.generate()?; // inside: sorts by time
//! let cloak = Cloak::new(&Secret::random(), "posts.id");
//! let text = cloak.hide(id).to_string(); // outside: looks random
//! assert_eq!(cloak.reveal(text.parse()?), id);
//! # Ok::<(), randflake::Error>(())
//! ```
//!
//! [`Codes`] are for people: short ones of a fixed length, such as vouchers and order numbers.
//!
//! # Features
//!
//! All are off by default. They add implementations for [`Id`].
//!
//! - `serde`: `Serialize` and `Deserialize`, as text in human-readable formats, otherwise as an
//!   `i64`; also for [`Parts`] and [`RawParts`].
//! - `sqlx-0_9`, `sqlx-0_8`: `Type`, `Encode` and `Decode` of that version of sqlx, as a `BIGINT`
//!   in any database.
//! - `diesel`: `AsExpression`, `FromSqlRow`, `ToSql` and `FromSql` of diesel 2, likewise.
//!
//! The library also exists for Python and for Node.js, with the same ids, text, errors and behaviour.

mod ahead;
mod base32hex;
#[doc(hidden)]
pub mod bindings;
mod boundary_flake;
mod buffer;
mod cloak;
mod clock;
mod codes;
mod error;
mod fork;
mod format;
mod generator;
mod id;
mod inspector;
pub mod layout;
mod lease;
mod metrics;
mod packed_state;
mod parts;
mod positions;
mod randflake;
mod registry;
mod secret;
mod snowflake;
mod sparx;
mod sync;
mod term;
mod tick_cache;

pub use crate::{
    boundary_flake::BoundaryFlake,
    cloak::Cloak,
    clock::{Clock, SystemClock},
    codes::{Codes, CodesBuilder},
    error::{Error, ErrorKind, Result},
    fork::after_restore,
    format::Format,
    generator::{Builder, Call, Generator, Order, Reach, Wait},
    id::Id,
    inspector::Inspector,
    layout::{CustomLayout, Field, Layout, RawParts, Sequence},
    lease::Lease,
    metrics::Metrics,
    parts::Parts,
    randflake::{Encrypted, Randflake},
    registry::NodeIds,
    secret::Secret,
    snowflake::{Plain, Snowflake},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
