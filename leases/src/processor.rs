//! The random numbers of the processor. They differ between copies of a machine that was cloned
//! while running, whereas the operating system may give all copies the same numbers for a moment.
#![allow(unsafe_code, reason = "instructions that not every processor has")]

/// How often it is asked: it may be busy with other requests.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const TRIES: usize = 10;

/// Returns one, or 0 on a processor that has none.
#[cfg(target_arch = "x86_64")]
pub(crate) fn random() -> u64 {
    if !std::arch::is_x86_feature_detected!("rdrand") {
        return 0;
    }
    let ask = |_| {
        let mut number = 0;
        // SAFETY: this processor has the instruction.
        let drawn = unsafe { std::arch::x86_64::_rdrand64_step(&mut number) };
        (drawn == 1).then_some(number)
    };
    (0..TRIES).find_map(ask).unwrap_or(0)
}

/// Returns one, or 0 on a processor that has none.
#[cfg(target_arch = "aarch64")]
pub(crate) fn random() -> u64 {
    fn ask() -> Option<u64> {
        let (number, failed): (u64, u64);
        // SAFETY: reads RNDR, by its number, and the flag that says whether there was no number.
        // The caller has checked that this processor has it.
        unsafe {
            std::arch::asm!(
                "mrs {number}, s3_3_c2_c4_0",
                "cset {failed}, eq",
                number = out(reg) number,
                failed = out(reg) failed,
                options(nomem, nostack),
            );
        }
        (failed == 0).then_some(number)
    }

    if !std::arch::is_aarch64_feature_detected!("rand") {
        return 0;
    }
    (0..TRIES).find_map(|_| ask()).unwrap_or(0)
}

/// Returns 0: no source is known on this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn random() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::random;

    #[test]
    fn a_number_is_not_repeated_where_there_are_any() {
        let numbers = [random(), random(), random()];
        assert!(numbers == [0; 3] || numbers[0] != numbers[1] && numbers[1] != numbers[2]);
    }
}
