//! SPARX-64/128, after Dinu, Perrin, Udovenko, Velichkov, Großschädl and Biryukov, "Design
//! Strategies for ARX with Provable Bounds: SPARX and LAX", ASIACRYPT 2016 (section numbers below
//! are that paper's, extended version).
//!
//! A block is four 16-bit words: two 32-bit branches of two words each. Eight steps; in a step
//! each branch goes through three rounds of SPECKEY, then the branches are mixed linearly.
#![allow(clippy::many_single_char_names, reason = "the words of a block")]

mod batch;
mod groups;
#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
mod no_extension;
mod portable;
mod rounds;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod x86_64;

use crate::{Secret, secret::erasing_the_stack};

#[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
use self::no_extension::Extension;
use self::rounds::{RoundKeys, from_block, inverse_keyed_round, mix, once, round, to_block};
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use self::x86_64::Extension;

/// The cipher under one key.
pub(crate) struct Sparx {
    /// Boxed, and expanded in place: moving a value leaves a copy of its bytes behind, which would not
    /// be erased.
    keys: Box<RoundKeys>,
    /// The vector instructions for many blocks; with `None`, the portable code is used.
    extension: Option<Extension>,
}

impl Clone for Sparx {
    fn clone(&self) -> Self {
        let mut keys = RoundKeys::zero();
        keys.steps.copy_from_slice(&self.keys.steps);
        keys.last.copy_from_slice(&self.keys.last);
        Self { keys, extension: self.extension }
    }
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

    /// Decrypts one block: the inverse of [`Sparx::encrypt`].
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

    /// Decrypts an id: the inverse of [`Sparx::encrypt_raw`].
    #[inline(never)]
    pub(crate) fn decrypt_id(&self, id: i64) -> u64 {
        from_block(self.decrypt(to_block(id.cast_unsigned())))
    }
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
            // That crate reads the words of the key and the block as little-endian.
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
