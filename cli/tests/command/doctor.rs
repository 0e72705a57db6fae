//! `randflake lease doctor` on a `SQLite` file. `tests/cross_language` has the servers.

use std::{fs, process::Command};

use crate::{Folder, Run, SECRET, hold, run};

fn doctor(folder: &Folder, store: &str) -> Run {
    run(&mut command(folder, store), "")
}

fn command(folder: &Folder, store: &str) -> Command {
    let mut command = folder.command(&["lease", "doctor", "--json", "--store", store]);
    // Inherited from the shell that runs these tests.
    command.env_remove("RANDFLAKE_SECRET").env_remove("RANDFLAKE_SECRET_FILE");
    command.env_remove("RANDFLAKE_NAMESPACE").env_remove("RANDFLAKE_LAYOUT");
    command.env_remove("RANDFLAKE_WRITE_HELP");
    command
}

/// Returns the subjects of all findings with a verdict.
#[track_caller]
fn subjects(found: &Run, verdict: &str) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(&found.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    let is_wrong = findings.iter().any(|finding| finding["verdict"] == "wrong");
    assert_eq!(json["ok"], !is_wrong, "{json}");
    assert_eq!(found.status.code(), Some(i32::from(is_wrong)), "{json}");
    let subject = |finding: &serde_json::Value| finding["subject"].as_str().map(ToOwned::to_owned);
    findings.iter().filter(|it| it["verdict"] == verdict).filter_map(subject).collect()
}

fn contents(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(&folder.0)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
        .map(|it| {
            (it.file_name().into_string().expect("text"), fs::read(it.path()).expect("bytes"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_good_file_is_left_as_it_is() {
    let folder = Folder::new("doctor");
    let store = folder.0.join("ids.db").display().to_string();
    let _flake = hold(&folder);
    let before = contents(&folder);
    let found = doctor(&folder, &store);
    assert_eq!(subjects(&found, "wrong"), [""; 0], "{}", found.stdout);
    assert_eq!(subjects(&found, "note"), [""; 0], "{}", found.stdout);
    let expected =
        ["environment", "reach", "file", "persistence", "directory", "namespace", "clocks", "ends"];
    assert_eq!(subjects(&found, "ok"), expected);
    assert!(contents(&folder) == before, "it writes nothing");
    let text = folder.run(&["lease", "doctor", "--store", &store]);
    assert_eq!(text.status.code(), Some(0), "{}", text.stderr);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 100), "{}", text.stdout);
    assert!(text.stdout.contains("\nok     ends           no end is implausible"));
}

#[test]
fn a_missing_file_is_not_created() {
    let folder = Folder::new("doctor-missing");
    let found = doctor(&folder, &folder.0.join("ids.db").display().to_string());
    assert_eq!(subjects(&found, "wrong"), ["file", "namespace"], "{}", found.stdout);
    let found = doctor(&folder, "none/ids.db");
    assert_eq!(subjects(&found, "wrong"), ["file", "namespace"], "{}", found.stdout);
    assert!(found.stdout.contains("is missing; create it first"), "{}", found.stdout);
    assert!(contents(&folder).is_empty());
}

#[test]
fn what_is_wrong_in_the_file_is_found() {
    let folder = Folder::new("doctor-ends");
    let store = folder.0.join("ids.db").display().to_string();
    let held = [(); 3].map(|()| hold(&folder));
    let node = held[0].node_ids()[0];
    let file = rusqlite::Connection::open(&store).expect("a file of SQLite");
    let far = format!("update node set end_exclusive = 2500000000 where node_id = {node}");
    file.execute(&far, []).expect("a row");
    let all: Vec<_> = held.iter().map(|flake| flake.node_ids()[0].to_string()).collect();
    let fence = "update namespace set floor = unixepoch() + 100, node_ids = ?1";
    file.execute(fence, [all.join(",")]).expect("a row");
    let found = doctor(&folder, &store);
    assert_eq!(subjects(&found, "wrong"), ["namespace", "end", "quarantine"], "{}", found.stdout);
    assert!(found.stdout.contains(&format!("lease repair --node {node}")), "{}", found.stdout);
    drop(file);
    // A second name for the file: next to it others would lock a different file.
    fs::hard_link(&store, folder.0.join("other.db")).expect("a link");
    let found = doctor(&folder, &store);
    assert_eq!(subjects(&found, "wrong"), ["file", "namespace"], "{}", found.stdout);
    assert!(found.stdout.contains("hard links"), "{}", found.stdout);
}

#[cfg(unix)]
#[test]
fn a_file_that_all_can_write_is_noted() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("doctor-mode");
    let path = folder.0.join("ids.db");
    let _flake = hold(&folder);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("it is ours");
    let found = doctor(&folder, &path.display().to_string());
    assert_eq!(subjects(&found, "note"), ["file"], "{}", found.stdout);
}

#[test]
fn variables_are_named_and_their_values_are_not() {
    let folder = Folder::new("doctor-environment");
    let _flake = hold(&folder);
    let store = folder.0.join("ids.db").display().to_string();
    let mut asked = command(&folder, &store);
    asked.env("RANDFLAKE_STORE", "redis://app:hunter2@localhost/0");
    asked.env("RANDFLAKE_SECRETS", "hunter2").env("RANDFLAKE_SECRET", "");
    asked.args(["--namespace", "default"]).env("RANDFLAKE_NAMESPACE", "hunter2");
    let found = run(&mut asked, "");
    assert_eq!(subjects(&found, "note"), ["environment"; 4], "{}", found.stdout);
    for says in [
        "set: RANDFLAKE_NAMESPACE, RANDFLAKE_SECRET, RANDFLAKE_SECRETS, RANDFLAKE_STORE",
        "--namespace names another namespace than RANDFLAKE_NAMESPACE",
        "RANDFLAKE_SECRETS is not a known variable",
        "RANDFLAKE_SECRET is empty",
        "--store names another store than RANDFLAKE_STORE",
    ] {
        assert!(found.stdout.contains(says), "{says}: {}", found.stdout);
    }
    assert!(!found.stdout.contains("hunter2"), "{}", found.stdout);
    let relative = doctor(&folder, "ids.db");
    assert_eq!(subjects(&relative, "note"), ["environment"], "{}", relative.stdout);
    assert!(relative.stdout.contains("make it absolute"), "{}", relative.stdout);
}

#[test]
fn a_secret_is_compared_with_that_of_the_namespace() {
    let folder = Folder::new("doctor-secret");
    let _flake = hold(&folder);
    let store = folder.0.join("ids.db").display().to_string();
    let asked = |secret: &str| {
        let mut asked = command(&folder, &store);
        let found = run(asked.env("RANDFLAKE_SECRET", secret), "");
        assert!(!found.stdout.contains(secret), "{}", found.stdout);
        found
    };
    let found = asked(SECRET);
    assert_eq!((subjects(&found, "wrong").len(), subjects(&found, "note").len()), (0, 0));
    assert!(subjects(&found, "ok").contains(&"secret".into()), "{}", found.stdout);
    let found = asked("9d4be0a1c35f7826b60ef4d7132a985c");
    assert_eq!(subjects(&found, "wrong"), ["secret"], "{}", found.stdout);
    assert!(found.stdout.contains("SECRET_MISMATCH: "), "{}", found.stdout);
    assert_eq!(subjects(&asked(&"00".repeat(16)), "note"), ["secret"], "it is weak");
    assert_eq!(subjects(&asked(&SECRET[1..]), "wrong"), ["secret"]);
    let mut both = command(&folder, &store);
    let found = run(both.env("RANDFLAKE_SECRET", SECRET).env("RANDFLAKE_SECRET_FILE", "x"), "");
    assert_eq!(subjects(&found, "wrong"), ["secret"], "{}", found.stdout);
    assert!(found.stdout.contains("both set"), "{}", found.stdout);
}

#[test]
fn a_server_that_is_away_is_found() {
    let folder = Folder::new("doctor-away");
    for url in ["postgresql://app:hunter2@localhost:1/app", "redis://app:hunter2@localhost:1/0"] {
        let found = doctor(&folder, url);
        assert_eq!(subjects(&found, "wrong"), ["reach"], "{}", found.stdout);
        assert!(found.stdout.contains("STORE_UNAVAILABLE: "), "{}", found.stdout);
        assert!(!found.stdout.contains("hunter2"), "{}", found.stdout);
    }
    let found = doctor(&folder, "mongodb://app:hunter2@localhost/app");
    assert_eq!(subjects(&found, "wrong"), ["store"], "{}", found.stdout);
    assert!(!found.stdout.contains("hunter2"), "{}", found.stdout);
}

#[test]
fn counters_that_must_be_fenced_are_found() {
    let folder = Folder::new("doctor-tickets");
    let store = folder.0.join("ids.db").display().to_string();
    let tickets = |verb: &[&str]| {
        let done = folder.run(&[&["tickets"], verb, &["--store", "ids.db"]].concat());
        assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    };
    let doctor = || run(command(&folder, &store).args(["--namespace", "tickets"]), "");
    tickets(&["init", "--new"]);
    tickets(&["fence", "orders", "--above", "7", "--yes"]);
    let before = contents(&folder);
    let found = doctor();
    assert_eq!(subjects(&found, "wrong"), [""; 0], "{}", found.stdout);
    assert!(subjects(&found, "ok").ends_with(&["clocks".to_owned(), "counters".to_owned()]));
    assert!(found.stdout.contains("1 in all, and none has to be fenced"), "{}", found.stdout);
    assert!(contents(&folder) == before, "it writes nothing");

    let fence = ["lease", "fence", "--namespace", "tickets", "--store", "ids.db", "--yes"];
    assert_eq!(folder.run(&fence).status.code(), Some(0));
    let found = doctor();
    assert_eq!(subjects(&found, "wrong"), ["counters"], "{}", found.stdout);
    assert!(
        found.stdout.contains("of 1 of 1 counters, such as \\\"orders\\\""),
        "{}",
        found.stdout
    );
    tickets(&["fence", "orders", "--above", "7", "--yes"]);
    assert_eq!(subjects(&doctor(), "wrong"), [""; 0]);
}

#[test]
fn a_layout_is_compared_with_that_of_the_namespace() {
    let folder = Folder::new("doctor-layout");
    let store = folder.0.join("ids.db").display().to_string();
    let init = ["lease", "init", "--new", "--layout", "twitter", "--store", &store];
    assert!(folder.run(&init).status.success());
    for (layout, verdict) in [
        ("twitter", "ok"),
        ("leaf", "ok"), // packs in the same way
        ("twitter,epoch_ms=1577836800000", "wrong"),
        ("twiter", "wrong"),
    ] {
        let found = run(command(&folder, &store).env("RANDFLAKE_LAYOUT", layout), "");
        assert!(
            subjects(&found, verdict).contains(&"layout".to_owned()),
            "{layout}: {}",
            found.stdout
        );
    }
    assert!(!subjects(&doctor(&folder, &store), "ok").contains(&"layout".to_owned()));
}
