//! Ids of the Rust peers, and what the peers make of ours; see `../../../peers.py`.

#![allow(clippy::disallowed_methods, reason = "the clock of the library is not that of its peers")]

use std::{
    hint::spin_loop,
    io::{self, BufRead},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ferroid::{
    generator::BasicSnowflakeGenerator,
    id::{SnowflakeDiscordId, SnowflakeInstagramId, SnowflakeTwitterId},
    time::{DISCORD_EPOCH, MonotonicClock, TWITTER_EPOCH},
};
use snowflake::SnowflakeIdGenerator;
use snowflaked::Snowflake;

/// That of Instagram's published PL/pgSQL; ferroid has another one, of its own.
const INSTAGRAM_EPOCH: Duration = Duration::from_millis(1_314_220_021_721);
const IDS: usize = 3;

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("64 bits")
}

macro_rules! ferroid {
    ($id:ty, $layout:literal, $epoch:expr, $node:literal) => {{
        let clock = MonotonicClock::<1>::with_epoch($epoch);
        let generator = BasicSnowflakeGenerator::<$id, _>::new($node, clock);
        for _ in 0..IDS {
            ferroid!(generator.next_id(|_| spin_loop()), "made", $layout, $epoch);
        }
    }};
    ($id:expr, $verb:literal, $layout:literal, $epoch:expr) => {{
        let id = $id;
        let unix_ms = u128::from(id.timestamp()) + $epoch.as_millis();
        let (raw, node, sequence) = (id.to_raw(), id.machine_id(), id.sequence());
        println!(
            concat!("{} ferroid ", $layout, " {} {} {} {}"),
            $verb, raw, unix_ms, node, sequence
        );
    }};
}

fn snowflaked(verb: &str, id: u64) {
    let unix_ms = u128::from(Snowflake::timestamp(&id)) + TWITTER_EPOCH.as_millis();
    let (node, sequence) = (id.instance(), Snowflake::sequence(&id));
    println!("{verb} snowflaked twitter {id} {unix_ms} {node} {sequence}");
}

/// Of rs-snowflake, which reads no ids: made within one millisecond, so that their time is known.
fn rs_snowflake() {
    let (datacenter, worker) = (21, 10);
    let made_in_one_millisecond = || {
        let before = unix_ms();
        let mut generator =
            SnowflakeIdGenerator::with_epoch(datacenter, worker, UNIX_EPOCH + TWITTER_EPOCH);
        let ids: [_; IDS] = std::array::from_fn(|_| generator.real_time_generate());
        (unix_ms() == before).then_some((before, ids))
    };
    let (unix_ms, ids) = std::iter::repeat_with(made_in_one_millisecond)
        .flatten()
        .next()
        .expect("a millisecond is enough");
    let node = datacenter << 5 | worker;
    for (id, sequence) in ids.into_iter().zip(1..) {
        println!("made rs-snowflake twitter {id} {unix_ms} {node} {sequence}");
    }
}

fn main() -> io::Result<()> {
    ferroid!(SnowflakeTwitterId, "twitter", TWITTER_EPOCH, 378);
    ferroid!(SnowflakeDiscordId, "discord", DISCORD_EPOCH, 682);
    ferroid!(SnowflakeInstagramId, "instagram", INSTAGRAM_EPOCH, 5461);
    let epoch = UNIX_EPOCH + TWITTER_EPOCH;
    let mut generator = snowflaked::Generator::builder()
        .instance(341)
        .epoch(epoch)
        .build::<snowflaked::Generator>();
    (0..IDS).for_each(|_| snowflaked("made", generator.generate()));
    rs_snowflake();

    for line in io::stdin().lock().lines() {
        let line = line?;
        let (layout, id) = line.split_once(' ').expect("a layout and an id");
        let id = id.parse().expect("an id");
        match layout {
            "twitter" => {
                ferroid!(SnowflakeTwitterId::from_raw(id), "read", "twitter", TWITTER_EPOCH);
                snowflaked("read", id);
            }
            "discord" => {
                ferroid!(SnowflakeDiscordId::from_raw(id), "read", "discord", DISCORD_EPOCH);
            }
            "instagram" => {
                ferroid!(SnowflakeInstagramId::from_raw(id), "read", "instagram", INSTAGRAM_EPOCH);
            }
            _ => {}
        }
    }
    Ok(())
}
