//! The number that stands for a holder, and the node ids that it asks for first.

use std::{fmt, time::Duration};

use randflake::{Clock as _, SystemClock};
use sha2::{Digest, Sha256};

use crate::{clocks::boot, node_ranges::NodeRanges, processor};

/// The holder of a lease, to a store: 128 random bits, made in memory for one lease of one process,
/// and never saved by it. A forked child uses its own tokens.
///
/// ```
/// use randflake_leases::Token;
/// let token = Token::random();
/// assert_ne!(token, Token::random());
/// assert_eq!(Token::from_bytes(*token.as_bytes()), token);
/// assert!(format!("{token:?}").len() < 20, "shortened");
/// ```
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Token([u8; 16]);

impl Token {
    /// Makes a fresh token from the operating system's random source, the processor's, if it has
    /// one, and two clocks: copies of a virtual machine may get the same numbers from the first
    /// source.
    ///
    /// # Panics
    ///
    /// If the operating system's random source fails.
    #[must_use]
    pub fn random() -> Self {
        let wall = SystemClock.now().unwrap_or_default();
        Self::mixed(random_bytes(), processor::random(), wall, boot())
    }

    fn mixed(system: [u8; 32], processor: u64, wall: i64, boot: Duration) -> Self {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(b"randflake token v1")
            .chain_update(system)
            .chain_update(processor.to_le_bytes())
            .chain_update(wall.to_le_bytes())
            .chain_update(boot.as_nanos().to_le_bytes())
            .finalize()
            .into();
        Self(*digest.first_chunk().expect("16 of 32 bytes"))
    }

    /// Takes a token as a store has kept it.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes for a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns an endless sequence of some of these node ids, derived from this token; one may
    /// occur twice. It is random, so that concurrent requests rarely collide, and so that requests
    /// to a store that lost writes rarely hit a lost lease. It depends only on the token, so that a
    /// repeated request asks for the same node ids.
    ///
    /// ```
    /// use randflake_leases::{NodeRanges, Token};
    /// let (token, node_ids) = (Token::random(), "0-3,8".parse::<NodeRanges>()?);
    /// let candidates: Vec<u32> = token.candidates(&node_ids).take(8).collect();
    /// assert!(candidates.iter().all(|node_id| node_ids.contains(*node_id)));
    /// assert!(token.candidates(&node_ids).take(8).eq(candidates));
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    #[allow(clippy::cast_possible_truncation, reason = "less than the count")]
    pub fn candidates(self, node_ids: &NodeRanges) -> impl Iterator<Item = u32> {
        let (node_ids, count) = (*node_ids, u64::from(node_ids.count()));
        (0_u32..).flat_map(move |block| {
            let digest: [u8; 32] = Sha256::new()
                .chain_update(b"randflake candidates v1")
                .chain_update(self.0)
                .chain_update(block.to_le_bytes())
                .finalize()
                .into();
            let words = digest.as_chunks::<4>().0.to_vec();
            words.into_iter().map(move |word| {
                let scaled = u64::from(u32::from_le_bytes(word)) * count;
                node_ids.nth((scaled >> 32) as u32)
            })
        })
    }
}

/// Shows the first four bytes: anyone who reads the whole token could renew or release the lease.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = *self.0.first_chunk().expect("16 bytes");
        write!(f, "Token({:08x}..)", u32::from_be_bytes(first))
    }
}

/// Makes a nonzero number that no copy of this process makes.
pub(crate) fn version() -> u64 {
    u64::from_le_bytes(*Token::random().0.first_chunk().expect("8 of 16 bytes")).max(1)
}

/// Returns random bytes of the operating system.
///
/// # Panics
///
/// The operating system has none.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has a random source");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_machine_make_different_tokens_if_anything_differs() {
        let nanosecond = Duration::from_nanos(1);
        let token =
            |system, processor, wall, boot| Token::mixed([system; 32], processor, wall, boot);
        let tokens = [
            token(0, 0, 0, Duration::ZERO),
            token(1, 0, 0, Duration::ZERO),
            token(0, 1, 0, Duration::ZERO),
            token(0, 0, 1, Duration::ZERO),
            token(0, 0, 0, nanosecond),
        ];
        for (index, token) in tokens.iter().enumerate() {
            assert!(!tokens[..index].contains(token), "{index}");
        }
        assert_eq!(tokens[4], token(0, 0, 0, nanosecond), "and only then");
    }
}
