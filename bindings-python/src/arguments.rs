//! The way in for arguments: each type here takes a Python object as it comes and refuses a wrong
//! one with the error of its domain, where pyo3 would truncate, or raise `OverflowError`.

use std::{
    ffi::OsString,
    fmt::Display,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use pyo3::{
    Borrowed,
    exceptions::{PyOverflowError, PyTypeError, PyUnicodeError, PyValueError},
    prelude::*,
    types::{PyBool, PyByteArray, PyBytes, PyString},
};
use randflake::{Error, ErrorKind, Id, Layout, Secret, bindings};
use randflake_leases::{InitMode, Location, NodeLease};

use crate::{
    client::Source,
    errors::{WeakSecretWarning, raise, wrong_type},
    lease::Lease,
};

/// An id, as a number or as text.
pub(crate) struct AnyId(pub(crate) Id);

impl<'a, 'py> FromPyObject<'a, 'py> for AnyId {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(text) => id_of_text(&text),
            Err(_) => integer(&object, |got| bindings::invalid_id(got)).map(i64::into),
        }
        .map(Self)
    }
}

/// An id as a number.
pub(crate) struct IdNumber(pub(crate) Id);

impl<'a, 'py> FromPyObject<'a, 'py> for IdNumber {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::new(
                ErrorKind::InvalidId,
                format!("an id must be a signed 64-bit integer here, got {got}"),
            )
        };
        integer::<i64>(&object, error).map(|number| Self(number.into()))
    }
}

/// An id as text.
pub(crate) struct IdText(pub(crate) Id);

impl<'a, 'py> FromPyObject<'a, 'py> for IdText {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(text) => id_of_text(&text).map(Self),
            Err(_) => Err(wrong_type(&Error::new(
                ErrorKind::InvalidId,
                format!("an id's text must be a str, got {}", type_of(&object)),
            ))),
        }
    }
}

fn id_of_text(text: &Bound<'_, PyString>) -> PyResult<Id> {
    // A lone surrogate becomes a replacement character, which no id's text has either.
    text.to_string_lossy().parse().map_err(raise)
}

/// The sortable form of an id.
pub(crate) struct Raw(pub(crate) u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Raw {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        integer(&object, |got| bindings::invalid_raw(got)).map(Self)
    }
}

/// How many ids.
pub(crate) struct Count(pub(crate) usize);

impl<'a, 'py> FromPyObject<'a, 'py> for Count {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("the number of ids must be an integer, 0 or more, got {got}"),
            )
        };
        integer(&object, error).map(Self)
    }
}

/// The end of a lease, in unix seconds.
pub(crate) struct UnixSecond(pub(crate) i64);

impl<'a, 'py> FromPyObject<'a, 'py> for UnixSecond {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::new(
                ErrorKind::InvalidLease,
                format!("a lease starts and ends at unix seconds, which are integers, got {got}"),
            )
        };
        integer(&object, error).map(Self)
    }
}

/// One node id, or several.
pub(crate) struct NodeIds(pub(crate) Vec<u32>);

impl NodeIds {
    /// Takes those of a layout.
    pub(crate) fn of(layout: &Layout, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let node_id =
            |object: &Bound<'_, PyAny>| integer(object, |got| bindings::invalid_node(&layout, got));
        // Bytes are a sequence of integers, but never meant as one of node ids.
        let bytes = object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>();
        let several = !bytes && !object.is_instance_of::<PyString>();
        let (Ok(length), Ok(items), true) = (object.len(), object.try_iter(), several) else {
            return node_id(object).map(|node_id| Self(vec![node_id]));
        };
        // A range can be longer than memory.
        if length > layout.max_nodes() {
            return Err(raise(bindings::too_many_nodes(&layout, length)));
        }
        items.map(|item| node_id(&item?)).collect::<PyResult<_>>().map(Self)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for NodeIds {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Self::of(&Layout::randflake(), &object)
    }
}

/// A secret, with a warning, once per process, if it is weak.
pub(crate) struct AnySecret(pub(crate) Secret);

impl<'a, 'py> FromPyObject<'a, 'py> for AnySecret {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        static WARNED: AtomicBool = AtomicBool::new(false);

        let secret = if let Ok(bytes) = object.cast::<PyBytes>() {
            Secret::from_bytes(bytes.as_bytes()).map_err(raise)?
        } else if let Ok(text) = object.cast::<PyString>() {
            text.to_string_lossy().parse().map_err(raise)?
        } else {
            return Err(wrong_type(&bindings::invalid_secret(type_of(&object))));
        };
        // Relaxed: a second warning in a race does no harm.
        if let Some(weakness) = secret.weakness().filter(|_| !WARNED.load(Ordering::Relaxed)) {
            let py = object.py();
            let message = std::ffi::CString::new(weakness).expect("the message has no zero byte");
            PyErr::warn(py, &py.get_type::<WeakSecretWarning>(), &message, 1)?;
            WARNED.store(true, Ordering::Relaxed);
        }
        Ok(Self(secret))
    }
}

/// A lease or none.
pub(crate) struct OptionalLease(pub(crate) Option<randflake::Lease>);

impl<'a, 'py> FromPyObject<'a, 'py> for OptionalLease {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Self(None));
        }
        match object.cast::<Lease>() {
            Ok(lease) => Ok(Self(Some(lease.get().lease))),
            Err(_) => Err(wrong_type(&Error::new(
                ErrorKind::InvalidLease,
                format!("lease must be a randflake.Lease or None, got {}", type_of(&object)),
            ))),
        }
    }
}

/// Where leases come from.
pub(crate) enum Store {
    /// A file, or what is no store.
    Here(Location),
    /// A server.
    Server(Source),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Store {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(source) = Source::of(&object)? {
            return Ok(Self::Server(source));
        }
        // Text may be a URL. What is no text is a path, or a str with undecodable bytes.
        if let Ok(text) = object.cast::<PyString>()
            && let Ok(text) = text.to_cow()
        {
            return Ok(Self::Here(text.into_owned().into()));
        }
        let py = object.py();
        let path = py.import("os")?.call_method1("fsdecode", (object,));
        match path.and_then(|path| path.extract::<OsString>()) {
            Ok(path) => Ok(Self::Here(PathBuf::from(path).into())),
            Err(failure) if failure.is_instance_of::<PyTypeError>(py) => {
                Err(wrong_type(&Error::invalid_argument(format!(
                    "store must be the path of a SQLite file, a str or an os.PathLike, or the URL \
                     or a client of a server, got {}",
                    type_of(&object)
                ))))
            }
            Err(failure) if failure.is_instance_of::<PyUnicodeError>(py) => {
                Err(raise(Error::invalid_argument(
                    "store must be the path of a SQLite file, got text that no path can have",
                )))
            }
            Err(failure) => Err(failure), // of a foreign `__fspath__`
        }
    }
}

/// Defines an option that is a whole number.
macro_rules! whole_number {
    ($(#[$doc:meta])* $option:ident, $name:literal) => {
        $(#[$doc])*
        pub(crate) struct $option(pub(crate) u32);

        impl<'a, 'py> FromPyObject<'a, 'py> for $option {
            type Error = PyErr;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                let error = |got: &dyn Display| {
                    let must = concat!($name, " must be a whole number, 0 to 4294967295");
                    Error::invalid_argument(format!("{must}, got {got}"))
                };
                integer(&object, error).map(Self)
            }
        }
    };
}

whole_number!(
    /// How many node ids to lease.
    NodeCount,
    "node_count"
);
whole_number!(
    /// For how many seconds to lease.
    Ttl,
    "ttl"
);
whole_number!(
    /// By how many seconds clocks may differ.
    MaxSkew,
    "max_skew"
);

whole_number!(
    /// A node id of a store.
    StoredNode,
    "node_id"
);

/// What a store has told of a node id.
pub(crate) struct StoredLease(pub(crate) NodeLease);

impl<'a, 'py> FromPyObject<'a, 'py> for StoredLease {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let told = |name| {
            object.getattr_opt(name)?.ok_or_else(|| {
                wrong_type(&Error::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "the lease must be what list_leases or inspect_lease tells of a node id, \
                         got {}",
                        type_of(&object)
                    ),
                ))
            })
        };
        let node_id = told("node_id")?.extract::<StoredNode>()?.0;
        let second = |name| told(name)?.extract::<UnixSecond>().map(|second| second.0);
        let (start, end_exclusive) = (second("start")?, second("end_exclusive")?);
        Ok(Self(NodeLease { node_id, start, end_exclusive }))
    }
}

/// The name of a namespace.
pub(crate) struct NamespaceName(pub(crate) String);

impl<'a, 'py> FromPyObject<'a, 'py> for NamespaceName {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        text(&object, "namespace").map(Self)
    }
}

/// What a cloak is for.
pub(crate) struct Label(pub(crate) String);

impl<'a, 'py> FromPyObject<'a, 'py> for Label {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        text(&object, "label").map(Self)
    }
}

/// How long the first lease may take.
pub(crate) struct AcquireTimeout(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for AcquireTimeout {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| {
            Error::invalid_argument(format!(
                "acquire_timeout must be a number of seconds, at least 0, got {got}"
            ))
        };
        let seconds = number(&object, error)?;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| raise(error(&seconds)))
    }
}

/// How long a call may wait.
pub(crate) struct MaxWait(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for MaxWait {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| bindings::invalid_max_wait(got);
        let seconds = number(&object, error)?;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| raise(error(&seconds)))
    }
}

/// How far ahead of the clock ids may be stamped, in seconds.
pub(crate) struct MaxDrift(pub(crate) u32);

impl<'a, 'py> FromPyObject<'a, 'py> for MaxDrift {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let error = |got: &dyn Display| bindings::invalid_max_drift(got);
        integer(&object, error).map(Self)
    }
}

/// Defines an option that is yes or no.
macro_rules! yes_or_no {
    ($(#[$doc:meta])* $option:ident, $name:literal) => {
        $(#[$doc])*
        pub(crate) struct $option(pub(crate) bool);

        impl<'a, 'py> FromPyObject<'a, 'py> for $option {
            type Error = PyErr;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
                object.extract().map(Self).map_err(|_| {
                    let got = type_of(&object);
                    let must = concat!($name, " must be a bool");
                    wrong_type(&Error::invalid_argument(format!("{must}, got {got}")))
                })
            }
        }
    };
}

yes_or_no!(
    /// Whether to skip the second of an earlier life.
    RestartSafe,
    "restart_safe"
);
yes_or_no!(
    /// Whether the first lease makes the namespace.
    Create,
    "create"
);
yes_or_no!(
    /// Whether the store may lose what it has acknowledged.
    AllowWeakStore,
    "allow_weak_store"
);
/// How to make a namespace.
pub(crate) struct Mode(pub(crate) InitMode);

impl Mode {
    /// What is raised where nothing that could be a mode was given.
    pub(crate) fn missing() -> PyErr {
        match "".parse::<InitMode>() {
            Ok(_) => unreachable!("no mode has an empty name"),
            Err(error) => wrong_type(&error),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Mode {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let name = object.cast::<PyString>().map_err(|_| Self::missing())?;
        name.to_string_lossy().parse().map(Self).map_err(raise)
    }
}

/// Takes the Unicode text of an argument.
fn text(object: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let error = |got: &dyn Display| {
        Error::invalid_argument(format!("{name} must be a str of Unicode text, got {got}"))
    };
    let text = object.cast::<PyString>().map_err(|_| wrong_type(&error(&type_of(object))))?;
    match text.to_cow() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(raise(error(&"lone surrogates"))),
    }
}

/// Takes anything that can be gone through, except text.
pub(crate) fn items<'py>(
    object: &Bound<'py, PyAny>,
    error: impl Fn(&dyn Display) -> Error,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>>> {
    if object.is_instance_of::<PyString>() {
        return Err(wrong_type(&error(&type_of(object))));
    }
    object.try_iter().map_err(|failure| {
        if failure.is_instance_of::<PyTypeError>(object.py()) {
            wrong_type(&error(&type_of(object)))
        } else {
            failure // of a foreign `__iter__`
        }
    })
}

/// Takes anything with `__index__`, except bool.
pub(crate) fn integer<'py, T>(
    object: &Bound<'py, PyAny>,
    error: impl FnOnce(&dyn Display) -> Error,
) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    if object.is_instance_of::<PyBool>() {
        return Err(wrong_type(&error(&type_of(object))));
    }
    object.extract::<T>().map_err(|failure| {
        let py = object.py();
        if failure.is_instance_of::<PyOverflowError>(py) {
            raise(match object.extract::<i64>() {
                Ok(number) => error(&number),
                Err(_) => error(&"an integer of more than 64 bits"),
            })
        } else if failure.is_instance_of::<PyTypeError>(py) {
            wrong_type(&error(&type_of(object)))
        } else {
            failure // of a foreign `__index__`
        }
    })
}

/// Takes anything with `__float__` or `__index__`, except bool; an integer too large is infinite.
pub(crate) fn number(
    object: &Bound<'_, PyAny>,
    error: impl FnOnce(&dyn Display) -> Error,
) -> PyResult<f64> {
    if object.is_instance_of::<PyBool>() {
        return Err(wrong_type(&error(&type_of(object))));
    }
    object.extract::<f64>().or_else(|failure| {
        let py = object.py();
        if failure.is_instance_of::<PyOverflowError>(py) {
            Ok(f64::INFINITY)
        } else if failure.is_instance_of::<PyTypeError>(py)
            || failure.is_instance_of::<PyValueError>(py)
        {
            Err(wrong_type(&error(&type_of(object))))
        } else {
            Err(failure) // of a foreign `__float__`
        }
    })
}

/// Says of which type an object is, and nothing of what is in it: it may be a secret.
pub(crate) fn type_of(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    let name = name.as_ref().map_or("unknown".into(), |name| name.to_string_lossy());
    format!("an object of type {name}")
}
