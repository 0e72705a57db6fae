//! SPARX on vectors of blocks, with the instructions of x86-64.
//!
//! A vector holds the same word of as many blocks as it has 16-bit lanes, four vectors hold a
//! group of blocks. Several groups, and both branches of each, go through the rounds together,
//! so that the processor has work while an instruction waits for the one before it.
#![allow(unsafe_code, reason = "vector instructions, loads and stores")]

use super::{
    groups::{Direction, in_groups},
    rounds::RoundKeys,
};

/// From this many values on, a padded group is faster than one block after another.
const WORTH: usize = 3;

/// The vector instructions of the processor. Make a value only with [`Extension::detect`], or after
/// [`Extension::is_available`]: its instructions are used without another check.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extension {
    Sse2,
    Avx2,
    Avx512,
}

impl Extension {
    /// Slowest first.
    pub(super) const ALL: [Self; 3] = [Self::Sse2, Self::Avx2, Self::Avx512];

    /// Picks the fastest one.
    pub(super) fn detect() -> Option<Self> {
        Self::ALL.into_iter().rfind(|extension| extension.is_available())
    }

    pub(super) fn is_available(self) -> bool {
        match self {
            Self::Sse2 => is_x86_feature_detected!("sse2"),
            // The benchmark disables what other machines do not have.
            Self::Avx2 => !cfg!(randflake_no_avx2) && is_x86_feature_detected!("avx2"),
            Self::Avx512 => {
                !cfg!(randflake_no_avx512)
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi2")
            }
        }
    }

    /// Returns the few values at the end that are not worth a group.
    pub(super) fn groups<'a>(
        self,
        keys: &RoundKeys,
        direction: Direction,
        values: &'a mut [i64],
    ) -> &'a mut [i64] {
        match self {
            // SAFETY: SSE2 is part of x86-64.
            Self::Sse2 => unsafe { sse2::groups(keys, direction, values) },
            // SAFETY: a value is made only where the processor has the extension.
            Self::Avx2 => unsafe { avx2::groups(keys, direction, values) },
            // SAFETY: a value is made only where the processor has the extension.
            Self::Avx512 => unsafe { avx512::groups(keys, direction, values) },
        }
    }
}

/// The cipher in the instructions in scope, on each number of groups at a time, largest first.
macro_rules! cipher {
    (features: $features:literal, groups: $($groups:literal),+) => {
        use super::{Direction, RoundKeys, WORTH, in_groups};

        const LANES: usize = size_of::<Vector>() / size_of::<u16>();

        /// The values of a group.
        type Values = [i64; LANES];
        /// The words of a group.
        type Words = [Vector; 4];

        #[target_feature(enable = $features)]
        pub(super) fn groups<'a>(
            keys: &RoundKeys,
            direction: Direction,
            values: &'a mut [i64],
        ) -> &'a mut [i64] {
            $(
                let values = in_groups(values, WORTH, |groups: &mut [Values; $groups]| {
                    run(keys, direction, groups);
                });
            )+
            values
        }

        #[target_feature(enable = $features)]
        fn run<const G: usize>(keys: &RoundKeys, direction: Direction, groups: &mut [Values; G]) {
            match direction {
                Direction::Encrypt => encrypt(keys, groups),
                Direction::Decrypt => decrypt(keys, groups),
            }
        }

        #[target_feature(enable = $features)]
        fn encrypt<const G: usize>(keys: &RoundKeys, groups: &mut [Values; G]) {
            let mut words = load(groups);
            for [left, right] in &keys.steps {
                for (left, right) in left.iter().zip(right) {
                    let (k, l) = (fill(left[0]), fill(left[1]));
                    let (m, n) = (fill(right[0]), fill(right[1]));
                    for [a, b, c, d] in &mut words {
                        (*a, *b) = round(xor(*a, k), xor(*b, l));
                        (*c, *d) = round(xor(*c, m), xor(*d, n));
                    }
                }
                for [a, b, c, d] in &mut words {
                    let (x, y) = mix(*a, *b);
                    (*a, *b, *c, *d) = (xor(*c, x), xor(*d, y), *a, *b);
                }
            }
            add_last(keys, &mut words);
            store(words, groups);
        }

        #[target_feature(enable = $features)]
        fn decrypt<const G: usize>(keys: &RoundKeys, groups: &mut [Values; G]) {
            let mut words = load(groups);
            add_last(keys, &mut words);
            for [left, right] in keys.steps.iter().rev() {
                for [a, b, c, d] in &mut words {
                    let (x, y) = mix(*c, *d);
                    (*a, *b, *c, *d) = (*c, *d, xor(*a, x), xor(*b, y));
                }
                for (left, right) in left.iter().zip(right).rev() {
                    let (k, l) = (fill(left[0]), fill(left[1]));
                    let (m, n) = (fill(right[0]), fill(right[1]));
                    for [a, b, c, d] in &mut words {
                        let (x, y) = inverse_round(*c, *d);
                        (*c, *d) = (xor(x, m), xor(y, n));
                        let (x, y) = inverse_round(*a, *b);
                        (*a, *b) = (xor(x, k), xor(y, l));
                    }
                }
            }
            store(words, groups);
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn add_last<const G: usize>(keys: &RoundKeys, words: &mut [Words; G]) {
            for words in words {
                for (word, key) in words.iter_mut().zip(keys.last) {
                    *word = xor(*word, fill(key));
                }
            }
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn fill(key: u32) -> Vector {
            broadcast(key.cast_signed())
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn round(x: Vector, y: Vector) -> (Vector, Vector) {
            let x = add(or(shift_right::<7>(x), shift_left::<9>(x)), y);
            (x, xor(or(shift_left::<2>(y), shift_right::<14>(y)), x))
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn inverse_round(x: Vector, y: Vector) -> (Vector, Vector) {
            let y = xor(x, y);
            let y = or(shift_right::<2>(y), shift_left::<14>(y));
            let x = sub(x, y);
            (or(shift_left::<7>(x), shift_right::<9>(x)), y)
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn mix(x: Vector, y: Vector) -> (Vector, Vector) {
            let t = swap_bytes(xor(x, y));
            (xor(x, t), xor(y, t))
        }

        /// Swaps the bytes of each word: rotates it by 8.
        #[target_feature(enable = $features)]
        #[inline]
        fn swap_bytes(x: Vector) -> Vector {
            or(shift_left::<8>(x), shift_right::<8>(x))
        }

        /// Reads the values and gathers their words. The lane of a block does not matter, as long as
        /// `store` reverses it.
        #[target_feature(enable = $features)]
        #[inline]
        fn load<const G: usize>(groups: &[Values; G]) -> [Words; G] {
            const { assert!(size_of::<Values>() == size_of::<Words>()) };
            let groups = groups.as_ptr().cast::<[Words; G]>();
            // SAFETY: both have the same number of bytes, and any bytes are valid integers.
            let mut vectors = unsafe { groups.read_unaligned() };
            for vectors in &mut vectors {
                let (ab, cd) = gather(vectors[0], vectors[1]);
                let (a2b2, c2d2) = gather(vectors[2], vectors[3]);
                *vectors = [
                    low_quads(ab, a2b2),
                    high_quads(ab, a2b2),
                    low_quads(cd, c2d2),
                    high_quads(cd, c2d2),
                ];
                for word in vectors {
                    *word = swap_bytes(*word);
                }
            }
            vectors
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn gather(v: Vector, w: Vector) -> (Vector, Vector) {
            let (v, w) = (low_words(v, w), high_words(v, w));
            (low_words(v, w), high_words(v, w))
        }

        /// The inverse of `load`.
        #[target_feature(enable = $features)]
        #[inline]
        fn store<const G: usize>(mut words: [Words; G], groups: &mut [Values; G]) {
            for words in &mut words {
                for word in &mut *words {
                    *word = swap_bytes(*word);
                }
                let [a, b, c, d] = *words;
                let (ab, a2b2) = (low_words(a, b), high_words(a, b));
                let (cd, c2d2) = (low_words(c, d), high_words(c, d));
                *words = [
                    low_pairs(ab, cd),
                    high_pairs(ab, cd),
                    low_pairs(a2b2, c2d2),
                    high_pairs(a2b2, c2d2),
                ];
            }
            let groups = groups.as_mut_ptr().cast::<[Words; G]>();
            // SAFETY: both have the same number of bytes, and any bytes are valid integers.
            unsafe { groups.write_unaligned(words) };
        }
    };
}

mod sse2 {
    use std::arch::x86_64::{
        __m128i as Vector, _mm_add_epi16 as add, _mm_or_si128 as or, _mm_set1_epi32 as broadcast,
        _mm_slli_epi16 as shift_left, _mm_srli_epi16 as shift_right, _mm_sub_epi16 as sub,
        _mm_unpackhi_epi16 as high_words, _mm_unpackhi_epi32 as high_pairs,
        _mm_unpackhi_epi64 as high_quads, _mm_unpacklo_epi16 as low_words,
        _mm_unpacklo_epi32 as low_pairs, _mm_unpacklo_epi64 as low_quads, _mm_xor_si128 as xor,
    };

    cipher!(features: "sse2", groups: 2, 1);
}

mod avx2 {
    use std::arch::x86_64::{
        __m256i as Vector, _mm256_add_epi16 as add, _mm256_or_si256 as or,
        _mm256_set1_epi32 as broadcast, _mm256_slli_epi16 as shift_left,
        _mm256_srli_epi16 as shift_right, _mm256_sub_epi16 as sub,
        _mm256_unpackhi_epi16 as high_words, _mm256_unpackhi_epi32 as high_pairs,
        _mm256_unpackhi_epi64 as high_quads, _mm256_unpacklo_epi16 as low_words,
        _mm256_unpacklo_epi32 as low_pairs, _mm256_unpacklo_epi64 as low_quads,
        _mm256_xor_si256 as xor,
    };

    cipher!(features: "avx2", groups: 2, 1);
}

mod avx512 {
    use std::arch::x86_64::{
        __m512i as Vector, _mm512_add_epi16 as add, _mm512_or_si512 as or,
        _mm512_set1_epi32 as broadcast, _mm512_slli_epi16 as shift_left,
        _mm512_srli_epi16 as shift_right, _mm512_sub_epi16 as sub,
        _mm512_unpackhi_epi16 as high_words, _mm512_unpackhi_epi32 as high_pairs,
        _mm512_unpackhi_epi64 as high_quads, _mm512_unpacklo_epi16 as low_words,
        _mm512_unpacklo_epi32 as low_pairs, _mm512_unpacklo_epi64 as low_quads,
        _mm512_xor_si512 as xor,
    };

    cipher!(features: "avx512bw,avx512vl,avx512vbmi2", groups: 4, 2, 1);
}
