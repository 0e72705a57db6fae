//! Properties of every id and every generator, also with several generators and many threads.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::Duration,
};

use proptest::prelude::*;
use randflake::{
    Clock, ErrorKind, Id, Inspector, Layout, Lease, NodeIds, Parts, Randflake, Result, Secret,
    Snowflake, SystemClock,
    layout::{EPOCH, LIFETIME_END, MAX_NODE_ID},
};
use randflake_vectors::format;

const NANOS: i64 = 1_000_000_000;

proptest! {
    #[test]
    fn every_number_decrypts_and_encrypts_back(key: [u8; 16], id: i64) {
        let inspector = Inspector::new(&Secret::from_bytes(&key)?);
        let raw = inspector.decrypt(id.into());
        prop_assert_eq!(inspector.encrypt(raw), id.into());
        prop_assert_eq!(format::encrypt(key, raw), id);
    }

    #[test]
    fn parts_are_the_parts_of_the_raw_value(key: [u8; 16], id: i64) {
        let inspector = Inspector::new(&Secret::from_bytes(&key)?);
        let Parts { timestamp, node_id, sequence } = inspector.inspect(id.into());
        let raw = inspector.decrypt(id.into());
        prop_assert_eq!(format::pack(timestamp, node_id, sequence), raw);
    }

    #[test]
    fn a_generated_id_has_its_time_and_node_id(
        key: [u8; 16],
        second in EPOCH..LIFETIME_END,
        nanos in 0..NANOS,
        node_id in 0..=MAX_NODE_ID,
    ) {
        let secret = Secret::from_bytes(&key)?;
        let clock = move || second * NANOS + nanos;
        let flake = Randflake::builder(&secret).node_id(node_id).clock(clock).build()?;
        for sequence in 0..3 {
            let id = flake.generate()?;
            let parts = Parts { timestamp: second, node_id, sequence };
            prop_assert_eq!(flake.inspect(id), parts);
            prop_assert_eq!(Inspector::new(&secret).inspect(id), parts);
            prop_assert_eq!(flake.encrypt(flake.decrypt(id)), id);
        }
    }

    #[test]
    fn in_place_agrees_with_one_at_a_time(
        key: [u8; 16],
        ids in prop::collection::vec(any::<i64>(), 0..70),
    ) {
        let secret = Secret::from_bytes(&key)?;
        let inspector = Inspector::new(&secret);
        let clock = || 1_763_640_000 * NANOS;
        let flake = Randflake::builder(&secret).node_id(1).clock(clock).build()?;
        let raws: Vec<_> =
            ids.iter().map(|&id| inspector.decrypt(id.into()).cast_signed()).collect();
        let mut numbers = ids.clone();
        inspector.decrypt_in_place(&mut numbers);
        prop_assert_eq!(&numbers, &raws);
        inspector.encrypt_in_place(&mut numbers);
        prop_assert_eq!(&numbers, &ids);
        flake.decrypt_in_place(&mut numbers);
        prop_assert_eq!(&numbers, &raws);
        flake.encrypt_in_place(&mut numbers);
        prop_assert_eq!(&numbers, &ids);
    }

    #[test]
    fn inspect_many_agrees_with_inspect(ids in prop::collection::vec(any::<i64>(), 0..70)) {
        let inspector = Inspector::new(&"dffd6021bb2bd5b0af676290809ec3a5".parse()?);
        let mut times = vec![0; ids.len()];
        let (mut nodes, mut sequences) = (vec![0; ids.len()], vec![0; ids.len()]);
        inspector.inspect_many(&ids, &mut times, &mut nodes, &mut sequences);
        for (index, &id) in ids.iter().enumerate() {
            let parts = inspector.inspect(id.into());
            let column = (times[index], nodes[index], sequences[index]);
            prop_assert_eq!(column, (parts.timestamp, parts.node_id, parts.sequence));
        }
    }

    #[test]
    fn text_reads_back(id: i64) {
        let text = Id::from(id).to_string();
        prop_assert!(text.len() <= Id::MAX_TEXT_LENGTH);
        prop_assert_eq!(&text, &format::text(id));
        prop_assert_eq!(text.parse::<Id>()?, Id::from(id));
    }

    #[test]
    fn only_the_canonical_text_is_accepted(text in "[0-9a-w]{0,14}|[ -~]{0,14}|.{0,14}") {
        match text.parse::<Id>() {
            Ok(id) => prop_assert_eq!(id.to_string(), text),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::InvalidId),
        }
    }

    #[test]
    fn a_secret_reads_back(key: [u8; 16]) {
        let secret = Secret::from_bytes(&key)?;
        let hex = secret.to_hex();
        prop_assert_eq!(format::secret(&hex), key);
        prop_assert_eq!(hex.to_uppercase().parse::<Secret>()?.to_hex(), hex);
    }

    /// `ready_in` gives the result of a call that does not wait.
    #[test]
    fn ready_in_predicts_the_next_call(
        max_drift in 0..3_u32,
        script in prop::collection::vec((0..400_i64, 0..4_usize), 1..12),
    ) {
        let now = AtomicI64::new(0);
        let flake = Randflake::builder(&Secret::random())
            .node_id(1)
            .lease(Lease::new(1_763_640_001, 1_763_640_005)?)
            .max_wait(Duration::ZERO)
            .max_drift(max_drift)
            .clock(|| now.load(Ordering::Relaxed))
            .build()?;
        for (ticks, fills) in script {
            now.store(1_763_640_000 * NANOS + ticks * NANOS / 64, Ordering::Relaxed);
            for _ in 0..fills {
                let _ = flake.fill_i64(&mut vec![0; 40_000]);
            }
            let foretold = flake.ready_in().map_err(|error| error.kind());
            match flake.generate() {
                Ok(_) => prop_assert_eq!(foretold, Ok(Duration::ZERO)),
                Err(error) => match (error.retry_after(), foretold) {
                    (Some(retry_after), Ok(ready_in)) => prop_assert_eq!(retry_after, ready_in),
                    // The last second is used up: the call may know at once that waiting does not
                    // help.
                    (Some(_), Err(kind)) => prop_assert_eq!(kind, ErrorKind::LeaseExpired),
                    (None, foretold) => prop_assert_eq!(foretold, Err(error.kind())),
                },
            }
        }
    }
}

#[cfg(feature = "serde")]
mod serde_form {
    use proptest::prelude::*;
    use randflake::{Id, Parts};
    use serde_test::{Configure, Token, assert_de_tokens_error, assert_tokens};

    proptest! {
        #[test]
        fn an_id_is_text_in_json(id: i64) {
            let id = Id::from(id);
            let json = serde_json::to_string(&id)?;
            prop_assert_eq!(&json, &format!("\"{id}\""));
            prop_assert_eq!(serde_json::from_str::<Id>(&json)?, id);
            prop_assert_eq!(serde_json::from_reader::<_, Id>(json.as_bytes())?, id);
        }

        #[test]
        fn an_id_is_a_number_in_binary_formats(id: i64) {
            assert_tokens(&Id::from(id).compact(), &[Token::I64(id)]);
        }
    }

    #[test]
    fn other_values_are_refused_as_ids() {
        for json in ["4594531474933654033", "\"\"", "\"01\"", "\"-1\"", "null", "[\"1\"]"] {
            assert!(serde_json::from_str::<Id>(json).is_err(), "{json}");
        }
        assert_de_tokens_error::<serde_test::Compact<Id>>(
            &[Token::Str("1")],
            "invalid type: string \"1\", expected i64",
        );
    }

    #[test]
    fn parts_keep_their_names() {
        let parts = Parts { timestamp: 1_733_706_297, node_id: 42, sequence: 1 };
        let json = r#"{"timestamp":1733706297,"node_id":42,"sequence":1}"#;
        assert_eq!(serde_json::to_string(&parts).expect("json"), json);
        assert_eq!(serde_json::from_str::<Parts>(json).expect("parts"), parts);
    }
}

/// Eight threads on two generators that share their nodes, with single calls and batches.
#[test]
fn eight_threads_repeat_nothing() {
    const THREADS: usize = 8;
    const EACH: usize = if cfg!(miri) { 50 } else { 1_000_000 };
    let secret = Secret::random();
    // The same nodes in another order.
    let one = builder(&secret).node_ids(0..64).build().expect("free nodes");
    let other = builder(&secret).node_ids((0..64).rev()).build().expect("the same nodes");
    let mut ids = vec![0_i64; THREADS * EACH];
    thread::scope(|scope| {
        for (thread, part) in ids.chunks_mut(EACH).enumerate() {
            let flake = if thread % 2 == 0 { &one } else { &other };
            scope.spawn(move || {
                if thread < THREADS / 2 {
                    part.fill_with(|| flake.generate().expect("an id").into());
                } else {
                    // Never the same size twice running.
                    part.chunks_mut(1 + 997 * thread)
                        .for_each(|batch| flake.fill_i64(batch).expect("ids"));
                }
            });
        }
    });
    assert_eq!(distinct(&mut ids), THREADS * EACH);
}

/// Eight threads on one node, whose clock goes back and forth. They collide at its steps, in full
/// seconds and in batches across the end of a second.
#[test]
fn eight_threads_on_an_unsteady_clock_repeat_nothing() {
    /// Advances by 3 µs a reading; every 50 000 readings it steps back by 100 ms.
    struct Unsteady(AtomicI64);

    impl Clock for Unsteady {
        fn now(&self) -> Result<i64> {
            let reading = self.0.fetch_add(1, Ordering::Relaxed);
            Ok(1_763_640_000 * NANOS + reading * 3_000 - reading / 50_000 * 100_000_000)
        }

        fn sleep(&self, duration: Duration) -> Result<Option<Duration>> {
            let nanos = i64::try_from(duration.as_nanos()).expect("short");
            self.0.fetch_add(nanos / 3_000, Ordering::Relaxed);
            Ok(Some(duration))
        }
    }

    const EACH: usize = if cfg!(miri) { 50 } else { 125_000 };
    let flake = Randflake::builder(&Secret::random())
        .node_id(1)
        .max_wait(Duration::from_secs(60))
        .clock(Unsteady(AtomicI64::new(0)))
        .build()
        .expect("valid options");
    let mut ids = vec![0_i64; 8 * EACH];
    thread::scope(|scope| {
        for (thread, part) in ids.chunks_mut(EACH).enumerate() {
            let flake = &flake;
            scope.spawn(move || {
                for (index, batch) in part.chunks_mut(500).enumerate() {
                    if (index + thread) % 2 == 0 {
                        batch.fill_with(|| flake.generate().expect("an id").into());
                    } else {
                        flake.fill_i64(batch).expect("ids");
                    }
                }
            });
        }
    });
    assert_eq!(distinct(&mut ids), 8 * EACH);
}

#[test]
fn two_objects_with_one_node_id_share_it() {
    let secret = Secret::random();
    let one = builder(&secret).node_id(7).build().expect("a free node");
    let other = builder(&secret).node_id(7).build().expect("the same node");
    let mut ids: Vec<i64> =
        (0..20_000).flat_map(|_| [&one, &other]).map(|flake| id_of(flake).into()).collect();
    // What a generator has issued stays issued after it is dropped.
    drop(one);
    ids.extend((0..1000).map(|_| i64::from(id_of(&other))));
    drop(other);
    let third = builder(&secret).node_id(7).build().expect("the same node");
    ids.extend((0..1000).map(|_| i64::from(id_of(&third))));
    let count = ids.len();
    assert_eq!(distinct(&mut ids), count);
}

#[test]
fn overlapping_node_lists_are_refused() {
    let secret = Secret::random();
    let held = builder(&secret).node_ids([3, 4]).build().expect("free nodes");
    for overlapping in [&[3][..], &[4], &[4, 5], &[2, 3, 4], &[3, 4, 5]] {
        let error =
            builder(&secret).node_ids(overlapping.iter().copied()).build().expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::NodeInUse, "{overlapping:?}");
        assert_eq!(error.retry_after(), None);
    }
    // The record lasts as long as the process.
    drop(held);
    let error = builder(&secret).node_id(3).build().expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::NodeInUse);

    builder(&secret).node_ids([4, 3]).build().expect("the same nodes");
    builder(&secret).node_ids([2, 5]).build().expect("other nodes");
    builder(&Secret::random()).node_id(3).build().expect("another secret");
    // A generator with an injected clock shares no record.
    builder(&secret).node_id(3).clock(|| 1_763_640_000 * NANOS).build().expect("another record");
}

#[test]
fn overlapping_node_lists_of_threads_are_refused() {
    for _ in 0..20 {
        let secret = Secret::random();
        let made: Vec<Vec<u32>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8_u32)
                .map(|thread| {
                    let secret = &secret;
                    scope.spawn(move || {
                        let list = |first: u32| first % 40..first % 40 + 1 + first % 5;
                        (0..50)
                            .map(|turn| list(thread * 7 + turn * 3))
                            .filter_map(|list| builder(secret).node_ids(list).build().ok())
                            .map(|flake| flake.node_ids().to_vec())
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(made.len() > 8, "{made:?}");
        for one in &made {
            for other in &made {
                let shares = one.iter().any(|node| other.contains(node));
                assert_eq!(shares, one == other, "{one:?} {other:?}");
            }
        }
    }
}

#[test]
fn a_node_id_is_leased_or_manual() {
    let secret = Secret::random();
    let lease = Lease::new(now(), now() + 100).expect("a lease");
    let granted = |node_ids: &[u32]| {
        builder(&secret).node_ids(node_ids.iter().copied()).granted_lease(lease).build()
    };
    let manual = |node_ids: &[u32]| builder(&secret).node_ids(node_ids.iter().copied()).build();
    let in_use = |result: Result<Randflake>, case: &str| {
        assert_eq!(result.expect_err(case).kind(), ErrorKind::NodeInUse, "{case}");
    };

    let leased = granted(&[1, 2]).expect("free nodes");
    in_use(manual(&[1]), "leased");
    in_use(manual(&[0, 2]), "one of them leased");
    in_use(builder(&secret).node_id(2).lease(lease).build(), "a lease of one's own");
    manual(&[3, 4]).expect("free nodes");
    in_use(granted(&[3]), "manual, and closed");
    in_use(granted(&[4, 5]), "one of them manual");
    assert_eq!(
        leased.replace_lease(&[3], lease, u32::MAX).expect_err("manual").kind(),
        ErrorKind::NodeInUse
    );
    id_of(&leased); // keeps its own lease
    leased.replace_lease(&[6], lease, u32::MAX).expect("a free node");
    in_use(manual(&[6]), "leased since");
    leased.close();
    in_use(manual(&[1]), "leased before: another process may have it now");
    granted(&[1, 2]).expect("granted again");
    assert_eq!(NodeIds::of_secret(&secret).grant(&[1, 3, 4, 7]), [3, 4]);
    in_use(manual(&[7]), "granted to a coordinator");
    // A generator with an injected clock shares no record.
    builder(&secret).node_id(1).clock(|| 1_763_640_000 * NANOS).build().expect("another record");
    let injected = builder(&secret).node_id(3).granted_lease(lease).clock(|| 0).build();
    injected.expect("another record");
}

#[test]
fn manual_generators_begin_after_the_second_in_which_they_are_made() {
    let secret = Secret::random();
    let safe = || Randflake::new(1, &secret).expect("a free node");
    let first_of = |flake: &Randflake| flake.inspect(id_of(flake)).timestamp;

    let made = now();
    let (one, same_second) = (safe(), safe());
    assert!(first_of(&same_second) > made, "shares the record and its beginning");
    assert!(first_of(&one) > made);

    // An open generator has had the node id since it was made.
    let other = safe();
    assert_eq!(other.ready_in().expect("open"), Duration::ZERO);
    one.close();
    drop(one); // counts once
    drop(same_second);
    assert_eq!(safe().ready_in().expect("open"), Duration::ZERO);

    // Without one, another process may have had it.
    drop(other);
    for how in ["drop", "close"] {
        let made = now();
        let flake = safe();
        assert!(first_of(&flake) > made, "{how}");
        if how == "close" {
            flake.close();
            let made = now();
            let again = safe();
            drop(flake);
            assert!(first_of(&again) > made, "{how}");
        }
    }

    // A generator with a lease does not count.
    let lease = Lease::new(now() - 10, now() + 100).expect("a lease");
    let leased = builder(&secret).node_id(1).lease(lease).build().expect("the same node");
    let made = now();
    assert!(first_of(&leased) >= made);
    assert!(first_of(&safe()) > made);
    // Without restart safety it begins at once.
    let hasty = builder(&secret).node_id(1).build().expect("the same node");
    assert_eq!(hasty.ready_in().expect("open"), Duration::ZERO);
    let made = now();
    assert_eq!(leased.ready_in().expect("open"), Duration::ZERO);
    drop((hasty, leased));
    assert!(first_of(&safe()) > made);
}

/// A generator that closes while another is being made: each either shares an open record or
/// begins in a later second.
#[test]
fn generators_of_many_threads_begin_after_all_were_closed() {
    let secret = Secret::random();
    for _ in 0..5 {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..2000 {
                        let flake = Randflake::new(1, &secret).expect("the same node");
                        if turn % 2 == 0 {
                            flake.close();
                        }
                    }
                });
            }
        });
        let made = now();
        let flake = Randflake::new(1, &secret).expect("the same node");
        assert!(flake.inspect(id_of(&flake)).timestamp > made, "all were closed");
    }
}

#[test]
fn a_closed_generator_still_reads() {
    let flake = Randflake::builder(&Secret::random())
        .node_id(1)
        .clock(|| 1_763_640_000 * NANOS)
        .build()
        .expect("valid options");
    let id = id_of(&flake);
    let parts = flake.inspect(id);
    flake.close();
    assert_eq!(flake.inspect(id), parts);
    assert_eq!(flake.encrypt(flake.decrypt(id)), id);
    assert!(flake.node_ids().is_empty());
    assert_eq!(flake.lease(), None);
    assert_eq!(flake.ready_in().expect_err("refused").kind(), ErrorKind::Closed);
}

/// Once `close` has returned, another process may get the node id. A call that began earlier and
/// reads the clock later must hand out nothing, although a state that generators with manual node
/// ids share is never sealed.
#[test]
fn a_call_that_reads_the_clock_after_a_close_hands_out_nothing() {
    type Close = Box<dyn FnOnce() + Send>;

    /// Closes its generator at the first reading after the flag is set.
    #[derive(Clone, Default)]
    struct Closing(Arc<Mutex<Option<Close>>>);

    impl Clock for Closing {
        fn now(&self) -> Result<i64> {
            if let Some(close) = self.0.lock().expect("no panic").take() {
                close();
            }
            Ok(1_763_640_000 * NANOS)
        }

        fn sleep(&self, _: Duration) -> Result<Option<Duration>> {
            Ok(None)
        }
    }

    type Call<F> = fn(&F) -> ErrorKind;
    let calls: [Call<Randflake<Closing>>; 2] = [
        |flake| flake.generate().expect_err("closed").kind(),
        |flake| flake.fill(&mut [Id::default(); 10]).expect_err("closed").kind(),
    ];
    for call in calls {
        let clock = Closing::default();
        let builder = Randflake::builder(&Secret::random()).node_id(1).clock(clock.clone());
        let flake = Arc::new(builder.build().expect("valid options"));
        let same = Arc::clone(&flake);
        *clock.0.lock().expect("no panic") = Some(Box::new(move || {
            same.close();
        }));
        assert_eq!(call(&flake), ErrorKind::Closed);
    }
    let calls: [Call<Snowflake<Closing>>; 2] = [
        |flake| flake.generate().expect_err("closed").kind(),
        |flake| flake.fill(&mut [0; 10]).expect_err("closed").kind(),
    ];
    for call in calls {
        let clock = Closing::default();
        let builder = Snowflake::builder(Layout::twitter()).node_id(1).clock(clock.clone());
        let flake = Arc::new(builder.build().expect("valid options"));
        let same = Arc::clone(&flake);
        *clock.0.lock().expect("no panic") = Some(Box::new(move || {
            same.close();
        }));
        assert_eq!(call(&flake), ErrorKind::Closed);
    }
}

#[test]
fn the_largest_node_list_works() {
    let mut flake_ids = HashSet::new();
    let flake = Randflake::builder(&Secret::random())
        .node_ids((0..16_384).map(|node| node * 8))
        .clock(|| 1_763_640_000 * NANOS)
        .build()
        .expect("as many nodes as there may be");
    for _ in 0..1000 {
        assert!(flake_ids.insert(id_of(&flake)));
    }
}

/// A builder whose generators issue at once: their secrets are fresh, so nothing can repeat.
fn builder(secret: &Secret) -> randflake::Builder<randflake::Encrypted> {
    Randflake::builder(secret).restart_safe(false)
}

/// The unix second.
fn now() -> i64 {
    SystemClock.now().expect("a time") / NANOS
}

fn id_of<C: Clock>(flake: &Randflake<C>) -> Id {
    flake.generate().expect("an id")
}

fn distinct(ids: &mut [i64]) -> usize {
    ids.sort_unstable();
    ids.chunk_by(|one, other| one == other).count()
}

/// A clock that was ahead for a moment, or is set back, costs a lease, but no id comes twice.
#[test]
fn another_lease_is_not_kept_from_ids_by_a_clock_that_was_wrong() {
    let t = 1_763_640_000;
    let second = Arc::new(AtomicI64::new(t));
    let read = Arc::clone(&second);
    let set = |to| second.store(to, Ordering::Relaxed);
    let lease = |start| Lease::new(start, start + 300).expect("a lease");
    let flake = Randflake::builder(&Secret::random())
        .node_id(1)
        .granted_lease(lease(t + 3600))
        .max_drift(10)
        .max_wait(Duration::ZERO)
        .clock(move || read.load(Ordering::Relaxed) * NANOS)
        .build()
        .expect("a generator");
    let first = || flake.inspect(flake.generate().expect("an id"));
    set(t + 3600);
    assert_eq!((first().timestamp, first().node_id), (t + 3600, 1));

    // The clock is right again. Other node ids begin where their lease does.
    set(t);
    let used_until = flake.replace_lease(&[2], lease(t), 10).expect("another lease");
    assert_eq!(used_until, t + 3601);
    assert_eq!((first().timestamp, first().node_id), (t, 2));
    // If it is ahead by a few seconds more than one can wait, time continues.
    set(t + 8);
    first();
    set(t + 1);
    flake.replace_lease(&[3], lease(t + 1), 10).expect("another lease");
    assert_eq!((first().timestamp, first().node_id), (t + 9, 3));

    // The same node ids continue after their last stamps, no matter what came between.
    flake.replace_lease(&[4], lease(t + 1), 10).expect("another lease");
    flake.replace_lease(&[1], Lease::new(t + 1, t + 4000).expect("a lease"), 10).expect("again");
    let error = flake.generate().expect_err("its last stamp is an hour ahead");
    assert!(matches!(error.kind(), ErrorKind::ClockMovedBack | ErrorKind::LeaseNotStarted));
    set(t + 3601);
    assert_eq!((first().timestamp, first().node_id), (t + 3601, 1));
}
