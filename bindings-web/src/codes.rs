//! Codes that people type.

use randflake::Codes;

use crate::{
    ids::secret,
    objects::{Object, keep, with_codes},
    shared::{answer, finish, read, read_text},
};

/// Makes codes of the secret, the label and the alphabet in the text.
#[unsafe(no_mangle)]
pub extern "C" fn make_codes(
    secret_length: usize,
    is_text: bool,
    label_length: usize,
    alphabet_length: usize,
    length: usize,
    check: usize,
) -> usize {
    let made = read([secret_length, label_length, alphabet_length], |[given, label, alphabet]| {
        let secret = secret(given, is_text)?;
        let [label, alphabet] = [label, alphabet].map(String::from_utf8_lossy);
        let codes = Codes::builder(&secret, &label).length(length).alphabet(&alphabet);
        Ok(keep(Object::Codes(codes.check(check).build()?)))
    });
    finish(made)
}

/// Describes codes, in lines: length, alphabet, check, capacity, pattern.
#[unsafe(no_mangle)]
pub extern "C" fn describe_codes(codes: usize) {
    finish(with_codes(codes, |codes| {
        let (length, alphabet, check) = (codes.length(), codes.alphabet(), codes.check());
        let (capacity, pattern) = (codes.capacity(), codes.pattern());
        answer(format_args!("{length}\n{alphabet}\n{check}\n{capacity}\n{pattern}"));
        Ok(())
    }));
}

/// Leaves the code of a number.
#[unsafe(no_mangle)]
pub extern "C" fn encode_code(codes: usize, number: u64) {
    finish(with_codes(codes, |codes| {
        answer(codes.encode(number)?);
        Ok(())
    }));
}

/// Returns the number of the code in the text.
#[unsafe(no_mangle)]
pub extern "C" fn decode_code(codes: usize, length: usize) -> u64 {
    finish(read_text(length, |code| with_codes(codes, |codes| codes.decode(code))))
}
