//! The wire format: pack, encrypt, write as text.

use sparx::sparx64;

/// Unix second of timestamp 0.
pub const EPOCH: i64 = 1_730_000_000;
/// First unix second that no id can carry.
pub const LIFETIME_END: i64 = EPOCH + (1 << 30);

/// Packs a unix second (30 bits after the epoch), a node id and a sequence (17 bits each).
///
/// # Panics
///
/// If one of them is out of its range.
#[must_use]
pub fn pack(timestamp: i64, node_id: u32, sequence: u32) -> u64 {
    assert!((EPOCH..LIFETIME_END).contains(&timestamp), "timestamp {timestamp}");
    assert!(node_id < 1 << 17, "node id {node_id}");
    assert!(sequence < 1 << 17, "sequence {sequence}");
    let stamp = u64::try_from(timestamp - EPOCH).expect("after the epoch");
    (stamp << 34) | (u64::from(node_id) << 17) | u64::from(sequence)
}

/// Encrypts a raw value to its id.
#[must_use]
pub fn encrypt(secret: [u8; 16], raw: u64) -> i64 {
    let key = sparx64::key_schedule_encrypt(&swap_bytes(secret));
    let mut block = swap_bytes(raw.to_le_bytes());
    sparx64::encrypt_block(&mut block, &key);
    i64::from_le_bytes(swap_bytes(block))
}

/// Decrypts an id to its raw value.
#[must_use]
pub fn decrypt(secret: [u8; 16], id: i64) -> u64 {
    let key = sparx64::key_schedule_decrypt(&swap_bytes(secret));
    let mut block = swap_bytes(id.to_le_bytes());
    sparx64::decrypt_block(&mut block, &key);
    u64::from_le_bytes(swap_bytes(block))
}

/// Swaps the bytes of each 16-bit word: the `sparx` crate reads words little-endian, the format
/// has them big-endian.
fn swap_bytes<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.chunks_exact_mut(2).for_each(|word| word.swap(0, 1));
    bytes
}

/// Writes an id as text: base32hex digits of the unsigned number, the shortest form.
#[must_use]
#[allow(clippy::missing_panics_doc, reason = "a remainder of 32 is a digit")]
pub fn text(id: i64) -> String {
    let mut rest = id.cast_unsigned();
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(rest % 32).expect("a digit");
        digits.push(char::from_digit(digit, 32).expect("0-9 or a-v"));
        rest /= 32;
        if rest == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Reads a secret of 32 hex digits.
///
/// # Panics
///
/// If it has another form.
#[must_use]
pub fn secret(hex: &str) -> [u8; 16] {
    assert_eq!(hex.len(), 32, "{hex}");
    u128::from_str_radix(hex, 16).expect("hex digits").to_be_bytes()
}
