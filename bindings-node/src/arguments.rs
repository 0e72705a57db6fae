//! Checks what callers pass: numbers are whole and in range, ids are bigints or text.

use std::{ffi::CStr, time::Duration};

use randflake::{Error, ErrorKind, Id, Layout, Lease, Result, Secret, bindings};
use randflake_leases::NodeRanges;
use zeroize::Zeroizing;

use crate::ffi::{Value, copied, in_place};

/// The largest number up to which numbers hold every integer.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Objects of options, whose names `arguments.js` has checked. Each option may be missing.
impl<'call> Value<'call> {
    /// Takes what `read` makes of an option; the option must be of this form.
    pub(crate) fn option<T>(
        self,
        name: &CStr,
        form: &str,
        read: impl FnOnce(Value<'call>) -> Option<T>,
    ) -> Result<Option<T>> {
        let name_text = name.to_string_lossy();
        let read = |value| read(value).ok_or_else(|| invalid(&name_text, form, value));
        self.get(name)?.map(read).transpose()
    }

    pub(crate) fn boolean(self, name: &CStr) -> Result<Option<bool>> {
        self.option(name, "a boolean", Value::to)
    }

    /// Takes a whole number of 32 bits; core checks its bounds, of which `least` is one.
    pub(crate) fn whole(self, name: &CStr, unit: &str, least: u32) -> Result<Option<u32>> {
        self.option(name, &format!("a whole number of {unit}, at least {least}"), as_u32)
    }

    pub(crate) fn milliseconds(self, name: &CStr) -> Result<Option<Duration>> {
        self.option(name, "milliseconds, at least 0", |value| {
            Duration::try_from_secs_f64(value.to::<f64>()? / 1000.0).ok()
        })
    }

    pub(crate) fn seconds(self, name: &CStr) -> Result<Option<Duration>> {
        self.option(name, "seconds, at least 0", |value| {
            Duration::try_from_secs_f64(value.to()?).ok()
        })
    }

    /// Takes the name of a namespace.
    pub(crate) fn namespace(self) -> Result<Option<String>> {
        self.option(c"namespace", "a string of Unicode text", Value::as_unicode)
    }

    pub(crate) fn lease(self) -> Result<Option<Lease>> {
        let read = |lease: Value<'_>| {
            let second = |name| lease_second(lease.property(name)?);
            Lease::new(second(c"start")?, second(c"endExclusive")?)
        };
        self.get(c"lease")?.map(read).transpose()
    }
}

pub(crate) fn default_namespace() -> String {
    "default".into()
}

/// Calls the builder methods for which there is an option.
macro_rules! set {
    ($builder:expr, $($method:ident: $option:expr,)+) => {{
        let mut builder = $builder;
        $(if let Some(value) = $option {
            builder = builder.$method(value);
        })+
        builder
    }};
}
pub(crate) use set;

pub(crate) fn lease_second(value: Value<'_>) -> Result<i64> {
    integer(value).ok_or_else(|| {
        let got = value.description();
        let rule = "start and endExclusive of a lease must be whole unix seconds";
        Error::new(ErrorKind::InvalidLease, format!("{rule}, got {got}"))
    })
}

pub(crate) fn node_ids(value: Value<'_>, layout: &Layout) -> Result<Vec<u32>> {
    match value.elements(layout.max_nodes(), |got| bindings::too_many_nodes(layout, got))? {
        Some(listed) => listed.into_iter().map(|listed| node_id(listed, layout)).collect(),
        None => node_id(value, layout).map(|only| vec![only]),
    }
}

pub(crate) fn node_id(value: Value<'_>, layout: &Layout) -> Result<u32> {
    as_u32(value).ok_or_else(|| bindings::invalid_node(layout, value.description()))
}

pub(crate) fn secret(value: Value<'_>) -> Result<Secret> {
    let bytes = || copied::<u8>(value).map(|bytes| Secret::from_bytes(&Zeroizing::new(bytes)));
    let parsed = value.read_text(str::parse).or_else(bytes);
    // Also for a number only the type: its digits may be a secret's.
    parsed.unwrap_or_else(|| Err(bindings::invalid_secret(value.type_name())))
}

/// Takes the purpose of a key.
pub(crate) fn label(value: Value<'_>) -> Result<String> {
    value.as_unicode().ok_or_else(|| invalid("the label", "a string of Unicode text", value))
}

/// Takes the node ids that a namespace leases.
pub(crate) fn leased_nodes(value: Value<'_>) -> Result<NodeRanges> {
    value.read_text(str::parse).unwrap_or_else(|| {
        Err(invalid("nodeIds", "a string of ranges, such as '0-6,8-1023'", value))
    })
}

/// Takes an id as a bigint or as text.
pub(crate) fn id(value: Value<'_>) -> Result<Id> {
    match value.as_i64() {
        Some(number) => Ok(number.into()),
        None => value.read_text(str::parse).unwrap_or_else(|| numeric_id(value)),
    }
}

pub(crate) fn numeric_id(value: Value<'_>) -> Result<Id> {
    const HINT: &str = "; BigInt.asIntN(64, id) makes an unsigned one signed";
    // Drivers return strings like this.
    const OF_STRING: &str =
        "a string; BigInt(id) reads decimal digits, decodeString(id) the text of an id";
    value.as_i64().map(Id::from).ok_or_else(|| {
        let is_string = value.read_text(|_| ()).is_some();
        let got = if is_string { OF_STRING.into() } else { not_64_bits(value, HINT) };
        bindings::invalid_id(got)
    })
}

pub(crate) fn id_text(value: Value<'_>) -> Result<Id> {
    value.read_text(str::parse).unwrap_or_else(|| {
        Err(Error::new(
            ErrorKind::InvalidId,
            format!("the text of an id must be a string, got {}", value.description()),
        ))
    })
}

pub(crate) fn raw(value: Value<'_>) -> Result<u64> {
    value.as_u64().ok_or_else(|| bindings::invalid_raw(not_64_bits(value, "")))
}

/// Says what is not a 64-bit number, with a hint for a bigint.
fn not_64_bits(value: Value<'_>, hint: &str) -> String {
    if value.is_bigint() {
        format!("a bigint out of that range{hint}")
    } else if value.to::<f64>().is_some() {
        "a number, which cannot hold 64 bits; pass a bigint".into()
    } else {
        value.description()
    }
}

/// Takes the 64 bits of a raw id as an unsigned bigint, or as the signed one of a BIGINT column.
pub(crate) fn raw_or_signed(value: Value<'_>) -> Result<u64> {
    value.as_i64().map_or_else(|| raw(value), |signed| Ok(signed.cast_unsigned()))
}

/// The error of a value that should be a `BigInt64Array`.
pub(crate) fn not_ids(got: Value<'_>) -> Error {
    invalid(
        "ids",
        "a BigInt64Array whose memory is not shared between threads and was not transferred",
        got,
    )
}

/// The error of a value that should hold many numbers, of 64 bits each.
pub(crate) fn not_many(name: &str, got: Value<'_>) -> Error {
    invalid(
        name,
        "an array, or a BigInt64Array or BigUint64Array whose memory is not shared between threads \
         and was not transferred",
        got,
    )
}

/// Copies the ids of a `BigUint64Array`.
pub(crate) fn unsigned_ids(value: Value<'_>) -> Result<Vec<i64>> {
    let ids = copied::<u64>(value).ok_or_else(|| not_many("ids", value))?;
    let check = |(index, id): (usize, u64)| {
        const GOT: &str = "a larger one; new BigInt64Array(ids.buffer) has signed ones";
        i64::try_from(id).map_err(|_| at_index(index, &bindings::invalid_id(GOT)))
    };
    ids.into_iter().enumerate().map(check).collect()
}

/// Copies raw ids, which a `BigUint64Array` or a `BigInt64Array` holds.
pub(crate) fn raws(value: Value<'_>) -> Result<Vec<i64>> {
    if let Some(raws) = copied::<u64>(value) {
        return Ok(raws.into_iter().map(u64::cast_signed).collect());
    }
    let raws = copied::<i64>(value).ok_or_else(|| not_many("raw values", value))?;
    match raws.iter().position(|raw| raw.is_negative()) {
        Some(index) => Err(at_index(index, &bindings::invalid_raw("a negative one"))),
        None => Ok(raws),
    }
}

fn at_index(index: usize, error: &Error) -> Error {
    Error::new(error.kind(), bindings::at_index(index, error))
}

/// Changes the elements of a `BigInt64Array` and returns true, as `generator::fill` does.
pub(crate) fn change_in_place(
    numbers: Value<'_>,
    change: impl FnOnce(&mut [i64]) + Send,
) -> Result<bool> {
    in_place(numbers, change).map(|()| true).ok_or_else(|| not_ids(numbers))
}

pub(crate) fn as_u32(value: Value<'_>) -> Option<u32> {
    integer(value).and_then(|number| u32::try_from(number).ok())
}

pub(crate) fn integer(value: Value<'_>) -> Option<i64> {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER;
    #[allow(clippy::cast_possible_truncation, reason = "whole and far below 2^63")]
    value.to().filter(whole).map(|number| number as i64)
}

pub(crate) fn invalid(name: &str, form: &str, got: Value<'_>) -> Error {
    Error::invalid_argument(format!("{name} must be {form}, got {}", got.description()))
}
