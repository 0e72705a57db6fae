//! Hides ids of any origin by a second use of the cipher, with a key of its own.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;

use crate::{Id, Secret, secret::erasing_the_stack, sparx::Sparx};

/// The purpose of the derived key; the label follows it.
const INFO: &[u8] = b"randflake cloak v1";

/// Hides any 64-bit ids. Inside they stay sortable Snowflakes or auto-increment keys; outside they
/// look random.
///
/// Each number has one hidden form and each hidden form one number, so nothing collides, and the
/// database keeps the number and its index. The label names the purpose, such as `"orders.id"`.
/// Another label gives another key, so hidden forms of two kinds reveal nothing about each other.
/// A [`Randflake`](crate::Randflake) may use the same secret: its ids have yet another key.
///
/// Hiding does not authenticate: every 64-bit number reveals some number. Look up the result in
/// your database, and check who may see it.
///
/// ```
/// use randflake::{Cloak, Secret};
///
/// let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
/// let cloak = Cloak::new(&secret, "orders.id");
/// let outside = cloak.hide(42).to_string(); // for a URL
/// assert_eq!(cloak.reveal(outside.parse()?), 42);
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone)]
pub struct Cloak {
    cipher: Sparx,
}

impl Cloak {
    /// Makes a cloak. Its key is HKDF-SHA256 of the secret, without salt, for
    /// `randflake cloak v1` and then the label.
    ///
    /// # Panics
    ///
    /// Never: a key of 16 bytes can always be derived.
    #[must_use]
    pub fn new(secret: &Secret, label: &str) -> Self {
        let mut key = Secret::zero();
        erasing_the_stack(|| {
            Hkdf::<Sha256>::new(None, secret.as_bytes())
                .expand_multi_info(&[INFO, label.as_bytes()], key.as_mut_bytes())
                .expect("16 bytes are less than HKDF has to give");
        });
        Self { cipher: Sparx::new(&key) }
    }

    /// Hides a number. Convert a signed one with [`i64::cast_unsigned`].
    ///
    /// ```
    /// # use randflake::{Cloak, Secret};
    /// # let cloak = Cloak::new(&Secret::random(), "example");
    /// let key: i64 = -7;
    /// let hidden = cloak.hide(key.cast_unsigned());
    /// assert_eq!(cloak.reveal(hidden).cast_signed(), key);
    /// ```
    #[must_use]
    pub fn hide(&self, number: u64) -> Id {
        self.cipher.encrypt_raw(number).into()
    }

    /// Returns the number that was hidden.
    #[must_use]
    pub fn reveal(&self, hidden: Id) -> u64 {
        self.cipher.decrypt_id(hidden.into())
    }

    /// Hides many numbers, in place.
    ///
    /// ```
    /// # use randflake::{Cloak, Secret};
    /// # let cloak = Cloak::new(&Secret::random(), "example");
    /// let mut keys = [1, 2, 3];
    /// cloak.hide_in_place(&mut keys);
    /// assert_eq!(keys[1], cloak.hide(2).into());
    /// cloak.reveal_in_place(&mut keys);
    /// assert_eq!(keys, [1, 2, 3]);
    /// ```
    pub fn hide_in_place(&self, numbers: &mut [i64]) {
        self.cipher.encrypt_many(numbers);
    }

    /// Reveals many numbers, in place.
    pub fn reveal_in_place(&self, hidden: &mut [i64]) {
        self.cipher.decrypt_many(hidden);
    }
}

impl fmt::Debug for Cloak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cloak(..)")
    }
}
