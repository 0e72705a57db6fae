//! Arguments of more than one class or function.

use std::{
    ffi::{CString, OsString},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use pyo3::{
    exceptions::{PyTypeError, PyUnicodeError},
    prelude::*,
    types::{PyByteArray, PyBytes, PyString},
};
use randflake::{Error, ErrorKind, Id, Layout, Secret, bindings};
use randflake_leases::Location;

use crate::{
    client::Source,
    convert::{argument, boolean, integer, must, text, type_of, whole_number},
    errors::{WeakSecretWarning, raise, wrong_type},
};

argument!(
    /// An id, as a number or as text.
    AnyId(Id),
    |object| match object.cast::<PyString>() {
        Ok(text) => id_of_text(text),
        Err(_) => integer::<i64>(object, |got| bindings::invalid_id(got)).map(Id::from),
    }
);

argument!(
    /// An id as a number.
    IdNumber(Id),
    |object| {
        const RULE: &str = "an id must be a signed 64-bit integer here";
        integer::<i64>(object, |got| must(ErrorKind::InvalidId, RULE)(got)).map(Id::from)
    }
);

argument!(
    /// An id as text.
    IdText(Id),
    |object| {
        let error = must(ErrorKind::InvalidId, "an id's text must be a str");
        let text = object.cast::<PyString>().map_err(|_| wrong_type(&error(&type_of(object))))?;
        id_of_text(text)
    }
);

fn id_of_text(text: &Bound<'_, PyString>) -> PyResult<Id> {
    // A lone surrogate becomes a replacement character, which no id's text has either.
    text.to_string_lossy().parse().map_err(raise)
}

argument!(
    /// The sortable form of an id.
    Raw(u64),
    |object| integer(object, |got| bindings::invalid_raw(got))
);

argument!(
    /// How many ids.
    Count(usize),
    |object| {
        const RULE: &str = "the number of ids must be an integer, 0 or more";
        integer(object, |got| must(ErrorKind::InvalidArgument, RULE)(got))
    }
);

argument!(
    /// One node id of `Randflake`, or several.
    NodeIds(Vec<u32>),
    |object| node_ids(&Layout::randflake(), object)
);

/// Takes one node id of a layout, or several.
pub(crate) fn node_ids(layout: &Layout, object: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let node_id =
        |object: &Bound<'_, PyAny>| integer(object, |got| bindings::invalid_node(layout, got));
    // Bytes are a sequence of integers, but never meant as one of node ids.
    let bytes = object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>();
    let several = !bytes && !object.is_instance_of::<PyString>();
    let (Ok(length), Ok(items), true) = (object.len(), object.try_iter(), several) else {
        return node_id(object).map(|node_id| vec![node_id]);
    };
    // A range can be longer than memory.
    if length > layout.max_nodes() {
        return Err(raise(bindings::too_many_nodes(layout, length)));
    }
    items.map(|item| node_id(&item?)).collect()
}

argument!(
    /// A secret. A weak one raises a warning, once per process.
    AnySecret(Secret),
    |object| {
        static WARNED: AtomicBool = AtomicBool::new(false);

        let secret = if let Ok(bytes) = object.cast::<PyBytes>() {
            Secret::from_bytes(bytes.as_bytes()).map_err(raise)?
        } else if let Ok(text) = object.cast::<PyString>() {
            text.to_string_lossy().parse::<Secret>().map_err(raise)?
        } else {
            return Err(wrong_type(&bindings::invalid_secret(type_of(object))));
        };
        // Relaxed: a second warning in a race does no harm.
        if let Some(weakness) = secret.weakness().filter(|_| !WARNED.load(Ordering::Relaxed)) {
            let py = object.py();
            let message = CString::new(weakness).expect("the message has no zero byte");
            PyErr::warn(py, &py.get_type::<WeakSecretWarning>(), &message, 1)?;
            WARNED.store(true, Ordering::Relaxed);
        }
        Ok(secret)
    }
);

/// Where leases come from.
pub(crate) enum Store {
    /// A file, or what is no store.
    Local(Location),
    /// A server.
    Server(Source),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Store {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(source) = Source::of(&object)? {
            return Ok(Self::Server(source));
        }
        // Text may be a URL. Everything else, and a str with undecodable bytes, is a path.
        if let Ok(text) = object.cast::<PyString>()
            && let Ok(text) = text.to_cow()
        {
            return Ok(Self::Local(text.into_owned().into()));
        }
        let py = object.py();
        let path = py.import("os")?.call_method1("fsdecode", (object,));
        match path.and_then(|path| path.extract::<OsString>()) {
            Ok(path) => Ok(Self::Local(PathBuf::from(path).into())),
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

argument!(
    /// The name of a namespace.
    NamespaceName(String),
    |object| text(object, "namespace")
);

impl Default for NamespaceName {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

// What a number beyond 32 bits is told; what fits, core checks.
pub(crate) const NODE_COUNT: &str = "1 to 16384 for Randflake";
pub(crate) const TTL: &str = "1 to 86400 and at least six times max_skew";
pub(crate) const MAX_SKEW: &str = "0 to a sixth of the ttl";

argument!(
    /// For how many seconds to lease.
    Ttl(u32),
    |object| whole_number(object, "ttl", TTL)
);

argument!(
    /// By how many seconds clocks may differ.
    MaxSkew(u32),
    |object| whole_number(object, "max_skew", MAX_SKEW)
);

argument!(
    /// Whether the store may lose what it has acknowledged.
    AllowWeakStore(bool),
    |object| boolean(object, "allow_weak_store")
);
