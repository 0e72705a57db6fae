//! How many blocks are divided among vectors.

#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Encrypt,
    Decrypt,
}

/// Gives `values` to `kernel`, `G` groups of `LANES` at a time. The remainder is padded with zeros
/// if that is `worth` it and it would not fit into fewer groups; otherwise it is returned.
pub(super) fn in_groups<const LANES: usize, const G: usize>(
    values: &mut [i64],
    worth: usize,
    kernel: impl Fn(&mut [[i64; LANES]; G]),
) -> &mut [i64] {
    let whole = values.len() - values.len() % (LANES * G);
    let (whole, rest) = values.split_at_mut(whole);
    let (groups, _) = whole.as_chunks_mut::<LANES>();
    let (groups, _) = groups.as_chunks_mut::<G>();
    groups.iter_mut().for_each(&kernel);
    if rest.len() < worth || rest.len() <= LANES * (G - 1) {
        return rest;
    }
    let mut padded = [[0; LANES]; G];
    padded.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
    kernel(&mut padded);
    rest.copy_from_slice(&padded.as_flattened()[..rest.len()]);
    &mut []
}
