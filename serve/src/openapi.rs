//! The `OpenAPI` description of the routes, made from the settings: its bounds and forms are those of
//! this server. The compiler sees that every route is described, and `cli/tests/serve.rs` that each
//! answers as it is described.

use randflake::{Codes, ErrorKind, Layout};
use serde_json::{Map, Value, json};

use super::{
    leases::{LONGEST_TTL, MOST_NODES},
    route::Route,
    tickets::MOST_COUNTERS,
};

/// What decides how the routes are described.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The most ids of one request.
    pub max_count: u32,
    /// The layout of sortable ids.
    pub layout: Option<Layout>,
    /// Whether there is a secret for cloaks and codes.
    pub has_secret: bool,
}

/// Returns the document, in JSON, which `GET /openapi.json` answers.
///
/// ```
/// use randflake_serve::{About, openapi};
///
/// let document = openapi(About { max_count: 10_000, layout: None, has_secret: true });
/// assert!(document.contains("/v1/cloaks/{label}/hide"));
/// ```
#[must_use]
pub fn openapi(about: About) -> String {
    let mut paths = Map::new();
    for route in Route::all() {
        if route.needs_secret() && !about.has_secret {
            continue;
        }
        let method = if route.is_read() { "get" } else { "post" };
        paths.insert(path(&route).to_owned(), json!({ method: operation(&route, about) }));
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Randflake",
            "version": "1",
            "summary": "Unique 64-bit ids, leases of node ids for generators in any language, and \
                        sequential numbers",
            "description": description(about),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of --token-file. Without --token-file, none is \
                                    needed, and only programs on the same machine may send \
                                    requests.",
                },
            },
            "parameters": parameters(about),
            "schemas": schemas(about),
            "responses": responses(),
        },
    });
    format!("{document}\n")
}

fn description(about: About) -> String {
    let ids = match about.layout {
        Some(layout) => format!(
            "Ids are sortable, of the layout {layout}: decimal numbers in strings, since many \
             readers of JSON lose digits of such numbers."
        ),
        None => "Ids are text, 1 to 13 characters, or decimal numbers in strings: many readers of \
                 JSON lose digits of such numbers."
            .to_owned(),
    };
    format!(
        "Served by `randflake serve`. {ids} Times are unix seconds. Unknown names in queries and \
         bodies are refused. Parts of paths, and names and values of queries, are percent-decoded \
         once, and + is a plus. HEAD works where GET does."
    )
}

/// Returns the path of a route, with the names of its variable parts in braces.
fn path(route: &Route) -> &'static str {
    match route {
        Route::Ids => "/v1/ids",
        Route::Inspect(_) => "/v1/inspect/{id}",
        Route::Layout => "/v1/layout",
        Route::Tickets(_) => "/v1/tickets/{name}",
        Route::Leases => "/v1/leases",
        Route::Renew(_) => "/v1/leases/{lease}/renew",
        Route::Release(_) => "/v1/leases/{lease}/release",
        Route::Hide(_) => "/v1/cloaks/{label}/hide",
        Route::Reveal(_) => "/v1/cloaks/{label}/reveal",
        Route::Encode(_) => "/v1/codes/{label}/encode",
        Route::Decode(_) => "/v1/codes/{label}/decode",
        Route::Alive => "/healthz",
        Route::Ready => "/readyz",
        Route::Numbers => "/metrics",
        Route::Description => "/openapi.json",
    }
}

fn operation(route: &Route, about: About) -> Value {
    match route {
        Route::Ids => generate(about),
        Route::Inspect(_) => inspect(about),
        Route::Layout => json!({
            "operationId": "layout",
            "summary": "How ids are laid out",
            "description": "Of encrypted ids: how they are once they are decrypted.",
            "responses": answers("200", answer("The layout", layout_schema()), &READ),
        }),
        Route::Tickets(_) => tickets(),
        Route::Leases => acquire(),
        Route::Renew(_) => renew(),
        Route::Release(_) => release(),
        Route::Hide(_) => hide(about),
        Route::Reveal(_) => reveal(about),
        Route::Encode(_) => encode(about),
        Route::Decode(_) => decode(about),
        Route::Alive => json!({
            "operationId": "alive",
            "summary": "Whether the process is alive",
            "security": [],
            "responses": { "200": named("responses", "status") },
        }),
        Route::Ready => json!({
            "operationId": "ready",
            "summary": "Whether an id is available now",
            "security": [],
            "responses": {
                "200": named("responses", "status"),
                "503": named("responses", "later"),
            },
        }),
        Route::Numbers => json!({
            "operationId": "metrics",
            "summary": "Numbers for Prometheus",
            "responses": answers(
                "200",
                json!({
                    "description": "Prometheus' text format",
                    "content": { "text/plain": { "schema": { "type": "string" } } },
                }),
                &["401", "403", "503"],
            ),
        }),
        Route::Description => json!({
            "operationId": "describe",
            "summary": "This document",
            "security": [],
            "responses": { "200": answer("An OpenAPI document", json!({ "type": "object" })) },
        }),
    }
}

/// Statuses of problems: of routes that read, of those that take a query, and of those that take a
/// body.
const READ: [&str; 3] = ["400", "401", "403"];
const MADE: [&str; 5] = ["400", "401", "403", "500", "503"];
const SENT: [&str; 7] = ["400", "401", "403", "408", "413", "500", "503"];

fn generate(about: About) -> Value {
    let list = array(json!({ "type": "string" }));
    let mut answered = answer("The ids", object(&[("ids", list)]));
    let mut parameters = vec![named("parameters", "count")];
    let number = json!({ "value": { "ids": ["4594531474933654033"] } });
    answered["content"]["application/json"]["examples"] = if about.layout.is_some() {
        json!({ "number": number })
    } else {
        parameters.push(named("parameters", "format"));
        json!({ "text": { "value": { "ids": ["3vgoe12ccb8gh", "ak8amul3cop3d"] } }, "number": number })
    };
    json!({
        "operationId": "generate",
        "summary": "Makes ids",
        "description": "Each id is issued once. If none is available, the request waits for up to \
                        --max-wait.",
        "parameters": parameters,
        "responses": answers("200", answered, &MADE),
    })
}

fn inspect(about: About) -> Value {
    let common = [
        ("time", json!({ "type": "string", "format": "date-time" })),
        ("node_id", named("schemas", "node_id")),
        ("sequence", named("schemas", "sequence")),
    ];
    let id = |description: &str| {
        json!({
            "name": "id",
            "in": "path",
            "required": true,
            "description": description,
            "schema": { "type": "string" },
        })
    };
    let (parameters, means, own, example) = if about.layout.is_some() {
        (
            vec![id("The id, a decimal number.")],
            "Every number with the right bits can be read, also one that is not an id.",
            vec![
                ("id", json!({ "type": "string", "pattern": "^[0-9]{1,20}$" })),
                ("unix_ms", json!({ "type": "integer", "description": "Of the id's tick." })),
            ],
            json!({
                "id": "1541815603606036480",
                "unix_ms": 1_656_432_460_105_i64,
                "time": "2022-06-28T16:07:40.105Z",
                "node_id": 378,
                "sequence": 0,
            }),
        )
    } else {
        let text = "The text of the id, or with format=number its decimal number.";
        let second = json!({ "type": "integer", "description": "The unix second of the id." });
        (
            vec![id(text), named("parameters", "format")],
            "Every id can be read, but the result means nothing if it was made with another secret.",
            vec![
                ("id", json!({ "type": "string", "pattern": "^[0-9a-v]{1,13}$" })),
                ("number", json!({ "type": "string", "pattern": "^-?[0-9]{1,19}$" })),
                ("timestamp", second),
            ],
            json!({
                "id": "3vgoe12ccb8gh",
                "number": "4594531474933654033",
                "timestamp": 1_733_706_297,
                "time": "2024-12-09T01:04:57Z",
                "node_id": 42,
                "sequence": 1,
            }),
        )
    };
    let fields: Vec<_> = own.into_iter().chain(common).collect();
    json!({
        "operationId": "inspect",
        "summary": "Reads an id",
        "description": means,
        "parameters": parameters,
        "responses": answers(
            "200",
            with_example(answer("What is in the id", object(&fields)), &example),
            &["400", "401", "403", "404"],
        ),
    })
}

fn layout_schema() -> Value {
    // Not by their places: some readers of these documents do not know prefixItems.
    let pair = |names: &[&str]| {
        let number = json!({ "type": "integer", "minimum": 1 });
        json!({
            "type": "array",
            "items": { "anyOf": [{ "type": "string", "enum": names }, number] },
            "minItems": 2,
            "maxItems": 2,
        })
    };
    let (field, random) = (pair(&["time", "node", "sequence"]), pair(&["random"]));
    let sequence = json!({
        "description": "The initial sequence of each tick.",
        "anyOf": [{ "type": "string", "enum": ["zero", "continuing"] }, random],
    });
    let integer = |description: &str| json!({ "type": "integer", "description": description });
    object(&[
        ("layout", json!({ "type": "string", "description": "The text that --layout takes." })),
        ("name", json!({ "type": "string", "description": "Of the preset, or custom." })),
        (
            "fields",
            json!({
                "type": "array",
                "description": "From high to low, with their widths in bits.",
                "items": field,
            }),
        ),
        ("tick_ms", integer("The length of a tick, in milliseconds.")),
        ("epoch_ms", integer("The unix milliseconds at which tick 0 begins.")),
        ("sequence", sequence),
        ("max_node_id", integer("The largest node id.")),
        ("max_sequence", integer("The largest sequence.")),
        ("ids_per_node", integer("How many ids a node has in a tick.")),
        ("unsigned", json!({ "type": "boolean", "description": "Whether ids use all 64 bits." })),
        ("ends_at", integer("The first unix milliseconds that no id can carry.")),
        (
            "negative_from",
            json!({
                "type": ["integer", "null"],
                "description": "The unix milliseconds from which ids are negative in a BIGINT column.",
            }),
        ),
    ])
}

fn tickets() -> Value {
    let list = array(json!({ "type": "string", "minLength": 1 }));
    let mut answered = answer("The numbers, rising", object(&[("tickets", list)]));
    answered["content"]["application/json"]["examples"] = json!({
        "plain": { "value": { "tickets": ["41", "42"] } },
        "dated": { "value": { "tickets": ["INV-20261125-000042"] } },
    });
    let query = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    json!({
        "operationId": "tickets",
        "summary": "Hands out sequential numbers",
        "description": "1, 2, 3 and so on from a counter, which the first request creates; with a \
                        period from one for each date, as texts. No number is handed out twice. The \
                        numbers of one server rise; each of several servers hands out its own \
                        blocks. `randflake tickets init` creates the namespace of counters.",
        "parameters": [
            {
                "name": "name",
                "in": "path",
                "required": true,
                "description": format!(
                    "The counter: 1 to 200 bytes without spaces and control characters, with a \
                     period 1 to 191. A server has at most {MOST_COUNTERS}."
                ),
                "schema": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200,
                    "pattern": r"^[^\s\u0000-\u001f\u007f-\u009f]+$",
                },
            },
            named("parameters", "count"),
            query(
                "period",
                "After which time numbers begin anew. Then each is a prefix, the date, - and the \
                 number.",
                json!({ "type": "string", "enum": ["day", "month", "year"] }),
            ),
            query(
                "time_zone",
                "Whose midnight is the border, a name of the IANA database; only with a period.",
                json!({ "type": "string", "default": "UTC", "examples": ["Europe/Berlin"] }),
            ),
            query(
                "prefix",
                "What comes before the date, at most 100 bytes; only with a period.",
                json!({ "type": "string", "maxLength": 100, "default": "", "examples": ["INV-"] }),
            ),
            query(
                "digits",
                "To how many digits numbers are padded with zeros; only with a period.",
                json!({ "type": "integer", "minimum": 1, "maximum": 16, "default": 6 }),
            ),
        ],
        "responses": answers("200", answered, &MADE),
    })
}

fn acquire() -> Value {
    let fields = [
        (
            "count",
            json!({
                "type": ["integer", "null"], "minimum": 1, "maximum": MOST_NODES, "default": 1,
            }),
        ),
        ("ttl_seconds", named("schemas", "ttl_seconds")),
        ("now", named("schemas", "now")),
        (
            "note",
            json!({
                "type": ["string", "null"],
                "description": "What `randflake lease list` shows about the holder, such as its host \
                                and process; the first 80 characters.",
            }),
        ),
    ];
    let example = json!({
        "count": 1, "ttl_seconds": 300, "now": 1_763_640_005, "note": "web-3:4711",
    });
    json!({
        "operationId": "acquire",
        "summary": "Leases node ids",
        "description": "The holder may stamp start <= second < end_exclusive on these node ids, and \
                        nobody else may; of ticks that are not seconds, those that lie wholly in \
                        it. A lost answer costs node ids until their lease ends. Fewer node ids \
                        than asked for may be granted.",
        "requestBody": body(&fields, &[], &example),
        "responses": answers(
            "201",
            named("responses", "lease"),
            &["400", "401", "403", "408", "409", "413", "500", "503"],
        ),
    })
}

fn renew() -> Value {
    let fields = [
        ("ttl_seconds", named("schemas", "ttl_seconds")),
        ("now", named("schemas", "now")),
        (
            "next_token",
            json!({
                "type": "string",
                "pattern": "^[0-9a-fA-F]{32}$",
                "description": "The token of the lease from now on: a new one for each renewal, and \
                                the same one when a renewal is repeated. The answer gives the new name \
                                of the lease. Without it, two copies of a holder both continue.",
            }),
        ),
    ];
    let example = json!({
        "ttl_seconds": 300,
        "now": 1_763_640_105,
        "next_token": "5f3d1c0b7a9e48d2b6c4e1f0a8d79b23",
    });
    let mut answered = answers(
        "200",
        named("responses", "lease"),
        &["400", "401", "403", "404", "408", "409", "413", "500", "503"],
    );
    answered["410"] = problem(
        "LEASE_LOST: it was released, or another holder has the node ids. What was granted before \
         may be used up to its end.",
    );
    json!({
        "operationId": "renew",
        "summary": "Moves the end of a lease",
        "description": "This also works after its end, unless another holder has the node ids by \
                        then. Node ids that the answer does not name are lost. The start does not \
                        change.",
        "parameters": [named("parameters", "lease")],
        "requestBody": body(&fields, &[], &example),
        "responses": answered,
    })
}

fn release() -> Value {
    let used_until = json!({
        "type": ["integer", "null"],
        "minimum": i64::MIN,
        "maximum": i64::MAX,
        "description": "The second after that of the holder's last id, or start if it made none; \
                        never a clock reading. Without it the end does not change, and the node ids \
                        are free from then on.",
    });
    let released = object(&[("released", json!({ "type": "integer", "minimum": 0 }))]);
    let answered = answer("How many node ids still belonged to the lease", released);
    json!({
        "operationId": "release",
        "summary": "Gives node ids back",
        "description": "The holder must have stopped first: another one may begin at used_until. \
                        Repeating the request does nothing.",
        "parameters": [named("parameters", "lease")],
        "requestBody": body(&[("used_until", used_until)], &[], &json!({ "used_until": 1_763_640_042 })),
        "responses": answers(
            "200",
            with_example(answered, &json!({ "released": 1 })),
            &["400", "401", "403", "404", "408", "413", "500", "503"],
        ),
    })
}

fn hide(about: About) -> Value {
    let number = json!({
        "anyOf": [
            { "type": "integer", "minimum": i64::MIN, "maximum": u64::MAX },
            { "type": "string", "pattern": "^[+-]?[0-9]+$" },
        ],
    });
    let list = object(&[("ids", array(json!({ "type": "string" })))]);
    let answered = answer("The hidden forms, in the same order", list);
    json!({
        "operationId": "hide",
        "summary": "Hides numbers",
        "description": "As a Cloak does: each number of 64 bits has one hidden form for each label, \
                        and each hidden form one number.",
        "parameters": [named("parameters", "label"), named("parameters", "format")],
        "requestBody": body(
            &[("numbers", listed(number, about))],
            &["numbers"],
            &json!({ "numbers": [42, "18446744073709551615"] }),
        ),
        "responses": answers(
            "200",
            with_example(answered, &json!({ "ids": ["avl8q88v1333b", "cfmmm92seota5"] })),
            &SENT,
        ),
    })
}

fn reveal(about: About) -> Value {
    let numbers = array(json!({ "type": "string", "pattern": "^[0-9]{1,20}$" }));
    let answered =
        answer("The numbers, unsigned, in the same order", object(&[("numbers", numbers)]));
    json!({
        "operationId": "reveal",
        "summary": "Reveals hidden numbers",
        "description": "Every id reveals some number, also one that was never hidden: look the \
                        result up.",
        "parameters": [named("parameters", "label"), named("parameters", "format")],
        "requestBody": body(
            &[("ids", listed(json!({ "type": "string" }), about))],
            &["ids"],
            &json!({ "ids": ["avl8q88v1333b"] }),
        ),
        "responses": answers(
            "200",
            with_example(answered, &json!({ "numbers": ["42"] })),
            &SENT,
        ),
    })
}

/// What codes are made with, besides the label.
fn options() -> [(&'static str, Value); 3] {
    [
        (
            "length",
            json!({
                "type": ["integer", "null"],
                "minimum": Codes::MIN_LENGTH,
                "maximum": Codes::MAX_LENGTH,
                "default": 8,
                "description": "How many symbols a code has.",
            }),
        ),
        (
            "alphabet",
            json!({
                "type": ["string", "null"],
                "default": "digits",
                "description": "digits, crockford, letters, or 10 to 62 ASCII letters and digits, \
                                each once.",
            }),
        ),
        (
            "check",
            json!({
                "type": ["integer", "null"],
                "minimum": 0,
                "maximum": Codes::MAX_LENGTH - 1,
                "default": 0,
                "description": "How many of the symbols are a check, fewer than the length.",
            }),
        ),
    ]
}

fn encode(about: About) -> Value {
    let list = object(&[("codes", array(json!({ "type": "string" })))]);
    let answered = answer("The codes, in the same order", list);
    let number = json!({
        "anyOf": [
            { "type": "integer", "minimum": 0, "maximum": u64::MAX },
            { "type": "string", "pattern": "^[+]?[0-9]+$" },
        ],
    });
    let mut fields = vec![("numbers", listed(number, about))];
    fields.extend(options());
    json!({
        "operationId": "encode",
        "summary": "Turns numbers into codes",
        "description": "As Codes does: each number has one code for each label, and each code at most \
                        one number.",
        "parameters": [named("parameters", "label")],
        "requestBody": body(&fields, &["numbers"], &json!({ "numbers": [1], "length": 8 })),
        "responses": answers(
            "200",
            with_example(answered, &json!({ "codes": ["86483743"] })),
            &SENT,
        ),
    })
}

fn decode(about: About) -> Value {
    let numbers = array(json!({ "type": "string", "pattern": "^[0-9]{1,20}$" }));
    let answered = answer("The numbers, in the same order", object(&[("numbers", numbers)]));
    let mut fields = vec![("codes", listed(json!({ "type": "string" }), about))];
    fields.extend(options());
    json!({
        "operationId": "decode",
        "summary": "Returns the numbers of codes",
        "description": "Pass what they were made with. With a check, almost every typing error is \
                        refused; without one, it is the code of another number.",
        "parameters": [named("parameters", "label")],
        "requestBody": body(&fields, &["codes"], &json!({ "codes": ["86483743"], "length": 8 })),
        "responses": answers(
            "200",
            with_example(answered, &json!({ "numbers": ["1"] })),
            &SENT,
        ),
    })
}

fn parameters(about: About) -> Value {
    json!({
        "count": {
            "name": "count",
            "in": "query",
            "description": "How many.",
            "schema": { "type": "integer", "minimum": 1, "maximum": about.max_count, "default": 1 },
        },
        "format": {
            "name": "format",
            "in": "query",
            "description": "How ids are written. Both are strings.",
            "schema": { "type": "string", "enum": ["text", "number"], "default": "text" },
        },
        "label": {
            "name": "label",
            "in": "path",
            "required": true,
            "description": "What the numbers are for, such as orders.id; another label is another \
                            key.",
            "schema": { "type": "string", "minLength": 1 },
        },
        "lease": {
            "name": "lease",
            "in": "path",
            "required": true,
            "description": "The name of the lease. Whoever has it can renew and release the lease.",
            "schema": named("schemas", "lease_name"),
        },
    })
}

fn schemas(about: About) -> Value {
    let layout = about.layout.unwrap_or(Layout::randflake());
    let mut codes: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
    codes.extend(["UNAUTHORIZED", "BUSY"]);
    json!({
        "node_id": { "type": "integer", "minimum": 0, "maximum": layout.max_node_id() },
        "sequence": { "type": "integer", "minimum": 0, "maximum": layout.max_sequence() },
        "lease_name": {
            "type": "string",
            "pattern": r"^[0-9a-f]{32}\.[0-9]+\.[0-9]+(-[0-9]+)*$",
            "maxLength": 512,
        },
        "ttl_seconds": {
            "type": ["integer", "null"],
            "description": "For how many seconds, at least six times the namespace's largest skew, \
                            30 unless it was set, and six ticks of the layout, where they are \
                            longer than a second. The namespace may allow less than is asked for. \
                            Default: --ttl.",
            "minimum": 1,
            "maximum": LONGEST_TTL,
        },
        "now": {
            "type": ["integer", "null"],
            "minimum": i64::MIN,
            "maximum": i64::MAX,
            "description": "The unix second on the clock that the holder stamps with. Without it, \
                            the clock of this server is used, and a wrong clock of the holder is \
                            not noticed.",
        },
        "error": object(&[
            ("code", json!({
                "type": "string",
                "description": "Stable: a code that all languages share, or UNAUTHORIZED or BUSY.",
                "enum": codes,
            })),
            ("message", json!({ "type": "string", "description": "For people; it may change." })),
        ]),
    })
}

fn responses() -> Value {
    let second = |description: &str| json!({ "type": "integer", "description": description });
    let lease = object(&[
        ("lease", named("schemas", "lease_name")),
        ("node_ids", array(named("schemas", "node_id"))),
        ("start", second("First second of the lease.")),
        ("end_exclusive", second("First second after the lease.")),
    ]);
    let example = json!({
        "lease": "00112233445566778899aabbccddeeff.1763640000.42",
        "node_ids": [42],
        "start": 1_763_640_000,
        "end_exclusive": 1_763_640_305,
    });
    let status = object(&[("status", json!({ "type": "string", "enum": ["alive", "ready"] }))]);
    let with_header = |mut response: Value, name: &str, schema: Value| {
        response["headers"] = json!({ name: { "schema": schema } });
        response
    };
    json!({
        "lease": with_example(answer("The lease, as it is now", lease), &example),
        "status": answer("Yes", status),
        "wrong": problem("Something in the request is wrong; the message names the bound"),
        "unauthorized": with_header(
            problem("The token is missing or wrong"),
            "WWW-Authenticate",
            json!({ "type": "string" }),
        ),
        "forbidden": problem(
            "There is no token, and the request comes from a web page, or names the server by \
             something other than localhost, 127.0.0.1 or [::1]",
        ),
        "unknown": problem("This is not a valid id, or not a lease"),
        "slow": problem("The body took too long"),
        "skewed": problem("CLOCK_SKEW: the clock of `now` and the store's differ by too much"),
        "large": problem("The body is too large"),
        "failed": problem(
            "Waiting does not help. LIFETIME_OVER: the ids of this secret or layout, or the numbers \
             of this counter, have ended. INTERNAL: a defect.",
        ),
        "later": with_header(
            problem("Not now: the same request may succeed after Retry-After seconds"),
            "Retry-After",
            json!({ "type": "integer", "minimum": 1 }),
        ),
    })
}

/// Refers to a component.
fn named(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Describes an object with all of these properties, and no others.
fn object(properties: &[(&str, Value)]) -> Value {
    let names: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let properties: Map<_, _> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({
        "type": "object",
        "required": names,
        "additionalProperties": false,
        "properties": properties,
    })
}

fn array(items: Value) -> Value {
    let mut list = json!({ "type": "array", "minItems": 1 });
    list["items"] = items;
    list
}

/// Describes the values of a request that has a list of them.
fn listed(items: Value, about: About) -> Value {
    let mut list = array(items);
    list["maxItems"] = about.max_count.into();
    list
}

/// Describes the body of a request, with some of these properties.
fn body(properties: &[(&str, Value)], required: &[&str], example: &Value) -> Value {
    let mut schema = object(properties);
    schema["required"] = json!(required);
    json!({
        "required": !required.is_empty(),
        "content": { "application/json": { "schema": schema, "example": example } },
    })
}

fn answer(description: &str, schema: Value) -> Value {
    let mut answer = json!({ "description": description });
    answer["content"]["application/json"]["schema"] = schema;
    answer
}

fn with_example(mut answer: Value, example: &Value) -> Value {
    answer["content"]["application/json"]["example"] = example.clone();
    answer
}

fn problem(description: &str) -> Value {
    answer(description, named("schemas", "error"))
}

/// Describes all answers: the one that is hoped for, and problems.
fn answers(status: &str, hoped_for: Value, problems: &[&str]) -> Value {
    let mut all = Map::new();
    all.insert(status.to_owned(), hoped_for);
    for status in problems {
        let name = match *status {
            "401" => "unauthorized",
            "403" => "forbidden",
            "404" => "unknown",
            "408" => "slow",
            "409" => "skewed",
            "413" => "large",
            "500" => "failed",
            "503" => "later",
            _ => "wrong",
        };
        all.insert((*status).to_owned(), named("responses", name));
    }
    Value::Object(all)
}
