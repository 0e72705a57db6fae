//! The picture of the README: where ids lie, unencrypted and encrypted.

use std::fmt::Write as _;

use crate::{cases::SECRET, format};

/// Ids of the scatter plots.
const DOTS: u32 = 1_500;
/// Ids of the bar charts.
const COUNTED: u32 = 1_000_000;
/// Bars of a bar chart: shards by the highest bits.
const SHARDS: usize = 64;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 150.0;

/// Draws `docs/distribution.svg`.
#[must_use]
pub fn svg() -> String {
    let secret = format::secret(SECRET);
    // Ten busy seconds of one node.
    let raw = |index| format::pack(1_763_640_000 + i64::from(index / 100_000), 42, index % 100_000);
    let encrypted = |index| format::encrypt(secret, raw(index)).cast_unsigned();

    let mut svg = String::from(HEAD);
    column(&mut svg, 40, "unencrypted, as a Snowflake is", raw);
    column(&mut svg, 440, "encrypted: a Randflake", encrypted);
    svg.push_str("</svg>\n");
    svg
}

const HEAD: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 424" role="img" aria-labelledby="title">
<title id="title">Unencrypted, ids in a row have nearly the same value and fall into one shard of 64. Encrypted, they are spread evenly over all values and shards.</title>
<style>
  text { font: 13px system-ui, sans-serif; fill: #57606a }
  .title { font-size: 16px; font-weight: 600; fill: #24292f }
  .frame { fill: none; stroke: #afb8c1 }
  .ids { fill: none; stroke: #0969da; stroke-linecap: round }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 }
    .title { fill: #f0f6fc }
    .frame { stroke: #3d444d }
    .ids { stroke: #4493f8 }
  }
</style>
"#;

fn column(svg: &mut String, left: u32, title: &str, number: impl Fn(u32) -> u64) {
    let _ = writeln!(svg, r#"<text class="title" x="{left}" y="24">{title}</text>"#);
    let plots = [
        (40, "1 500 ids in a row: their value", dots(&number)),
        (240, "1 000 000 ids: their share of 64 shards", bars(&number)),
    ];
    for (top, caption, ids) in plots {
        let below = HEIGHT + 20.0;
        let _ = writeln!(
            svg,
            r#"<g transform="translate({left} {top})"><rect class="frame" width="{WIDTH}" height="{HEIGHT}"/>{ids}<text y="{below}">{caption}</text></g>"#
        );
    }
}

/// A dot for each id: its turn from left to right, its value from the bottom to the top.
#[allow(clippy::cast_precision_loss, reason = "a picture")]
fn dots(number: &impl Fn(u32) -> u64) -> String {
    let mut path = String::new();
    for index in 0..DOTS {
        let x = f64::from(index) / f64::from(DOTS) * WIDTH;
        let y = HEIGHT - number(index) as f64 / 2_f64.powi(64) * HEIGHT;
        let _ = write!(path, "M{x:.1} {y:.1}h0");
    }
    format!(r#"<path class="ids" stroke-width="2" d="{path}"/>"#)
}

/// A bar for each shard: how many of the ids have its highest bits, as a share of the largest.
#[allow(clippy::cast_precision_loss, reason = "a picture")]
fn bars(number: &impl Fn(u32) -> u64) -> String {
    let mut sizes = [0_u32; SHARDS];
    for index in 0..COUNTED {
        sizes[usize::try_from(number(index) >> 58).expect("six bits")] += 1;
    }
    let largest = f64::from(*sizes.iter().max().expect("shards"));
    let step = WIDTH / SHARDS as f64;
    let mut path = String::new();
    for (shard, &size) in sizes.iter().enumerate().filter(|&(_, &size)| size > 0) {
        let x = (shard as f64 + 0.5) * step;
        let height = f64::from(size) / largest * (HEIGHT - 10.0);
        let _ = write!(path, "M{x:.1} {HEIGHT}v-{height:.1}");
    }
    format!(r#"<path class="ids" style="stroke-linecap: butt" stroke-width="4" d="{path}"/>"#)
}
