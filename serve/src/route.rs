//! What is requested: a path is decoded here, once, and everything that depends on it, including
//! access, uses the decoded parts.

use hyper::{Method, StatusCode};

use super::{answer::Refusal, request::decoded};

/// What is requested, with the variable parts of the path.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Route {
    Ids,
    Inspect(String),
    Tickets(String),
    Leases,
    Renew(String),
    Release(String),
    Layout,
    Hide(String),
    Reveal(String),
    Encode(String),
    Decode(String),
    Alive,
    Ready,
    Numbers,
    Description,
}

impl Route {
    /// Reads a path as it was sent: it is split first, so that a part may contain an encoded `/`.
    pub(super) fn read(path: &str) -> Result<Self, Refusal> {
        let parts: Vec<_> = path.split('/').map(decoded).collect::<Result<_, _>>()?;
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        let varying = |part: &str| Some(part.to_owned()).filter(|part| !part.is_empty());
        let route = match parts[..] {
            ["", "v1", "ids"] => Some(Self::Ids),
            ["", "v1", "inspect", id] => varying(id).map(Self::Inspect),
            ["", "v1", "tickets", name] => varying(name).map(Self::Tickets),
            ["", "v1", "leases"] => Some(Self::Leases),
            ["", "v1", "leases", name, "renew"] => varying(name).map(Self::Renew),
            ["", "v1", "leases", name, "release"] => varying(name).map(Self::Release),
            ["", "v1", "layout"] => Some(Self::Layout),
            ["", "v1", "cloaks", label, "hide"] => varying(label).map(Self::Hide),
            ["", "v1", "cloaks", label, "reveal"] => varying(label).map(Self::Reveal),
            ["", "v1", "codes", label, "encode"] => varying(label).map(Self::Encode),
            ["", "v1", "codes", label, "decode"] => varying(label).map(Self::Decode),
            ["", "healthz"] => Some(Self::Alive),
            ["", "readyz"] => Some(Self::Ready),
            ["", "metrics"] => Some(Self::Numbers),
            ["", "openapi.json"] => Some(Self::Description),
            _ => None,
        };
        route.ok_or_else(|| {
            Refusal::invalid(
                StatusCode::NOT_FOUND,
                "there is nothing at this path; GET /openapi.json lists the paths",
            )
        })
    }

    /// Whether it is for the probes of orchestrators, or the description of the routes: these
    /// reveal nothing that a token protects.
    pub(super) const fn is_public(&self) -> bool {
        matches!(self, Self::Alive | Self::Ready | Self::Description)
    }

    /// Every route, with no name in its variable parts.
    pub(super) fn all() -> [Self; 15] {
        let none = String::new;
        [
            Self::Ids,
            Self::Inspect(none()),
            Self::Layout,
            Self::Tickets(none()),
            Self::Leases,
            Self::Renew(none()),
            Self::Release(none()),
            Self::Hide(none()),
            Self::Reveal(none()),
            Self::Encode(none()),
            Self::Decode(none()),
            Self::Alive,
            Self::Ready,
            Self::Numbers,
            Self::Description,
        ]
    }

    /// Whether it only reads: by GET, and otherwise by POST.
    pub(super) const fn is_read(&self) -> bool {
        match self {
            Self::Ids
            | Self::Tickets(_)
            | Self::Leases
            | Self::Renew(_)
            | Self::Release(_)
            | Self::Hide(_)
            | Self::Reveal(_)
            | Self::Encode(_)
            | Self::Decode(_) => false,
            Self::Inspect(_)
            | Self::Layout
            | Self::Alive
            | Self::Ready
            | Self::Numbers
            | Self::Description => true,
        }
    }

    /// Whether it needs a secret, even if ids have a layout.
    pub(super) const fn needs_secret(&self) -> bool {
        matches!(self, Self::Hide(_) | Self::Reveal(_) | Self::Encode(_) | Self::Decode(_))
    }

    /// Refuses a method that this route does not have.
    pub(super) fn check_method(&self, method: &Method) -> Result<(), Refusal> {
        let (may, allow) = if self.is_read() {
            // hyper sends only the head of the answer for HEAD.
            ([Method::GET, Method::HEAD].contains(method), "GET, HEAD")
        } else {
            (method == Method::POST, "POST")
        };
        if may { Ok(()) } else { Err(Refusal::another_method(allow)) }
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

    use super::{super::request::Query, *};

    /// Parts of names that a path parser could misread.
    const NAMES: [&str; 16] = [
        "orders",
        "gr\u{f6}n",
        "gr%C3%B6n",
        "gr%25C3%25B6n",
        "a/b",
        "a%2Fb",
        "a%2fb",
        "%",
        "%%",
        "%2",
        ".",
        "..",
        "renew",
        "a+b",
        "a?count=2",
        "\u{1f980}",
    ];

    /// Writes each byte as `%` and two digits, of either case.
    fn encoded(name: &str, upper: bool) -> String {
        let digits = |byte| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        name.bytes().map(digits).collect()
    }

    #[test]
    fn a_path_is_decoded_once_however_it_is_written() {
        /// Besides unreserved characters, what a path may contain unencoded.
        const FEW: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');
        for name in NAMES {
            let few = utf8_percent_encode(name, FEW).to_string();
            for written in [few, encoded(name, true), encoded(name, false)] {
                let read = |path: String| Route::read(&path).expect("a route");
                let owned = || name.to_owned();
                assert_eq!(read(format!("/v1/tickets/{written}")), Route::Tickets(owned()));
                assert_eq!(read(format!("/v1/%74ickets/{written}")), Route::Tickets(owned()));
                assert_eq!(read(format!("/v1/inspect/{written}")), Route::Inspect(owned()));
                assert_eq!(read(format!("/v1/leases/{written}/renew")), Route::Renew(owned()));
                assert_eq!(read(format!("/v1/leases/{written}/release")), Route::Release(owned()));
            }
        }
    }

    /// Decodes once, byte by byte, as RFC 3986 says.
    fn decoded_once(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().iter();
        let mut decoded = Vec::new();
        while let Some(&byte) = bytes.next() {
            let digits = bytes.as_slice().get(..2).filter(|_| byte == b'%');
            let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
            let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            decoded.push(escaped.unwrap_or(byte));
            if escaped.is_some() {
                bytes.nth(1);
            }
        }
        decoded
    }

    #[test]
    fn every_short_name_is_decoded_once() {
        const CHARACTERS: [char; 8] = ['%', '2', '5', 'f', 'F', '/', '.', '+'];
        let mut names = vec![String::new()];
        let mut last = names.clone();
        for _ in 0..5 {
            let longer = |name: &String| CHARACTERS.map(|character| format!("{name}{character}"));
            last = last.iter().flat_map(longer).collect();
            names.extend_from_slice(&last);
        }
        for name in names {
            let read = Route::read(&format!("/v1/tickets/{name}")).ok();
            let once = String::from_utf8(decoded_once(&name)).ok();
            let is_one = !name.is_empty() && !name.contains('/');
            assert_eq!(read, once.clone().filter(|_| is_one).map(Route::Tickets), "{name}");
            let query = Query::read(Some(&format!("format={name}")), &["format"], 1);
            assert!(query.is_err(), "{name}");
        }
        for index in 0..4 {
            let (before, after) = "text".split_at(index);
            let escaped = format!("{before}%{:02x}{}", after.as_bytes()[0], &after[1..]);
            let read = |value: &str| Query::read(Some(&format!("format={value}")), &["format"], 1);
            assert!(read(&escaped).is_ok(), "{escaped}");
            assert!(read(&escaped.replace('%', "%25")).is_err(), "{escaped}");
        }
    }

    #[test]
    fn what_is_no_route_is_refused() {
        for path in [
            "",
            "/",
            "*",
            "/v1",
            "/v1/ids/",
            "//v1/ids",
            "/v1//ids",
            "v1/ids",
            "/v1%2Fids",
            "/V1/ids",
            "/v1/tickets",
            "/v1/tickets/",
            "/v1/tickets/a/b",
            "/v1/tickets/a/",
            "/v1/./ids",
            "/healthz/../v1/ids",
            "/v1/leases//renew",
            "/v1/leases/a",
            "/%00",
            "/healthz%00",
            "/v1/tickets/%FF",
            "/%ff",
        ] {
            assert!(Route::read(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_query_is_decoded_once() {
        let read = |query| Query::read(Some(query), &["count", "format"], 100);
        let (count, format) = (12, Some(crate::request::Format::Number));
        let expected = Query { count, format, dated: crate::request::Dated::default() };
        for query in [
            "count=12&format=number",
            "%63ount=%31%32&format=%6eumber",
            "&count=12&&format=number&",
        ] {
            assert_eq!(read(query).expect("a query"), expected, "{query}");
        }
        for query in [
            "%2563ount=12",
            "count=%2531",
            "count=1&%63ount=1",
            "count=%2B1",
            "count=+1",
            "count=%FF",
            "count%3D1",
        ] {
            assert!(read(query).is_err(), "{query}");
        }
    }
}
