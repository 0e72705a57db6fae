//! Who may send requests: programs on this machine, or clients with the token.

use std::{
    fmt, fs,
    hint::black_box,
    io::Read as _,
    net::{Ipv4Addr, Ipv6Addr},
    path::Path,
};

use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, ORIGIN},
};
use randflake::{Error, Result};
use zeroize::Zeroizing;

use super::answer::Refusal;

/// Fewer characters can be guessed.
const SHORTEST: usize = 16;

/// More than any token has.
const LONGEST: usize = 4096;

/// Browsers send this with each request to this machine: it says who caused the request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who may ask.
#[derive(Debug)]
pub struct Access(Allowed);

enum Allowed {
    /// Programs on this machine, but not web pages in a browser on it.
    Local,
    /// Everyone with the token.
    Token(Zeroizing<Vec<u8>>),
}

/// Does not show the token.
impl fmt::Debug for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "Local",
            Self::Token(_) => "Token",
        })
    }
}

impl Access {
    /// Lets programs of this machine ask, but no web page that a browser on it shows.
    #[must_use]
    pub const fn local() -> Self {
        Self(Allowed::Local)
    }

    /// Lets everyone ask who sends the token in a file, without the white space around it: 16 to 4096
    /// ASCII characters.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: the file cannot be read, or has no such token.
    pub fn with_token(path: &Path) -> Result<Self> {
        let unusable = |why: &dyn fmt::Display| {
            Error::invalid_argument(format!("the token file {}: {why}", path.display()))
        };
        let mut content = Zeroizing::new(Vec::with_capacity(LONGEST + 1));
        let file = fs::File::open(path).map_err(|error| unusable(&error))?;
        file.take(LONGEST as u64 + 1)
            .read_to_end(&mut content)
            .map_err(|error| unusable(&error))?;
        let token = Zeroizing::new(content.trim_ascii().to_vec());
        if !(SHORTEST..=LONGEST).contains(&token.len()) || content.len() > LONGEST {
            return Err(unusable(&format_args!(
                "a token must have {SHORTEST} to {LONGEST} characters; generate one with \
                 `randflake secret`"
            )));
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(unusable(&"a token must consist of ASCII letters, digits and punctuation"));
        }
        Ok(Self(Allowed::Token(token)))
    }

    #[cfg(test)]
    pub(super) fn of_token(token: &[u8]) -> Self {
        Self(Allowed::Token(Zeroizing::new(token.to_vec())))
    }

    /// Refuses a request from anybody else.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        match &self.0 {
            Allowed::Local if is_of_a_page(headers) || !names_this_machine(uri, headers) => {
                Err(Refusal::unauthorized(
                    StatusCode::FORBIDDEN,
                    "without a token, only programs on this machine may send requests, to \
                     localhost, 127.0.0.1 or [::1], and web pages may not; with --token-file, \
                     whoever sends the token may",
                ))
            }
            Allowed::Token(token) if !has_token(headers, token) => Err(Refusal::unauthorized(
                StatusCode::UNAUTHORIZED,
                "the header Authorization must be Bearer and the token",
            )),
            _ => Ok(()),
        }
    }
}

/// Whether a web page has caused the request. `none` is a person, and `same-origin` this server.
fn is_of_a_page(headers: &HeaderMap) -> bool {
    let may_be = |site: &HeaderValue| site == "none" || site == "same-origin";
    headers.contains_key(ORIGIN) || !headers.get_all(SEC_FETCH_SITE).iter().all(may_be)
}

/// Whether the client has used a name that means this machine everywhere: the owner of a web page's
/// own name can make it resolve to this machine.
fn names_this_machine(uri: &Uri, headers: &HeaderMap) -> bool {
    // A request meant for a proxy has a host there, too.
    if uri.authority().is_some_and(|authority| !is_this_machine(authority.as_str())) {
        return false;
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        // HTTP/1.0 has no `Host`, and no browser speaks it.
        (None, _) => true,
        (Some(host), None) => host.to_str().is_ok_and(is_this_machine),
        _ => false,
    }
}

/// Reads the value of `Host` only in its plain forms: a name or an address, optionally with a port.
fn is_this_machine(host: &str) -> bool {
    let v6 = host.strip_prefix('[').and_then(|it| it.split_once(']'));
    let (name, port) = v6.unwrap_or_else(|| host.split_at(host.find(':').unwrap_or(host.len())));
    let is_number = |port: &str| {
        port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok()
    };
    let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
    has_port
        && if v6.is_some() {
            name.parse() == Ok(Ipv6Addr::LOCALHOST)
        } else {
            name.eq_ignore_ascii_case("localhost")
                || name.parse().is_ok_and(|it: Ipv4Addr| it.is_loopback())
        }
}

fn has_token(headers: &HeaderMap, token: &[u8]) -> bool {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (given.next(), given.next()) else { return false };
    let Some((scheme, given)) = header.as_bytes().split_at_checked(7) else { return false };
    scheme.eq_ignore_ascii_case(b"bearer ") && are_equal(given.trim_ascii(), token)
}

/// Compares in a time that depends only on the lengths.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let difference =
        one.iter().zip(other).fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
        of.iter()
            .map(|&(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)))
            .collect()
    }

    fn path() -> Uri {
        Uri::from_static("/metrics")
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let access = Access::of_token(b"0123456789abcdef");
        for (value, is_right) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer  0123456789abcdef ", true),
            ("Bearer 0123456789abcde", false),
            ("Bearer 0123456789abcdef0", false),
            ("Bearer 1123456789abcdef", false),
            ("Bearer ", false),
            ("Basic 0123456789abcdef", false),
            ("0123456789abcdef", false),
            ("", false),
        ] {
            let given = access.check(&path(), &headers(&[("authorization", value)]));
            assert_eq!(given.is_ok(), is_right, "{value:?}");
        }
        assert!(access.check(&path(), &headers(&[])).is_err());
        let mut twice = headers(&[("authorization", "Bearer 0123456789abcdef")]);
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer 1123456789abcdef"));
        assert!(access.check(&path(), &twice).is_err());
    }

    #[test]
    fn without_a_token_no_web_page_may_ask() {
        let hosts = [
            ("127.0.0.1:8080", true),
            ("127.8.9.10", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("[0:0::1]:1", true),
            ("localhost:8080", true),
            ("localhost", true),
            ("LocalHost:65535", true),
            ("", false),
            ("shop.example:8080", false),
            ("localhost.shop.example", false),
            ("127.0.0.1.shop.example", false),
            ("localhost.", false),
            ("10.0.0.1:8080", false),
            ("0.0.0.0:8080", false),
            ("[::]:8080", false),
            ("[::ffff:127.0.0.1]:8080", false),
            ("::1", false),
            ("[::1", false),
            ("[::1]8080", false),
            ("[127.0.0.1]", false),
            ("[localhost]", false),
            ("127.1", false),
            ("2130706433", false),
            ("0x7f.0.0.1", false),
            ("127.0.0.01", false),
            ("localhost:", false),
            ("localhost:+80", false),
            ("localhost:65536", false),
            ("localhost:80:80", false),
            ("localhost:80@shop.example", false),
            ("shop.example@localhost", false),
            ("user:1@127.0.0.1", false),
            ("http://localhost", false),
            ("localhost/", false),
            ("localhost, shop.example", false),
            (" localhost", false),
            ("%6cocalhost", false),
        ];
        for (host, may) in hosts {
            assert_eq!(
                Access::local().check(&path(), &headers(&[("host", host)])).is_ok(),
                may,
                "{host:?}"
            );
        }
        let mut twice = headers(&[("host", "localhost")]);
        twice.append(HOST, HeaderValue::from_static("localhost"));
        assert!(Access::local().check(&path(), &twice).is_err());
        for (uri, may) in [
            ("http://localhost:8080/metrics", true),
            ("http://shop.example/metrics", false),
            ("http://shop@localhost/metrics", false),
        ] {
            let given = headers(&[("host", "localhost")]);
            assert_eq!(Access::local().check(&Uri::from_static(uri), &given).is_ok(), may, "{uri}");
        }
        for (given, may) in [
            (&[][..], true),
            (&[("host", "localhost"), ("sec-fetch-site", "none")], true),
            (&[("host", "localhost"), ("sec-fetch-site", "same-origin")], true),
            (&[("host", "localhost"), ("sec-fetch-site", "same-site")], false),
            (&[("host", "localhost"), ("sec-fetch-site", "cross-site")], false),
            (&[("host", "localhost"), ("sec-fetch-site", "None")], false),
            (&[("host", "localhost"), ("sec-fetch-site", "")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("host", "127.0.0.1:8080"), ("origin", "https://shop.example")], false),
        ] {
            assert_eq!(Access::local().check(&path(), &headers(given)).is_ok(), may, "{given:?}");
        }
    }
}
