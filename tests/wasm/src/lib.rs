//! Each exported function is a claim. Where one does not hold, it panics, and [`message`] is why.
#![allow(unsafe_code, reason = "functions that JavaScript calls are exported by their names")]
#![allow(missing_docs, clippy::missing_panics_doc, reason = "a claim is its name, and may panic")]

use std::{panic, sync::Mutex};

use randflake::{
    Cloak, Clock, ErrorKind, Generator, Inspector, Layout, Lease, Randflake, Secret, Snowflake,
    SystemClock,
};

const NOON: i64 = 1_763_640_000;

static MESSAGE: Mutex<String> = Mutex::new(String::new());

/// Has the message of each panic kept, since there is nowhere to print it to.
#[unsafe(no_mangle)]
pub extern "C" fn keep_messages() {
    panic::set_hook(Box::new(|panic| {
        if let Ok(mut message) = MESSAGE.lock() {
            *message = panic.to_string();
        }
    }));
}

/// Where the message of the last panic is, in UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn message() -> *const u8 {
    MESSAGE.lock().expect("no panic while it is held").as_ptr()
}

/// How many bytes that message has.
#[unsafe(no_mangle)]
pub extern "C" fn message_length() -> usize {
    MESSAGE.lock().expect("no panic while it is held").len()
}

fn secret() -> Secret {
    "dffd6021bb2bd5b0af676290809ec3a5".parse().expect("a secret")
}

fn noon() -> i64 {
    NOON * 1_000_000_000
}

#[track_caller]
fn has_no_clock<T>(result: randflake::Result<T>) {
    let error = result.err().expect("there is no clock");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("no clock"), "{error}");
}

#[unsafe(no_mangle)]
pub extern "C" fn making_a_generator_without_a_clock_is_an_error() {
    let lease = Lease::new(NOON, NOON + 300).expect("a lease");
    has_no_clock(Randflake::new(1, &secret()));
    has_no_clock(Randflake::builder(&secret()).node_id(1).lease(lease).build());
    has_no_clock(Randflake::builder(&secret()).granted_later(1).build());
    has_no_clock(Snowflake::new(1, Layout::twitter()));
    has_no_clock(Snowflake::builder(Layout::leaf()).node_id(1).restart_safe(false).build());
}

#[unsafe(no_mangle)]
pub extern "C" fn the_clock_of_the_machine_is_an_error() {
    has_no_clock(SystemClock.now());
    has_no_clock(SystemClock.unix_seconds());
    assert_eq!(SystemClock.sleep(std::time::Duration::from_secs(1)), Ok(None));
    assert_eq!((SystemClock.coarse_time(), SystemClock.counter()), (None, None));
}

#[unsafe(no_mangle)]
pub extern "C" fn a_generator_with_a_clock_of_its_own_works() {
    let flake = Randflake::builder(&secret()).node_id(7).clock(noon).build().expect("made");
    let mut ids = [0; 1000];
    flake.fill_i64(&mut ids).expect("ids");
    ids[999] = flake.generate().expect("an id").into();
    let inspector = Inspector::new(&secret());
    for (sequence, id) in (0..).zip(ids) {
        let parts = inspector.inspect(id.into());
        let sequence = if sequence == 999 { 1000 } else { sequence };
        assert_eq!((parts.timestamp, parts.node_id, parts.sequence), (NOON, 7, sequence));
    }
    assert_eq!(flake.metrics().ids_generated, 1001);

    let flake =
        Snowflake::builder(Layout::twitter()).node_id(378).clock(noon).build().expect("made");
    let ids = [(); 100].map(|()| flake.generate().expect("an id"));
    assert!(ids.is_sorted());
    let parts = flake.inspect(ids[99]).expect("an id of the layout");
    assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (NOON * 1000, 378, 99));
}

/// A call would have to wait for the next second, which this clock cannot.
#[unsafe(no_mangle)]
pub extern "C" fn a_full_tick_is_an_error_with_the_time_to_wait() {
    fn fails<F: randflake::Format<Id = I>, I, C: Clock>(flake: &Generator<F, C>, left: &mut [i64]) {
        flake.fill_i64(left).expect("the ids of a tick");
        let error = flake.generate().err().expect("none is left");
        assert_eq!(error.kind(), ErrorKind::SequenceExhausted);
        assert!(error.retry_after().is_some());
    }
    let flake = Randflake::builder(&secret()).node_id(8).clock(noon).build().expect("made");
    fails(&flake, &mut vec![0; 131_072]);
    let flake = Snowflake::builder(Layout::twitter()).node_id(8).clock(noon).build().expect("made");
    fails(&flake, &mut vec![0; 4096]);
}

#[unsafe(no_mangle)]
pub extern "C" fn ids_are_read_without_a_clock() {
    let parts = Inspector::new(&secret()).inspect("3vgoe12ccb8gh".parse().expect("an id"));
    assert_eq!((parts.timestamp, parts.node_id, parts.sequence), (1_733_706_297, 42, 1));
    let many = &mut [4_594_531_474_933_654_033; 100];
    Inspector::new(&secret()).decrypt_in_place(many);
    assert_eq!(*many, [63_673_697_622_556_673; 100]);

    let parts = Layout::discord().inspect(175_928_847_299_117_063).expect("an id");
    assert_eq!((parts.unix_ms, parts.node_id, parts.sequence), (1_462_015_105_796, 32, 7));

    let cloak = Cloak::new(&secret(), "orders.id");
    assert_eq!(cloak.hide(1).to_string(), "4adf4pr4nl7ug");
    assert_eq!(cloak.reveal("4adf4pr4nl7ug".parse().expect("an id")), 1);
}
