//! Turns numbers into codes that people type: vouchers, order numbers, invitations.

mod alphabet;
mod numerals;

use std::{fmt, sync::Arc};

use fpe::ff1::FF1;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use self::{
    alphabet::Alphabet,
    numerals::{Key, Numerals, Size},
};
use crate::{Error, ErrorKind, Result, Secret, secret::erasing_the_stack};

/// The purpose of the derived key; the label follows it.
const INFO: &[u8] = b"randflake codes v1";

/// The fewest numeral strings of FF1, in NIST SP 800-38G revision 1 (draft), section 5.1.
const FEWEST: u128 = 1_000_000;

/// Turns the numbers 0, 1, 2 … into codes of a fixed length that look random, and back.
///
/// Each number has one code and each code at most one number, so nothing collides. The numbers come
/// from a counter of yours, such as a sequence of the database. The label names the purpose, such
/// as `"vouchers"`: another label is another key. Use one label for one kind of code.
///
/// The cipher is FF1 of NIST SP 800-38G with AES-256. A code is not a permission: whoever guesses
/// one has one. With a `check` of n symbols, one guess in radixⁿ is a code.
///
/// ```
/// use randflake::{Codes, Secret};
///
/// let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
/// let codes = Codes::builder(&secret, "orders").build()?;
/// assert_eq!(codes.encode(1)?, "86483743");
/// assert_eq!(codes.decode("86483743")?, 1);
///
/// let vouchers =
///     Codes::builder(&secret, "vouchers").length(10).alphabet("crockford").check(3).build()?;
/// let code = vouchers.encode(1)?;
/// assert_eq!(code, "EN37V7WQP7");
/// assert_eq!(vouchers.decode(&code.to_lowercase())?, 1);
/// assert!(vouchers.decode("0123456789").is_err());
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone)]
pub struct Codes {
    cipher: Arc<FF1<Key>>,
    alphabet: Alphabet,
    halves: [Size; 2],
    check: usize,
    capacity: u128,
}

impl Codes {
    /// The fewest symbols of a code.
    pub const MIN_LENGTH: usize = 4;
    /// The most symbols of a code.
    pub const MAX_LENGTH: usize = 24;

    /// Begins to make codes; see the methods of the builder for what can be set.
    ///
    /// The key is HKDF-SHA256 of the secret, without salt, for `randflake codes v1` and then the
    /// label.
    pub fn builder<'a>(secret: &'a Secret, label: &'a str) -> CodesBuilder<'a> {
        CodesBuilder { secret, label, length: 8, alphabet: "digits", check: 0 }
    }

    /// Returns the code of a number, in the symbols of the alphabet.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](ErrorKind::InvalidId): the number is not below [`capacity`](Self::capacity).
    pub fn encode(&self, number: u64) -> Result<String> {
        if u128::from(number) >= self.capacity {
            return Err(self.out_of_range(number));
        }
        let numerals = Numerals::new(number.into(), self.halves);
        let code = self.cipher.encrypt(&[], &numerals).map_err(defect)?;
        let mut text = vec![0; self.length()];
        code.write(&mut text, self.alphabet.radix());
        for symbol in &mut text {
            *symbol = self.alphabet.symbol(*symbol);
        }
        String::from_utf8(text).map_err(defect)
    }

    /// Returns the number of a code.
    ///
    /// If the alphabet has no letter in both cases, either case is read. `crockford` reads O as 0,
    /// and I and L as 1. Anything else, such as a space or a hyphen, is refused.
    ///
    /// # Errors
    ///
    /// [`InvalidId`](ErrorKind::InvalidId): another length, another symbol, or a check that is not
    /// right.
    pub fn decode(&self, code: &str) -> Result<u64> {
        let mut numerals = [0; Self::MAX_LENGTH];
        let numerals = &mut numerals[..self.length()];
        if code.chars().count() != numerals.len() {
            return Err(self.other_length(code.chars().count()));
        }
        for (index, (numeral, symbol)) in numerals.iter_mut().zip(code.chars()).enumerate() {
            *numeral = self.alphabet.value(symbol).ok_or_else(|| self.other_symbol(index))?;
        }
        let code = Numerals::read(numerals, self.alphabet.radix(), self.halves);
        let number = self.cipher.decrypt(&[], &code).map_err(defect)?;
        let number = number.value().filter(|number| *number < self.capacity);
        number.and_then(|number| u64::try_from(number).ok()).ok_or_else(none_of_these)
    }

    /// Returns how many numbers have codes: the radix to the power of the length without the check,
    /// at most 2⁶⁴.
    ///
    /// ```
    /// # use randflake::{Codes, Secret};
    /// let codes = Codes::builder(&Secret::random(), "orders").length(8).check(2).build()?;
    /// assert_eq!(codes.capacity(), 1_000_000);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> u128 {
        self.capacity
    }

    /// Returns a regular expression that matches all that [`decode`](Self::decode) reads, and also
    /// texts that are no codes, such as with a wrong check. For JSON schemas.
    ///
    /// ```
    /// # use randflake::{Codes, Secret};
    /// let codes = Codes::builder(&Secret::random(), "orders").length(6).build()?;
    /// assert_eq!(codes.pattern(), "^[0-9]{6}$");
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn pattern(&self) -> String {
        format!("^[{}]{{{}}}$", self.alphabet.class(), self.length())
    }

    /// Returns the number of symbols of each code.
    #[must_use]
    pub fn length(&self) -> usize {
        self.halves.iter().map(|half| half.numerals).sum()
    }

    /// Returns the symbols of the alphabet, in the order of their values.
    #[must_use]
    pub fn alphabet(&self) -> &str {
        self.alphabet.symbols()
    }

    /// Returns how many of the symbols are a check.
    #[must_use]
    pub fn check(&self) -> usize {
        self.check
    }

    #[cold]
    fn out_of_range(&self, number: u64) -> Error {
        invalid(format!(
            "these codes cover the numbers 0 to {}, got {number}; for more, make longer codes under \
             another label",
            self.capacity - 1,
        ))
    }

    #[cold]
    fn other_length(&self, got: usize) -> Error {
        invalid(format!("a code here has {} characters, got {got}", self.length()))
    }

    #[cold]
    fn other_symbol(&self, index: usize) -> Error {
        let symbols = self.alphabet.class();
        invalid(format!("character {} of this code is not one of {symbols}", index + 1))
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codes")
            .field("length", &self.length())
            .field("alphabet", &self.alphabet())
            .field("check", &self.check)
            .finish_non_exhaustive()
    }
}

/// What [`Codes`] are made from: a secret, a label, and what is set here.
#[must_use = "call build"]
#[derive(Clone, Debug)]
pub struct CodesBuilder<'a> {
    secret: &'a Secret,
    label: &'a str,
    length: usize,
    alphabet: &'a str,
    check: usize,
}

impl<'a> CodesBuilder<'a> {
    /// Sets the number of symbols of each code: 4 to 24, 8 unless set. There must be at least a
    /// million texts of that length, so 6 digits are the fewest.
    pub fn length(mut self, length: usize) -> Self {
        self.length = length;
        self
    }

    /// Sets the symbols, `"digits"` unless set:
    ///
    /// - `"digits"`: 0 to 9.
    /// - `"crockford"`: 0 to 9 and A to Z without I, L, O and U, as Douglas Crockford's base 32. It
    ///   reads O as 0, and I and L as 1.
    /// - `"letters"`: A to Z without A, E, I, O, U and Y, so that codes contain no words.
    /// - Your own: 10 to 62 ASCII letters and digits, each once, in the order of their values.
    pub fn alphabet(mut self, alphabet: &'a str) -> Self {
        self.alphabet = alphabet;
        self
    }

    /// Sets how many of the symbols are a check: 0 unless set, and fewer than the length. Codes of
    /// one length, label and alphabet are the same with every check.
    pub fn check(mut self, check: usize) -> Self {
        self.check = check;
        self
    }

    /// Makes the codes.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument): a length, an alphabet or a check that is
    /// not as above, or fewer than a million texts.
    ///
    /// # Panics
    ///
    /// Never: a key of 32 bytes can always be derived.
    pub fn build(self) -> Result<Codes> {
        let Self { secret, label, length, alphabet, check } = self;
        let alphabet = Alphabet::new(alphabet)?;
        if !(Codes::MIN_LENGTH..=Codes::MAX_LENGTH).contains(&length) {
            let (least, most) = (Codes::MIN_LENGTH, Codes::MAX_LENGTH);
            return Err(Error::invalid_argument(format!(
                "length must be {least} to {most} symbols, got {length}"
            )));
        }
        if check >= length {
            return Err(Error::invalid_argument(format!(
                "check must be 0 to {}, fewer symbols than the length, got {check}",
                length - 1
            )));
        }
        let radix = alphabet.radix();
        let texts = |length: usize| u128::from(radix).checked_pow(length.try_into().ok()?);
        if texts(length).is_some_and(|texts| texts < FEWEST) {
            let enough = (length..Codes::MAX_LENGTH).find(|length| texts(*length) >= Some(FEWEST));
            return Err(Error::invalid_argument(format!(
                "{length} symbols of {radix} are too few for the cipher, which needs a million \
                 texts; length must be at least {}",
                enough.unwrap_or(Codes::MAX_LENGTH)
            )));
        }
        let largest = 1 << u64::BITS;
        let capacity = texts(length - check).map_or(largest, |texts| texts.min(largest));
        let mut key = Zeroizing::new([0; 32]);
        let cipher = erasing_the_stack(|| {
            Hkdf::<Sha256>::new(None, secret.as_bytes())
                .expand_multi_info(&[INFO, label.as_bytes()], key.as_mut_slice())
                .expect("32 bytes are less than HKDF has to give");
            FF1::<Key>::new(key.as_slice(), radix.into()).map_err(defect)
        })?;
        let halves = [length / 2, length - length / 2].map(|half| Size::new(half, radix));
        Ok(Codes { cipher: Arc::new(cipher), alphabet, halves, check, capacity })
    }
}

#[cold]
fn none_of_these() -> Error {
    invalid(
        "this is not a valid code: it has a typing error, or was made with another secret or label",
    )
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidId, message)
}

/// Makes the error of what cannot fail.
#[cold]
fn defect(error: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("FF1: {error}"))
}

#[cfg(test)]
mod tests {
    use fpe::ff1::NumeralString as _;

    use super::{FF1, Key, Numerals, Size};

    /// NIST's samples 7, 8 and 9 of FF1, with AES-256 and tweaks:
    /// <https://csrc.nist.gov/CSRC/media/Projects/Cryptographic-Standards-and-Guidelines/documents/examples/FF1samples.pdf>
    #[test]
    fn the_samples_of_nist() {
        const KEY: [u8; 32] = [
            0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf,
            0x4f, 0x3c, 0xef, 0x43, 0x59, 0xd8, 0xd5, 0x80, 0xaa, 0x4f, 0x7f, 0x03, 0x6d, 0x6f,
            0x04, 0xfc, 0x6a, 0x94,
        ];
        for (radix, tweak, plain, encrypted) in [
            (10, &b""[..], "0123456789", "6657667009"),
            (10, b"9876543210", "0123456789", "1001623463"),
            (36, b"7777pqrs777", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"),
        ] {
            let cipher = FF1::<Key>::new(&KEY, radix.into()).expect("a radix");
            let halves =
                [plain.len() / 2, plain.len().div_ceil(2)].map(|half| Size::new(half, radix));
            let numerals = |text: &str| -> Vec<u8> {
                let value = |digit: char| u8::try_from(digit.to_digit(36).expect("a digit"));
                text.chars().map(|digit| value(digit).expect("small")).collect()
            };
            let read = |text| Numerals::read(&numerals(text), radix, halves);
            let written = |result: Numerals| {
                let mut written = vec![0; result.numeral_count()];
                result.write(&mut written, radix);
                written
            };
            let result = cipher.encrypt(tweak, &read(plain)).expect("long enough");
            assert_eq!(written(result), numerals(encrypted));
            let result = cipher.decrypt(tweak, &read(encrypted)).expect("long enough");
            assert_eq!(written(result), numerals(plain));
        }
    }
}
