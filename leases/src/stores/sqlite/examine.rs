//! What an operator should know about the file, without opening it.

use std::{fs::Metadata, path::Path};

use super::SqliteStore;
use crate::findings::Finding;

/// Bytes that an operation may need beside the file, for its journal.
#[cfg(unix)]
const LEAST_SPACE: u64 = 1 << 20;

impl SqliteStore {
    /// Looks at the file and its directory, and changes nothing.
    pub(super) fn examine_file(&self) -> Vec<Finding> {
        let database = match self.resolve() {
            Ok(database) => database,
            Err(error) => return vec![Finding::wrong("file", error.to_string())],
        };
        let mut findings = vec![match self.file(&database) {
            Err(error) => Finding::wrong("file", error.to_string()),
            Ok(None) => Finding::wrong(
                "file",
                format!(
                    "{} does not exist; check the path; the first lease or `randflake lease init` \
                     creates the file",
                    database.display()
                ),
            ),
            Ok(Some(metadata)) => match self.check_paths(&database, &metadata) {
                Err(error) => Finding::wrong("file", error.to_string()),
                Ok(()) => file(&database, &metadata),
            },
        }];
        findings.push(match self.check_file_system(&database) {
            Err(error) => Finding::wrong("persistence", error.to_string()),
            Ok(()) => {
                Finding::fine("persistence", "a lease is synced to disk before it is granted")
            }
        });
        findings.push(directory(database.parent().unwrap_or(&database)));
        findings
    }
}

#[cfg(unix)]
fn file(database: &Path, metadata: &Metadata) -> Finding {
    use std::os::unix::fs::MetadataExt;

    const OTHERS_MAY_WRITE: u32 = 0o002;
    let text = format!(
        "{}, owner {}:{}, mode {:o}, {} bytes",
        database.display(),
        metadata.uid(),
        metadata.gid(),
        metadata.mode() & 0o7777,
        metadata.len()
    );
    if metadata.mode() & OTHERS_MAY_WRITE != 0 {
        return Finding::note(
            "file",
            format!("{text}; every user of this machine can change the leases; run: chmod o-w"),
        );
    }
    Finding::fine("file", text)
}

#[cfg(not(unix))]
fn file(database: &Path, metadata: &Metadata) -> Finding {
    Finding::fine("file", format!("{}, {} bytes", database.display(), metadata.len()))
}

/// An operation creates files in the directory: the journal and the lock.
#[cfg(unix)]
fn directory(directory: &Path) -> Finding {
    use rustix::fs::{Access, access, statvfs};

    let shown = directory.display();
    if access(directory, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Finding::wrong(
            "directory",
            format!("this user cannot write into {shown}, and every operation does; allow it"),
        );
    }
    let free = statvfs(directory).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    if free.is_ok_and(|free| free < LEAST_SPACE) {
        return Finding::wrong("directory", format!("the disk of {shown} is full; make room"));
    }
    Finding::fine("directory", format!("this user can write into {shown}"))
}

#[cfg(not(unix))]
fn directory(directory: &Path) -> Finding {
    Finding::fine("directory", directory.display().to_string())
}
