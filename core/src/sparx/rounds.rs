//! The key schedule and the rounds, of one block.

use zeroize::Zeroize;

use crate::Secret;

const BRANCHES: usize = 2;
const STEPS: usize = 8;
const ROUNDS: usize = 3;

/// The key words of one branch in one step, two for each round. Each word is in both halves of its
/// `u32`, which fills a vector faster.
pub(super) type Subkey = [[u32; 2]; ROUNDS];

/// The expanded key. Zeroized when dropped.
pub(super) struct RoundKeys {
    pub(super) steps: [[Subkey; BRANCHES]; STEPS],
    /// Added after the last step.
    pub(super) last: [u32; 4],
}

impl Drop for RoundKeys {
    fn drop(&mut self) {
        self.steps.zeroize();
        self.last.zeroize();
    }
}

impl RoundKeys {
    pub(super) fn zero() -> Box<Self> {
        Box::new(Self { steps: Default::default(), last: Default::default() })
    }

    /// Expands the key with the permutation of SPARX-64/128's key schedule (section 3.3, K₄⁶⁴).
    pub(super) fn expand(&mut self, secret: &Secret) {
        let mut key = [0_u16; 8];
        for (word, bytes) in key.iter_mut().zip(secret.as_bytes().chunks_exact(2)) {
            *word = u16::from_be_bytes([bytes[0], bytes[1]]);
        }
        for (subkey, counter) in self.steps.as_flattened_mut().iter_mut().zip(1_u16..) {
            for (round_key, word) in subkey.as_flattened_mut().iter_mut().zip(&key) {
                *round_key = twice(*word);
            }
            (key[0], key[1]) = round(key[0], key[1]);
            key[2] = key[2].wrapping_add(key[0]);
            key[3] = key[3].wrapping_add(key[1]);
            key[7] = key[7].wrapping_add(counter);
            key.rotate_right(2);
        }
        for (round_key, word) in self.last.iter_mut().zip(&key) {
            *round_key = twice(*word);
        }
        key.zeroize();
    }
}

/// Puts a key word into both halves.
const fn twice(word: u16) -> u32 {
    (word as u32) << 16 | word as u32
}

/// Takes a key word back.
#[allow(clippy::cast_possible_truncation, reason = "both halves are the word")]
pub(super) const fn once(twice: u32) -> u16 {
    twice as u16
}

/// `A`, one unkeyed round of SPECKEY (section 3.2).
pub(super) const fn round(x: u16, y: u16) -> (u16, u16) {
    let x = x.rotate_right(7).wrapping_add(y);
    (x, y.rotate_left(2) ^ x)
}

/// The inverse of [`round`].
pub(super) const fn inverse_round(x: u16, y: u16) -> (u16, u16) {
    let y = (x ^ y).rotate_right(2);
    (x.wrapping_sub(y).rotate_left(7), y)
}

/// [`inverse_round`] and the key addition, from `x` and `x ^ y` to `x`, `y` and `x ^ y`. Each
/// instruction of a decryption waits for the one before it; this way there are four per round.
pub(super) const fn inverse_keyed_round(x: u16, sum: u16, key: [u32; 2]) -> (u16, u16, u16) {
    let y = sum.rotate_right(2);
    let x = x.wrapping_sub(y).rotate_left(7);
    let sum = x ^ (y ^ once(key[0] ^ key[1]));
    (x ^ once(key[0]), y ^ once(key[1]), sum)
}

/// The mixing function of `L₂`, what the left branch adds to the right one (section 3.3).
pub(super) const fn mix(x: u16, y: u16) -> (u16, u16) {
    let t = (x ^ y).rotate_left(8);
    (x ^ t, y ^ t)
}

pub(super) fn to_block(value: u64) -> [u16; 4] {
    let b = value.to_le_bytes();
    [[b[0], b[1]], [b[2], b[3]], [b[4], b[5]], [b[6], b[7]]].map(u16::from_be_bytes)
}

pub(super) fn from_block(block: [u16; 4]) -> u64 {
    let [a, b, c, d] = block.map(u16::to_be_bytes);
    u64::from_le_bytes([a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]])
}
