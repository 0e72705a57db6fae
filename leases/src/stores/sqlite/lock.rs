//! The lock beside the database.
//!
//! POSIX locks belong to a process: if anything in the process closes the database, such as a
//! backup or a second copy of this library, the locks that SQLite holds are dropped. A lock of an
//! open file is not: `flock`, or `LockFileEx` on Windows, on a file that no other program has a
//! reason to open.

use std::{
    ffi::OsString,
    fs::{self, File, Metadata, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

use randflake::bindings::ForkId;

use super::file_id;

/// The kernel's own limit when it opens a file.
const MOST_LINKS: u32 = 40;

/// The right to have a database open: one connection at a time, across processes and across
/// copies of this library in one process.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
    path: PathBuf,
    /// The threads of the process that took it.
    threads: ForkId,
}

impl FileLock {
    /// Takes the lock of a [resolved](resolve) database; `None` while another process has it. Every
    /// user who may use the database may take the lock; `like` is the metadata of the database.
    pub(super) fn try_take(database: &Path, like: Option<&Metadata>) -> io::Result<Option<Self>> {
        let path = path_of(database);
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let lock = Self { file, path, threads: ForkId::of_threads() };
        if !lock.is_current()? {
            return Ok(None);
        }
        if let Some(like) = like {
            share(&lock.file, like)?;
        }
        Ok(Some(lock))
    }

    /// Returns whether the lock file is still the one that others find. If it was removed, they
    /// lock a different one.
    pub(super) fn is_current(&self) -> io::Result<bool> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) => Ok(file_id(&found) == file_id(&self.file.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing is not enough: a child started meanwhile has a copy of the descriptor until it
        // executes its program. In a forked child the lock is the parent's.
        if self.threads == ForkId::of_threads() {
            let _closing_unlocks_it_too = self.file.unlock();
        }
    }
}

/// Returns the path of the lock file.
pub(super) fn path_of(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push("-lock");
    path.into()
}

/// Follows symbolic links to the one path that all names of a database lead to. The directory of
/// the database must exist, the database need not. Never opens the database.
pub(super) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let directory = fs::canonicalize(directory)?;
        path = directory.join(name);
        match fs::read_link(&path) {
            Ok(target) => path = directory.join(target),
            Err(_no_link) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Opens the lock file; creates it if it is missing. A lock needs only the right to read it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A link would lead to a file that is not beside the database. The mode is the one with
        // which SQLite creates a database.
        options.custom_flags(libc::O_NOFOLLOW).mode(0o644);
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            options.write(true).create(true).truncate(false).open(path)
        }
        opened => opened,
    }
}

/// Gives the lock file the mode and the group of the database, as far as this user may: others who
/// may use the database must be able to lock it.
#[cfg(unix)]
fn share(file: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    const PERMISSIONS: u32 = 0o666;
    let mine = file.metadata()?;
    if mine.nlink() != 1 {
        return Ok(()); // another name of it may be anything
    }
    if mine.gid() != like.gid() {
        let _may_not = fchown(file, None, Some(like.gid()));
    }
    if mine.uid() != like.uid() {
        let _may_not = fchown(file, Some(like.uid()), None);
    }
    let mode = like.mode() & PERMISSIONS;
    if mine.mode() & PERMISSIONS != mode {
        let _may_not = file.set_permissions(fs::Permissions::from_mode(mode));
    }
    Ok(())
}

#[cfg(not(unix))]
fn share(_file: &File, _like: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns why the database can have other paths, next to which others would lock a different file.
/// Looking at the mounts takes long, and need not be repeated.
pub(super) fn other_paths(
    database: &Path,
    metadata: &Metadata,
    is_first_look: bool,
) -> Option<&'static str> {
    if links(metadata) > 1 {
        return Some("has several names (hard links)");
    }
    (is_first_look && is_mounted_alone(database))
        .then_some("is mounted on its own, without its directory")
}

#[cfg(unix)]
fn links(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

/// Not known without opening the file.
#[cfg(not(unix))]
fn links(_metadata: &Metadata) -> u64 {
    1
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_mounted_alone(database: &Path) -> bool {
    fs::read("/proc/self/mountinfo").is_ok_and(|mounts| is_mount_point(&mounts, database))
}

/// On other systems a file is not mounted on its own.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_mounted_alone(_database: &Path) -> bool {
    false
}

/// Looks for a path in the text of `mountinfo`, where its fifth field is a mount point.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_mount_point(mounts: &[u8], path: &Path) -> bool {
    let mut escaped = Vec::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => escaped.extend(format!("\\{byte:03o}").into_bytes()),
            _ => escaped.push(byte),
        }
    }
    let mut lines = mounts.split(|byte| *byte == b'\n');
    lines.any(|line| line.split(|byte| *byte == b' ').nth(4) == Some(&escaped))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_found_whatever_their_name() {
        let mounts = b"23 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            91 23 8:1 /srv/ids.db /data/my\\040ids.db rw,relatime - ext4 /dev/sda1 rw\n";
        for (path, is_mounted) in [
            ("/", true),
            ("/data/my ids.db", true),
            ("/data/my", false),
            ("/srv/ids.db", false),
            ("/data", false),
        ] {
            assert_eq!(is_mount_point(mounts, Path::new(path)), is_mounted, "{path}");
        }
    }
}
