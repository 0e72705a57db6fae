//! Keys of 128 bits for states, and a set of such keys. They are only fast: no key comes from an
//! attacker, and two states with the same key would show up as a different number of states.

use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hash, Hasher},
};

/// The keys seen so far.
pub(crate) type Keys = HashSet<u128, BuildHasherDefault<KeyHasher>>;

/// Returns the key of a state.
pub(crate) fn key_of(state: &impl Hash) -> u128 {
    let mut digest = Digest { low: ODD[0], high: ODD[1] };
    state.hash(&mut digest);
    u128::from(digest.low) << 64 | u128::from(fold(digest.high, ODD[2]))
}

const ODD: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 0xA24B_AED4_963E_E407, 0x9FB2_1C65_1E98_DF25];

/// Two sums, each folded with the next input in its own way.
struct Digest {
    low: u64,
    high: u64,
}

impl Digest {
    fn push(&mut self, value: u64) {
        self.low = fold(self.low ^ value, ODD[3]).wrapping_add(self.high);
        self.high = fold(self.high.rotate_left(29) ^ value, ODD[0]).wrapping_add(ODD[1]);
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.push(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.push(value.into());
    }

    fn finish(&self) -> u64 {
        self.low
    }
}

/// A hasher of keys.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u128");
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves go in")]
    fn write_u128(&mut self, key: u128) {
        self.0 = fold(key as u64 ^ ODD[0], (key >> 64) as u64 ^ ODD[1]);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// As in a multiply-and-fold hash: every bit of one meets every bit of the other.
#[expect(clippy::cast_possible_truncation, reason = "both halves go in")]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}
