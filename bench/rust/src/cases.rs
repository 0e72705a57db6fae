use std::{
    hint::{black_box, spin_loop},
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ferroid::{
    define_snowflake_id,
    generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator},
    time::MonotonicClock,
};
use randflake::{Cloak, Clock, Codes, Id, Inspector, Layout, Randflake, Snowflake, SystemClock};
use snowflake::SnowflakeIdGenerator;
use uuid::Uuid;

use crate::{Case, counting, library::sparx::Sparx, timed};

/// As many node ids as one generator can have: 2^31 ids a second, more than any case makes.
const NODES: u32 = 16_384;
const BATCH: usize = 4096;
/// The number of a code.
const NUMBER: u64 = 1_234_567;

define_snowflake_id!(
    /// Room for 4 194 304 ids a millisecond, so that nothing waits.
    Roomy, u64,
    reserved: 1,
    timestamp: 41,
    machine_id: 0,
    sequence: 22
);

fn generator(nodes: u32, secret: u8) -> Randflake {
    let secret = randflake::Secret::from_bytes(&[secret; 16]).expect("16 bytes");
    Randflake::builder(&secret).node_ids(0..nodes).restart_safe(false).build().expect("a generator")
}

/// A generator with as many node ids as it can have, so that nothing waits.
fn snowflake(layout: Layout) -> Snowflake {
    let nodes = u32::try_from(layout.max_nodes()).expect("at most 16 384");
    let builder = Snowflake::builder(layout).node_ids(0..nodes);
    builder.restart_safe(false).build().expect("a generator")
}

/// Returns the bytes that one generator takes, its own size included, after a second of work in
/// two threads.
pub fn memory() -> usize {
    let before = counting::bytes();
    let flake = generator(1, 1);
    let work = || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1100) {
            black_box(flake.generate().expect("an id"));
            thread::sleep(Duration::from_micros(10));
        }
    };
    thread::scope(|threads| {
        threads.spawn(work);
        threads.spawn(work);
    });
    size_of::<Randflake>() + counting::bytes() - before
}

/// Returns the extension that the library chooses on this machine.
pub fn backend() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return if !cfg!(randflake_no_avx512)
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
    {
        "AVX-512"
    } else if !cfg!(randflake_no_avx2) && is_x86_feature_detected!("avx2") {
        "AVX2"
    } else {
        "SSE2"
    };
    #[cfg(not(target_arch = "x86_64"))]
    return "portable";
}

/// A case of one id per call.
fn one(
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    mut call: impl FnMut() + 'static,
) -> Case {
    let run = move |times| (timed(|| (0..times).for_each(|_| call())), times);
    case(name, label, kind, run)
}

/// A case of [`BATCH`] ids per call.
fn batch(
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    mut call: impl FnMut() + 'static,
) -> Case {
    let run = move |times| (timed(|| (0..times).for_each(|_| call())), times * BATCH as u64);
    case(name, label, kind, run)
}

/// A case of one id per call, of each of two threads, 0 and 1, at the same time.
fn two_threads(
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    call: impl Fn(usize) + Sync + 'static,
) -> Case {
    let run = move |times| {
        let both = Barrier::new(2);
        let work = |thread| {
            pin(thread);
            both.wait();
            let start = Instant::now();
            (0..times).for_each(|_| call(thread));
            (start, Instant::now())
        };
        let ((start, end), (other_start, other_end)) = thread::scope(|threads| {
            let [one, other] = [0, 1].map(|thread| threads.spawn(move || work(thread)));
            (one.join().expect("no panic"), other.join().expect("no panic"))
        });
        let took = end.max(other_end) - start.min(other_start);
        (took, 2 * times)
    };
    case(name, label, kind, run)
}

/// Keeps this thread on a processor of its own: left alone, two new threads often share one.
#[cfg(target_os = "linux")]
fn pin(thread: usize) {
    const SIZE: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: a set is an array of integers, and without processors if they are zero.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as said.
    unsafe { libc::sched_getaffinity(0, SIZE, &raw mut allowed) };
    let mut processors = (0..8 * SIZE).filter(|&processor| {
        // SAFETY: reads within the set.
        unsafe { libc::CPU_ISSET(processor, &allowed) }
    });
    let Some(processor) = processors.nth(thread) else {
        return;
    };
    // SAFETY: as above.
    let mut own: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes within the set.
    unsafe { libc::CPU_SET(processor, &mut own) };
    // SAFETY: the set is as large as said. If it is refused, the thread stays free.
    unsafe { libc::sched_setaffinity(0, SIZE, &raw const own) };
}

/// Elsewhere the system chooses the processor.
#[cfg(not(target_os = "linux"))]
fn pin(_: usize) {}

fn case(
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    run: impl FnMut(u64) -> (Duration, u64) + 'static,
) -> Case {
    Case { name, label, kind, run: Box::new(run), times: 0 }
}

/// Walks round an array, so that no call repeats the one before it.
fn round<T: Copy + 'static>(items: Vec<T>) -> impl FnMut() -> T {
    let mut next = 0;
    move || {
        next = (next + 1) % items.len();
        items[next]
    }
}

pub fn all() -> Vec<Case> {
    let mut cases = ours();
    cases.extend(parts());
    cases.extend(peers());
    cases
}

fn ours() -> Vec<Case> {
    // One generator for all cases: a process never forgets its manually assigned node ids.
    let flake: &'static Randflake = Box::leak(Box::new(generator(NODES, 2)));
    let own = [generator(NODES, 3), generator(NODES, 4)];
    let cipher: &'static Sparx = Box::leak(Box::new(Sparx::new(&crate::Secret([2; 16]))));
    let (twitter, discord) = (snowflake(Layout::twitter()), snowflake(Layout::discord()));
    let inspector = Inspector::new(&randflake::Secret::from_bytes(&[2; 16]).expect("16 bytes"));

    let mut ids = vec![0; BATCH];
    flake.fill_i64(&mut ids).expect("ids");
    let raws: Vec<u64> = ids.iter().map(|&id| flake.decrypt(id.into())).collect();
    let mut next_id = round(ids.clone());
    let mut next_of_ids = round(ids.clone());
    let mut next_raw = round(raws);
    let mut filled = vec![Id::default(); BATCH];
    let (mut encrypted, mut decrypted) = (ids.clone(), ids.clone());
    let (mut times, mut nodes, mut sequences) = (vec![0; BATCH], vec![0; BATCH], vec![0; BATCH]);

    let secret = randflake::Secret::from_bytes(&[2; 16]).expect("16 bytes");
    let cloak = Cloak::new(&secret, "orders.id");
    let codes: &'static Codes =
        Box::leak(Box::new(Codes::builder(&secret, "orders").build().expect("codes")));
    let checked = Codes::builder(&secret, "vouchers").length(10).alphabet("crockford").check(3);
    let checked = checked.build().expect("codes");
    let code = codes.encode(NUMBER).expect("a code");

    vec![
        one("cloak_hide", "Cloak.hide(), as text", "us", move || {
            let hidden = cloak.hide(black_box(NUMBER));
            black_box(hidden.encode(black_box(&mut [0; Id::MAX_TEXT_LENGTH])));
        }),
        one("codes_encode", "Codes.encode(), 8 digits", "us", move || {
            black_box(codes.encode(black_box(NUMBER)).expect("a code"));
        }),
        one("codes_decode", "Codes.decode(), 8 digits", "us", move || {
            black_box(codes.decode(black_box(&code)).expect("a number"));
        }),
        one("codes_crockford", "Codes.encode(), 10 of crockford", "us", move || {
            black_box(checked.encode(black_box(NUMBER)).expect("a code"));
        }),
        one("generate", "generate()", "us", move || {
            black_box(flake.generate().expect("an id"));
        }),
        two_threads("generate_2", "generate(), 2 threads", "us", move |_| {
            black_box(flake.generate().expect("an id"));
        }),
        // What two threads reach on this machine if they share nothing.
        two_threads(
            "generate_own_2",
            "generate(), 2 threads, a generator each",
            "us",
            move |thread| {
                black_box(own[thread].generate().expect("an id"));
            },
        ),
        one("generate_text", "generate() and its text", "us", move || {
            let id = flake.generate().expect("an id");
            black_box(id.encode(black_box(&mut [0; Id::MAX_TEXT_LENGTH])));
        }),
        one("snowflake_twitter", "Snowflake.generate(), Twitter", "us", move || {
            black_box(twitter.generate().expect("an id"));
        }),
        one("snowflake_discord", "Snowflake.generate(), Discord", "us", move || {
            black_box(discord.generate().expect("an id"));
        }),
        batch("fill", "fill(4096), per id", "us", move || {
            flake.fill(black_box(&mut filled)).expect("ids");
        }),
        batch(
            "cipher_encrypt_many",
            "the cipher alone, encrypting 4096, per id",
            "part",
            move || {
                cipher.encrypt_many(black_box(&mut encrypted));
            },
        ),
        one("encrypt", "encrypt()", "part", move || {
            black_box(flake.encrypt(next_raw()));
        }),
        one("inspect", "inspect()", "us", move || {
            black_box(flake.inspect(next_id().into()));
        }),
        one("decrypt", "decrypt()", "part", move || {
            black_box(flake.decrypt(next_of_ids().into()));
        }),
        batch(
            "cipher_decrypt_many",
            "the cipher alone, decrypting 4096, per id",
            "part",
            move || {
                cipher.decrypt_many(black_box(&mut decrypted));
            },
        ),
        batch("inspect_many", "inspect_many(4096), per id", "us", move || {
            inspector.inspect_many(
                black_box(&ids),
                black_box(&mut times),
                black_box(&mut nodes),
                black_box(&mut sequences),
            );
        }),
    ]
}

/// The parts of an id that no library makes faster.
fn parts() -> Vec<Case> {
    let word = AtomicU64::new(0);
    vec![
        one("part_claim", "a compare-and-swap: a claim", "part", move || {
            let seen = black_box(&word).load(Ordering::Relaxed);
            let claimed =
                word.compare_exchange(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed);
            black_box(claimed).expect("no other process has it");
        }),
        one("part_coarse", "reading the coarse clock, of seconds", "part", || {
            black_box(SystemClock.coarse_time());
        }),
        one("part_counter", "a reading of the counter", "part", || {
            black_box(SystemClock.counter());
        }),
        one("part_clock", "reading the clock", "part", || {
            black_box(SystemClock.now().expect("a time"));
        }),
    ]
}

fn peers() -> Vec<Case> {
    let atomic = || AtomicSnowflakeGenerator::<Roomy, _>::new(0, MonotonicClock::<1>::default());
    let (ferroid_one, ferroid_two) = (atomic(), atomic());
    let ferroid_basic = BasicSnowflakeGenerator::<Roomy, _>::new(0, MonotonicClock::<1>::default());
    let (mut lazy, mut real_time) =
        (SnowflakeIdGenerator::new(1, 1), SnowflakeIdGenerator::new(1, 1));
    let mut snowflaked = snowflaked::Generator::new(0);
    let snowflaked_sync = snowflaked::sync::Generator::new(1);
    let mut ulid = ulid::Generator::new();
    let their_key = sparx::sparx64::key_schedule_encrypt(&[2; 16]);
    let mut next_block = round((0..BATCH as u64).map(u64::to_le_bytes).collect());
    let mut next_ciphertext = round((0..BATCH as u64).map(u64::to_le_bytes).collect());

    let sqids = sqids::Sqids::builder().min_length(8).build().expect("sqids");
    let harsh = harsh::Harsh::builder().salt("orders").length(8).build().expect("hashids");
    let (sqid, hashid) = (sqids.encode(&[NUMBER]).expect("a text"), harsh.encode(&[NUMBER]));
    let knuth = optimus::Optimus::new_calculated(1_580_030_173, 1_163_945_558).expect("a prime");
    let sqids: &'static sqids::Sqids = Box::leak(Box::new(sqids));
    let harsh: &'static harsh::Harsh = Box::leak(Box::new(harsh));

    vec![
        one("sqids_encode", "sqids encode (no key)", "peer", move || {
            black_box(sqids.encode(black_box(&[NUMBER])).expect("a text"));
        }),
        one("sqids_decode", "sqids decode (no key)", "peer", move || {
            black_box(sqids.decode(black_box(&sqid)));
        }),
        one("harsh_encode", "harsh (hashids) encode (no cipher)", "peer", move || {
            black_box(harsh.encode(black_box(&[NUMBER])));
        }),
        one("harsh_decode", "harsh (hashids) decode (no cipher)", "peer", move || {
            black_box(harsh.decode(black_box(&hashid)).expect("a number"));
        }),
        one("optimus", "optimus encode (one multiplication, no text)", "peer", move || {
            black_box(knuth.encode(black_box(NUMBER)));
        }),
        one("ferroid_atomic", "ferroid atomic (no cipher)", "peer", move || {
            black_box(ferroid_one.next_id(|_| spin_loop()));
        }),
        two_threads(
            "ferroid_atomic_2",
            "ferroid atomic (no cipher), 2 threads",
            "peer",
            move |_| {
                black_box(ferroid_two.next_id(|_| spin_loop()));
            },
        ),
        one("ferroid_basic", "ferroid basic (no cipher, one thread only)", "peer", move || {
            black_box(ferroid_basic.next_id(|_| spin_loop()));
        }),
        one("uuid_v4", "uuid v4 (fast-rng)", "peer", || {
            black_box(Uuid::new_v4());
        }),
        two_threads("uuid_v4_2", "uuid v4 (fast-rng), 2 threads", "peer", |_| {
            black_box(Uuid::new_v4());
        }),
        one("uuid_v7", "uuid v7 (fast-rng)", "peer", || {
            black_box(Uuid::now_v7());
        }),
        one("ulid", "ulid", "peer", move || {
            black_box(ulid.generate().expect("no overflow"));
        }),
        one("rs_snowflake_lazy", "rs-snowflake lazy (reads no clock)", "peer", move || {
            black_box(lazy.lazy_generate());
        }),
        one("rs_snowflake", "rs-snowflake (waits: 4096 ids a ms)", "peer", move || {
            black_box(real_time.real_time_generate());
        }),
        one("snowflaked", "snowflaked (waits: 4096 ids a ms)", "peer", move || {
            black_box(snowflaked.generate::<u64>());
        }),
        one("snowflaked_sync", "snowflaked sync (waits: 4096 ids a ms)", "peer", move || {
            black_box(snowflaked_sync.generate::<u64>());
        }),
        one("sparx_encrypt", "sparx, encrypting one block", "peer", move || {
            let mut block = next_block();
            sparx::sparx64::encrypt_block(&mut block, &their_key);
            black_box(block);
        }),
        one("sparx_decrypt", "sparx, decrypting one block", "peer", {
            let their_key = sparx::sparx64::key_schedule_decrypt(&[2; 16]);
            move || {
                let mut block = next_ciphertext();
                sparx::sparx64::decrypt_block(&mut block, &their_key);
                black_box(block);
            }
        }),
    ]
}
