//! What the crates beside this one, and the packages for other languages, share with it. It is no part
//! of its interface: any version may change it.

pub use crate::{
    clocks::boot,
    keeper::passes,
    leased::unavailable,
    metrics::Requests,
    namespace::STORED_FORMAT,
    per_process::PerProcess,
    protocol::{check_counter, outcome_of},
    reception::Reception,
    token::random_bytes,
};
