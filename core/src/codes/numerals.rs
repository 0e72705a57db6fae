//! Numeral strings for FF1, in two integers: at most 12 numerals below 62 in each, so 72 bits.

use std::sync::Arc;

use aes::{
    Aes256,
    cipher::{
        BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, Key as KeyBytes, KeyInit,
        KeySizeUser,
    },
};
use fpe::ff1::{NumeralString, Operations};

/// AES-256 whose copies share one key: FF1 copies the cipher for each round, and what is left of a
/// copy on the stack would have to be erased.
#[derive(Clone)]
pub(super) struct Key(Arc<Aes256>);

impl KeySizeUser for Key {
    type KeySize = <Aes256 as KeySizeUser>::KeySize;
}

impl KeyInit for Key {
    fn new(key: &KeyBytes<Self>) -> Self {
        Self(Arc::new(Aes256::new(key)))
    }
}

impl BlockSizeUser for Key {
    type BlockSize = <Aes256 as BlockSizeUser>::BlockSize;
}

impl BlockCipherEncrypt for Key {
    fn encrypt_with_backend(&self, f: impl BlockCipherEncClosure<BlockSize = Self::BlockSize>) {
        self.0.encrypt_with_backend(f);
    }
}

/// The size of a half.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) numerals: usize,
    /// The radix to the power of `numerals`.
    numbers: u128,
}

impl Size {
    pub(super) fn new(numerals: usize, radix: u8) -> Self {
        let numbers = (0..numerals).fold(1, |numbers, _| numbers * u128::from(radix));
        Self { numerals, numbers }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Half {
    size: Size,
    value: u128,
}

impl Half {
    fn new(size: Size, value: u128) -> Self {
        Self { size, value: value % size.numbers }
    }

    /// Makes a half of numerals, the highest first.
    fn read(numerals: &[u8], radix: u8, size: Size) -> Self {
        let next = |value, numeral: &u8| value * u128::from(radix) + u128::from(*numeral);
        Self::new(size, numerals.iter().fold(0, next))
    }

    /// Writes the numerals, the highest first.
    #[allow(clippy::cast_possible_truncation, reason = "a remainder is below the radix")]
    fn write(mut self, numerals: &mut [u8], radix: u8) {
        for numeral in numerals.iter_mut().rev() {
            *numeral = (self.value % u128::from(radix)) as u8;
            self.value /= u128::from(radix);
        }
    }
}

/// A whole numeral string.
pub(super) struct Numerals([Half; 2]);

impl Numerals {
    /// The numerals of a number below 2⁶⁴, with zeros before it.
    pub(super) fn new(number: u128, [high, low]: [Size; 2]) -> Self {
        Self([Half::new(high, number / low.numbers), Half::new(low, number)])
    }

    pub(super) fn read(numerals: &[u8], radix: u8, [high, low]: [Size; 2]) -> Self {
        let (left, right) = numerals.split_at(high.numerals);
        Self([Half::read(left, radix, high), Half::read(right, radix, low)])
    }

    /// Writes the numerals, the highest first. There must be room for all.
    pub(super) fn write(&self, numerals: &mut [u8], radix: u8) {
        let [high, low] = self.0;
        let (left, right) = numerals.split_at_mut(high.size.numerals);
        high.write(left, radix);
        low.write(right, radix);
    }

    /// The number, if 128 bits hold it.
    pub(super) fn value(&self) -> Option<u128> {
        let [high, low] = self.0;
        high.value.checked_mul(low.size.numbers)?.checked_add(low.value)
    }
}

impl NumeralString for Numerals {
    type Ops = Half;

    fn is_valid(&self, _radix: u32) -> bool {
        true
    }

    fn numeral_count(&self) -> usize {
        self.0.iter().map(|half| half.size.numerals).sum()
    }

    fn split(&self) -> (Half, Half) {
        self.0.into()
    }

    fn concat(high: Half, low: Half) -> Self {
        Self([high, low])
    }
}

impl Operations for Half {
    type Bytes = Bytes;

    fn numeral_count(&self) -> usize {
        self.size.numerals
    }

    fn to_be_bytes(&self, _radix: u32, count: usize) -> Bytes {
        Bytes { all: self.value.to_be_bytes(), count }
    }

    fn add_mod_exp(self, other: impl Iterator<Item = u8>, _radix: u32, _numerals: usize) -> Self {
        Self::new(self.size, self.value + number_of(other) % self.size.numbers)
    }

    fn sub_mod_exp(self, other: impl Iterator<Item = u8>, _radix: u32, _numerals: usize) -> Self {
        let other = number_of(other) % self.size.numbers;
        Self::new(self.size, self.value + self.size.numbers - other)
    }
}

/// The last `count` bytes of a number.
pub(super) struct Bytes {
    all: [u8; 16],
    count: usize,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.all[self.all.len() - self.count..]
    }
}

/// Reads a number of FF1's step 6iv: 4⌈b/4⌉ + 4 bytes, where b is at most 9 here, so at most 16.
fn number_of(bytes: impl Iterator<Item = u8>) -> u128 {
    bytes.fold(0, |number, byte| number << 8 | u128::from(byte))
}
