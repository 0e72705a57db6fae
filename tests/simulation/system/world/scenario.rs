//! The faults of a seed, and how often they happen.

use super::*;

macro_rules! faults {
    ($($fault:ident,)*) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(in super::super) enum Fault {
            $($fault,)*
        }

        /// All of them; those before `Lost` are separate events.
        pub(in super::super) const FAULTS: &[Fault] = &[$(Fault::$fault,)*];
    };
}

faults! {
    Kill,
    End,
    Pause,
    Copy,
    Sleep,
    Reboot,
    ClockSteps,
    ClockDrifts,
    StoreClockSteps,
    Partition,
    BadNetwork,
    Outage,
    StorePauses,
    StoreRestarts,
    Restore,
    Empty,
    LinkFreezes,
    Failover,
    MasterPauses,
    Fence,
    ReleaseDead,
    Outsider,
    Repair,
    // Faults of single messages and calls.
    Lost,
    Doubled,
    Late,
    Swapped,
    StepInCall,
    TurnInCall,
    Burst,
}

/// The character of a seed: which faults there are, and how often.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct Scenario {
    pub(super) options: Options,
    pub(super) max_drift: u32,
    pub(super) nodes: u32,
    /// Clients' clocks may show anything; otherwise they stay within the largest skew.
    pub(super) wild_clients: bool,
    /// So may the store's clock. Then nothing may be lost, and operators confirm nothing.
    pub(super) wild_store: bool,
    pub(super) replicated: bool,
    /// Whether a grant counts only once the replica has it.
    pub(super) waits: bool,
    pub(super) faults: Vec<Fault>,
    /// Mean time between two faults.
    pub(super) every: i64,
    /// In how many of a thousand messages each of these happens.
    pub(super) lost: i64,
    pub(super) doubled: i64,
    pub(super) late: i64,
    pub(super) swapped: i64,
    /// In how many of a thousand calls each of these happens.
    pub(super) step_in_call: i64,
    pub(super) turn_in_call: i64,
    pub(super) burst: i64,
    /// Connections deliver a late answer to the next request.
    pub(super) dirty: bool,
    /// Every process has node id 0 manually assigned.
    pub(super) manual: bool,
    /// The store may lose what it has granted.
    pub(super) loses: bool,
    /// The kind of server, whose table each process changes itself; `None` if the server runs the
    /// rules.
    pub(super) engine: Option<Engine>,
    /// When the faults end.
    pub(super) until: i64,
}

impl Scenario {
    pub(super) fn new(random: &mut Random, layout: &Layout) -> Self {
        let ttl = random.pick(&[6, 12, 12, 18, 30, 60]);
        let skews: Vec<u32> = [0, 1, 2, 5].into_iter().filter(|skew| 6 * skew <= ttl).collect();
        let nodes = random.number(1, 8.min(layout.max_node_id() + 1));
        let node_count = random.pick(&[1, 1, 1, 2, 3]).min(nodes);
        let options = Options {
            node_count,
            ttl,
            max_skew: random.pick(&skews),
            acquire_timeout: Duration::from_secs(random.pick(&[1, 5, 10, 60])),
        };
        let wild_clients = random.happens(500);
        let wild_store = wild_clients && random.happens(400);
        let replicated = !wild_store && random.happens(400);
        let waits = random.happens(600);
        let scenario = Self {
            max_drift: random.pick(&[0, 1, 10, ttl / 3, ttl / 3]).min(ttl / 3),
            nodes,
            wild_clients,
            wild_store,
            replicated,
            waits,
            faults: Vec::new(),
            every: random.pick(&[1, 3, 10]) * SECOND,
            lost: random.pick(&[0, 20, 100]),
            doubled: random.pick(&[0, 20, 100]),
            late: random.pick(&[0, 10, 100]),
            swapped: random.pick(&[0, 0, 20]),
            step_in_call: if wild_clients { random.pick(&[0, 20]) } else { 0 },
            turn_in_call: random.pick(&[0, 100]),
            burst: random.pick(&[0, 50, 300]),
            dirty: random.happens(300),
            manual: nodes > 1 && random.happens(100),
            loses: !wild_store && !replicated && random.happens(600),
            engine: random.pick(&[None, Some(Engine::Postgres), Some(Engine::Redis)]),
            until: (i64::from(ttl) * random.between(8, 40)).clamp(60, 600) * SECOND,
            options,
        };
        let mut faults = FAULTS.to_vec();
        faults.retain(|fault| scenario.allows(*fault) && random.happens(450));
        Self { faults, ..scenario }
    }

    /// Whether the documentation, for the store and for operators, allows it along with the other
    /// faults.
    pub(super) fn allows(&self, fault: Fault) -> bool {
        match fault {
            Fault::ClockDrifts => self.wild_clients,
            // If a store may lose what it has granted, copies share more.
            Fault::Copy => self.engine.is_some() && !self.loses && (!self.replicated || self.waits),
            Fault::Restore | Fault::Empty => self.loses,
            Fault::LinkFreezes | Fault::Failover => self.replicated,
            // A master that was paused grants before it counts its replicas.
            Fault::MasterPauses => self.replicated && self.waits,
            Fault::StorePauses => !self.replicated || self.waits,
            Fault::Outage | Fault::StoreRestarts => true,
            Fault::ReleaseDead => !self.wild_store,
            // A failover could lose the change.
            Fault::Outsider => {
                self.nodes > 1 && !self.wild_store && !self.loses && !self.replicated
            }
            Fault::Repair => self.wild_store,
            fault => (fault as usize) < Fault::Lost as usize,
        }
    }
}
