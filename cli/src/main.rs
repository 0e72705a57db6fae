//! The command `randflake` as cargo ships it: stores with a server through native clients.

use std::{env, process};

use randflake_leases::remote::RemoteStore;

fn main() {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    #[cfg(unix)]
    if output::is_closed() && arguments.first().is_none_or(|verb| verb != "serve") {
        process::exit(randflake_cli::refuse_closed_output());
    }
    process::exit(randflake_cli::run(arguments, RemoteStore::open));
}

/// Whether standard output was closed: if so, Rust opens `/dev/null` in its place before `main`,
/// and anything written there is lost without an error.
#[cfg(unix)]
mod output {
    use std::{
        io,
        os::fd::AsFd,
        sync::atomic::{AtomicBool, Ordering},
    };

    static CLOSED: AtomicBool = AtomicBool::new(false);

    #[used]
    #[allow(unsafe_code, reason = "nothing else runs before the runtime of Rust")]
    // SAFETY: the loader calls the functions in this section, and they need no arguments.
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        // Relaxed: there is no other thread yet.
        CLOSED.store(io::stdout().as_fd().try_clone_to_owned().is_err(), Ordering::Relaxed);
    }

    pub(crate) fn is_closed() -> bool {
        CLOSED.load(Ordering::Relaxed)
    }
}
