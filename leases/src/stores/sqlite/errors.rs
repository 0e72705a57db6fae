//! What an error of SQLite or of the file system means, and what to do about it.

use std::{fmt, io, path::Path};

use rusqlite::{ErrorCode, ffi};

use super::{SqliteStore, lock};
use randflake::{Error, ErrorKind};

impl SqliteStore {
    pub(super) fn cannot_lock(&self, database: &Path, error: &io::Error) -> Error {
        let path = lock::path_of(database);
        let why = format_args!("its lock file {} cannot be locked: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull => {
                self.unavailable(format_args!("the disk is full; nothing was granted or lost"))
            }
            io::ErrorKind::ReadOnlyFilesystem => self.wrong_path(format_args!(
                "the file or its directory is read-only, and every operation writes"
            )),
            io::ErrorKind::PermissionDenied => self.wrong_path(format_args!(
                "its lock file {} cannot be opened; check that this user may read it, and may write into {}",
                path.display(),
                self.directory().display()
            )),
            _ => self.unavailable(why),
        }
    }

    pub(super) fn replaced(&self) -> Error {
        self.namespace.replaced(format_args!("{}", self.path.display()), "file")
    }

    /// Makes the error for a path that cannot be a store. A path that was a store may become one
    /// again.
    pub(super) fn wrong_path(&self, why: fmt::Arguments<'_>) -> Error {
        match self.known {
            Some(_) => self.unavailable(why),
            None => {
                Error::invalid_argument(format!("{} cannot be a store: {why}", self.path.display()))
            }
        }
    }

    pub(super) fn unavailable(&self, why: fmt::Arguments<'_>) -> Error {
        Error::new(
            ErrorKind::StoreUnavailable,
            format!("cannot use the store {}: {why}", self.path.display()),
        )
    }

    pub(super) fn explain(&self, error: &rusqlite::Error) -> Error {
        let Some(code) = error.sqlite_error() else {
            return self.unavailable(format_args!("{error}"));
        };
        if code.extended_code == ffi::SQLITE_READONLY_DBMOVED {
            return self.replaced();
        }
        match code.code {
            ErrorCode::DiskFull => {
                self.unavailable(format_args!("the disk is full; nothing was granted or lost"))
            }
            ErrorCode::ReadOnly => self.wrong_path(format_args!(
                "the file or its directory is read-only, and every operation writes"
            )),
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => self.wrong_path(format_args!(
                "it cannot be opened; check that this user may write the file, and may write into {}",
                self.directory().display()
            )),
            ErrorCode::NotADatabase => Error::invalid_argument(format!(
                "{} is a file of another application; leases need their own file",
                self.path.display()
            )),
            ErrorCode::DatabaseCorrupt => self.unavailable(format_args!(
                "the file is damaged; restore it and fence it before you use it again"
            )),
            _ => self.unavailable(format_args!("{error}")),
        }
    }
}
