//! Many blocks at once, with the fastest instructions of this machine.

use super::{Sparx, groups::Direction, portable};

impl Sparx {
    /// Turns raw values, as signed numbers, into ids, in place: [`Sparx::encrypt_raw`] of each.
    pub(crate) fn encrypt_many(&self, values: &mut [i64]) {
        for raw in self.groups(Direction::Encrypt, values) {
            *raw = self.encrypt_raw(raw.cast_unsigned());
        }
    }

    /// Turns ids into raw values, as signed numbers, in place: [`Sparx::decrypt_id`] of each.
    pub(crate) fn decrypt_many(&self, values: &mut [i64]) {
        for id in self.groups(Direction::Decrypt, values) {
            *id = self.decrypt_id(*id).cast_signed();
        }
    }

    /// Returns the few values at the end that are not worth a group.
    fn groups<'a>(&self, direction: Direction, values: &'a mut [i64]) -> &'a mut [i64] {
        match self.extension {
            Some(extension) => extension.groups(&self.keys, direction, values),
            None => portable::groups(&self.keys, direction, values),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::{super::Extension, *};
    use crate::Secret;

    /// What this machine can run, the portable code included.
    #[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn extensions() -> impl Iterator<Item = Option<Extension>> {
        let available = Extension::ALL.into_iter().filter(|extension| {
            let available = extension.is_available();
            if !available {
                eprintln!("SKIPPED: SPARX with {extension:?}, which this processor does not have");
            }
            available
        });
        available.map(Some).chain([None])
    }

    fn sparx(key: [u8; 16], extension: Option<Extension>) -> Sparx {
        let mut sparx = Sparx::new(&Secret::from_bytes(&key).expect("16 bytes"));
        sparx.extension = extension;
        sparx
    }

    #[test]
    fn known_answer_of_the_paper() {
        let key = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
        let plaintext = 0x0123_4567_89ab_cdef_i64.swap_bytes();
        let ciphertext = 0x2bbe_f152_01f5_5f98_i64.swap_bytes();
        for extension in extensions() {
            let sparx = sparx(key, extension);
            // Every length near every number of groups.
            for n in 0..=if cfg!(miri) { 20 } else { 300 } {
                let mut values = vec![plaintext; n];
                sparx.encrypt_many(&mut values);
                assert_eq!(values, vec![ciphertext; n], "{extension:?}");
                sparx.decrypt_many(&mut values);
                assert_eq!(values, vec![plaintext; n], "{extension:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_one_at_a_time(key: [u8; 16], raws in vec(any::<i64>(), 0..=200)) {
            for extension in extensions() {
                let sparx = sparx(key, extension);
                let mut values = raws.clone();
                sparx.encrypt_many(&mut values);
                for (raw, value) in raws.iter().zip(&values) {
                    prop_assert_eq!(sparx.encrypt_raw(raw.cast_unsigned()), *value, "{:?}", extension);
                }
                sparx.decrypt_many(&mut values);
                prop_assert_eq!(&values, &raws, "{:?}", extension);
            }
        }

        /// Random numbers as ids, not only the results of encryption.
        #[test]
        fn decrypts_like_one_at_a_time(key: [u8; 16], ids in vec(any::<i64>(), 0..=200)) {
            for extension in extensions() {
                let sparx = sparx(key, extension);
                let mut values = ids.clone();
                sparx.decrypt_many(&mut values);
                for (id, value) in ids.iter().zip(&values) {
                    prop_assert_eq!(sparx.decrypt_id(*id).cast_signed(), *value, "{:?}", extension);
                }
            }
        }
    }
}
