//! Which node ids this process, and the ones it was forked from, have had by hand.
//!
//! A list that only grows: entries are set once, never changed and never dropped, without a lock.
//! So a child of a process with many threads can read it whatever those were doing.

use std::sync::Arc;

use once_cell::race::OnceBox;

use crate::{Error, ErrorKind, Layout, Result, Secret, fork, word::Word};

/// Whose node ids they are: the same number is another node elsewhere.
#[derive(Clone)]
pub(crate) enum Scope {
    /// Those of Randflake under a secret.
    Secret(Secret),
    /// Those of unencrypted ids of a layout.
    Layout(Layout),
}

impl Scope {
    fn shares_ids_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Secret(one), Self::Secret(other)) => one.as_bytes() == other.as_bytes(),
            (Self::Layout(one), Self::Layout(other)) => one.packs_like(other),
            _ => false,
        }
    }

    /// Tells whether the slots of a tick stand for the same ids; asked of two that share ids.
    fn counts_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Layout(one), Self::Layout(other)) => one.sequence() == other.sequence(),
            _ => true,
        }
    }
}

struct Entry {
    epoch: u64,
    scope: Scope,
    nodes: Box<[u32]>,
    word: Arc<Word>,
    next: OnceBox<Self>,
}

static FIRST: OnceBox<Entry> = OnceBox::new();

/// Returns the word of so many slots that all generators with this scope and these node ids share.
///
/// # Errors
///
/// `NODE_IN_USE` if a generator of this process has some of these nodes with some others, or
/// begins its ticks otherwise; `FORKED` if an ancestor of this process had some of them.
pub(crate) fn word_of(scope: &Scope, nodes: &[u32], slots: u64) -> Result<Arc<Word>> {
    let life = fork::life();
    let epoch = life.epoch();
    let mut new: Option<Box<Entry>> = None;
    let mut end = &FIRST;
    loop {
        while let Some(entry) = end.get() {
            if let Some(word) = entry.word_for(epoch, scope, nodes)? {
                // A fork since the epoch was read would make the word the parent's.
                return if life.is_current(epoch) {
                    Ok(word)
                } else {
                    word_of(scope, nodes, slots)
                };
            }
            end = &entry.next;
        }
        let entry = new.take().unwrap_or_else(|| {
            Box::new(Entry {
                epoch,
                scope: scope.clone(),
                nodes: nodes.into(),
                word: Arc::new(Word::new(slots, 0)),
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
    fn word_for(&self, epoch: u64, scope: &Scope, nodes: &[u32]) -> Result<Option<Arc<Word>>> {
        if !self.scope.shares_ids_with(scope) {
            return Ok(None);
        }
        let Some(node) = shared(&self.nodes, nodes) else {
            return Ok(None);
        };
        if self.epoch != epoch {
            let message = match scope {
                Scope::Layout(layout) if layout.node_bits() == 0 => format!(
                    "the process this one was forked from makes ids of the layout {}, which has \
                     no node ids to tell two processes apart; use one that has",
                    layout.name()
                ),
                _ => format!(
                    "node id {node} belongs to the process this one was forked from; \
                     give the child a node id of its own"
                ),
            };
            return Err(Error::new(ErrorKind::Forked, message));
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
        if !self.scope.counts_like(scope) {
            return Err(Error::new(
                ErrorKind::NodeInUse,
                format!(
                    "node id {node} is in use in this process by a generator whose ticks begin \
                     with another sequence; use the same layout and Sequence again, or another \
                     node id"
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
