//! Decoding any text as an id, a layout or a code: never a panic, and what is accepted is what encoding gives
//! back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use randflake::{Codes, ErrorKind, Id, Layout};
use randflake_vectors::{cases::SECRET, format};

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        match text.parse::<Id>() {
            Ok(id) => {
                assert_eq!(id.to_string(), text);
                assert_eq!(format::text(id.into()), text);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidId),
        }
        match text.parse::<Layout>() {
            Ok(layout) => assert_eq!(layout.to_string().parse(), Ok(layout)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument),
        }
        // The text is the code, or the symbols.
        let secret = SECRET.parse().expect("hex");
        let codes = Codes::builder(&secret, "").length(text.len());
        for alphabet in ["digits", "crockford", text] {
            match codes.clone().alphabet(alphabet).build() {
                Ok(codes) => {
                    if let Ok(number) = codes.decode(text) {
                        let code = codes.encode(number).expect("a number that has a code");
                        assert_eq!(codes.decode(&code), Ok(number));
                    }
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument),
            }
        }
    }
    if let Ok(bytes) = data.try_into() {
        let id = Id::from(i64::from_le_bytes(bytes));
        assert_eq!(id.to_string().parse(), Ok(id));
    }
});
