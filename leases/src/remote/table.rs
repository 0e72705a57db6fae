//! A table in memory that answers as PostgreSQL or Redis does, for tests.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    exchange::{Response, Statement},
    text::{Key, Meta},
};
use crate::{
    namespace::NamespaceMetadata,
    rules::Quarantine,
    stores::{postgres, redis},
};

/// The texts of one namespace, on one server.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) texts: BTreeMap<String, String>,
    pub(crate) clock: i64,
    /// Which server it is, as it says itself.
    pub(crate) server: String,
    /// How many statements it has answered.
    pub(crate) statements: usize,
}

/// A step.
struct Asked {
    meta: String,
    server: String,
    at: Option<(i64, i64)>,
    /// Key, text before, text after.
    writes: Vec<(String, Option<String>, String)>,
    reads: Vec<String>,
}

impl Table {
    pub(crate) fn new(clock: i64, metadata: &NamespaceMetadata) -> Self {
        let meta = Meta::new("a1/b1", Quarantine::default(), metadata.clone()).text();
        let texts = BTreeMap::from([("meta".to_owned(), meta)]);
        Self { texts, clock, server: "a1/b1 master".to_owned(), statements: 0 }
    }

    pub(super) fn meta(&self) -> Meta {
        Meta::parse(&self.texts["meta"]).expect("its own text")
    }

    /// Becomes another server, whose namespace was last seen on a server with that incarnation.
    pub(crate) fn becomes(&mut self, server: &str, incarnation: &str) {
        let meta = self.meta();
        if meta.incarnation != incarnation {
            let meta = meta.fenced(incarnation, meta.quarantine);
            self.texts.insert("meta".to_owned(), meta.text());
        }
        server.clone_into(&mut self.server);
    }

    /// Returns whether it can answer a statement.
    pub(crate) fn knows(statement: &Statement) -> bool {
        let text = statement.text;
        let of_postgres = [
            postgres::READ,
            postgres::STEP,
            postgres::CHANGE,
            postgres::PAGE_OF_LIST,
            postgres::FREE,
        ];
        text == "EVAL" || of_postgres.contains(&text)
    }

    /// Returns whether a statement writes something.
    pub(crate) fn writes(statement: &Statement) -> bool {
        let parameters = &statement.parameters;
        match statement.text {
            "EVAL" => parameters[0] == redis::STEP && parameters[8] != "0",
            postgres::CHANGE => true,
            text => text == postgres::STEP,
        }
    }

    pub(crate) fn answer(&mut self, statement: &Statement) -> Response {
        self.statements += 1;
        let cells = if statement.text == "EVAL" {
            self.as_redis(&statement.parameters)
        } else {
            self.as_postgres(statement.text, &statement.parameters)
        };
        Response::Rows(vec![cells.into_iter().map(Some).collect()])
    }

    fn said(&self, key: &str) -> String {
        say(self.texts.get(key))
    }

    fn as_redis(&mut self, parameters: &[String]) -> Vec<String> {
        let read = |text: &String| text.strip_prefix('=').map(ToOwned::to_owned);
        let [script, _, _, nonce, rest @ ..] = parameters else { panic!("a script") };
        let mut answer = vec![nonce.clone(), self.clock.to_string(), self.server.clone()];
        answer.push(self.said("meta"));
        if script == redis::STEP {
            let [meta, server, from, until, count, rest @ ..] = rest else { panic!("a step") };
            let (writes, reads) = rest.split_at(3 * count.parse::<usize>().expect("a number"));
            let write = |[key, before, after]: &[String; 3]| {
                (key.clone(), read(before), read(after).expect("a text"))
            };
            let asked = Asked {
                meta: meta.clone(),
                server: server.clone(),
                at: from.parse().ok().zip(until.parse().ok()),
                writes: writes.as_chunks().0.iter().map(write).collect(),
                reads: reads.to_vec(),
            };
            let written = self.step(&asked);
            for ((key, ..), is_written) in asked.writes.iter().zip(written) {
                let word = if is_written { "written" } else { "" };
                answer.extend([word.to_owned(), self.said(key)]);
            }
            answer.extend(asked.reads.iter().map(|key| self.said(key)));
        } else if script == redis::PAGE {
            answer.push("0".to_owned());
            let entries = self.texts.iter().filter(|(key, _)| key.starts_with(&rest[0]));
            answer.extend(entries.flat_map(|(key, text)| [key.clone(), text.clone()]));
        } else if script == redis::FREE {
            let (free, next) = self.free(rest);
            answer.push(say(next.as_ref()));
            let cells =
                |(node_id, text): (u32, Option<String>)| [node_id.to_string(), say(text.as_ref())];
            answer.extend(free.into_iter().flat_map(cells));
        } else {
            answer.truncate(1); // another script
        }
        answer
    }

    fn as_postgres(&mut self, text: &str, parameters: &[String]) -> Vec<String> {
        let [_, nonce, rest @ ..] = parameters else { panic!("a statement") };
        let mut answer = vec![nonce.clone(), self.clock.to_string(), self.server.clone()];
        answer.extend(["false".to_owned(), self.said("meta")]);
        if text == postgres::READ {
            let keys: Vec<String> = serde_json::from_str(&rest[0]).expect("JSON");
            let cells =
                keys.iter().filter_map(|key| Some(json!([key, self.texts.get(key)?, false])));
            answer.push(json!(cells.collect::<Vec<_>>()).to_string());
        } else if text == postgres::STEP || text == postgres::CHANGE {
            let asked = asked_of_postgres(text, rest);
            let written = self.step(&asked);
            let reads = asked.reads.iter().map(|key| (key.clone(), false));
            let mut found: BTreeMap<String, bool> = reads.collect();
            found.extend(asked.writes.iter().map(|(key, ..)| key.clone()).zip(written));
            let cells = found
                .iter()
                .filter_map(|(key, written)| Some(json!([key, self.texts.get(key)?, written])));
            answer.push(json!(cells.collect::<Vec<_>>()).to_string());
        } else if text == postgres::PAGE_OF_LIST {
            let entries = self.texts.iter().filter(|(key, _)| key.starts_with(&rest[0]));
            answer.push(json!(entries.collect::<Vec<_>>()).to_string());
        } else {
            let (free, next) = self.free(rest);
            answer.extend([json!(free).to_string(), say(next.as_ref())]);
        }
        answer
    }

    /// Does a step, and returns which of the writes were done.
    fn step(&mut self, asked: &Asked) -> Vec<bool> {
        let Asked { meta, server, at, writes, .. } = asked;
        let is_open = (meta.is_empty() || self.texts.get("meta") == Some(meta))
            && (server.is_empty() || self.server == *server)
            && at.is_none_or(|(from, until)| (from..=until).contains(&self.clock));
        let write = |(key, before, after): &(String, Option<String>, String)| {
            let is_written = is_open && self.texts.get(key) == before.as_ref();
            if is_written {
                self.texts.insert(key.clone(), after.clone());
            }
            is_written
        };
        writes.iter().map(write).collect()
    }

    /// Answers which node ids are free, and the least text of the others.
    fn free(&self, rest: &[String]) -> (Vec<(u32, Option<String>)>, Option<String>) {
        let [first, last, below, most] = rest else { panic!("a range") };
        let [first, last] = [first, last].map(|cell| cell.parse::<u32>().expect("a node id"));
        let text = |node_id| self.texts.get(&Key::Node(node_id).to_string()).cloned();
        let texts = (first..=last).map(|node_id| (node_id, text(node_id)));
        let is_free = |text: &Option<String>| text.as_ref().is_none_or(|text| text < below);
        let (mut free, taken): (Vec<_>, Vec<_>) = texts.partition(|(_, text)| is_free(text));
        free.truncate(most.parse().expect("a number"));
        (free, taken.into_iter().filter_map(|(_, text)| text).min())
    }
}

fn say(text: Option<&String>) -> String {
    text.map(|text| format!("={text}")).unwrap_or_default()
}

fn asked_of_postgres(text: &str, parameters: &[String]) -> Asked {
    let [meta, server, from, until, rest @ ..] = parameters else { panic!("a step") };
    let (writes, reads) = if text == postgres::CHANGE {
        let [key, before, after] = rest else { panic!("a change") };
        (vec![(key.clone(), Some(before.clone()), after.clone())], vec![])
    } else {
        let list = |cell: &str| serde_json::from_str::<Vec<Value>>(cell).expect("JSON");
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let write = |it: &Value| {
            let (key, after) = (text(&it["key"]), text(&it["after"]));
            (key.expect("a key"), text(&it["before"]), after.expect("a text"))
        };
        let writes = list(&rest[0]).iter().map(write).collect();
        (writes, list(&rest[1]).iter().filter_map(text).collect())
    };
    let at = from.parse().ok().zip(until.parse().ok());
    Asked { meta: meta.clone(), server: server.clone(), at, writes, reads }
}
