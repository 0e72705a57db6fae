//! Leases of node ids for generators in other languages, straight from the store. No instance
//! remembers a lease: the name that a client has for it contains everything that a renewal needs.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use hyper::{StatusCode, body::Incoming};
use randflake::{
    Clock as _, Error, ErrorKind, Layout, Result, SystemClock, bindings::utc_second, layout,
};
use randflake_leases::{
    Acquire, Acquired, LeaseStore, Location, Namespace, NodeLease, Note, Release, Renew, Renewed,
    Reply, Request, Token, bindings::check_layout, window,
};
use tokio::{
    sync::{Mutex, OwnedMutexGuard, oneshot},
    task::{JoinError, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use super::{
    answer::{Refusal, Response, written},
    limits::Limits,
    request::Fields,
};

/// The most node ids of one lease: a client names all of them to renew it.
pub(super) const MOST_NODES: u32 = 64;

/// Longest lease that can be asked for, in seconds. The namespace may allow less.
pub(super) const LONGEST_TTL: u32 = 86_400;

/// How often a store is asked for other node ids if all that it tried are leased.
const TRIES: u32 = 3;

/// The time without a request after which the store may close its connection.
const REST_AFTER: Duration = Duration::from_secs(5);

/// The store, which does one operation at a time.
pub(super) struct Leases {
    store: Arc<Mutex<OpenStore>>,
}

struct OpenStore {
    location: Location,
    namespace: Namespace,
    /// Of the ids that clients make.
    layout: Layout,
    /// Opened with the first request, and only once: it remembers which store it was.
    store: Option<Box<dyn LeaseStore>>,
    /// No lease that was granted here ends later.
    latest_end: i64,
    /// The earliest start of leases: no lease that an earlier store granted through this process
    /// ends later, however slow its holder's clock is.
    floor: i64,
    /// How many operations were done.
    operations: u64,
}

/// What a client calls its lease: the token, the first second of the lease, and the node ids. The
/// token proves that the client is the holder.
struct LeaseName {
    token: Token,
    start: i64,
    node_ids: Vec<u32>,
}

impl Leases {
    pub(super) fn new(location: Location, namespace: Namespace, layout: Layout) -> Self {
        let open = OpenStore {
            location,
            namespace,
            layout,
            store: None,
            latest_end: 0,
            floor: 0,
            operations: 0,
        };
        Self { store: Arc::new(Mutex::new(open)) }
    }

    /// `POST /v1/leases`.
    pub(super) async fn acquire(
        &self,
        body: Incoming,
        limits: &Limits,
    ) -> Result<Response, Refusal> {
        let since = Instant::now();
        let fields = Fields::read(body, &["count", "ttl_seconds", "now", "note"]).await?;
        let want = fields.bounded("count", 1, MOST_NODES)?.unwrap_or(1);
        let ttl = fields.bounded("ttl_seconds", 1, LONGEST_TTL)?.unwrap_or(limits.ttl);
        let clock = ClientClock::of(&fields, since)?;
        let note = fields.text("note")?.map_or_else(Note::of_process, Note::new);
        let mut store = self.locked(limits).await?;
        let (sender, receiver) = oneshot::channel();
        let work = spawn_blocking(move || {
            let granted = store.acquire(want, ttl, &clock, note);
            // The client has gone away: nobody will stamp with these node ids.
            if let Err(Ok((name, _))) = sender.send(granted) {
                let _ = store.release(&name, name.start);
            }
        });
        let Ok(granted) = receiver.await else {
            return Err(work.await.map_or_else(|error| panicked(&error), |()| ended()).into());
        };
        let (name, end_exclusive) = granted.map_err(|e| clock.judge(e))?;
        self.rest_soon();
        let mut response = written(lease_json(&name, &name.node_ids, end_exclusive));
        *response.status_mut() = StatusCode::CREATED;
        Ok(response)
    }

    /// `POST /v1/leases/{lease}/renew`.
    pub(super) async fn renew(
        &self,
        name: &str,
        body: Incoming,
        limits: &Limits,
    ) -> Result<Response, Refusal> {
        let (since, name) = (Instant::now(), name.parse::<LeaseName>()?);
        let fields = Fields::read(body, &["ttl_seconds", "now", "next_token"]).await?;
        let ttl = fields.bounded("ttl_seconds", 1, LONGEST_TTL)?.unwrap_or(limits.ttl);
        let clock = ClientClock::of(&fields, since)?;
        let next = fields.text("next_token")?.map(next_token).transpose()?;
        let mut store = self.locked(limits).await?;
        let renewed = spawn_blocking(move || {
            let (node_ids, end_exclusive) = store.renew(&name, next, ttl, &clock)?;
            let name = LeaseName { token: next.unwrap_or(name.token), ..name };
            Ok(lease_json(&name, &node_ids, end_exclusive))
        });
        let json = renewed.await.map_err(|error| panicked(&error))?.map_err(|e| clock.judge(e))?;
        self.rest_soon();
        Ok(written(json))
    }

    /// `POST /v1/leases/{lease}/release`.
    pub(super) async fn release(
        &self,
        name: &str,
        body: Incoming,
        limits: &Limits,
    ) -> Result<Response, Refusal> {
        let name = name.parse::<LeaseName>()?;
        let fields = Fields::read(body, &["used_until"]).await?;
        // Without it the end stays where it is.
        let used_until = fields.integer("used_until")?.unwrap_or(i64::MAX);
        let mut store = self.locked(limits).await?;
        let released = spawn_blocking(move || store.release(&name, used_until));
        let count = released.await.map_err(|error| panicked(&error))??;
        self.rest_soon();
        Ok(written(format!("{{\"released\":{count}}}\n")))
    }

    /// Waits for the store, which may be busy with other requests.
    async fn locked(&self, limits: &Limits) -> Result<OwnedMutexGuard<OpenStore>, Refusal> {
        let patience = limits.max_wait.max(Duration::from_millis(100));
        let store = timeout(patience, Arc::clone(&self.store).lock_owned()).await;
        store.map_err(|_| {
            let why = "the store is busy with earlier requests; try again";
            Error::new(ErrorKind::StoreUnavailable, why).into()
        })
    }

    /// Makes the store close its connection if no request follows.
    fn rest_soon(&self) {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let operations = store.lock().await.operations;
            sleep(REST_AFTER).await;
            let mut store = store.lock_owned().await;
            if store.operations == operations {
                spawn_blocking(move || {
                    if let Some(store) = &mut store.store {
                        store.rest();
                    }
                });
            }
        });
    }
}

impl OpenStore {
    fn acquire(
        &mut self,
        want: u32,
        ttl: u32,
        clock: &ClientClock,
        note: Note,
    ) -> Result<(LeaseName, i64)> {
        check_layout(&self.layout, want, ttl)?;
        let mut free_at = None;
        for _ in 0..TRIES {
            let client_now = clock.now()?;
            let request = Acquire { token: Token::random(), want, ttl, client_now, note };
            let (now, leases) = match self.run(&request, |store| store.acquire(&request))? {
                Acquired::Granted { now, leases, .. } => (now, leases),
                Acquired::Busy { now, free_at: next } => {
                    free_at = next.map(|next| (now, next)).or(free_at);
                    continue;
                }
                Acquired::Quarantined { now, until } => return Err(quarantined(now, until)),
                Acquired::ClockSkew { store_now, max_skew } => {
                    return Err(skewed(client_now, store_now, max_skew));
                }
            };
            let token = request.token;
            let node_ids: Vec<u32> = leases.iter().map(|lease| lease.node_id).collect();
            let over = now.max(self.floor);
            let Some(lease) = window(&leases).filter(|lease| lease.end_exclusive() > over) else {
                let name = LeaseName { token, start: 0, node_ids };
                let _ = self.release(&name, 0);
                continue;
            };
            self.granted(&leases);
            let start = lease.start().max(self.floor);
            let end_exclusive = self.within_lifetime(lease.end_exclusive());
            return Ok((LeaseName { token, start, node_ids }, end_exclusive));
        }
        Err(exhausted(free_at))
    }

    /// Returns the node ids that the client still has, and until when.
    fn renew(
        &mut self,
        name: &LeaseName,
        next: Option<Token>,
        ttl: u32,
        clock: &ClientClock,
    ) -> Result<(Vec<u32>, i64)> {
        check_layout(&self.layout, 1, ttl)?;
        let client_now = clock.now()?;
        let LeaseName { token, ref node_ids, .. } = *name;
        let request = Renew { token, node_ids: node_ids.clone(), ttl, client_now, next };
        let renewed = self.run(&request, |store| store.renew(&request));
        if let (Some(next), Some(store)) = (next, &mut self.store) {
            store.forget(next);
        }
        let leases = match renewed? {
            Renewed::Extended { leases, .. } => leases,
            Renewed::Lost { .. } => vec![],
            Renewed::ClockSkew { store_now, max_skew } => {
                return Err(skewed(client_now, store_now, max_skew));
            }
        };
        // A delayed request can make the store grant the token again, from the end of its lease:
        // that is another lease, and this client may not stamp the seconds in between.
        let leases: Vec<NodeLease> =
            leases.into_iter().filter(|lease| lease.start <= name.start).collect();
        let Some(end_exclusive) = leases.iter().map(|lease| lease.end_exclusive).min() else {
            return Err(lost(name));
        };
        self.granted(&leases);
        let node_ids = leases.iter().map(|lease| lease.node_id).collect();
        Ok((node_ids, self.within_lifetime(end_exclusive)))
    }

    fn release(&mut self, name: &LeaseName, used_until: i64) -> Result<u32> {
        let request = Release { token: name.token, node_ids: name.node_ids.clone(), used_until };
        Ok(self.run(&request, |store| store.release(&request))?.count)
    }

    /// Returns the end of a lease, or that of the layout before it.
    fn within_lifetime(&self, end_exclusive: i64) -> i64 {
        end_exclusive.min(layout::LIFETIME_END).min(self.layout.ends_at().div_euclid(1000))
    }

    fn granted(&mut self, leases: &[NodeLease]) {
        let latest = leases.iter().map(|lease| lease.end_exclusive).max().unwrap_or(0);
        self.latest_end = self.latest_end.max(latest);
    }

    /// Sends a request to the store, and checks that the answer is to it.
    fn run<R: Request>(
        &mut self,
        request: &R,
        send: impl Fn(&mut dyn LeaseStore) -> Result<Reply<R::Outcome>>,
    ) -> Result<R::Outcome> {
        self.operations += 1;
        let store = match &mut self.store {
            Some(store) => store,
            closed => closed.insert(self.location.open(&self.namespace)?),
        };
        let mut reply = send(&mut **store);
        let is_replaced = |error: &Error| error.kind() == ErrorKind::StoreReplaced;
        if reply.as_ref().is_err_and(is_replaced) && SystemClock.unix_seconds()? >= self.latest_end
        {
            // As a generator does once its lease has ended.
            self.floor = self.latest_end;
            store.accept_another();
            reply = send(&mut **store);
        }
        // The next request for this lease may reach another instance.
        store.forget(request.token());
        reply?.answer_to(request.token(), R::OPERATION).inspect_err(|_| store.discard())
    }
}

/// The clock that the client stamps with.
#[derive(Clone, Copy)]
struct ClientClock {
    /// The time that it showed when the request was sent; `None` if the client does not say.
    sent: Option<i64>,
    since: Instant,
}

impl ClientClock {
    fn of(fields: &Fields, since: Instant) -> Result<Self, Refusal> {
        Ok(Self { sent: fields.integer("now")?, since })
    }

    fn now(&self) -> Result<i64> {
        let Some(sent) = self.sent else { return SystemClock.unix_seconds() };
        // The request may have waited for the store.
        let waited = i64::try_from(self.since.elapsed().as_secs()).unwrap_or(0);
        Ok(sent.saturating_add(waited))
    }

    /// Says whose clock is wrong.
    fn judge(&self, error: Error) -> Refusal {
        let is_theirs = self.sent.is_some() && error.kind() == ErrorKind::ClockSkew;
        let refusal = Refusal::from(error);
        if is_theirs { refusal.with_status(StatusCode::CONFLICT) } else { refusal }
    }
}

fn lease_json(name: &LeaseName, node_ids: &[u32], end_exclusive: i64) -> String {
    let start = name.start;
    let mut json = format!("{{\"lease\":\"{name}\",\"node_ids\":[");
    for (index, node_id) in node_ids.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(json, "{comma}{node_id}");
    }
    let _ = writeln!(json, "],\"start\":{start},\"end_exclusive\":{end_exclusive}}}");
    json
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.token.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        write!(f, ".{}", self.start)?;
        for (index, node_id) in self.node_ids.iter().enumerate() {
            write!(f, "{}{node_id}", if index == 0 { '.' } else { '-' })?;
        }
        Ok(())
    }
}

impl FromStr for LeaseName {
    type Err = Error;

    /// Reads only what `Display` writes.
    fn from_str(text: &str) -> Result<Self> {
        let read = || {
            let mut parts = text.split('.');
            let (token, start, node_ids) = (parts.next()?, parts.next()?, parts.next()?);
            let token = read_token(token)?;
            let node_ids: Vec<u32> =
                node_ids.split('-').map(|id| id.parse().ok()).collect::<Option<_>>()?;
            let name = Self { token, start: start.parse().ok()?, node_ids };
            let is_sorted = name.node_ids.is_sorted_by(|one, other| one < other);
            let is_known = name.node_ids.iter().all(|id| *id <= layout::MAX_NODE_ID);
            let fits = name.node_ids.len() <= MOST_NODES as usize;
            (is_sorted && is_known && fits && name.to_string() == text).then_some(name)
        };
        read().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidLease,
                "not a lease: send the field `lease` of the answer to POST /v1/leases",
            )
        })
    }
}

/// Reads 32 hexadecimal digits; the caller must detect anything else in them.
fn read_token(text: &str) -> Option<Token> {
    let mut bytes = [0; 16];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(Token::from_bytes(bytes))
}

/// Reads the token that a lease has from now on.
fn next_token(text: &str) -> Result<Token> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    read_token(text).filter(|_| is_hex).ok_or_else(|| {
        Error::invalid_argument(
            "next_token must be 16 bytes of a good random source as 32 hexadecimal digits",
        )
    })
}

fn quarantined(now: i64, until: i64) -> Error {
    Error::new(
        ErrorKind::StoreQuarantined,
        format!(
            "the store may have lost leases, and grants new ones only from {}; existing leases can \
             be renewed",
            utc_second(until)
        ),
    )
    .with_retry_after(seconds(until - now))
}

fn exhausted(free_at: Option<(i64, i64)>) -> Error {
    let error = |text: String| Error::new(ErrorKind::NodesExhausted, text);
    match free_at {
        None => error("every node id that was tried is leased; try again".into()),
        Some((now, next)) => error(format!(
            "every node id is leased; the next one is free at {}, unless its holder renews it",
            utc_second(next)
        ))
        .with_retry_after(seconds(next - now)),
    }
}

fn skewed(client_now: i64, store_now: i64, max_skew: u32) -> Error {
    Error::new(
        ErrorKind::ClockSkew,
        format!(
            "the clock that ids are stamped with shows {} and the store's {}; they may differ by \
             at most {max_skew} seconds: correct the wrong one; if both are correct, the store \
             answered too late",
            utc_second(client_now),
            utc_second(store_now)
        ),
    )
}

fn lost(name: &LeaseName) -> Error {
    Error::new(
        ErrorKind::LeaseLost,
        format!(
            "this lease of the node ids {:?} is no longer held: it was released, or another holder \
             has them; use it to its end at most, and take another one",
            name.node_ids
        ),
    )
}

/// The runtime ends, and so does everything in progress.
fn ended() -> Error {
    Error::new(ErrorKind::Closed, "this server is shutting down")
}

fn panicked(error: &JoinError) -> Error {
    if error.is_panic() {
        return Error::new(ErrorKind::Internal, "an operation of the store has panicked");
    }
    ended()
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_leases_are_read_as_they_are_written() {
        let token = "00112233445566778899aabbccddeeff";
        for text in [format!("{token}.1763640000.0"), format!("{token}.1763640000.7-42-131071")] {
            let name: LeaseName = text.parse().expect("a name");
            assert_eq!((name.to_string(), name.start), (text, 1_763_640_000));
        }
        for text in [
            String::new(),
            token.to_owned(),
            format!("{token}.1763640000"),
            format!("{token}.1763640000."),
            format!("{token}.1763640000.7.8"),
            format!("{token}.1763640000.8-7"),
            format!("{token}.1763640000.7-7"),
            format!("{token}.1763640000.07"),
            format!("{token}.1763640000.131072"),
            format!("{token}.+1763640000.7"),
            format!("{}.1763640000.7", token.to_uppercase()),
            format!("{}.1763640000.7", &token[2..]),
            format!("{token}00.1763640000.7"),
            format!(
                "{token}.1763640000.{}",
                (0..65).map(|id| id.to_string()).collect::<Vec<_>>().join("-")
            ),
        ] {
            let error = text.parse::<LeaseName>().err().expect("no name");
            assert_eq!(error.kind(), ErrorKind::InvalidLease, "{text}");
            assert!(!error.to_string().contains(&token[..8]), "the token is a secret");
        }
    }
}
