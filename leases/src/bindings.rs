//! What the crates beside this one, and the packages for other languages, share with it. It is not
//! part of its public interface: any version may change it.

pub use crate::{
    clocks::boot,
    fork_safe_receiver::ForkSafeReceiver,
    keeper::passes,
    leased::{check_layout, repeat, unavailable},
    metrics::Requests,
    namespace::STORED_FORMAT,
    per_process::PerProcess,
    polling::{POLL_INTERVAL, Polling},
    protocol::{check_counter, outcome_of},
    token::random_bytes,
};
