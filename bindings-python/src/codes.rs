use pyo3::{
    prelude::*,
    types::{PyList, PyString},
};
use randflake::ErrorKind;

use crate::{
    arguments::{AnySecret, Label},
    convert::{argument, each, instance, integers, must, text},
    errors::{not_to_be_copied, raise},
};

#[doc = doc!(Codes)]
#[pyclass(frozen, module = "randflake")]
pub(crate) struct Codes {
    codes: randflake::Codes,
}

#[pymethods]
impl Codes {
    #[new]
    #[pyo3(
        signature = (secret, label, length = Length(8), alphabet = None, check = Check(0)),
        text_signature = "(secret, label, length=8, alphabet='digits', check=0)"
    )]
    fn new(
        secret: AnySecret,
        label: Label,
        length: Length,
        alphabet: Option<AlphabetName>,
        check: Check,
    ) -> PyResult<Self> {
        let mut builder = randflake::Codes::builder(&secret.0, &label.0);
        builder = builder.length(length.0).check(check.0);
        if let Some(alphabet) = &alphabet {
            builder = builder.alphabet(&alphabet.0);
        }
        Ok(Self { codes: builder.build().map_err(raise)? })
    }

    #[doc = doc!(Codes.length)]
    #[getter]
    fn length(&self) -> usize {
        self.codes.length()
    }

    #[doc = doc!(Codes.alphabet)]
    #[getter]
    fn alphabet(&self) -> &str {
        self.codes.alphabet()
    }

    #[doc = doc!(Codes.check)]
    #[getter]
    fn check(&self) -> usize {
        self.codes.check()
    }

    #[doc = doc!(Codes.capacity)]
    #[getter]
    fn capacity(&self) -> u128 {
        self.codes.capacity()
    }

    #[doc = doc!(Codes.pattern)]
    #[getter]
    fn pattern(&self) -> String {
        self.codes.pattern()
    }

    #[doc = doc!(Codes.encode)]
    fn encode(&self, number: Numbered) -> PyResult<String> {
        self.codes.encode(number.0).map_err(raise)
    }

    #[doc = doc!(Codes.encode_many)]
    fn encode_many<'py>(&self, numbers: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let error = must(
            ErrorKind::InvalidArgument,
            "many numbers must be in a list or a similar collection",
        );
        let codes = each(numbers, error, |number| self.encode(number.extract()?))?;
        PyList::new(numbers.py(), codes)
    }

    #[doc = doc!(Codes.decode)]
    fn decode(&self, code: CodeText) -> PyResult<u64> {
        self.codes.decode(&code.0).map_err(raise)
    }

    #[doc = doc!(Codes.decode_many)]
    fn decode_many<'py>(&self, codes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let error = must(
            ErrorKind::InvalidArgument,
            "many codes must be in a list or a similar collection",
        );
        let numbers = each(codes, error, |code| self.decode(code.extract()?))?;
        PyList::new(codes.py(), numbers)
    }

    fn __repr__(&self) -> String {
        let (length, check) = (self.codes.length(), self.codes.check());
        let alphabet = self.codes.alphabet();
        format!("<randflake.Codes length={length} alphabet='{alphabet}' check={check}>")
    }

    /// Refuses pickle and copy.
    fn __reduce_ex__(&self, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = (self, protocol);
        Err(not_to_be_copied(
            "codes cannot be pickled or copied, since their secret would go with them; make them \
             where they are needed",
        ))
    }
}

integers! {
    /// A number that has a code.
    Numbered(u64): InvalidId, "the number of a code must be a whole number, 0 to capacity - 1";
    /// How many symbols a code has.
    Length(usize): InvalidArgument, "length must be a whole number, 4 to 24";
    /// How many of them are a check.
    Check(usize): InvalidArgument, "check must be a whole number, 0 or more, below the length";
}

argument!(
    /// The name of an alphabet, or its symbols.
    AlphabetName(String),
    |object| text(object, "alphabet")
);

argument!(
    /// A code.
    CodeText(String),
    |object| {
        let error = must(ErrorKind::InvalidId, "a code must be a str");
        // A lone surrogate becomes a replacement character, which no code has either.
        Ok(instance::<PyString>(object, error)?.to_string_lossy().into_owned())
    }
);
