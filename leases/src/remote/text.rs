//! What a server keeps: one short text for the namespace, for each node id that was ever leased,
//! and for each counter. Every text has a version, so that no text is ever written twice:
//!
//! ```text
//! meta            format version incarnation floor renew_above max_ttl max_skew node_ids salt key_check layout
//! node/<node id>  end start version token note
//! counter/<name>  version value
//! ```
//!
//! An end has ten digits, so that texts sort by their ends. `-` is a released token. The version of
//! meta begins with the number of times that it was written, so that each number occurs in only one
//! version of a history. The version of a node id begins with the version of the meta that it was
//! written under.

use std::fmt;

use super::hex::{hex, unhex};
use crate::{
    namespace::{Limits, NamespaceMetadata, STORED_FORMAT},
    node_ranges::NodeRanges,
    note::Note,
    row::Row,
    rules::Quarantine,
    token::{self, Token},
};

/// What a text is about. Ordered like its name.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Key {
    Counter(String),
    Meta,
    Node(u32),
}

/// What the names of all counters begin with.
pub(crate) const COUNTERS: &str = "counter/";
/// What the names of all node ids begin with.
pub(crate) const NODES: &str = "node/";

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(name) => write!(f, "{COUNTERS}{name}"),
            Self::Meta => f.write_str("meta"),
            Self::Node(node_id) => write!(f, "{NODES}{node_id:06}"),
        }
    }
}

impl Key {
    /// Reads the key of a node id.
    pub(crate) fn node(name: &str) -> Option<u32> {
        let digits = name.strip_prefix(NODES)?;
        let node_id = digits.parse().ok()?;
        (Self::Node(node_id).to_string() == name).then_some(node_id)
    }
}

/// What is kept about the namespace.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    pub(crate) version: String,
    /// Which server, in which line of its history, it was last seen on.
    pub(crate) incarnation: String,
    pub(crate) quarantine: Quarantine,
    pub(crate) metadata: NamespaceMetadata,
}

impl Meta {
    pub(crate) fn new(
        incarnation: &str,
        quarantine: Quarantine,
        metadata: NamespaceMetadata,
    ) -> Self {
        let version = version_of_meta(1);
        Self { version, incarnation: incarnation.to_owned(), quarantine, metadata }
    }

    /// Returns how often meta was written.
    fn writes(&self) -> u32 {
        self.version.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
    }

    /// Returns whether a store with this meta cannot have had `known`: it lacks a write of it.
    pub(crate) fn is_before(&self, known: &Self) -> bool {
        self.version != known.version && self.writes() <= known.writes()
    }

    /// Returns this meta with another quarantine, on a server.
    pub(crate) fn fenced(&self, incarnation: &str, quarantine: Quarantine) -> Self {
        let version = version_of_meta(self.writes().saturating_add(1));
        let metadata = self.metadata.clone();
        Self { version, incarnation: incarnation.to_owned(), quarantine, metadata }
    }

    pub(crate) fn text(&self) -> String {
        let Self { version, incarnation, quarantine, metadata } = self;
        let Quarantine { floor, renew_above } = quarantine;
        let NamespaceMetadata { format, limits, layout, salt, key_check } = metadata;
        let Limits { max_ttl, max_skew, node_ids } = limits;
        let (salt, key_check) = (hex(salt), hex(key_check));
        format!(
            "{format} {version} {incarnation} {floor} {renew_above} {max_ttl} {max_skew} \
             {node_ids} {salt} {key_check} {layout}"
        )
    }

    /// Parses a text. For another format, only the format is known.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(11, ' ');
        let mut word = || words.next();
        // The first format of etcd was JSON.
        let format = word()?.parse().ok().or(text.starts_with('{').then_some(1))?;
        if format != STORED_FORMAT {
            let limits = Limits { max_ttl: 1, max_skew: 0, node_ids: NodeRanges::up_to(0) };
            let (salt, key_check, layout) = Default::default();
            let metadata = NamespaceMetadata { format, limits, layout, salt, key_check };
            return Some(Self::new("", Quarantine::default(), metadata));
        }
        let version = word().filter(|version| is_version(version))?.to_owned();
        let incarnation = word()?.to_owned();
        let quarantine =
            Quarantine { floor: word()?.parse().ok()?, renew_above: word()?.parse().ok()? };
        let limits = Limits {
            max_ttl: word()?.parse().ok()?,
            max_skew: word()?.parse().ok()?,
            node_ids: word()?.parse().ok()?,
        };
        let (salt, key_check) = (unhex(word()?)?, unhex(word()?)?);
        let layout = word()?.to_owned();
        let metadata = NamespaceMetadata { format, limits, layout, salt, key_check };
        Some(Self { version, incarnation, quarantine, metadata })
    }
}

/// Makes a new, unused version.
fn version() -> String {
    format!("{:016x}", token::version())
}

fn version_of_meta(writes: u32) -> String {
    format!("{writes:08x}{:08x}", token::version() >> 32)
}

fn is_version(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a text for a node id, written under `meta`.
pub(crate) fn node_text(row: &Row, meta: &Meta) -> String {
    let Row { start, end_exclusive, token, note, version } = row;
    let token = token.map_or_else(|| "-".to_owned(), |token| hex(token.as_bytes()));
    format!("{end_exclusive:010} {start} {}{version:016x} {token} {note}", meta.version)
}

/// Parses the text of a node id.
pub(crate) fn parse_node(text: &str) -> Option<Row> {
    let mut words = text.splitn(5, ' ');
    let is_end = |end: &&str| end.len() == 10 && end.bytes().all(|digit| digit.is_ascii_digit());
    let end_exclusive: i64 = words.next().filter(is_end)?.parse().ok()?;
    let start = words.next()?.parse().ok().filter(|start| (0..=end_exclusive).contains(start))?;
    let (_, version) = words.next().filter(|both| both.len() == 32)?.split_at_checked(16)?;
    let token = match words.next()? {
        "-" => None,
        digits => Some(Token::from_bytes(unhex(digits)?)),
    };
    Some(Row {
        start,
        end_exclusive,
        token,
        note: Note::new(words.next().unwrap_or_default()),
        version: u64::from_str_radix(version, 16).ok()?,
    })
}

/// Returns whether the text of a node id was written under `meta`.
pub(crate) fn is_written_under(text: &str, meta: &Meta) -> bool {
    text.split(' ').nth(2).is_some_and(|version| version.starts_with(&meta.version))
}

/// Returns a bound that is greater than the text of every node id whose end is `end` or earlier.
pub(crate) fn after(end: i64) -> String {
    format!("{:010}", end.saturating_add(1))
}

/// Parses the end in the text of a node id.
pub(crate) fn end_of(text: &str) -> Option<i64> {
    text.split(' ').next()?.parse().ok()
}

pub(crate) fn counter_text(value: &str) -> String {
    format!("{} {value}", version())
}

/// Parses the value in the text of a counter.
pub(crate) fn parse_counter(text: &str) -> Option<&str> {
    let (version, value) = text.split_once(' ')?;
    is_version(version).then_some(value)
}

#[cfg(test)]
mod tests {
    use randflake::Secret;

    use super::*;
    use crate::namespace::Namespace;

    #[test]
    fn what_is_written_is_read() {
        let namespace = Namespace::new("orders", &Secret::random()).expect("a name");
        let quarantine = Quarantine { floor: 1_763_640_305, renew_above: 1_763_640_005 };
        let meta = Meta::new("7301/00000002", quarantine, NamespaceMetadata::new(&namespace));
        let read = Meta::parse(&meta.text()).expect("its own text");
        assert_eq!((&read.version, &read.incarnation), (&meta.version, &meta.incarnation));
        assert_eq!((read.quarantine, &read.metadata), (quarantine, &meta.metadata));
        assert!(meta.text().contains(" 300 5 0-131071 "), "{}", meta.text());
        assert_ne!(meta.fenced("7301/00000002", quarantine).text(), meta.text());

        for (token, note) in [(None, ""), (Some(Token::random()), "web-3 of 4:4711")] {
            let (start, end_exclusive, note) = (1_763_640_000, 1_763_640_300, Note::new(note));
            let row = Row { start, end_exclusive, token, note, version: u64::MAX - 77 };
            let text = node_text(&row, &meta);
            assert_eq!(parse_node(&text), Some(row), "{text}");
            assert!(
                is_written_under(&text, &meta)
                    && !is_written_under(&text, &read.fenced("", quarantine))
            );
            assert_eq!(end_of(&text), Some(end_exclusive));
            assert!(text < after(end_exclusive) && text >= after(end_exclusive - 1));
        }
        let row = |end: &str, start: &str| {
            parse_node(&format!("{end} {start} 0123456789abcdef0123456789abcdef - web-3")).is_some()
        };
        assert!(row("1763640300", "1763640300") && row("0000000007", "0"));
        for (end, start) in [
            ("1763640300", "1763640301"),
            ("1763640300", "-1"),
            ("01763640300", "0"),
            ("-763640300", "-763640301"),
            ("+763640300", "0"),
            ("763640300", "0"),
        ] {
            assert!(!row(end, start), "{end} {start}");
        }
        assert_eq!(parse_counter(&counter_text("a b ")), Some("a b "));
        assert_eq!(Key::node("node/000077"), Some(77));
        for name in ["node/77", "node/+00077", "meta", "node/", "counter/000077"] {
            assert_eq!(Key::node(name), None, "{name}");
        }
    }

    #[test]
    fn another_format_is_known_by_its_number() {
        for (text, format) in [("1", 1), (r#"{"format":1,"floor":0}"#, 1), ("3 anything", 3)] {
            let meta = Meta::parse(text).expect("a number");
            assert_eq!(meta.metadata.format, format, "{text}");
        }
        for text in ["", " ", "orders", "2", "2 x", "2 0123456789abcdef 7301/1 0 0 300 5"] {
            assert!(Meta::parse(text).is_none(), "{text}");
        }
    }
}
