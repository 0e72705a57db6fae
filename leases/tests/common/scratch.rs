//! A temporary directory.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::{
    env, fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    process,
};

/// A directory that is removed after the test.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self::under(&env::temp_dir())
    }

    /// A directory in memory, for a test that would mostly wait for the disk because it writes so
    /// often.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::under(memory) } else { Self::new() }
    }

    fn under(parent: &Path) -> Self {
        let random = RandomState::new().hash_one(process::id());
        let directory = parent.join(format!("randflake-leases-{random:016x}"));
        fs::create_dir(&directory).expect("a temporary directory");
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: the result of the test is known.
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}
