//! Reads ids in a program that does not make any.

use std::fmt;

use crate::{Id, Parts, Secret, sparx::Sparx};

/// How many ids are decrypted at a time: enough to keep every vector unit busy with several groups,
/// few enough to stay in the first-level cache.
const BATCH: usize = 256;

/// Reads ids; needs the secret, but no node id.
///
/// Reading does not authenticate: every 64-bit number has parts under every secret.
///
/// ```
/// use randflake::{Inspector, Secret};
///
/// let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
/// let parts = Inspector::new(&secret).inspect("3vgoe12ccb8gh".parse()?);
/// assert_eq!((parts.timestamp, parts.node_id, parts.sequence), (1733706297, 42, 1));
/// # Ok::<(), randflake::Error>(())
/// ```
#[derive(Clone)]
pub struct Inspector {
    cipher: Sparx,
}

impl Inspector {
    /// Makes an inspector for the ids of a secret.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        Self { cipher: Sparx::new(secret) }
    }

    /// Returns the time, node id and sequence of an id.
    #[must_use]
    pub fn inspect(&self, id: Id) -> Parts {
        Parts::of(self.decrypt(id))
    }

    /// Reads many ids into one column for each part.
    ///
    /// # Panics
    ///
    /// If the columns are not as long as `ids`.
    ///
    /// ```
    /// # use randflake::{Inspector, Secret};
    /// let inspector = Inspector::new(&"dffd6021bb2bd5b0af676290809ec3a5".parse()?);
    /// let (mut times, mut nodes, mut sequences) = ([0; 1], [0; 1], [0; 1]);
    /// inspector.inspect_many(&[4594531474933654033], &mut times, &mut nodes, &mut sequences);
    /// assert_eq!((times, nodes, sequences), ([1733706297], [42], [1]));
    /// # Ok::<(), randflake::Error>(())
    /// ```
    pub fn inspect_many(
        &self,
        ids: &[i64],
        timestamps: &mut [i64],
        node_ids: &mut [u32],
        sequences: &mut [u32],
    ) {
        assert!(
            [timestamps.len(), node_ids.len(), sequences.len()] == [ids.len(); 3],
            "each column is as long as ids"
        );
        let columns = timestamps
            .chunks_mut(BATCH)
            .zip(node_ids.chunks_mut(BATCH))
            .zip(sequences.chunks_mut(BATCH));
        for (ids, ((timestamps, node_ids), sequences)) in ids.chunks(BATCH).zip(columns) {
            // Decrypted in the widest column, which then keeps only its own part.
            timestamps.copy_from_slice(ids);
            self.cipher.decrypt_many(timestamps);
            for ((raw, node_id), sequence) in timestamps.iter_mut().zip(node_ids).zip(sequences) {
                let parts = Parts::of(raw.cast_unsigned());
                (*raw, *node_id, *sequence) = (parts.timestamp, parts.node_id, parts.sequence);
            }
        }
    }

    /// Returns the sortable form of an id: time, node id and sequence, unencrypted. Never give it
    /// to anyone who must not know them.
    ///
    /// ```
    /// # use randflake::{Inspector, Secret};
    /// let inspector = Inspector::new(&"00000000000000000000000000000000".parse()?);
    /// assert_eq!(inspector.decrypt(2111581968557607991.into()), 17179869184);
    /// assert_eq!(inspector.encrypt(17179869184), 2111581968557607991.into());
    /// # Ok::<(), randflake::Error>(())
    /// ```
    #[must_use]
    pub fn decrypt(&self, id: Id) -> u64 {
        self.cipher.decrypt_id(id.into())
    }

    /// Returns the id of a sortable form; undoes [`decrypt`](Inspector::decrypt). Use it only for raw
    /// values that `decrypt` returned: others may not be unique.
    #[must_use]
    pub fn encrypt(&self, raw: u64) -> Id {
        self.cipher.encrypt_raw(raw).into()
    }

    /// Turns many ids into their sortable forms, in place, as signed numbers: [`decrypt`] of each.
    ///
    /// ```
    /// # use randflake::{Inspector, Secret};
    /// let inspector = Inspector::new(&"00000000000000000000000000000000".parse()?);
    /// let mut ids = [2111581968557607991];
    /// inspector.decrypt_in_place(&mut ids);
    /// assert_eq!(ids, [17179869184]);
    /// inspector.encrypt_in_place(&mut ids);
    /// assert_eq!(ids, [2111581968557607991]);
    /// # Ok::<(), randflake::Error>(())
    /// ```
    ///
    /// [`decrypt`]: Inspector::decrypt
    pub fn decrypt_in_place(&self, ids: &mut [i64]) {
        self.cipher.decrypt_many(ids);
    }

    /// Turns many sortable forms, as signed numbers, into their ids, in place:
    /// [`encrypt`](Inspector::encrypt) of each.
    pub fn encrypt_in_place(&self, raws: &mut [i64]) {
        self.cipher.encrypt_many(raws);
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inspector(..)")
    }
}
