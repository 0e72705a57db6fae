//! SPARX on arrays of blocks: the scalar rounds, in loops that the compiler turns into vector
//! instructions.

use super::{
    groups::{Direction, in_groups},
    rounds::{RoundKeys, Subkey, from_block, inverse_round, mix, once, round, to_block},
};

/// The fastest of 16, 32, 64 and 128 on x86-64; fills half of the vector registers of aarch64.
const LANES: usize = 32;
/// From this many values on, a padded group is faster than one block after another.
const WORTH: usize = 9;

/// One word of each block.
type Words = [u16; LANES];

/// Returns the few values at the end that are not worth a group.
pub(super) fn groups<'a>(
    keys: &RoundKeys,
    direction: Direction,
    values: &'a mut [i64],
) -> &'a mut [i64] {
    in_groups(values, WORTH, |[values]: &mut [[i64; LANES]; 1]| {
        let [mut a, mut b, mut c, mut d] = [[0; LANES]; 4];
        for (i, value) in values.iter().enumerate() {
            [a[i], b[i], c[i], d[i]] = to_block(value.cast_unsigned());
        }
        let [a, b, c, d] = match direction {
            Direction::Encrypt => encrypt(keys, [a, b, c, d]),
            Direction::Decrypt => decrypt(keys, [a, b, c, d]),
        };
        for (i, value) in values.iter_mut().enumerate() {
            *value = from_block([a[i], b[i], c[i], d[i]]).cast_signed();
        }
    })
}

#[inline(never)]
fn encrypt(keys: &RoundKeys, [mut a, mut b, mut c, mut d]: [Words; 4]) -> [Words; 4] {
    for [left, right] in &keys.steps {
        rounds(left, &mut a, &mut b);
        rounds(right, &mut c, &mut d);
        for i in 0..LANES {
            let (x, y) = mix(a[i], b[i]);
            (a[i], b[i], c[i], d[i]) = (c[i] ^ x, d[i] ^ y, a[i], b[i]);
        }
    }
    for (words, key) in [&mut a, &mut b, &mut c, &mut d].into_iter().zip(keys.last) {
        add(words, key);
    }
    [a, b, c, d]
}

#[inline(never)]
fn decrypt(keys: &RoundKeys, [mut a, mut b, mut c, mut d]: [Words; 4]) -> [Words; 4] {
    for (words, key) in [&mut a, &mut b, &mut c, &mut d].into_iter().zip(keys.last) {
        add(words, key);
    }
    for [left, right] in keys.steps.iter().rev() {
        for i in 0..LANES {
            let (x, y) = mix(c[i], d[i]);
            (a[i], b[i], c[i], d[i]) = (c[i], d[i], a[i] ^ x, b[i] ^ y);
        }
        inverse_rounds(right, &mut c, &mut d);
        inverse_rounds(left, &mut a, &mut b);
    }
    [a, b, c, d]
}

fn rounds(subkey: &Subkey, x: &mut Words, y: &mut Words) {
    for (x, y) in x.iter_mut().zip(y) {
        for key in subkey {
            (*x, *y) = round(*x ^ once(key[0]), *y ^ once(key[1]));
        }
    }
}

fn inverse_rounds(subkey: &Subkey, x: &mut Words, y: &mut Words) {
    for (x, y) in x.iter_mut().zip(y) {
        for key in subkey.iter().rev() {
            (*x, *y) = inverse_round(*x, *y);
            (*x, *y) = (*x ^ once(key[0]), *y ^ once(key[1]));
        }
    }
}

fn add(words: &mut Words, key: u32) {
    for word in words {
        *word ^= once(key);
    }
}
