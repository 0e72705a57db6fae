//! The file at the path of a store, without opening it.

use std::{
    fs::{self, Metadata},
    io,
    path::{Path, PathBuf},
};

use super::{SqliteStore, lock};
use randflake::{Error, ErrorKind, Result};

/// Device and inode, which `stat` reports without opening the file.
pub(super) type FileId = (u64, u64);

impl SqliteStore {
    /// Returns the path that all names of the file lead to.
    pub(super) fn resolve(&self) -> Result<PathBuf> {
        lock::resolve(&self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.wrong_path(format_args!(
                "the directory {} is missing; create it first",
                self.directory().display()
            )),
            io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::PermissionDenied => self.wrong_path(format_args!("{error}")),
            _ => self.unavailable(format_args!("{error}")),
        })
    }

    /// Returns what `stat` reports about the file, which may be missing only if it may be created.
    pub(super) fn known_file(&self, database: &Path) -> Result<Option<Metadata>> {
        let found = self.file(database)?;
        if self.known.is_some_and(|known| found.as_ref().map(file_id) != Some(known.file)) {
            return Err(self.replaced());
        }
        if found.is_none() {
            self.may_create()?;
        }
        Ok(found)
    }

    /// Returns what `stat` reports at the path, if anything exists there.
    pub(super) fn file(&self, database: &Path) -> Result<Option<Metadata>> {
        match fs::symlink_metadata(database) {
            Ok(metadata) if metadata.is_dir() => {
                Err(self.wrong_path(format_args!("it is a directory; use a file in it")))
            }
            // A FIFO, a device or a socket, which SQLite would try to open again and again.
            Ok(metadata) if !metadata.is_file() => {
                Err(self.wrong_path(format_args!("it is not a regular file; use a separate file")))
            }
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(self.wrong_path(format_args!("{error}")))
            }
            Err(error) => Err(self.unavailable(format_args!("{error}"))),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Refuses a file with other paths, which would have other lock files.
    pub(super) fn check_paths(&self, database: &Path, metadata: &Metadata) -> Result<()> {
        let Some(why) = lock::other_paths(database, metadata, self.known.is_none()) else {
            return Ok(());
        };
        Err(Error::new(
            ErrorKind::WeakStore,
            format!(
                "{} {why}: a process that uses another path would not see the lock; use one path in all \
                 processes, in a directory that they share",
                self.path.display()
            ),
        ))
    }
}

#[cfg(unix)]
pub(super) fn file_id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Elsewhere only the store's own id identifies the file.
#[cfg(not(unix))]
pub(super) fn file_id(_metadata: &Metadata) -> FileId {
    (0, 0)
}
