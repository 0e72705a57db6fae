//! Bad input to each public function: its documented error, and never a secret in it.

use std::{
    fmt, io,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use randflake::{
    Builder, Clock, Encrypted, Error, ErrorKind, Id, Inspector, Lease, Randflake, Result, Secret,
    bindings::unix_nanos,
    layout::{EPOCH, LIFETIME_END},
};

const SECRET: &str = "dffd6021bb2bd5b0af676290809ec3a5";
const NOON: i64 = 1_763_640_000;
const NANOS: i64 = 1_000_000_000;

fn kind<T>(result: Result<T>) -> Result<(), ErrorKind> {
    result.map(drop).map_err(|error| error.kind())
}

fn builder() -> Builder<Encrypted> {
    Randflake::builder(&SECRET.parse().expect("hex"))
}

#[test]
fn node_ids() {
    for node_ids in [
        vec![],
        vec![131_072],
        vec![u32::MAX],
        vec![0, 131_072],
        vec![1, 1],
        vec![5, 6, 5],
        (0..16_385).collect(),
    ] {
        let described = format!("{} node ids, the first {:?}", node_ids.len(), node_ids.first());
        let result = builder().node_ids(node_ids).build();
        assert_eq!(kind(result), Err(ErrorKind::InvalidNode), "{described}");
    }
    let secret = Secret::random();
    assert_eq!(kind(Randflake::new(131_072, &secret)), Err(ErrorKind::InvalidNode));
    let error = Randflake::new(u32::MAX, &secret).expect_err("refused").to_string();
    assert!(error.contains("131071") && error.contains("4294967295"), "{error}");
}

#[test]
fn waits_and_drifts() {
    for max_wait in [Duration::from_nanos(86_400_000_000_001), Duration::MAX] {
        let result = builder().node_id(1).max_wait(max_wait).clock(|| NOON * NANOS).build();
        assert_eq!(kind(result), Err(ErrorKind::InvalidArgument), "{max_wait:?}");
    }
    let lease = Lease::new(NOON, NOON + 5).expect("a lease");
    for max_drift in [3601, u32::MAX] {
        let result = builder().node_id(1).lease(lease).max_drift(max_drift).build();
        assert_eq!(kind(result), Err(ErrorKind::InvalidArgument), "{max_drift}");
    }
    assert_eq!(kind(builder().node_id(1).max_drift(1).build()), Err(ErrorKind::InvalidArgument));

    let largest = builder().node_id(1).lease(lease).max_wait(Duration::from_secs(86_400));
    let largest = largest.max_drift(3600).clock(|| (NOON - 3600) * NANOS).build().expect("valid");
    assert_eq!(largest.inspect(largest.generate().expect("an id")).timestamp, NOON);
}

#[test]
fn leases() {
    for (start, end_exclusive) in [
        (NOON, NOON),
        (NOON, NOON - 1),
        (EPOCH - 1, NOON),
        (0, NOON),
        (NOON, LIFETIME_END + 1),
        (LIFETIME_END, LIFETIME_END + 1),
        (i64::MIN, i64::MAX),
        (i64::MAX, i64::MIN),
        (i64::MIN, i64::MIN),
        (i64::MAX, i64::MAX),
    ] {
        let result = Lease::new(start, end_exclusive);
        assert_eq!(kind(result), Err(ErrorKind::InvalidLease), "{start}..{end_exclusive}");
    }
    let whole = Lease::new(EPOCH, LIFETIME_END).expect("the whole lifetime");
    assert_eq!((whole.start(), whole.end_exclusive()), (EPOCH, LIFETIME_END));

    let lease = Lease::new(NOON, NOON + 5).expect("a lease");
    let leased = builder().node_id(1).lease(lease).clock(|| NOON * NANOS).build().expect("valid");
    for end_exclusive in [i64::MIN, -1, 0, EPOCH, LIFETIME_END + 1, i64::MAX] {
        let result = leased.extend_lease(end_exclusive);
        assert_eq!(kind(result), Err(ErrorKind::InvalidLease), "{end_exclusive}");
        assert_eq!(leased.lease(), Some(lease));
    }
    let manual = builder().node_id(1).clock(|| NOON * NANOS).build().expect("valid");
    assert_eq!(kind(manual.extend_lease(NOON + 5)), Err(ErrorKind::InvalidLease));
    // Only a granted lease can be replaced.
    for result in
        [leased.replace_lease(&[2], lease, u32::MAX), manual.replace_lease(&[2], lease, u32::MAX)]
    {
        assert_eq!(kind(result), Err(ErrorKind::InvalidLease));
    }
}

#[test]
fn texts() {
    let long = "1".repeat(100_000);
    for text in ["", "0x", "A", "-1", "01", "\0", "é", "g000000000000", &long] {
        let error = text.parse::<Id>().expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidId, "{text:?}");
        assert!(error.to_string().len() < 300, "{error}");
    }
    for (text, part) in [("é".repeat(13), "position 0"), ("é".repeat(14), "got 14")] {
        let error = text.parse::<Id>().expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
    // The error for a number passed as text says what to do.
    for decimal in ["4594531474933654033", "-4594531474933654033"] {
        let error = decimal.parse::<Id>().expect_err("refused").to_string();
        assert!(error.contains("number"), "{error}");
    }
}

#[test]
fn columns_of_different_lengths() {
    let inspector = Inspector::new(&Secret::random());
    let result = std::panic::catch_unwind(|| {
        inspector.inspect_many(&[1, 2], &mut [0; 2], &mut [0; 1], &mut [0; 2]);
    });
    assert!(result.is_err(), "documented to panic");
}

#[test]
fn clocks_with_implausible_times() {
    for (nanos, expected) in [
        (i64::MIN, ErrorKind::ClockBeforeEpoch),
        (-1, ErrorKind::ClockBeforeEpoch),
        (0, ErrorKind::ClockBeforeEpoch),
        (EPOCH * NANOS - 1, ErrorKind::ClockBeforeEpoch),
        (LIFETIME_END * NANOS, ErrorKind::LifetimeOver),
        (i64::MAX, ErrorKind::LifetimeOver),
    ] {
        let flake = builder().node_id(1).clock(move || nanos).build().expect("valid");
        assert_eq!(kind(flake.generate()), Err(expected), "{nanos}");
        assert_eq!(kind(flake.fill(&mut [Id::default(); 3])), Err(expected), "{nanos}");
        assert_eq!(kind(flake.ready_in()), Err(expected), "{nanos}");
    }
    for seconds in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e11, -1e11, 1.763_64e12, f64::MAX] {
        assert_eq!(kind(unix_nanos(seconds)), Err(ErrorKind::InvalidArgument), "{seconds}");
    }
}

/// A clock that fails at its nth reading and in every sleep.
struct Broken {
    readings: AtomicUsize,
    good: usize,
}

impl Clock for Broken {
    fn now(&self) -> Result<i64> {
        if self.readings.fetch_add(1, Ordering::Relaxed) < self.good {
            Ok(NOON * NANOS)
        } else {
            Err(Error::from_clock(io::Error::other("the clock fell down")))
        }
    }

    fn sleep(&self, _duration: Duration) -> Result<Option<Duration>> {
        Err(Error::from_clock(io::Error::other("woken up")))
    }
}

#[test]
fn clocks_that_fail() {
    let flake = |good| {
        let clock = Broken { readings: AtomicUsize::new(0), good };
        builder().node_id(1).clock(clock).build().expect("valid")
    };
    let source = |error: Error| error.into_source::<io::Error>().expect("its error").to_string();

    assert_eq!(source(flake(0).generate().expect_err("refused")), "the clock fell down");
    assert_eq!(source(flake(0).ready_in().expect_err("refused")), "the clock fell down");

    // A batch across a boundary claims, reads again, and fails; or it would sleep, and fails.
    for (good, expected) in [(1, "the clock fell down"), (2, "woken up")] {
        let flake = flake(good);
        let mut ids = vec![-1; 131_073];
        assert_eq!(source(flake.fill_i64(&mut ids).expect_err("refused")), expected);
        assert!(ids.iter().all(|&id| id == 0));
    }

    let error = flake(0).generate().expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = error.into_source::<fmt::Error>().expect_err("another type");
    assert_eq!(source(error), "the clock fell down");
}

#[test]
fn a_source_belongs_to_the_last_clone() {
    let error = Error::from_clock(io::Error::other("the clock fell down"));
    let clone = error.clone();
    assert_eq!(error, clone);
    let error = error.into_source::<io::Error>().expect_err("a clone is left");
    for error in [&error, &clone] {
        let source = std::error::Error::source(error).expect("the clock's");
        assert_eq!(source.to_string(), "the clock fell down");
    }
    drop(error);
    assert!(clone.into_source::<io::Error>().is_ok());
}

/// A clock whose sleeps report that they took no time, or an endless one.
#[test]
fn clocks_that_sleep_oddly() {
    struct Odd(Duration);

    impl Clock for Odd {
        fn now(&self) -> Result<i64> {
            Ok(NOON * NANOS + NANOS / 2)
        }

        fn sleep(&self, _duration: Duration) -> Result<Option<Duration>> {
            Ok(Some(self.0))
        }
    }

    for slept in [Duration::from_millis(600), Duration::MAX] {
        let flake = builder().node_id(1).clock(Odd(slept)).build().expect("valid");
        flake.fill(&mut vec![Id::default(); 131_072]).expect("a second's ids");
        let error = flake.generate().expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::SequenceExhausted, "{slept:?}");
        assert_eq!(error.retry_after(), Some(Duration::from_millis(500)), "{slept:?}");
    }
}

#[test]
fn secrets() {
    for length in (0..40).filter(|&length| length != 16) {
        let result = Secret::from_bytes(&vec![7; length]);
        assert_eq!(kind(result), Err(ErrorKind::InvalidSecret), "{length} bytes");
    }
    for length in (0..70).filter(|&length| length != 32) {
        let result = "a".repeat(length).parse::<Secret>();
        assert_eq!(kind(result), Err(ErrorKind::InvalidSecret), "{length} digits");
    }
}

#[test]
fn secrets_are_never_shown() {
    // Almost secrets: a mistyped one must not get into a log.
    let typos = [
        &SECRET[1..],
        &format!("{SECRET}0"),
        &format!("{}g", &SECRET[1..]),
        &format!("{}é", &SECRET[1..]),
        &format!(" {SECRET}"),
    ];
    for typo in typos {
        let error = typo.parse::<Secret>().map(drop).expect_err("refused");
        hides(&error.to_string());
        hides(&format!("{error:?}"));
    }
    let bytes = u128::from_str_radix(SECRET, 16).expect("hex").to_be_bytes();
    let error = Secret::from_bytes(&bytes[1..]).map(drop).expect_err("refused");
    hides(&format!("{error} {error:?}"));

    let secret: Secret = SECRET.parse().expect("hex");
    let flake = builder().node_id(1).clock(|| 0).build().expect("valid");
    hides(&format!("{secret:?} {secret:#?}"));
    hides(&format!("{:?} {:#?}", builder().node_id(1), builder()));
    hides(&format!("{:?} {:#?}", Inspector::new(&secret), Inspector::new(&secret)));
    hides(&format!("{flake:?} {flake:#?}"));
    let error = flake.generate().expect_err("refused");
    hides(&format!("{error} {error:?} {error:#?}"));
}

/// No four consecutive digits and no two consecutive decimal bytes of the secret.
fn hides(shown: &str) {
    let lower = shown.to_lowercase();
    for start in 1..=SECRET.len() - 4 {
        assert!(!lower.contains(&SECRET[start..start + 4]), "{shown}");
    }
    let bytes = u128::from_str_radix(SECRET, 16).expect("hex").to_be_bytes();
    let flat = lower.replace(char::is_whitespace, "");
    for pair in bytes.windows(2) {
        assert!(!flat.contains(&format!("{},{}", pair[0], pair[1])), "{shown}");
    }
}
