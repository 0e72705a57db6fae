//! SPARX-64/128, after Dinu, Perrin, Udovenko, Velichkov, Großschädl and Biryukov, "Design
//! Strategies for ARX with Provable Bounds: SPARX and LAX", ASIACRYPT 2016 (section numbers below
//! are that paper's, extended version).
//!
//! A block is four 16-bit words: two 32-bit branches of two words each. Eight steps; in a step
//! each branch goes through three rounds of SPECKEY, then the branches are mixed linearly.
#![allow(clippy::many_single_char_names, reason = "the words of a block")]

mod batch;
#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
mod no_extension;
mod portable;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod x86_64;

use zeroize::Zeroize;

use crate::{Secret, secret::erasing_the_stack};

#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
use self::no_extension::Extension;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use self::x86_64::Extension;

const BRANCHES: usize = 2;
const STEPS: usize = 8;
const ROUNDS: usize = 3;

/// The key words of one branch in one step, two for each round. Each word stands in both halves
/// of its `u32`: it fills a vector faster that way.
type Subkey = [[u32; 2]; ROUNDS];

/// The expanded key. Zeroized when dropped.
struct RoundKeys {
    steps: [[Subkey; BRANCHES]; STEPS],
    /// Added after the last step.
    last: [u32; 4],
}

impl Drop for RoundKeys {
    fn drop(&mut self) {
        self.steps.zeroize();
        self.last.zeroize();
    }
}

/// The cipher under one key.
pub(crate) struct Sparx {
    /// Boxed, and expanded in place: whoever moves a value leaves a copy of its bytes behind, which
    /// nobody erases.
    keys: Box<RoundKeys>,
    /// What encrypts and decrypts many blocks; without one, the portable code does.
    extension: Option<Extension>,
}

impl RoundKeys {
    fn zero() -> Box<Self> {
        Box::new(Self { steps: Default::default(), last: Default::default() })
    }

    /// Expands the key with the permutation of SPARX-64/128's key schedule (section 3.3, K₄⁶⁴).
    fn expand(&mut self, secret: &Secret) {
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

impl Clone for Sparx {
    fn clone(&self) -> Self {
        let mut keys = RoundKeys::zero();
        keys.steps.copy_from_slice(&self.keys.steps);
        keys.last.copy_from_slice(&self.keys.last);
        Self { keys, extension: self.extension }
    }
}

/// Puts a key word into both halves.
const fn twice(word: u16) -> u32 {
    (word as u32) << 16 | word as u32
}

/// Takes a key word back.
#[allow(clippy::cast_possible_truncation, reason = "both halves are the word")]
const fn once(twice: u32) -> u16 {
    twice as u16
}

/// `A`, one unkeyed round of SPECKEY (section 3.2).
const fn round(x: u16, y: u16) -> (u16, u16) {
    let x = x.rotate_right(7).wrapping_add(y);
    (x, y.rotate_left(2) ^ x)
}

/// The inverse of [`round`].
const fn inverse_round(x: u16, y: u16) -> (u16, u16) {
    let y = (x ^ y).rotate_right(2);
    (x.wrapping_sub(y).rotate_left(7), y)
}

/// [`inverse_round`] and the key addition, from `x` and `x ^ y` to `x`, `y` and `x ^ y`. Decrypting
/// one block is waiting for one instruction after the other; this way it waits for four a round.
const fn inverse_keyed_round(x: u16, sum: u16, key: [u32; 2]) -> (u16, u16, u16) {
    let y = sum.rotate_right(2);
    let x = x.wrapping_sub(y).rotate_left(7);
    let sum = x ^ (y ^ once(key[0] ^ key[1]));
    (x ^ once(key[0]), y ^ once(key[1]), sum)
}

/// The mixing function of `L₂`, what the left branch adds to the right one (section 3.3).
const fn mix(x: u16, y: u16) -> (u16, u16) {
    let t = (x ^ y).rotate_left(8);
    (x ^ t, y ^ t)
}

impl Sparx {
    /// Makes the cipher under a key.
    pub(crate) fn new(secret: &Secret) -> Self {
        let mut keys = RoundKeys::zero();
        erasing_the_stack(|| keys.expand(secret));
        Self { keys, extension: Extension::detect() }
    }

    /// Encrypts one block (section 3.1).
    #[inline]
    pub(crate) fn encrypt(&self, block: [u16; 4]) -> [u16; 4] {
        let [mut a, mut b, mut c, mut d] = block;
        for [left, right] in &self.keys.steps {
            // The right branch first: LLVM finds an order that is a tenth faster.
            for key in right {
                (c, d) = round(c ^ once(key[0]), d ^ once(key[1]));
            }
            for key in left {
                (a, b) = round(a ^ once(key[0]), b ^ once(key[1]));
            }
            // L₂: the mixed left branch is added to the right one, and the branches swap.
            let (x, y) = mix(a, b);
            (a, b, c, d) = (c ^ x, d ^ y, a, b);
        }
        let last = self.keys.last.map(once);
        [a ^ last[0], b ^ last[1], c ^ last[2], d ^ last[3]]
    }

    /// Decrypts one block: [`Sparx::encrypt`] backwards.
    #[inline]
    pub(crate) fn decrypt(&self, block: [u16; 4]) -> [u16; 4] {
        let last = self.keys.last.map(once);
        let [mut a, mut b, mut c, mut d] = block;
        (a, b, c, d) = (a ^ last[0], b ^ last[1], c ^ last[2], d ^ last[3]);
        for [left, right] in self.keys.steps.iter().rev() {
            let (x, y) = mix(c, d);
            (a, b, c, d) = (c, d, a ^ x, b ^ y);
            let (mut left_sum, mut right_sum) = (a ^ b, c ^ d);
            for (l, r) in left.iter().zip(right).rev() {
                (c, d, right_sum) = inverse_keyed_round(c, right_sum, *r);
                (a, b, left_sum) = inverse_keyed_round(a, left_sum, *l);
            }
        }
        [a, b, c, d]
    }

    /// Encrypts a raw value: its bytes, least significant first, are read as big-endian words,
    /// and the block is read back the same way.
    #[inline(never)] // inlined into a loop, LLVM makes it a third slower
    pub(crate) fn encrypt_raw(&self, raw: u64) -> i64 {
        from_block(self.encrypt(to_block(raw))).cast_signed()
    }

    /// Decrypts an id: [`Sparx::encrypt_raw`] backwards.
    #[inline(never)]
    pub(crate) fn decrypt_id(&self, id: i64) -> u64 {
        from_block(self.decrypt(to_block(id.cast_unsigned())))
    }
}

fn to_block(value: u64) -> [u16; 4] {
    let b = value.to_le_bytes();
    [[b[0], b[1]], [b[2], b[3]], [b[4], b[5]], [b[6], b[7]]].map(u16::from_be_bytes)
}

fn from_block(block: [u16; 4]) -> u64 {
    let [a, b, c, d] = block.map(u16::to_be_bytes);
    u64::from_le_bytes([a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sparx::sparx64;

    use super::*;

    #[test]
    fn known_answer_of_the_paper() {
        let secret: Secret = "00112233445566778899aabbccddeeff".parse().expect("hex");
        let sparx = Sparx::new(&secret);
        let plaintext = [0x0123, 0x4567, 0x89ab, 0xcdef];
        let ciphertext = [0x2bbe, 0xf152, 0x01f5, 0x5f98];
        assert_eq!(sparx.encrypt(plaintext), ciphertext);
        assert_eq!(sparx.decrypt(ciphertext), plaintext);
    }

    proptest! {
        #[test]
        fn agrees_with_the_sparx_crate(key: [u8; 16], raw: u64) {
            let sparx = Sparx::new(&Secret::from_bytes(&key).expect("16 bytes"));
            // That crate reads the words of key and block little-endian.
            let their_key = sparx64::key_schedule_encrypt(&swap_bytes(key));
            let mut block = swap_bytes(raw.to_le_bytes());
            sparx64::encrypt_block(&mut block, &their_key);
            let id = i64::from_le_bytes(swap_bytes(block));
            prop_assert_eq!(sparx.encrypt_raw(raw), id);
            prop_assert_eq!(sparx.decrypt_id(id), raw);
        }
    }

    /// Swaps the bytes of each 16-bit word.
    fn swap_bytes<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
        bytes.chunks_exact_mut(2).for_each(|word| word.swap(0, 1));
        bytes
    }
}
