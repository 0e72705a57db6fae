use std::{
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use super::*;

/// Answers each statement with its text and the number of the connection, when told to.
struct Echo {
    log: Arc<Mutex<Vec<String>>>,
    connection: u32,
    runs: Sender<String>,
    go_on: Receiver<Result<()>>,
}

/// What a test observes and controls of an `Echo`.
struct Remote {
    key: String,
    log: Arc<Mutex<Vec<String>>>,
    runs: Receiver<String>,
    go_on: Sender<Result<()>>,
}

impl Client for Echo {
    fn run(&mut self, statement: &Statement) -> Result<Response> {
        self.log(statement.text);
        self.runs.send(statement.text.into()).expect("the test goes on");
        self.go_on.recv().expect("the test goes on")?;
        Ok(Response::Rows(vec![vec![
            Some(statement.text.into()),
            Some(self.connection.to_string()),
        ]]))
    }

    fn discard(&mut self) {
        self.connection += 1;
        self.log("discard");
    }

    fn rest(&mut self) {
        self.log("rest");
    }
}

impl Echo {
    fn log(&self, what: &str) {
        self.log.lock().expect("no panic").push(what.into());
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.log("drop");
    }
}

impl Remote {
    /// Opens a client under a key that only this test uses.
    fn open(name: &str) -> (Self, SharedClient) {
        let (key, log) = (format!("test://{name}"), Arc::default());
        let ((runs, ran), (go, go_on)) = (mpsc::channel(), mpsc::channel());
        let echo = Echo { log: Arc::clone(&log), connection: 0, runs, go_on };
        let client = SharedClient::open(&key, || Ok(Box::new(echo))).expect("made");
        client.shared.lock().patience = Duration::from_secs(600); // for a busy machine
        (Self { key, log, runs: ran, go_on: go }, client)
    }

    fn another(&self) -> SharedClient {
        SharedClient::open(&self.key, || unreachable!("there is one")).expect("found")
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().expect("no panic").clone()
    }

    fn runs(&self, text: &str) {
        assert_eq!(self.runs.recv().as_deref(), Ok(text));
    }

    fn goes_on(&self) {
        self.go_on.send(Ok(())).expect("it waits");
    }

    fn fails(&self) {
        let gone = Error::new(ErrorKind::StoreUnavailable, "gone");
        self.go_on.send(Err(gone)).expect("it waits");
    }
}

fn ask(client: &mut SharedClient, text: &'static str) -> Result<(String, String)> {
    let statement = Statement { text, parameters: vec![], wait: None };
    let Response::Rows(mut rows) = client.run(&statement)? else { panic!("rows") };
    let mut row = rows.remove(0).into_iter().flatten();
    Ok((row.next().expect("text"), row.next().expect("connection")))
}

/// Waits until this many statements wait for their turn.
fn until_waiting(client: &SharedClient, count: usize) {
    while client.shared.lock().waiting.len() != count {
        thread::yield_now();
    }
}

#[test]
fn each_gets_its_own_answer_in_turn() {
    let (remote, mut first) = Remote::open("turns");
    let (mut second, mut third) = (remote.another(), remote.another());
    thread::scope(|scope| {
        let probe = remote.another();
        let first = scope.spawn(move || ask(&mut first, "first"));
        remote.runs("first");
        let second = scope.spawn(move || ask(&mut second, "second"));
        until_waiting(&probe, 1);
        let third = scope.spawn(move || ask(&mut third, "third"));
        until_waiting(&probe, 2);
        // Nothing else runs while the first one waits for its answer.
        assert_eq!(remote.log(), ["first"]);
        (0..3).for_each(|_| remote.goes_on());
        for (asked, text) in [(first, "first"), (second, "second"), (third, "third")] {
            let answer = asked.join().expect("no panic").expect("answered");
            assert_eq!(answer, (text.into(), "0".into()));
        }
    });
    assert_eq!(remote.log()[..3], ["first", "second", "third"]);
}

#[test]
fn what_failed_leaves_no_connection_to_the_next_one() {
    let (remote, mut first) = Remote::open("failures");
    let mut second = remote.another();
    thread::scope(|scope| {
        let probe = remote.another();
        let failed = scope.spawn(|| ask(&mut first, "fails"));
        remote.runs("fails");
        let next = scope.spawn(|| ask(&mut second, "next"));
        until_waiting(&probe, 1);
        remote.fails();
        let error = failed.join().expect("no panic").expect_err("it failed");
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
        remote.runs("next");
        remote.goes_on();
        assert_eq!(next.join().expect("no panic").expect("answered").1, "1");
    });
    assert_eq!(remote.log(), ["fails", "discard", "next"]);
    // The first store's request to discard its connection does not affect the next connection.
    first.discard();
    assert_eq!(remote.log().len(), 3);
}

#[test]
fn a_connection_with_foreign_answers_runs_nothing_more() {
    let (remote, mut first) = Remote::open("foreign");
    let mut second = remote.another();
    remote.goes_on();
    ask(&mut first, "foreign").expect("answered");
    thread::scope(|scope| {
        remote.runs("foreign");
        // Requested during the second store's turn.
        let running = scope.spawn(|| ask(&mut second, "running"));
        remote.runs("running");
        first.discard();
        assert_eq!(remote.log(), ["foreign", "running"]);
        remote.goes_on();
        assert_eq!(running.join().expect("no panic").expect("answered").1, "0");
    });
    remote.goes_on();
    assert_eq!(ask(&mut first, "first").expect("answered").1, "1");
    assert_eq!(remote.log(), ["foreign", "running", "discard", "first"]);
    // And at once when nobody has the turn.
    first.discard();
    assert_eq!(remote.log().last().map(String::as_str), Some("discard"));
}

#[test]
fn it_rests_when_nobody_needs_it_and_goes_with_the_last() {
    let (remote, mut first) = Remote::open("rest");
    let mut second = remote.another();
    for client in [&mut first, &mut second] {
        remote.goes_on();
        ask(client, "asked").expect("answered");
    }
    first.rest();
    first.rest();
    assert!(!remote.log().contains(&"rest".into()), "the second one may ask at any time");
    second.rest();
    assert_eq!(remote.log(), ["asked", "asked", "rest"]);
    remote.goes_on();
    ask(&mut first, "asked").expect("answered");
    drop(second);
    assert_eq!(remote.log().len(), 4, "the first one still needs it");
    drop(first);
    assert_eq!(remote.log()[4..], ["rest", "drop"]);
    let (other, _client) = Remote::open("rest");
    assert!(other.log().is_empty(), "another was made");
}

#[test]
fn whoever_gets_answers_comes_before_those_who_do_not() {
    let (remote, mut running) = Remote::open("slow");
    let (mut slow, mut quick) = (remote.another(), remote.another());
    slow.is_slow = true;
    thread::scope(|scope| {
        let probe = remote.another();
        let running = scope.spawn(move || ask(&mut running, "running"));
        remote.runs("running");
        let slow = scope.spawn(move || ask(&mut slow, "slow"));
        until_waiting(&probe, 1);
        let quick = scope.spawn(move || ask(&mut quick, "quick"));
        until_waiting(&probe, 2);
        (0..3).for_each(|_| remote.goes_on());
        for asked in [running, slow, quick] {
            asked.join().expect("no panic").expect("answered");
        }
    });
    assert_eq!(remote.log()[..3], ["running", "quick", "slow"]);
}

#[test]
fn nobody_waits_for_ever() {
    let (remote, mut hanging) = Remote::open("patience");
    let mut waits = remote.another();
    hanging.shared.lock().patience = Duration::from_millis(20);
    thread::scope(|scope| {
        let hangs = scope.spawn(|| ask(&mut hanging, "hangs"));
        remote.runs("hangs");
        let error = ask(&mut waits, "waits").expect_err("the turn lasts");
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
        remote.goes_on();
        // The late answer belongs to the statement that waited for it, and the connection is
        // intact.
        assert_eq!(hangs.join().expect("no panic").expect("answered").0, "hangs");
    });
    remote.goes_on();
    assert_eq!(ask(&mut waits, "again").expect("answered"), ("again".into(), "0".into()));
    assert_eq!(remote.log(), ["hangs", "again"]);
}

#[test]
fn a_client_that_panics_is_given_back_without_its_connection() {
    struct Panics(Arc<Mutex<u32>>);
    impl Client for Panics {
        fn run(&mut self, statement: &Statement) -> Result<Response> {
            assert_ne!(statement.text, "panic");
            Ok(Response::Rows(vec![]))
        }
        fn discard(&mut self) {
            *self.0.lock().expect("no panic") += 1;
        }
    }
    let discarded = Arc::new(Mutex::new(0));
    let client = Box::new(Panics(Arc::clone(&discarded)));
    let mut first = SharedClient::open("test://panics", || Ok(client)).expect("made");
    let mut second = SharedClient::open("test://panics", || unreachable!()).expect("found");
    let panicked = thread::spawn(move || {
        let statement = Statement { text: "panic", parameters: vec![], wait: None };
        let _never = first.run(&statement);
    });
    assert!(panicked.join().is_err());
    assert_eq!(*discarded.lock().expect("no panic"), 1);
    let statement = Statement { text: "next", parameters: vec![], wait: None };
    second.run(&statement).expect("answered");
}
