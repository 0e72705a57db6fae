use std::{sync::Arc, time::Duration};

use randflake::{Layout, RawParts, Reach, Result, Snowflake};

use crate::{
    arguments,
    clock::InjectedClock,
    generator::{self, Generator, NodeClock, configured},
    layout,
    leased::{EnvironmentClock, Leases},
    raw::{Js, Value},
};

impl NodeClock<Snowflake<Self>> for InjectedClock {
    fn fill(flake: &Snowflake<Self>, ids: Value<'_>) -> Result<()> {
        generator::fill_by_copy(ids, |own| flake.fill_i64(own))
    }
}

impl<C: NodeClock<Self>> Generator for Snowflake<C> {
    #[inline]
    fn generate(&self) -> Result<i64> {
        self.generate().map(u64::cast_signed)
    }

    fn fill(&self, ids: Value<'_>) -> Result<()> {
        C::fill(self, ids)
    }

    fn check_fill(&self, count: usize) -> Result<()> {
        self.check_fill(count, Reach::Lease)
    }

    fn ready_in(&self) -> Result<Duration> {
        self.ready_in()
    }

    fn node_ids(&self) -> Vec<u32> {
        self.node_ids().to_vec()
    }

    fn lease<'call>(&self, js: Js<'call>) -> Result<Value<'call>> {
        generator::lease_object(js, self.lease())
    }

    fn extend_lease(&self, end_exclusive: i64) -> Result<()> {
        self.extend_lease(end_exclusive)
    }

    fn close(&self) {
        self.close();
    }
}

/// A generator whose ids are read by their layout.
pub(crate) trait Reading: Generator {
    fn inspect(&self, raw: u64) -> Result<RawParts>;
}

impl<C: NodeClock<Self>> Reading for Snowflake<C> {
    fn inspect(&self, raw: u64) -> Result<RawParts> {
        self.inspect(raw)
    }
}

/// Makes a generator of a layout: an object with its functions.
pub(crate) fn create<'call>(
    (layout, leases): &(Layout, Arc<Leases>),
    js: Js<'call>,
    [node_ids, options]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    // Who has no node ids to choose from needs to name none.
    let node_ids = if layout.node_bits() == 0 && node_ids.is_undefined() {
        Vec::new()
    } else {
        arguments::node_ids(node_ids, layout)?
    };
    let options = arguments::options(options, arguments::SNOWFLAKE_OPTIONS)?;
    let builder = configured!(Snowflake::builder(*layout).node_ids(node_ids), options);
    match options.clock {
        None => {
            let clock = EnvironmentClock::new(leases);
            let flake = Arc::new(builder.clock(clock).build()?);
            let object = functions(js, &flake)?;
            generator::add_async(js, object, &flake)?;
            Ok(object)
        }
        Some(clock) => functions(js, &Arc::from(builder.clock(clock).build()?)),
    }
}

pub(crate) fn functions<'call, G: Reading>(js: Js<'call>, flake: &Arc<G>) -> Result<Value<'call>> {
    let object = generator::generating(js, flake)?;
    object.set(c"inspect", js.function(c"inspect", Arc::clone(flake), inspect::<G>)?)?;
    Ok(object)
}

fn inspect<'call, G: Reading>(
    flake: &G,
    js: Js<'call>,
    [id, parts]: [Value<'call>; 2],
) -> Result<Value<'call>> {
    layout::write_parts(flake.inspect(arguments::raw_or_signed(id)?)?, parts)?;
    js.undefined()
}
