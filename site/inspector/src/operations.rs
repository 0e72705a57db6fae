//! What a page can ask for.

use std::{
    cell::RefCell,
    fmt::{Display, Write as _},
    sync::atomic::{AtomicI64, Ordering},
};

use randflake::{
    Clock, Error, Inspector, Layout, Lease, Randflake, RawParts, Result, Secret, bindings,
};
use zeroize::Zeroizing;

/// Most ids that one request makes.
const MOST_IDS: usize = 1000;

/// Performs a request. An answer that begins with `code` is an error.
pub(crate) fn perform(request: &str) -> String {
    let mut arguments = request.split('\n');
    let mut next = || arguments.next().unwrap_or_default();
    let result = match next() {
        "layouts" => Ok(layouts()),
        "inspect" => inspect(next(), next(), next(), next()),
        "read" => read(next(), next(), next()),
        "make" => make(next(), next(), next(), next()),
        other => Err(Error::invalid_argument(format!("there is no operation {other:?}"))),
    };
    result.map_or_else(
        |error| {
            let mut answer = Answer::default();
            answer.line("code", error.code());
            answer.line("message", error.to_string().replace('\n', " "));
            answer.0
        },
        |answer| answer.0,
    )
}

/// The names of the layouts that have one.
fn layouts() -> Answer {
    let mut answer = Answer::default();
    for layout in Layout::PRESETS {
        answer.line("layout", layout.name());
    }
    answer
}

/// Reads an encrypted id.
fn inspect(secret: &str, form: &str, id: &str, now_ms: &str) -> Result<Answer> {
    let id = match form {
        "number" => bindings::parse_number(id)?,
        "text" => id.parse()?,
        _ => bindings::parse_id(id, "choose which it is")?,
    };
    let raw = Inspector::new(&secret.parse()?).decrypt(id);
    let mut answer = Answer::default();
    answer.line("number", i64::from(id));
    answer.line("text", id);
    answer.parts(&Layout::randflake(), raw, integer("now", now_ms)?)?;
    Ok(answer)
}

/// Reads a sortable id.
fn read(layout: &str, id: &str, now_ms: &str) -> Result<Answer> {
    let layout: Layout = layout.parse()?;
    let raw = bindings::parse_raw(id)?;
    let mut answer = Answer::default();
    answer.line("number", raw);
    answer.parts(&layout, raw, integer("now", now_ms)?)?;
    Ok(answer)
}

/// Makes encrypted ids.
fn make(secret: &str, node_id: &str, count: &str, now_ms: &str) -> Result<Answer> {
    let secret: Secret = secret.parse()?;
    let (node_id, count) = (integer("node id", node_id)?, integer("count", count)?);
    if count > MOST_IDS {
        return Err(Error::invalid_argument(format!("at most {MOST_IDS} ids at a time")));
    }
    NOW_MS.store(integer("now", now_ms)?, Ordering::Relaxed);
    let mut ids = vec![0; count];
    GENERATORS.with_borrow_mut(|generators| {
        // Each is kept: another one would begin the second again.
        let hex = Zeroizing::new(secret.to_hex());
        let is_wanted =
            |made: &Made| *made.secret == *hex && made.generator.node_ids() == [node_id];
        let at = generators.iter().position(is_wanted);
        if at.is_none() {
            let generator =
                Randflake::builder(&secret).node_id(node_id).clock(PageClock).build()?;
            generators.push(Made { secret: hex, generator });
        }
        let at = at.unwrap_or(generators.len() - 1);
        generators[at].generator.fill_i64(&mut ids)
    })?;
    let mut answer = Answer::default();
    for id in ids {
        answer.line("number", id);
        answer.line("text", randflake::Id::from(id));
    }
    Ok(answer)
}

/// A generator of this page.
struct Made {
    secret: Zeroizing<String>,
    generator: Randflake<PageClock>,
}

thread_local! {
    static GENERATORS: RefCell<Vec<Made>> = const { RefCell::new(Vec::new()) };
}

/// What the page's clock showed at its last request, in unix milliseconds.
static NOW_MS: AtomicI64 = AtomicI64::new(0);

struct PageClock;

impl Clock for PageClock {
    fn now(&self) -> Result<i64> {
        Ok(NOW_MS.load(Ordering::Relaxed).saturating_mul(1_000_000))
    }
}

fn integer<T: std::str::FromStr>(what: &str, text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::invalid_argument(format!("the {what} must be an integer")))
}

/// Lines, each with a name and a value.
#[derive(Default)]
struct Answer(String);

impl Answer {
    fn line(&mut self, name: &str, value: impl Display) {
        writeln!(self.0, "{name} {value}").expect("a text takes what it is given");
    }

    /// Adds what a raw id says.
    fn parts(&mut self, layout: &Layout, raw: u64, now_ms: i64) -> Result<()> {
        let RawParts { unix_ms, node_id, sequence } = layout.inspect(raw)?;
        self.line("raw", raw);
        self.line("bits", format_args!("{raw:064b}"));
        for (field, bits) in layout.fields() {
            self.line("field", format_args!("{} {bits}", field.name()));
        }
        self.line("unix_ms", unix_ms);
        self.line("utc", bindings::utc(unix_ms));
        self.line("tick_ms", layout.tick_ms());
        if layout.node_bits() > 0 {
            self.line("node", node_id);
        }
        if let Some((upper, lower)) = layout.split_node(node_id) {
            self.line("node_parts", format_args!("{upper} {lower}"));
        }
        self.line("sequence", sequence);
        let ahead_ms = unix_ms.saturating_sub(now_ms);
        self.line("plausible", ahead_ms <= i64::from(Lease::MAX_DRIFT) * 1000);
        Ok(())
    }
}
