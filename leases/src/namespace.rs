//! A namespace of a store, its bounds, and what the store keeps about it.

use std::{fmt, str::FromStr};

use randflake::{
    Error, ErrorKind, Layout, Result, Secret,
    bindings::{layout_of_fingerprint, quoted},
};
use zeroize::Zeroizing;

use crate::{node_ranges::NodeRanges, token::random_bytes};

/// Version of what a store keeps about a namespace.
pub const STORED_FORMAT: u32 = 2;

/// What a namespace of tickets has in place of a layout.
pub(crate) const TICKETS: &str = "tickets";

/// The leases of one secret or one layout in a store. A store can hold several namespaces, whose
/// node ids are independent of each other.
///
/// These limits apply when the namespace is created; afterwards the store's saved limits apply.
///
/// ```
/// use randflake::Secret;
/// use randflake_leases::Namespace;
///
/// let orders = Namespace::new("orders", &Secret::random())?.max_ttl(600)?;
/// assert_eq!((orders.name(), orders.limits().max_ttl), ("orders", 600));
/// # Ok::<(), randflake_leases::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Namespace {
    name: String,
    owner: Owner,
    limits: Limits,
}

/// Whose node ids a namespace leases.
#[derive(Clone, Debug)]
enum Owner {
    /// Generators with this secret and Randflake's layout.
    Secret(Secret),
    /// Generators of this layout, without a secret.
    Layout(Layout),
    /// Nobody's: it has counters and no node ids.
    Tickets,
    /// Unknown: an operator takes whichever namespace has the name, leases nothing and creates
    /// nothing.
    Operator,
}

/// The bounds of a namespace, kept in the store.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Limits {
    /// Longest lease, in seconds.
    pub max_ttl: u32,
    /// Largest difference between two clocks, in seconds; a lease is at least six times as long.
    pub max_skew: u32,
    /// The node ids that are leased. An operator may [change](crate::operator::set_node_ids) them.
    pub node_ids: NodeRanges,
}

impl Namespace {
    /// Longest name, in bytes.
    pub const MAX_NAME: usize = 200;

    /// Longest lease, in seconds, unless [`Namespace::max_ttl`] sets another.
    pub const MAX_TTL: u32 = 300;

    /// Names a namespace: 1 to 200 bytes, no control characters, no spaces or quotes around it. Leases last 300 seconds at most,
    /// clocks may differ by 5 seconds, and all 131 072 node ids can be leased.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: another name.
    pub fn new(name: impl Into<String>, secret: &Secret) -> Result<Self> {
        let name = name.into();
        if name.eq_ignore_ascii_case(&Zeroizing::new(secret.to_hex())) {
            return Err(Error::invalid_argument(
                "this namespace's name is its secret, which must not be public; use another name",
            ));
        }
        Self::named(name, Owner::Secret(secret.clone()))
    }

    /// Names a namespace for unencrypted ids of a layout, with the defaults of [`Namespace::new`].
    /// All node ids of the layout can be leased, or the lowest 131 072. There is no secret to compare.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: another name, or a layout without node ids.
    ///
    /// ```
    /// use randflake::Layout;
    /// use randflake_leases::Namespace;
    ///
    /// let posts = Namespace::for_layout("posts", Layout::twitter())?;
    /// assert_eq!(posts.limits().node_ids.to_string(), "0-1023");
    /// assert!(posts.node_ids("0-6,8-1024".parse()?).is_err());
    /// assert!(Namespace::for_layout("posts", Layout::simpleflake()).is_err());
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn for_layout(name: impl Into<String>, layout: Layout) -> Result<Self> {
        if layout.node_bits() == 0 {
            return Err(Error::invalid_argument(format!(
                "the layout {} has no node ids, so there is nothing to lease: its ids are unique \
                 within one process only; use a layout with node ids",
                layout.name()
            )));
        }
        Self::named(name.into(), Owner::Layout(layout))
    }

    /// Names a namespace of counters, from which tickets are drawn. It has no secret, no layout and no
    /// node ids, and nothing is leased from it.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: another name.
    ///
    /// ```
    /// use randflake_leases::{LeaseStore, MemoryStore, Namespace, Swap, Token};
    ///
    /// let tickets = Namespace::for_tickets("tickets")?;
    /// assert_eq!(tickets.layout(), "tickets");
    /// let swap = Swap { token: Token::random(), counter: "invoices".to_owned(), change: None };
    /// let reply = MemoryStore::new(tickets).swap(&swap)?;
    /// assert_eq!(reply.outcome.value, None);
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn for_tickets(name: impl Into<String>) -> Result<Self> {
        let namespace = Self::named(name.into(), Owner::Tickets)?;
        let limits = Limits { node_ids: NodeRanges::up_to(0), ..namespace.limits };
        Ok(Self { limits, ..namespace })
    }

    /// Names an existing namespace of any secret or layout: enough to
    /// [list](crate::LeaseStore::list), [fence](crate::LeaseStore::fence),
    /// [repair](crate::LeaseStore::repair) and [release](crate::LeaseStore::release_dead), but not
    /// to lease from it or to create it.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: another name.
    ///
    /// ```
    /// use randflake::Secret;
    /// use randflake_leases::{Fence, LeaseStore, MemoryStore, Namespace, Token};
    ///
    /// let mut store = MemoryStore::new(Namespace::new("orders", &Secret::random())?);
    /// let mut operator = store.namespace(Namespace::for_operator("orders")?);
    /// let fence = Fence { token: Token::random() };
    /// assert_eq!(operator.fence(&fence).unwrap_err().code(), "STORE_NOT_INITIALIZED");
    /// assert!(store.fence(&fence).is_ok(), "makes it");
    /// assert!(operator.fence(&fence).is_ok());
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn for_operator(name: impl Into<String>) -> Result<Self> {
        Self::named(name.into(), Owner::Operator)
    }

    fn named(name: String, owner: Owner) -> Result<Self> {
        // A line end or quotes left over from a settings file would name a different namespace.
        let is_quoted = name.starts_with(['\'', '"']) && name.ends_with(['\'', '"']);
        let is_bare = name.trim() == name && !is_quoted;
        let fits = (1..=Self::MAX_NAME).contains(&name.len());
        if !fits || !is_bare || name.chars().any(char::is_control) {
            return Err(Error::invalid_argument(format!(
                "a namespace's name must have 1 to {} bytes, no control characters, and no spaces or \
                 quotes around it, got {}",
                Self::MAX_NAME,
                quoted(&name)
            )));
        }
        let node_ids = NodeRanges::up_to(largest_node_id(&owner.layout()));
        let limits = Limits { max_ttl: Self::MAX_TTL, max_skew: 5, node_ids };
        Ok(Self { name, owner, limits })
    }

    /// Sets the longest lease, 1 to 86 400 seconds and at least six times the largest skew. After
    /// a [fence](crate::LeaseStore::fence) nothing is granted for that long.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    pub fn max_ttl(self, seconds: u32) -> Result<Self> {
        self.limited(|limits| limits.max_ttl = seconds)
    }

    /// Sets how many seconds clocks may differ, 0 to a sixth of the longest lease.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    pub fn max_skew(self, seconds: u32) -> Result<Self> {
        self.limited(|limits| limits.max_skew = seconds)
    }

    /// Sets [`max_ttl`](Self::max_ttl) and [`max_skew`](Self::max_skew) at once: if set one after
    /// the other, the first would have to fit the old value of the second.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: out of range.
    ///
    /// ```
    /// # use randflake::Secret;
    /// # use randflake_leases::Namespace;
    /// let namespace = Namespace::new("orders", &Secret::random())?;
    /// let patient = namespace.max_ttl_and_skew(3600, 600)?;
    /// assert_eq!((patient.limits().max_ttl, patient.limits().max_skew), (3600, 600));
    /// assert!(patient.max_ttl_and_skew(6, 2).is_err());
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn max_ttl_and_skew(self, max_ttl: u32, max_skew: u32) -> Result<Self> {
        self.limited(|limits| (limits.max_ttl, limits.max_skew) = (max_ttl, max_skew))
    }

    /// Sets which node ids are leased; by default 0 to 131 071 (or to the layout's largest). You
    /// can assign the others to generators yourself.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT`: above the layout's largest node id.
    ///
    /// ```
    /// # use randflake::Secret;
    /// # use randflake_leases::Namespace;
    /// let orders = Namespace::new("orders", &Secret::random())?.node_ids("0-6,8-1023".parse()?)?;
    /// assert!(!orders.limits().node_ids.contains(7));
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    pub fn node_ids(self, node_ids: NodeRanges) -> Result<Self> {
        self.limited(|limits| limits.node_ids = node_ids)
    }

    /// Takes over the limits of a namespace that this one replaces and whose leases may still be
    /// running.
    pub(crate) fn replace(&mut self, Limits { max_ttl, max_skew, node_ids }: Limits) {
        self.limits.node_ids = node_ids;
        self.limits.max_ttl = self.limits.max_ttl.max(max_ttl);
        self.limits.max_skew = self.limits.max_skew.max(max_skew);
    }

    fn limited(mut self, change: impl FnOnce(&mut Limits)) -> Result<Self> {
        change(&mut self.limits);
        self.limits.check(&self.owner.layout())?;
        Ok(self)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the limits that this namespace gets if it is created now.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the text by which a store recognises the layout: each layout has its own width of
    /// node ids.
    ///
    /// ```
    /// # use randflake::Secret;
    /// # use randflake_leases::Namespace;
    /// let orders = Namespace::new("orders", &Secret::random())?;
    /// assert_eq!(orders.layout(), "1730000000:30:17:17");
    /// # Ok::<(), randflake_leases::Error>(())
    /// ```
    #[must_use]
    pub fn layout(&self) -> String {
        match self.owner {
            Owner::Tickets => TICKETS.to_owned(),
            _ => self.owner.layout().fingerprint(),
        }
    }

    /// Returns the fingerprint by which a store recognises the secret: the first eight bytes of
    /// HMAC-SHA256 over `randflake key_check v1` and the salt, with the secret as its key, or with
    /// zeros if there is no secret.
    ///
    /// # Panics
    ///
    /// Never: every secret is a key.
    #[must_use]
    pub fn key_check(&self, salt: &[u8; 16]) -> [u8; 8] {
        let message: [&[u8]; 2] = [b"randflake key_check v1", salt];
        let check = match &self.owner {
            Owner::Secret(secret) => secret.hmac(&message),
            Owner::Layout(_) | Owner::Tickets | Owner::Operator => {
                Secret::from_bytes(&[0; Secret::BYTES]).expect("16 bytes").hmac(&message)
            }
        };
        *check.first_chunk().expect("32 bytes")
    }

    /// Checks that the store's namespace of this name is this one.
    ///
    /// # Errors
    ///
    /// [`SecretMismatch`](ErrorKind::SecretMismatch): it belongs to another secret.
    /// `INVALID_ARGUMENT`: it was created for another layout, or by another version, or is damaged.
    pub fn check(&self, metadata: &NamespaceMetadata) -> Result<()> {
        let name = &self.name;
        if metadata.format != STORED_FORMAT {
            return Err(Error::invalid_argument(format!(
                "namespace {name:?} of this store has the format {}, but this version supports \
                 {STORED_FORMAT}: use the version that created it, or create a new namespace in a \
                 separate store",
                metadata.format
            )));
        }
        let Limits { max_ttl, max_skew, .. } = metadata.limits;
        if !metadata.limits.have_possible_times() {
            return Err(Error::invalid_argument(format!(
                "namespace {name:?} of this store is damaged: its longest lease is {max_ttl} seconds, \
                 with a skew of {max_skew}, which no namespace has; restore the store, and fence it"
            )));
        }
        if self.is_for_operator() {
            return Ok(());
        }
        // Before the secret: a namespace of another layout has no secret, or a different one.
        let layout = self.layout();
        if (metadata.layout == TICKETS) != (layout == TICKETS) {
            let (has, asked) =
                if layout == TICKETS { ("leases", "tickets") } else { ("tickets", "leases") };
            return Err(Error::invalid_argument(format!(
                "namespace {name:?} of this store has {has}, but {asked} were requested; name \
                 another namespace for {asked}"
            )));
        }
        if metadata.layout != layout {
            return Err(Error::invalid_argument(format!(
                "namespace {name:?} of this store has the layout {}, not {}; use that one, or name \
                 another namespace",
                shown(&metadata.layout),
                shown(&layout)
            )));
        }
        if metadata.key_check != self.key_check(&metadata.salt) {
            return Err(Error::new(
                ErrorKind::SecretMismatch,
                format!(
                    "namespace {name:?} of this store belongs to another secret; do not mix ids \
                     made with two secrets in one column: use the secret of this namespace, or \
                     name another namespace for the other column"
                ),
            ));
        }
        Ok(())
    }
}

/// How to create a missing namespace. Neither mode changes one that exists.
///
/// There is no default, because an empty store may be new or may have lost everything, and after a
/// loss `New` grants node ids that others still hold. Run init once, when you set up a store, and
/// never as part of each start or deploy.
///
/// ```
/// use randflake_leases::InitMode;
///
/// assert_eq!("quarantine".parse(), Ok(InitMode::Quarantine));
/// let error = "".parse::<InitMode>().unwrap_err();
/// assert!(error.to_string().starts_with("say how to create the namespace: `new` if"));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum InitMode {
    /// The store has never had this namespace: it grants at once.
    New,
    /// The store may have had this namespace and lost it, as after a restart without its data, or
    /// you cannot tell: it grants nothing until the longest lease plus the largest skew has passed,
    /// so that every lease that may be running has ended.
    Quarantine,
}

impl FromStr for InitMode {
    type Err = Error;

    /// Takes `new` and `quarantine`. Any other text is an `INVALID_ARGUMENT` that explains both.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "new" => Ok(Self::New),
            "quarantine" => Ok(Self::Quarantine),
            _ => Err(Error::invalid_argument(
                "say how to create the namespace: `new` if this store has never had it, or \
                 `quarantine` if it may have lost it, or if you cannot tell: then it grants \
                 nothing until every earlier lease has ended; never use `new` on each start or \
                 deploy, because ids repeat if the store has lost its data",
            )),
        }
    }
}

impl Namespace {
    /// Makes the error for a store without this namespace.
    pub(crate) fn not_initialized(&self, store: impl fmt::Display) -> Error {
        let (verb, others, if_running) = if matches!(self.owner, Owner::Tickets) {
            (
                "tickets",
                "init_tickets in Python, initTickets in Node.js",
                "numbers of it were handed out",
            )
        } else {
            (
                "lease",
                "init_store in Python, initStore in Node.js, init in Rust",
                "leases of it may be running",
            )
        };
        Error::new(
            ErrorKind::StoreNotInitialized,
            format!(
                "{store} has no namespace {0:?}; create it once: `randflake {verb} init \
                 --namespace {0} --new` if it has never existed; replace --new with --quarantine \
                 if {if_running}, as after a restart without its data, or if you cannot tell; or \
                 call {others}",
                self.name
            ),
        )
    }

    /// Makes the error for something that is no longer where it was: a file, or this namespace.
    #[cold]
    pub(crate) fn replaced(&self, which: fmt::Arguments<'_>, what: &str) -> Error {
        let (was, now) = if self.is_for_tickets() {
            (
                "numbers were drawn from",
                format!(
                    "put it back; or fence each counter of the new {what} above every number that was \
                     handed out, and then start this process again"
                ),
            )
        } else {
            let now =
                format!("once those leases have ended, node ids are leased from the new {what}");
            ("leases were granted from", now)
        };
        Error::new(
            ErrorKind::StoreReplaced,
            format!(
                "{which} is no longer the {what} that {was}: it was removed or replaced while in use; \
                 {now}"
            ),
        )
    }

    /// Whether only the name is known.
    pub(crate) fn is_for_operator(&self) -> bool {
        matches!(self.owner, Owner::Operator)
    }

    /// Whether it has counters and no node ids.
    pub(crate) fn is_for_tickets(&self) -> bool {
        matches!(self.owner, Owner::Tickets)
    }

    /// Refuses to lease from an operator's namespace, or from a namespace of tickets.
    pub(crate) fn may_lease(&self) -> Result<()> {
        if self.is_for_operator() {
            return Err(Error::invalid_argument(
                "an operator's namespace has no secret and leases nothing; open it with its secret \
                 or layout",
            ));
        }
        if self.is_for_tickets() {
            return Err(Error::invalid_argument(
                "a namespace of tickets has no node ids; use another namespace for leases",
            ));
        }
        Ok(())
    }

    /// Refuses counters in a namespace of leases.
    pub(crate) fn may_count(&self) -> Result<()> {
        if self.is_for_tickets() {
            return Ok(());
        }
        Err(Error::invalid_argument(
            "only a namespace of tickets has counters: open the store with Namespace::for_tickets",
        ))
    }

    /// Refuses to create an operator's namespace.
    pub(crate) fn may_create(&self) -> Result<()> {
        if self.is_for_operator() {
            return Err(Error::new(
                ErrorKind::StoreNotInitialized,
                format!(
                    "there is no namespace {:?} in this store; check the name and the store",
                    self.name
                ),
            ));
        }
        Ok(())
    }
}

impl Owner {
    /// Returns the layout. If the namespace has none, returns Randflake's, which has every node id
    /// that a store leases.
    fn layout(&self) -> Layout {
        match self {
            Self::Secret(_) | Self::Tickets | Self::Operator => Layout::randflake(),
            Self::Layout(layout) => *layout,
        }
    }
}

impl Limits {
    /// Returns the last second at which a lease granted by a correct clock may end.
    pub(crate) fn furthest(self, now: i64) -> i64 {
        now.saturating_add((self.max_ttl + self.max_skew).into())
    }

    fn have_possible_times(self) -> bool {
        (1..=86_400).contains(&self.max_ttl) && self.max_skew <= self.max_ttl / 6
    }

    fn check(self, layout: &Layout) -> Result<()> {
        let Self { max_ttl, max_skew, node_ids } = self;
        if !self.have_possible_times() {
            return Err(Error::invalid_argument(format!(
                "the longest lease must last 1 to 86400 seconds and at least six times the largest \
                 skew, got {max_ttl} with a skew of {max_skew}"
            )));
        }
        check_node_ids(node_ids, largest_node_id(layout))
    }
}

fn check_node_ids(node_ids: NodeRanges, largest: u32) -> Result<()> {
    if node_ids.last() > largest {
        return Err(Error::invalid_argument(format!(
            "the layout has the node ids 0 to {largest}, got {node_ids}"
        )));
    }
    Ok(())
}

/// Returns the largest node id that a store leases. If a layout has more node ids than Randflake's,
/// it leases only as many as Randflake has, because stores save them as Randflake's.
fn largest_node_id(layout: &Layout) -> u32 {
    layout.max_node_id().min(randflake::layout::MAX_NODE_ID)
}

/// Returns the same for a layout of which only the [fingerprint](Layout::fingerprint) is known.
fn largest_of(layout: &str) -> u32 {
    let bits = layout.rsplit([':', ',']).find_map(|field| field.strip_prefix("node")?.parse().ok());
    let largest = bits.and_then(|bits| 1_u32.checked_shl(bits)).map_or(u32::MAX, |count| count - 1);
    largest.min(randflake::layout::MAX_NODE_ID)
}

/// Returns the text of a layout of which only the [fingerprint](Layout::fingerprint) is known.
fn shown(fingerprint: &str) -> String {
    let layout = layout_of_fingerprint(fingerprint);
    layout.map_or_else(|| fingerprint.to_owned(), |layout| layout.to_string())
}

/// What a store saves about a namespace when it is created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamespaceMetadata {
    /// Version of what the store keeps about a namespace; another one than this crate writes is
    /// refused.
    pub format: u32,
    /// The bounds.
    pub limits: Limits,
    /// See [`Namespace::layout`].
    pub layout: String,
    /// Random; an input of [`Namespace::key_check`].
    pub salt: [u8; 16],
    /// See [`Namespace::key_check`].
    pub key_check: [u8; 8],
}

impl NamespaceMetadata {
    /// Refuses node ids that the namespace cannot lease.
    pub(crate) fn check_node_ids(&self, node_ids: NodeRanges) -> Result<()> {
        if self.layout == TICKETS {
            return Err(Error::invalid_argument(
                "a namespace of tickets has counters, and no node ids to lease",
            ));
        }
        check_node_ids(node_ids, largest_of(&self.layout))
    }

    /// Returns what a store saves if it creates the namespace now.
    #[must_use]
    pub fn new(namespace: &Namespace) -> Self {
        let salt = random_bytes();
        Self {
            format: STORED_FORMAT,
            limits: namespace.limits,
            layout: namespace.layout(),
            salt,
            key_check: namespace.key_check(&salt),
        }
    }
}
