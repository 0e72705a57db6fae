//! The symbols of codes, and what is read as each.

use crate::{Error, Result, bindings};

const DIGITS: &str = "0123456789";

/// <https://www.crockford.com/base32.html>
const CROCKFORD: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const LETTERS: &str = "BCDFGHJKLMNPQRSTVWXZ";

const FEWEST_SYMBOLS: usize = 10;

const NO_VALUE: u8 = u8::MAX;

#[derive(Clone)]
pub(super) struct Alphabet {
    symbols: Box<str>,
    /// The value of each ASCII character; [`NO_VALUE`] if it is not read.
    values: [u8; 128],
}

impl Alphabet {
    /// Makes the alphabet of a name, or one of these symbols.
    // A word is no alphabet by mistake: names of ten different letters are rare.
    pub(super) fn new(alphabet: &str) -> Result<Self> {
        let (symbols, look_alikes) = match alphabet {
            "digits" => (DIGITS, &[][..]),
            "crockford" => (CROCKFORD, &[(b'O', b'0'), (b'I', b'1'), (b'L', b'1')][..]),
            "letters" => (LETTERS, &[][..]),
            own => (own, &[][..]),
        };
        let is_symbol = |symbol: u8| symbol.is_ascii_alphanumeric();
        if symbols.len() < FEWEST_SYMBOLS || !symbols.bytes().all(is_symbol) {
            return Err(invalid(alphabet));
        }
        let mut values = [NO_VALUE; 128];
        for (value, symbol) in (0..).zip(symbols.bytes()) {
            let known = &mut values[usize::from(symbol)];
            if *known != NO_VALUE {
                return Err(invalid(alphabet));
            }
            *known = value;
        }
        for (read, symbol) in look_alikes {
            values[usize::from(*read)] = values[usize::from(*symbol)];
        }
        let cases = (b'A'..=b'Z').map(|upper| [upper, upper.to_ascii_lowercase()].map(usize::from));
        if cases.clone().all(|each| each.iter().any(|each| values[*each] == NO_VALUE)) {
            for [upper, lower] in cases {
                let value = values[upper].min(values[lower]);
                (values[upper], values[lower]) = (value, value);
            }
        }
        Ok(Self { symbols: symbols.into(), values })
    }

    pub(super) fn radix(&self) -> u8 {
        // At most 62: each symbol is another letter or digit.
        u8::try_from(self.symbols.len()).unwrap_or(u8::MAX)
    }

    pub(super) fn symbols(&self) -> &str {
        &self.symbols
    }

    /// Returns the symbol of a value below the radix.
    pub(super) fn symbol(&self, value: u8) -> u8 {
        self.symbols.as_bytes()[usize::from(value)]
    }

    /// Returns the value of a character, if it is read.
    pub(super) fn value(&self, symbol: char) -> Option<u8> {
        let value = *self.values.get(symbol as usize)?;
        (value != NO_VALUE).then_some(value)
    }

    /// Returns what is read, as in the brackets of a regular expression.
    pub(super) fn class(&self) -> String {
        let mut class = String::new();
        let is_read = |symbol: &char| self.value(*symbol).is_some();
        let mut symbols = ('\0'..='\x7f').peekable();
        while let Some(first) = symbols.find(is_read) {
            let last = std::iter::from_fn(|| symbols.next_if(is_read)).last();
            class.push(first);
            class.extend(last.into_iter().flat_map(|last| ['-', last]));
        }
        class
    }
}

#[cold]
fn invalid(got: &str) -> Error {
    Error::invalid_argument(format!(
        "alphabet must be \"digits\", \"crockford\", \"letters\", or 10 to 62 ASCII letters and \
         digits, each once, got {}",
        bindings::quoted(got)
    ))
}
