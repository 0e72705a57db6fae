//! Reading any number under any secret: as the reference does, one by one and in columns.
#![no_main]

use libfuzzer_sys::fuzz_target;
use randflake::{Inspector, Secret};
use randflake_vectors::format;

fuzz_target!(|data: &[u8]| {
    let Some((key, rest)) = data.split_first_chunk() else {
        return;
    };
    let inspector = Inspector::new(&Secret::from_bytes(key).expect("16 bytes"));
    let (numbers, _) = rest.as_chunks();
    let ids: Vec<i64> = numbers.iter().map(|&number| i64::from_le_bytes(number)).collect();

    let mut timestamps = vec![0; ids.len()];
    let (mut node_ids, mut sequences) = (vec![0; ids.len()], vec![0; ids.len()]);
    inspector.inspect_many(&ids, &mut timestamps, &mut node_ids, &mut sequences);
    for (index, &id) in ids.iter().enumerate() {
        let parts = inspector.inspect(id.into());
        let column = (timestamps[index], node_ids[index], sequences[index]);
        assert_eq!(column, (parts.timestamp, parts.node_id, parts.sequence));
        let raw = format::pack(parts.timestamp, parts.node_id, parts.sequence);
        assert_eq!(inspector.decrypt(id.into()), raw);
        assert_eq!(inspector.encrypt(raw), id.into());
        assert_eq!(format::encrypt(*key, raw), id);
    }
});
