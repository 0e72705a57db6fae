//! Inspectors and cloaks.

use std::cell::Cell;

use randflake::{Cloak, Id, Inspector, Parts, Result, Secret};

use crate::{
    objects::{Object, keep, with_cloak, with_inspector},
    shared::{answer, change_numbers, finish, read, read_text},
};

thread_local! {
    static WEAKNESS: Cell<Option<&'static str>> = const { Cell::new(None) };
    static PARTS: Cell<(f64, u32, u32)> = const { Cell::new((0.0, 0, 0)) };
}

/// Leaves the parts of an id for [`part_time`], [`part_node`] and [`part_sequence`].
pub(crate) fn leave_parts(time: i64, node_id: u32, sequence: u32) {
    #[allow(clippy::cast_precision_loss, reason = "dates of JavaScript are below 2^53")]
    PARTS.set((time as f64, node_id, sequence));
}

/// Returns the unix time of the id that was read last, in the unit of its kind.
#[unsafe(no_mangle)]
pub extern "C" fn part_time() -> f64 {
    PARTS.get().0
}

#[unsafe(no_mangle)]
pub extern "C" fn part_node() -> u32 {
    PARTS.get().1
}

#[unsafe(no_mangle)]
pub extern "C" fn part_sequence() -> u32 {
    PARTS.get().2
}

/// Takes a secret, 16 bytes or hex digits.
pub(crate) fn secret(given: &[u8], is_text: bool) -> Result<Secret> {
    let secret =
        if is_text { String::from_utf8_lossy(given).parse() } else { Secret::from_bytes(given) }?;
    WEAKNESS.set(secret.weakness());
    Ok(secret)
}

/// Leaves what is wrong with the last secret, if it looks guessable, and returns whether it does.
#[unsafe(no_mangle)]
pub extern "C" fn weakness() -> bool {
    let weakness = WEAKNESS.take();
    if let Some(weakness) = weakness {
        answer(weakness);
    }
    weakness.is_some()
}

/// Makes an inspector of the secret in the text, 16 bytes or hex digits.
#[unsafe(no_mangle)]
pub extern "C" fn make_inspector(length: usize, is_text: bool) -> usize {
    let made = read([length], |[given]| {
        Ok(keep(Object::Inspector(Inspector::new(&secret(given, is_text)?))))
    });
    finish(made)
}

#[unsafe(no_mangle)]
pub extern "C" fn inspect(inspector: usize, id: i64) {
    finish(with_inspector(inspector, |inspector| {
        let Parts { timestamp, node_id, sequence } = inspector.inspect(Id::from(id));
        leave_parts(timestamp, node_id, sequence);
        Ok(())
    }));
}

#[unsafe(no_mangle)]
pub extern "C" fn encrypt(inspector: usize, raw: u64) -> i64 {
    finish(with_inspector(inspector, |inspector| Ok(inspector.encrypt(raw).into())))
}

#[unsafe(no_mangle)]
pub extern "C" fn decrypt(inspector: usize, id: i64) -> u64 {
    finish(with_inspector(inspector, |inspector| Ok(inspector.decrypt(Id::from(id)))))
}

#[unsafe(no_mangle)]
pub extern "C" fn encrypt_numbers(inspector: usize) {
    finish(with_inspector(inspector, |inspector| {
        change_numbers(|numbers| inspector.encrypt_in_place(numbers));
        Ok(())
    }));
}

#[unsafe(no_mangle)]
pub extern "C" fn decrypt_numbers(inspector: usize) {
    finish(with_inspector(inspector, |inspector| {
        change_numbers(|numbers| inspector.decrypt_in_place(numbers));
        Ok(())
    }));
}

/// Replaces n ids by n times, and the 32 bits each of n node ids and n sequences.
#[unsafe(no_mangle)]
pub extern "C" fn inspect_numbers(inspector: usize) {
    finish(with_inspector(inspector, |inspector| {
        change_numbers(|numbers| {
            let count = numbers.len();
            let mut times = vec![0; 2 * count];
            let mut others = vec![0; 2 * count];
            let (node_ids, sequences) = others.split_at_mut(count);
            inspector.inspect_many(numbers, &mut times[..count], node_ids, sequences);
            for (place, [low, high]) in times[count..].iter_mut().zip(others.as_chunks().0) {
                *place = i64::from(*low) | i64::from(*high) << 32;
            }
            *numbers = times;
        });
        Ok(())
    }));
}

/// Makes a cloak of the secret and the label in the text.
#[unsafe(no_mangle)]
pub extern "C" fn make_cloak(length: usize, is_text: bool, label_length: usize) -> usize {
    let made = read([length, label_length], |[given, label]| {
        let secret = secret(given, is_text)?;
        Ok(keep(Object::Cloak(Cloak::new(&secret, &String::from_utf8_lossy(label)))))
    });
    finish(made)
}

#[unsafe(no_mangle)]
pub extern "C" fn hide(cloak: usize, number: u64) -> i64 {
    finish(with_cloak(cloak, |cloak| Ok(cloak.hide(number).into())))
}

#[unsafe(no_mangle)]
pub extern "C" fn reveal(cloak: usize, hidden: i64) -> u64 {
    finish(with_cloak(cloak, |cloak| Ok(cloak.reveal(Id::from(hidden)))))
}

#[unsafe(no_mangle)]
pub extern "C" fn hide_numbers(cloak: usize) {
    finish(with_cloak(cloak, |cloak| {
        change_numbers(|numbers| cloak.hide_in_place(numbers));
        Ok(())
    }));
}

#[unsafe(no_mangle)]
pub extern "C" fn reveal_numbers(cloak: usize) {
    finish(with_cloak(cloak, |cloak| {
        change_numbers(|numbers| cloak.reveal_in_place(numbers));
        Ok(())
    }));
}

/// Reads the text of an id.
#[unsafe(no_mangle)]
pub extern "C" fn id_of_text(length: usize) -> i64 {
    finish(read_text(length, |text| text.parse::<Id>().map(Into::into)))
}
