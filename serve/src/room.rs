//! Memory for large answers, which clients may be slow to take.

use std::{sync::Arc, time::Duration};

use hyper::body::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::answer::Refusal;

/// Up to this many bytes an answer needs no room: each connection may have that much.
const SMALL: usize = 16 << 10;

pub(super) struct Room(Arc<Semaphore>);

/// Room for one answer, freed once the answer was written or abandoned.
pub(super) struct Reserved(
    #[allow(dead_code, reason = "it is dropped")] Option<OwnedSemaphorePermit>,
);

/// An answer with its room.
struct Content {
    bytes: Vec<u8>,
    _reserved: Reserved,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Waits for room for this many bytes.
    pub(super) async fn reserve(&self, bytes: usize, wait: Duration) -> Result<Reserved, Refusal> {
        if bytes <= SMALL {
            return Ok(Reserved(None));
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let free = Arc::clone(&self.0);
        if let Ok(permit) = Arc::clone(&free).try_acquire_many_owned(bytes) {
            return Ok(Reserved(Some(permit)));
        }
        match timeout(wait, free.acquire_many_owned(bytes)).await {
            Ok(Ok(permit)) => Ok(Reserved(Some(permit))),
            _ => Err(Refusal::busy(
                "too much data is already on its way to clients; try again, or ask for less at a \
                 time",
            )),
        }
    }
}

impl Reserved {
    /// Keeps the room for as long as these bytes exist.
    pub(super) fn hold(self, bytes: Vec<u8>) -> Bytes {
        match self {
            Self(None) => bytes.into(),
            reserved => Bytes::from_owner(Content { bytes, _reserved: reserved }),
        }
    }
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime;

    use super::*;

    #[test]
    fn room_is_free_again_once_the_last_byte_is_gone() {
        let runtime = runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let room = Room::new(SMALL + 1);
            let is_free = async || room.reserve(SMALL + 1, Duration::ZERO).await.is_ok();
            let reserved = room.reserve(SMALL + 1, Duration::ZERO).await.expect("room");
            let mut written = reserved.hold(vec![7; 100]);
            let rest = written.split_off(99);
            drop(written);
            assert!(!is_free().await);
            assert!(room.reserve(SMALL, Duration::ZERO).await.is_ok(), "small ones need none");
            drop(rest);
            assert!(is_free().await);
        });
    }
}
