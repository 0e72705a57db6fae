//! Who may ask: programs of this machine, or those that have the token.

use std::{
    fs,
    hint::black_box,
    io::Read as _,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use hyper::{
    HeaderMap, StatusCode,
    header::{AUTHORIZATION, HOST, ORIGIN},
};
use randflake::{Error, Result};
use zeroize::Zeroizing;

use super::answer::Refusal;
use crate::secret::warn_if_others_may_read;

/// Fewer characters can be guessed.
const SHORTEST: usize = 16;

/// More than any token has.
const LONGEST: usize = 4096;

pub(super) enum Access {
    /// Programs of this machine, but no web page that a browser on it shows.
    Local,
    /// Everyone who has the token.
    Token(Zeroizing<Vec<u8>>),
}

impl Access {
    pub(super) const fn local() -> Self {
        Self::Local
    }

    /// Reads the token in a file, and perhaps white space around it.
    pub(super) fn with_token(path: &Path) -> Result<Self> {
        let unusable = |why: &dyn std::fmt::Display| {
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
                "a token has {SHORTEST} to {LONGEST} characters; `randflake secret` makes one"
            )));
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(unusable(&"a token has letters, digits and punctuation of ASCII only"));
        }
        warn_if_others_may_read(path, "token");
        Ok(Self::Token(token))
    }

    /// Refuses a request of somebody else.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self {
            Self::Local if headers.contains_key(ORIGIN) || !names_an_address(headers) => {
                Err(Refusal::unauthorized(
                    StatusCode::FORBIDDEN,
                    "without a token only programs of this machine may ask, by its address or as \
                     localhost, and no web page",
                ))
            }
            Self::Token(token) if !has_token(headers, token) => Err(Refusal::unauthorized(
                StatusCode::UNAUTHORIZED,
                "the header Authorization must be Bearer and the token",
            )),
            _ => Ok(()),
        }
    }
}

/// Whether the client has used an address or `localhost`: a name that a web page has is resolved by
/// whoever owns it, also to this machine.
fn names_an_address(headers: &HeaderMap) -> bool {
    // HTTP/1.0 has none, and no browser speaks it.
    let Some(host) = headers.get(HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    [host, name].contains(&"localhost")
        || host.parse::<SocketAddr>().is_ok()
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

fn has_token(headers: &HeaderMap, token: &[u8]) -> bool {
    let Some(header) = headers.get(AUTHORIZATION) else { return false };
    let Some((scheme, given)) = header.as_bytes().split_at_checked(7) else { return false };
    scheme.eq_ignore_ascii_case(b"bearer ") && are_equal(given.trim_ascii(), token)
}

/// Compares in a time that depends on the lengths alone.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let difference =
        one.iter().zip(other).fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(of: &[(&'static str, &'static str)]) -> HeaderMap {
        of.iter()
            .map(|&(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let access = Access::Token(Zeroizing::new(b"0123456789abcdef".to_vec()));
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
            let given = access.check(&headers(&[("authorization", value)]));
            assert_eq!(given.is_ok(), is_right, "{value:?}");
        }
        assert!(access.check(&headers(&[])).is_err());
    }

    #[test]
    fn without_a_token_no_web_page_may_ask() {
        for (given, may) in [
            (&[][..], true),
            (&[("host", "127.0.0.1:8080")], true),
            (&[("host", "[::1]:8080")], true),
            (&[("host", "[::1]")], true),
            (&[("host", "localhost:8080")], true),
            (&[("host", "localhost")], true),
            (&[("host", "shop.example:8080")], false),
            (&[("host", "localhost.shop.example")], false),
            (&[("host", "127.0.0.1.shop.example")], false),
            (&[("host", "127.0.0.1:8080"), ("origin", "https://shop.example")], false),
        ] {
            assert_eq!(Access::Local.check(&headers(given)).is_ok(), may, "{given:?}");
        }
    }
}
