//! Whether a path is on a file system whose locks may not work between two machines.

use std::{io, path::Path};

use super::SqliteStore;
use randflake::{Error, ErrorKind, Result};

impl SqliteStore {
    pub(super) fn check_file_system(&self, database: &Path) -> Result<()> {
        let name = match network_file_system(database) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                network_file_system(database.parent().unwrap_or(database))
            }
            found => found,
        };
        match name {
            Ok(name) => self.allow(name),
            Err(error) => Err(self.unavailable(format_args!("{error}"))),
        }
    }

    /// Refuses a network file system unless it is allowed.
    fn allow(&self, network: Option<&str>) -> Result<()> {
        match network {
            Some(name) if !self.allow_network => Err(Error::new(
                ErrorKind::WeakStore,
                format!(
                    "{} is on {name}, whose locks may not work between two machines; put it on a \
                     local disk, use a store with a server, or allow network file systems",
                    self.path.display()
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the name of the file system at a path if other machines share it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = rustix::fs::statfs(path)?.f_type;
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "32-bit magic")]
    Ok(network_name(kind as u32))
}

/// By the magic numbers of Linux's `statfs`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x7461_636f => "OCFS2",
        0x0116_1970 => "GFS2",
        0x1983_0326 => "BeeGFS",
        0x786f_4256 => "a folder shared by VirtualBox",
        0xbacb_acbc => "a folder shared by VMware",
        _ => return None,
    })
}

#[cfg(target_vendor = "apple")]
fn network_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    /// `MNT_LOCAL` of `sys/mount.h`.
    const LOCAL: u32 = 0x1000;
    let flags = rustix::fs::statfs(path)?.f_flags;
    Ok((flags & LOCAL == 0).then_some("a file system of another machine"))
}

#[cfg(windows)]
fn network_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    use std::path::{Component, Prefix};
    let Some(Component::Prefix(prefix)) = path.components().next() else {
        return Ok(None);
    };
    let remote = matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..));
    Ok(remote.then_some("a share of another machine"))
}

/// On other systems this is unknown.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple", windows)))]
fn network_file_system(_path: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::namespace::Namespace;

    #[test]
    fn network_file_systems_are_recognised_by_their_magic_number() {
        for (magic, network) in [
            (0x6969, true),       // NFS
            (0xff53_4d42, true),  // CIFS
            (0x6573_5546, true),  // FUSE, virtiofs
            (0xef53, false),      // ext4
            (0x5846_5342, false), // xfs
            (0x9123_683e, false), // btrfs
            (0x0102_1994, false), // tmpfs
            (0x794c_7630, false), // overlayfs
            (0x2fc1_2fc1, false), // zfs
        ] {
            assert_eq!(network_name(magic).is_some(), network, "{magic:#x}");
        }
    }

    #[test]
    fn network_file_systems_are_refused_unless_forced() {
        let namespace = Namespace::new("orders", &randflake::Secret::random()).expect("a name");
        let store = SqliteStore::new("ids.db", namespace).expect("a path");
        let error = store.allow(network_name(0x6969)).expect_err("NFS");
        assert_eq!(error.kind(), ErrorKind::WeakStore);
        assert!(error.to_string().contains("is on NFS"), "{error}");
        assert_eq!(store.allow(None), Ok(()));
        let forced = store.allow_network_file_system(true);
        assert_eq!(forced.allow(network_name(0x6969)), Ok(()));
    }

    #[test]
    fn the_file_system_is_looked_at() {
        // procfs is not in the list, but statfs must find it, and fail for other paths.
        assert!(matches!(network_file_system(Path::new("/proc")), Ok(None)));
        assert!(network_file_system(Path::new("/no/such/file")).is_err());
    }
}
