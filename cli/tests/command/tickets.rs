//! `randflake tickets`.

use serde_json::{Value, json};

use crate::{Folder, Run, expect};

/// A namespace of counters in a file, created once.
fn made(name: &str, mode: &str) -> Folder {
    let folder = Folder::new(name);
    let ready = folder.run(&["tickets", "init", mode, "--store", "ids.db"]);
    expect(&ready, 0, "namespace \"tickets\" is ready\n", "");
    folder
}

fn show(folder: &Folder) -> String {
    let shown = folder.run(&["tickets", "show", "orders", "--store", "ids.db"]);
    assert_eq!((shown.status.code(), shown.stderr.as_str()), (Some(0), ""));
    shown.stdout
}

fn show_json(folder: &Folder) -> Value {
    let shown = folder.run(&["tickets", "show", "orders", "--store", "ids.db", "--json"]);
    assert_eq!((shown.status.code(), shown.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&shown.stdout).expect("JSON")
}

fn fence(folder: &Folder, above: &str, more: &[&str]) -> Run {
    let verb = ["tickets", "fence", "orders", "--above", above, "--store", "ids.db"];
    folder.run(&[verb.as_slice(), more].concat())
}

#[track_caller]
fn expect_next(fenced: &Run, next: u64) {
    let said = (fenced.status.code(), fenced.stdout.as_str());
    assert_eq!(
        said,
        (Some(0), format!("the next number of counter \"orders\" is {next}\n").as_str())
    );
    assert!(fenced.stderr.contains("numbers repeat"), "{}", fenced.stderr);
}

#[test]
fn a_counter_goes_on_above_a_fence_and_never_falls() {
    let folder = made("tickets", "--new");
    assert_eq!(show(&folder), "there is no counter \"orders\"\n");
    expect_next(&fence(&folder, "48211", &["--yes"]), 48_212);
    expect_next(&fence(&folder, "7", &["--yes"]), 48_212);
    assert_eq!(
        show(&folder),
        "start                      1\n\
         step                       1\n\
         next                   48212\n\
         given back                 0\n\
         blocks                     0\n"
    );
    let counter = json!({
        "name": "orders", "exists": true, "start": 1, "step": 1, "next": 48_212,
        "given_back": 0, "blocks": 0, "must_be_fenced": false,
    });
    assert_eq!(show_json(&folder), counter);
}

#[test]
fn a_counter_is_fenced_only_with_consent() {
    let folder = made("tickets-consent", "--new");
    let asked = fence(&folder, "48211", &[]);
    assert_eq!((asked.status.code(), asked.stdout.as_str()), (Some(2), ""));
    assert!(asked.stderr.contains("above 48211"), "{}", asked.stderr);
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(show_json(&folder)["exists"], false);
}

#[test]
fn two_stores_share_the_odd_and_the_even_numbers() {
    let folder = made("tickets-odd", "--new");
    for start in ["1", "2"] {
        let counter = format!("from-{start}");
        let fence = ["tickets", "fence", &counter, "--above", "48211", "--step", "2", "--yes"];
        let fence = [&fence[..], &["--start", start, "--store", "ids.db"]].concat();
        let fenced = folder.run(&fence);
        let next = if start == "1" { "48213" } else { "48212" };
        assert!(fenced.stdout.ends_with(&format!(" is {next}\n")), "{}", fenced.stdout);
        let other: Vec<_> = fence.iter().map(|it| if *it == start { "5" } else { it }).collect();
        let refused = folder.run(&other);
        assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""));
        assert!(refused.stderr.contains(&format!("has the start {start}")), "{}", refused.stderr);
    }
}

#[test]
fn counters_of_a_namespace_that_may_have_been_lost_must_be_fenced() {
    let folder = made("tickets-lost", "--quarantine");
    let missing = show(&folder);
    assert!(missing.contains("nothing is drawn until\n`randflake tickets fence`"), "{missing}");
    let missing = show_json(&folder);
    assert_eq!((&missing["exists"], &missing["must_be_fenced"]), (&json!(false), &json!(true)));
    expect_next(&fence(&folder, "0", &["--yes"]), 1);
    assert_eq!(show_json(&folder)["must_be_fenced"], false);
}

#[test]
fn a_fence_of_the_namespace_is_one_of_each_counter() {
    let folder = made("tickets-backup", "--new");
    expect_next(&fence(&folder, "48211", &["--yes"]), 48_212);
    let namespace = ["lease", "fence", "--namespace", "tickets", "--store", "ids.db", "--yes"];
    // Twice: no fence leaves the namespace as the previous one did.
    for above in ["48300", "48300"] {
        let fenced = folder.run(&namespace);
        let said = (fenced.status.code(), fenced.stdout.as_str());
        assert_eq!(said, (Some(0), "nothing is drawn from a counter until it is fenced\n"));
        assert!(fenced.stderr.contains("randflake tickets fence"), "{}", fenced.stderr);
        assert_eq!(show_json(&folder)["must_be_fenced"], true);
        expect_next(&fence(&folder, above, &["--yes"]), 48_301);
        assert_eq!(show_json(&folder)["must_be_fenced"], false);
    }
}

#[test]
fn counters_and_leases_are_in_namespaces_of_their_own() {
    let folder = made("tickets-kinds", "--new");
    assert_eq!(folder.run(&["generate", "--store", "ids.db"]).status.code(), Some(0));
    for arguments in [
        &["tickets", "show", "orders", "--namespace", "default"][..],
        &["tickets", "list", "--namespace", "default"],
        &["tickets", "fence", "orders", "--above", "1", "--yes", "--namespace", "default"],
        &["tickets", "init", "--new", "--namespace", "default"],
        &["generate", "--namespace", "tickets", "--acquire-timeout", "0"],
        &["lease", "init", "--new", "--namespace", "tickets"],
    ] {
        let refused = folder.run(&[arguments, &["--store", "ids.db"]].concat());
        assert_eq!(
            (refused.status.code(), refused.stdout.as_str()),
            (Some(1), ""),
            "{arguments:?}"
        );
        let says = "randflake: INVALID_ARGUMENT: ";
        assert!(refused.stderr.lines().any(|line| line.starts_with(says)), "{}", refused.stderr);
    }
    // The variable names the namespace of leases.
    let mut other = folder.command(&["tickets", "show", "orders", "--store", "ids.db"]);
    let shown = crate::run(other.env("RANDFLAKE_NAMESPACE", "default"), "");
    expect(&shown, 0, "there is no counter \"orders\"\n", "");
}

#[test]
fn nothing_is_created_by_what_reads_or_raises() {
    let folder = Folder::new("tickets-missing");
    for arguments in [
        &["tickets", "show", "orders"][..],
        &["tickets", "list"],
        &["tickets", "fence", "orders", "--above", "7", "--yes"],
    ] {
        let refused = folder.run(&[arguments, &["--store", "ids.db"]].concat());
        assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(1), ""));
        let complaint = refused.stderr.lines().last().unwrap_or_default();
        assert!(complaint.starts_with("randflake: STORE_NOT_INITIALIZED: "), "{complaint}");
        assert!(
            complaint.contains("`randflake tickets init --namespace tickets --new`"),
            "{complaint}"
        );
        assert!(!folder.0.join("ids.db").exists());
    }
}

#[test]
fn what_processes_draw_and_give_back_is_shown() {
    let folder = made("tickets-drawn", "--new");
    let tickets = randflake_tickets::Tickets::builder(folder.0.join("ids.db"), "orders")
        .min_block(10)
        .max_block(10)
        .open()
        .expect("a block");
    assert_eq!(tickets.generate().expect("a number"), 1);
    let drawn = show_json(&folder);
    assert!(drawn["next"].as_u64().expect("a number") > 1, "{drawn}");
    assert!(drawn["blocks"].as_u64().expect("a number") >= 1, "{drawn}");
    tickets.close();
    let given_back = show_json(&folder);
    assert_eq!(
        (&given_back["next"], &given_back["blocks"]),
        (&json!(2), &json!(0)),
        "{given_back}"
    );
}

#[test]
fn a_counter_that_is_used_up_has_no_next_number() {
    let folder = made("tickets-over", "--new");
    let fenced = fence(&folder, "9007199254740991", &["--yes"]);
    assert_eq!(fenced.stdout, "the next number of counter \"orders\" is none\n");
    assert_eq!(show_json(&folder)["next"], Value::Null);
    assert!(show(&folder).contains("next                    none\n"), "{}", show(&folder));
}

#[test]
fn counters_are_listed_by_name() {
    let folder = made("tickets-list", "--new");
    let list = ["tickets", "list", "--store", "ids.db"];
    expect(&folder.run(&list), 0, "namespace \"tickets\" has no counter\n", "");
    let long = "n".repeat(200);
    for (name, above) in [("orders", "48211"), ("invoices", "9007199254740991"), (&long, "0")] {
        let fence = ["tickets", "fence", name, "--above", above, "--yes", "--store", "ids.db"];
        assert_eq!(folder.run(&fence).status.code(), Some(0));
    }
    let shown = &long[..80 - 44];
    let table = format!(
        "            next        given back  blocks  name\n\
         \x20           none                 0       0  invoices\n\
         \x20              1                 0       0  {shown}\n\
         \x20          48212                 0       0  orders\n"
    );
    expect(&folder.run(&list), 0, &table, "");

    let listed = |folder: &Folder| -> Value {
        let listed = folder.run(&[&list[..], &["--json"]].concat());
        assert_eq!((listed.status.code(), listed.stderr.as_str()), (Some(0), ""));
        serde_json::from_str(&listed.stdout).expect("JSON")
    };
    let counters = listed(&folder);
    assert_eq!(counters["counters"][2], show_json(&folder));
    assert_eq!(counters["counters"][1]["name"], *long);
    assert_eq!(counters["counters"].as_array().map(Vec::len), Some(3));

    folder.run(&["lease", "fence", "--namespace", "tickets", "--store", "ids.db", "--yes"]);
    expect_next(&fence(&folder, "48211", &["--yes"]), 48_212);
    let counters = listed(&folder);
    let refused: Vec<_> = (0..3).map(|at| &counters["counters"][at]["must_be_fenced"]).collect();
    assert_eq!(refused, [true, true, false]);
    let table = folder.run(&list).stdout;
    assert_eq!(table.matches("`randflake tickets fence` raises it\n").count(), 2, "{table}");
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
}

#[test]
fn what_is_no_counter_and_no_number_is_refused() {
    let folder = made("tickets-refused", "--new");
    let name = "x".repeat(201);
    for (arguments, code) in [
        (&["show", "two words"][..], 1),
        (&["show", ""], 1),
        (&["show", &name], 1),
        (&["fence", "orders", "--above", "9007199254740992", "--yes"], 1),
        (&["fence", "orders", "--above", "-1", "--yes"], 2),
        (&["fence", "orders", "--above", "many", "--yes"], 2),
        (&["fence", "orders", "--yes"], 2),
        (&["init"], 2),
        (&["show"], 2),
    ] {
        let refused = folder.run(&[&["tickets"], arguments, &["--store", "ids.db"]].concat());
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {}", refused.stderr);
        assert_eq!(refused.stdout, "", "{arguments:?}");
    }
    assert_eq!(show_json(&folder)["exists"], false);
}
