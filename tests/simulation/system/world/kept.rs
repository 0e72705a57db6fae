//! The store as a server has it: either the rules themselves, or a table of texts, which the driver
//! of each process changes step by step, with every network fault between two steps.

use super::*;
use crate::{
    Acquire, Release, Released, Renew,
    clocks::at_boot,
    remote::{
        Engine, Exchange, Progress, Protocol, RemoteRequest, Response, Statement,
        table::Table,
        text::{Key, parse_node},
    },
};

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "there are few")]
pub(super) enum Kept {
    Rules(MemoryStore),
    Table(Table),
}

/// What goes to a server.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    Step(Step),
    Statement(Statement),
}

/// What comes back.
#[derive(Debug)]
pub(super) enum Said {
    Answer(Answer),
    Response(Result<Response>),
}

/// An operation in progress on a table.
#[derive(Debug)]
pub(super) enum Talk {
    Acquire(Exchange<Reply<Acquired>>),
    Renew(Exchange<Reply<Renewed>>),
    Release(Exchange<Reply<Released>>),
}

/// Requests that both kinds of store accept.
pub(super) trait Ask: RemoteRequest {
    fn of(&self, store: &mut MemoryStore) -> Result<Reply<Self::Outcome>>;
}

macro_rules! ask {
    ($($request:ident $operation:ident,)*) => {
        $(impl Ask for $request {
            fn of(&self, store: &mut MemoryStore) -> Result<Reply<Self::Outcome>> {
                store.$operation(self)
            }
        })*
    };
}

ask! {
    Acquire acquire,
    Renew renew,
    Release release,
    Fence fence,
    List list,
    ReleaseDead release_dead,
    SetNodeIds set_node_ids,
    Repair repair,
}

impl Kept {
    pub(super) fn new(
        namespace: &Namespace,
        engine: Option<Engine>,
        clock: SimulatedClock,
    ) -> Self {
        if engine.is_none() {
            return Self::Rules(MemoryStore::with_clock(namespace.clone(), clock));
        }
        Self::Table(Table::new(START, &NamespaceMetadata::new(namespace)))
    }

    /// Records that its namespace was created on this server.
    pub(super) fn begins_on(&mut self, server: &str) {
        if let Self::Table(table) = self {
            table.becomes(server, server.split(' ').next().expect("a word"));
        }
    }

    /// Returns a copy of its current contents, for a server with this clock.
    pub(super) fn copy(&self, clock: SimulatedClock) -> Self {
        match self {
            Self::Rules(store) => Self::Rules(store.copy(clock)),
            Self::Table(table) => Self::Table(table.clone()),
        }
    }

    /// Returns who holds a node id.
    pub(super) fn holder(&self, node_id: u32) -> Option<Token> {
        match self {
            Self::Rules(store) => store.holder(node_id),
            Self::Table(table) => {
                parse_node(table.texts.get(&Key::Node(node_id).to_string())?)?.token
            }
        }
    }
}

impl Said {
    /// The failure of this request.
    pub(super) fn failure(sent: &Sent, error: Error) -> Self {
        match sent {
            Sent::Step(step) => Self::Answer(failure(step, error)),
            Sent::Statement(_) => Self::Response(Err(error)),
        }
    }

    pub(super) fn copy(&self) -> Self {
        match self {
            Self::Answer(answer) => Self::Answer(copy(answer)),
            Self::Response(response) => Self::Response(response.clone()),
        }
    }
}

impl Talk {
    fn begin(protocol: &Protocol, step: &Step, now: i64) -> Self {
        match step {
            Step::Acquire(request) => Self::Acquire(protocol.begin(request, now)),
            Step::Renew(request) => Self::Renew(protocol.begin(request, now)),
            Step::Release(request) => Self::Release(protocol.begin(request, now)),
            other => unreachable!("{other:?} is for the generator"),
        }
    }

    /// Begins, or continues with a response, until the next statement or the end.
    fn go_on(&mut self, response: Option<Response>) -> Result<Progress<Answer>> {
        fn next<T>(
            exchange: &mut Exchange<T>,
            response: Option<Response>,
            answer: impl Fn(T) -> Answer,
        ) -> Result<Progress<Answer>> {
            let progress = match response {
                Some(response) => exchange.resume(response)?,
                None => exchange.start()?,
            };
            Ok(match progress {
                Progress::Run(statement) => Progress::Run(statement),
                Progress::Done(reply) => Progress::Done(answer(reply)),
            })
        }
        match self {
            Self::Acquire(it) => next(it, response, |reply| Answer::Acquired(Ok(reply))),
            Self::Renew(it) => next(it, response, |reply| Answer::Renewed(Ok(reply))),
            Self::Release(it) => next(it, response, |reply| Answer::Released(Ok(reply))),
        }
    }
}

impl<F: Ids> World<F> {
    /// Returns the driver of a new process, if the servers have tables.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        let engine = self.scenario.engine?;
        let is_weak = engine == Engine::Redis && self.scenario.replicated && !self.scenario.waits;
        Some(Protocol::new(self.namespace.clone(), engine).allow_weak_store(is_weak))
    }

    /// Begins an operation of a process on a table.
    pub(super) fn talk(&mut self, index: usize, step: &Step) {
        let process = &mut self.processes[index];
        let protocol = process.protocol.clone().expect("the servers have tables");
        let reading = self.machines[process.machine].reading(self.now);
        process.talk =
            Some(at_boot(reading.boot, || Talk::begin(&protocol, step, reading.second())));
        self.go_on(index, None);
    }

    pub(super) fn go_on(&mut self, index: usize, response: Option<Response>) {
        let process = &mut self.processes[index];
        let Some(mut talk) = process.talk.take() else { return };
        let reading = self.machines[process.machine].reading(self.now);
        match at_boot(reading.boot, || talk.go_on(response)) {
            Ok(Progress::Run(statement)) => {
                self.processes[index].talk = Some(talk);
                self.dispatch(index, Sent::Statement(statement));
            }
            Ok(Progress::Done(answer)) => self.give(index, answer),
            Err(error) => self.fails(index, error),
        }
    }

    /// Ends an operation of a process. The connection is discarded, as in every store.
    pub(super) fn fails(&mut self, index: usize, error: Error) {
        let connection = self.number();
        let process = &mut self.processes[index];
        process.talk = None;
        if !self.scenario.dirty {
            process.connection = connection;
        }
        let Some((_, step)) = &process.call else { return };
        let answer = failure(step, error);
        self.give(index, answer);
    }

    /// Asks a server without any network fault, like an operator on its machine.
    pub(super) fn ask<R: Ask>(
        &mut self,
        server: usize,
        request: &R,
        client_now: i64,
    ) -> Result<Reply<R::Outcome>> {
        self.set_clock_of(server);
        if let Kept::Rules(store) = &mut self.servers[server].store {
            return request.of(store);
        }
        let protocol = self.protocol().expect("the servers have tables").allow_weak_store(true);
        let mut exchange = protocol.begin(request, client_now);
        let mut progress = exchange.start()?;
        loop {
            match progress {
                Progress::Done(reply) => return Ok(reply),
                Progress::Run(statement) => {
                    let table = self.servers[server].table().expect("it has one");
                    progress = exchange.resume(table.answer(&statement))?;
                }
            }
        }
    }

    /// Runs a statement on the table of a server. `None`: it waits until nobody is listening any
    /// more.
    pub(super) fn run_statement(
        &mut self,
        server: usize,
        statement: &Statement,
    ) -> Option<Result<Response>> {
        self.set_clock_of(server);
        if let Err(error) = self.is_ready(server) {
            return Some(Err(error));
        }
        let Scenario { replicated, waits, .. } = self.scenario;
        let table = self.servers[server].table().expect("it has one");
        if !Table::knows(statement) {
            return Some(Ok(settings(statement, replicated && waits)));
        }
        let before = table.texts.clone();
        let Response::Rows(rows) = table.answer(statement) else { panic!("a table has rows") };
        let changed: Vec<(u32, String)> = (table.texts.iter())
            .filter(|(key, text)| before.get(*key) != Some(text))
            .filter_map(|(key, text)| Some((Key::node(key)?, text.clone())))
            .collect();
        let is_written = table.texts != before;
        for (node_id, text) in changed {
            let row = parse_node(&text).expect("its own text");
            let lease = NodeLease { node_id, start: row.start, end_exclusive: row.end_exclusive };
            if let Some(token) = row.token {
                self.oracle.is_granted(token, &[lease]);
                self.summary.grants += 1;
            }
        }
        let has_it = !is_written || !replicated || self.write(server);
        if is_written && !replicated {
            self.backs_up(server);
        }
        match self.scenario.engine {
            // A commit waits for the standby.
            Some(Engine::Postgres) if waits && !has_it => None,
            _ if statement.wait.is_some() => {
                Some(Ok(Response::Confirmed { rows, replicas: u32::from(has_it) }))
            }
            _ => Some(Ok(Response::Rows(rows))),
        }
    }

    /// What a server says about itself: which one it is, in which line of history, and in which
    /// run.
    pub(super) fn name_of(&self, server: usize, line: u32, run: u32) -> String {
        let Scenario { engine, replicated, waits, .. } = self.scenario;
        match engine {
            Some(Engine::Postgres) => format!("7301/{line:08X}/5 on"),
            _ if replicated && waits => format!("{server}.{run}/{line} master with replicas"),
            _ => format!("{server}.{run}/{line} master"),
        }
    }

    /// Makes a server say which one it is now.
    pub(super) fn names_itself(&mut self, server: usize) {
        let Server { incarnation, runs, .. } = self.servers[server];
        let name = self.name_of(server, incarnation, runs);
        if let Some(table) = self.servers[server].table() {
            table.server = name;
        }
    }
}

impl Server {
    /// Returns its table, if it has one.
    pub(super) fn table(&mut self) -> Option<&mut Table> {
        let Kept::Table(table) = &mut self.store else { return None };
        Some(table)
    }
}

/// What a Redis answers about its settings.
fn settings(statement: &Statement, waits: bool) -> Response {
    let row = |cells: &[&str]| vec![cells.iter().map(|cell| Some((*cell).to_owned())).collect()];
    if statement.wait.is_some() {
        return Response::Confirmed { rows: row(&["0"]), replicas: 1 };
    }
    let Some(setting) = statement.parameters.get(1) else { return Response::Rows(row(&[""])) };
    let value = match setting.as_str() {
        "maxmemory-policy" => "noeviction",
        "appendonly" => "yes",
        "min-replicas-to-write" if waits => "1",
        "min-replicas-max-lag" => "10",
        "save" => "",
        _ => "0",
    };
    Response::Rows(row(&[setting, value]))
}
