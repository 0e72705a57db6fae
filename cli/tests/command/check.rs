//! `randflake lease check`: faults, and the exit code for alerts.

use crate::{Folder, Run, hold, holder};

fn check(folder: &Folder, arguments: &[&str]) -> Run {
    folder.run(&[&["lease", "check", "--store", "ids.db"], arguments].concat())
}

/// Checks that there is a fault for each of these subjects, and no other.
#[track_caller]
fn faults(run: &Run, subjects: &[&str]) {
    assert_eq!((run.status.code(), run.stderr.as_str()), (Some(3), ""), "{}", run.stdout);
    let found: Vec<_> =
        run.stdout.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(found, subjects, "{}", run.stdout);
}

fn set(folder: &Folder, sql: &str) {
    let file = rusqlite::Connection::open(folder.0.join("ids.db")).expect("a file of SQLite");
    file.execute(sql, []).expect("a row");
}

#[test]
fn all_is_well() {
    let folder = Folder::new("check");
    let flake = hold(&folder);
    let fine = check(&folder, &["--min-free", "131071", "--min-seconds", "60"]);
    assert_eq!((fine.status.code(), fine.stderr.as_str()), (Some(0), ""), "{}", fine.stdout);
    let start = "ok: 131071 node ids can be leased, 1 are held; the shortest lease has ";
    assert!(fine.stdout.starts_with(start), "{}", fine.stdout);
    let mut command = folder.command(&["lease", "check", "--store", "ids.db", "--json"]);
    let without = crate::run(command.env_remove("RANDFLAKE_SECRET"), "");
    assert_eq!(without.status.code(), Some(0), "needs no secret: {}", without.stderr);
    let json: serde_json::Value = serde_json::from_str(&without.stdout).expect("JSON");
    assert_eq!((&json["ok"], &json["free"]), (&true.into(), &131_071.into()), "{json}");
    assert_eq!(json["faults"], serde_json::json!([]), "{json}");
    assert!(json["least_seconds_left"].as_i64().expect("a number") > 60, "{json}");
    drop(flake);
    let over = check(&folder, &["--json"]).stdout;
    assert!(over.contains("\"least_seconds_left\":null"), "{over}");
    // Nobody holds a lease, so none is short.
    assert_eq!(check(&folder, &["--min-seconds", "60"]).status.code(), Some(0));
}

#[test]
fn headroom_and_short_leases_are_faults() {
    let folder = Folder::new("check-short");
    let flake = hold(&folder);
    let node = flake.node_ids()[0].to_string();
    let holder = holder(&folder, &node);
    let host = holder.split(':').next().expect("a host");
    faults(&check(&folder, &["--min-free", "131072"]), &["headroom"]);
    faults(&check(&folder, &["--min-seconds", "301"]), &["lease"]);
    faults(
        &check(&folder, &["--min-seconds", "301", "--min-free", "131072"]),
        &["headroom", "lease"],
    );
    for named in [["--node", &node], ["--holder", &holder], ["--holder", host]] {
        let fine = check(&folder, &named);
        assert_eq!(fine.status.code(), Some(0), "{named:?}: {}", fine.stdout);
        faults(&check(&folder, &[named[0], named[1], "--min-seconds", "301"]), &["lease"]);
    }
    // Another host whose name begins the same way.
    faults(&check(&folder, &["--holder", &host[..host.len() - 1]]), &["lease"]);
    let other = if node == "7" { "8" } else { "7" };
    let both = check(&folder, &["--node", &format!("{node},{other}")]);
    faults(&both, &["lease"]);
    assert_eq!(both.stdout, format!("lease: node id {other} is not held: start its holder\n"));
    drop(flake);
    faults(&check(&folder, &["--node", &node]), &["lease"]);
}

#[test]
fn implausible_ends_and_quarantine_are_faults() {
    let folder = Folder::new("check-ends");
    let held = [(); 3].map(|()| hold(&folder));
    let node = held[0].node_ids()[0];
    let far = format!("update node set end_exclusive = 2500000000 where node_id = {node}");
    set(&folder, &far);
    let found = check(&folder, &[]);
    faults(&found, &["end"]);
    let advice = format!("run `randflake lease repair --node {node}`\n");
    assert!(found.stdout.ends_with(&advice), "{}", found.stdout);
    set(&folder, "update namespace set floor = unixepoch() + 100");
    let found = check(&folder, &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&found.stdout).expect("JSON");
    assert_eq!((found.status.code(), &json["ok"]), (Some(3), &false.into()));
    let subjects: Vec<_> =
        json["faults"].as_array().expect("a list").iter().map(|it| &it["subject"]).collect();
    assert_eq!(subjects, ["end", "quarantine"], "{json}");
    set(&folder, "update namespace set floor = 2500000000");
    let found = check(&folder, &[]);
    faults(&found, &["end", "quarantine"]);
    assert!(found.stdout.contains("lease repair --floor"), "{}", found.stdout);
    // All of them: then the clock that reads them is suspect.
    set(&folder, "update node set end_exclusive = 2500000000");
    faults(&check(&folder, &[]), &["clock", "quarantine"]);
}

#[test]
fn a_check_that_fails_is_no_fault() {
    let folder = Folder::new("check-fails");
    let missing = check(&folder, &[]);
    assert_eq!((missing.status.code(), missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.starts_with("randflake: STORE_NOT_INITIALIZED: "), "{}", missing.stderr);
    assert_eq!(check(&folder, &["--min-seconds", "-1"]).status.code(), Some(2));
    assert!(!folder.0.join("ids.db").exists());
}
