//! Does one thing many times, for callgrind to count its instructions: see
//! `test_instructions.py`.
//!
//! `randflake-instructions generate|fill|inspect|inspect_many|snowflake IDS`, or without arguments: prints
//! which instructions the cipher may use. IDS is a multiple of 4096.
#![allow(clippy::print_stdout, reason = "a program")]

use std::{env, error::Error, hint::black_box};

use randflake::{Id, Inspector, Layout, Randflake, Secret, Snowflake};

const BATCH: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [case, ids] = &arguments[..] else {
        println!("{}", extension());
        return Ok(());
    };
    let ids: usize = ids.parse()?;

    let secret: Secret = "dffd6021bb2bd5b0af676290809ec3a5".parse()?;
    // The machine's clock, which takes another way than an injected one, and room for all ids in
    // one second.
    let flake = Randflake::builder(&secret).node_ids(0..64).restart_safe(false).build()?;
    let inspector = Inspector::new(&secret);
    // Room for all ids of a batch in one millisecond, however slow callgrind makes it.
    let snowflake = Snowflake::builder(Layout::twitter()).node_ids(0..64).build()?;
    let mut batch = vec![Id::default(); BATCH];
    let numbers: Vec<i64> = (0_u16..).take(BATCH).map(i64::from).collect();
    let (mut times, mut nodes, mut sequences) = (vec![0; BATCH], vec![0; BATCH], vec![0; BATCH]);

    for _ in 0..ids / BATCH {
        match case.as_str() {
            "generate" => {
                for _ in 0..BATCH {
                    black_box(flake.generate()?);
                }
            }
            "snowflake" => {
                for _ in 0..BATCH {
                    black_box(snowflake.generate()?);
                }
            }
            "fill" => flake.fill(black_box(&mut batch))?,
            "inspect" => {
                for &number in black_box(&numbers) {
                    black_box(flake.inspect(number.into()));
                }
            }
            "inspect_many" => inspector.inspect_many(
                black_box(&numbers),
                black_box(&mut times),
                black_box(&mut nodes),
                black_box(&mut sequences),
            ),
            _ => return Err(format!("there is no case {case}").into()),
        }
    }
    Ok(())
}

/// Returns what the library chooses, under callgrind from what that knows.
fn extension() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return if is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi2")
    {
        "AVX-512"
    } else if is_x86_feature_detected!("avx2") {
        "AVX2"
    } else {
        "SSE2"
    };
    #[cfg(not(target_arch = "x86_64"))]
    return env::consts::ARCH;
}
