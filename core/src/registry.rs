//! Which node ids this process, and the ones it was forked from, have had by hand.
//!
//! A list that only grows: entries are set once, never changed and never dropped, without a lock.
//! So a child of a process with many threads can read it whatever those were doing.

use std::sync::Arc;

use once_cell::race::OnceBox;

use crate::{Error, ErrorKind, Result, Secret, fork, word::Word};

struct Entry {
    epoch: u64,
    secret: Secret,
    nodes: Box<[u32]>,
    word: Arc<Word>,
    next: OnceBox<Self>,
}

static FIRST: OnceBox<Entry> = OnceBox::new();

/// Returns the word that all generators with this secret and these node ids share.
///
/// # Errors
///
/// `NODE_IN_USE` if a generator of this process has some of these nodes with some others,
/// `FORKED` if an ancestor of this process had some of them.
pub(crate) fn word_of(secret: &Secret, nodes: &[u32]) -> Result<Arc<Word>> {
    let life = fork::life();
    let epoch = life.epoch();
    let mut new: Option<Box<Entry>> = None;
    let mut end = &FIRST;
    loop {
        while let Some(entry) = end.get() {
            if let Some(word) = entry.word_for(epoch, secret, nodes)? {
                // A fork since the epoch was read would make the word the parent's.
                return if life.is_current(epoch) { Ok(word) } else { word_of(secret, nodes) };
            }
            end = &entry.next;
        }
        let entry = new.take().unwrap_or_else(|| {
            Box::new(Entry {
                epoch,
                secret: secret.clone(),
                nodes: nodes.into(),
                word: Arc::new(Word::new(nodes.len(), 0)),
                next: OnceBox::new(),
            })
        });
        let word = Arc::clone(&entry.word);
        match end.set(entry) {
            Ok(()) => return Ok(word),
            // Another thread was first with an entry of its own, which has to be looked at.
            Err(back) => new = Some(back),
        }
    }
}

impl Entry {
    fn word_for(&self, epoch: u64, secret: &Secret, nodes: &[u32]) -> Result<Option<Arc<Word>>> {
        if self.secret.as_bytes() != secret.as_bytes() {
            return Ok(None);
        }
        let Some(node) = shared(&self.nodes, nodes) else {
            return Ok(None);
        };
        if self.epoch != epoch {
            return Err(Error::new(
                ErrorKind::Forked,
                format!(
                    "node id {node} belongs to the process this one was forked from; \
                     give the child a node id of its own"
                ),
            ));
        }
        if *self.nodes != *nodes {
            return Err(Error::new(
                ErrorKind::NodeInUse,
                format!(
                    "node id {node} is in use in this process together with other node ids; \
                     use the same list of node ids again, or node ids that are in no other list"
                ),
            ));
        }
        Ok(Some(Arc::clone(&self.word)))
    }
}

/// Returns a node id that two sorted lists share.
fn shared(one: &[u32], other: &[u32]) -> Option<u32> {
    one.iter().copied().find(|node| other.binary_search(node).is_ok())
}
