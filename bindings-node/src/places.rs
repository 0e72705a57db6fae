//! How one function makes the ids of all generators of an environment: V8 calls a function that it
//! knows beforehand 30 ns sooner than one of several.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use randflake::{Error, ErrorKind, Id, Result};
use slab::Slab;

use crate::{
    generator::Generator,
    raw::{Js, Tray, Value, Weight},
};

/// The generators of an environment. Stays on its thread.
pub(crate) struct Places {
    /// Where `index.js` leaves the place of a generator before it calls, and finds the id.
    pub(crate) tray: Tray,
    /// What a call holds while it runs; who comes or goes meanwhile changes a copy.
    generators: RefCell<Rc<Slab<Arc<dyn Generator>>>>,
}

/// The place of one generator, which is given up when this is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    number: usize,
    /// V8 sees a small object. Without this it would collect the dropped ones late.
    _weight: Weight,
}

impl Places {
    pub(crate) fn new(tray: Tray) -> Self {
        Self { tray, generators: RefCell::default() }
    }

    pub(crate) fn take(self: &Arc<Self>, js: Js<'_>, generator: Arc<dyn Generator>) -> Place {
        let weight = js.weigh(generator.weight());
        let number = Rc::make_mut(&mut self.generators.borrow_mut()).insert(generator);
        Place { places: Arc::clone(self), number, _weight: weight }
    }

    /// Makes an id of the generator whose place is on the tray.
    #[inline]
    fn generate(&self) -> Result<i64> {
        let generators = Rc::clone(&self.generators.borrow());
        let place = self.tray.place();
        let id = generators.get(place as usize).ok_or_else(unknown)?.generate()?;
        // Not before: a clock written in JavaScript may have had others generate.
        self.tray.set_owner(place);
        Ok(id)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut generators = self.places.generators.borrow_mut();
        let generator = Rc::make_mut(&mut generators).try_remove(self.number);
        drop(generators);
        drop(generator); // which may take long
    }
}

#[cold]
fn unknown() -> Error {
    Error::new(ErrorKind::Internal, "there is no generator in this place")
}

/// Leaves the bits of an id on the tray and returns true. Without that, what is there is an older
/// id: in a worker that is being terminated, a script runs on where an error could not be thrown.
pub(crate) fn generate<'call>(
    places: &Places,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    places.tray.put(places.generate()?);
    js.boolean(true)
}

pub(crate) fn generate_string<'call>(
    places: &Places,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    js.latin1(Id::from(places.generate()?).encode(&mut [0; Id::MAX_TEXT_LENGTH]))
}

/// Returns the number of a place.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn place<'call>(
    place: &Place,
    js: Js<'call>,
    []: [Value<'call>; 0],
) -> Result<Value<'call>> {
    js.number(place.number as f64)
}
