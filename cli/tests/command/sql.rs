//! The functions that are printed; `tests/cross_language` runs them in a server.

use crate::Folder;

#[test]
fn functions_are_in_the_schema_that_was_asked_for() {
    let folder = Folder::new("sql");
    for (arguments, schema) in [(&[][..], "randflake"), (&["--schema", "ids_2"], "ids_2")] {
        let printed = folder.run(&[&["sql", "--dialect", "postgres"], arguments].concat());
        assert_eq!((printed.status.code(), printed.stderr.as_str()), (Some(0), ""));
        let functions = printed.stdout.matches("create or replace function").count();
        let own = format!("create or replace function {schema}.");
        assert_eq!(printed.stdout.matches(&own).count(), functions);
        assert!(functions >= 12);
        assert!(printed.stdout.contains(&format!("create schema if not exists {schema};")));
        // Servers refuse characters that their database's encoding lacks, even in comments.
        assert!(printed.stdout.is_ascii());
        // All placeholders are replaced; the setting has the same name in all schemas.
        assert!(!printed.stdout.contains('@'));
        assert!(printed.stdout.contains("current_setting('randflake.secret', true)"));
        assert_eq!(printed.stdout.matches("comment on function").count(), functions);
        let version = format!("Randflake {}';", env!("CARGO_PKG_VERSION"));
        assert_eq!(printed.stdout.matches(&version).count(), functions);
    }
}

#[test]
fn functions_of_mysql_are_in_the_schema_that_was_asked_for() {
    let folder = Folder::new("sql-mysql");
    for (arguments, schema) in [(&[][..], "randflake"), (&["--schema", "ids_2"], "ids_2")] {
        let printed = folder.run(&[&["sql", "--dialect", "mysql"], arguments].concat());
        assert_eq!((printed.status.code(), printed.stderr.as_str()), (Some(0), ""));
        let text = &printed.stdout;
        let mut routines = 0;
        for kind in ["function", "procedure"] {
            let created = text.matches(&format!("create {kind} ")).count();
            assert_eq!(text.matches(&format!("create {kind} {schema}.")).count(), created);
            // MySQL does not replace a function.
            let dropped = format!("drop {kind} if exists {schema}.");
            assert_eq!(text.matches(&dropped).count(), created);
            routines += created;
        }
        assert!(routines >= 20);
        assert!(text.contains(&format!("create database if not exists {schema};")));
        assert!(text.is_ascii());
        // All placeholders are replaced; the variable has the same name in all schemas.
        assert!(!text.contains("@schema@") && !text.contains("@version@"));
        assert!(text.contains("@randflake_secret"));
        let version = format!("Randflake {}'\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(text.matches(&version).count(), routines);
    }
}

#[test]
fn a_schema_that_needs_quotes_is_refused() {
    let folder = Folder::new("sql-schema");
    let long = "x".repeat(64);
    for name in ["", "Ids", "1st", "a b", "a;drop", "a.b", "\"a\"", "pg_ids", "é", &long] {
        let refused = folder.run(&["sql", "--dialect", "postgres", "--schema", name]);
        assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(2), ""), "{name:?}");
        assert!(refused.stderr.contains("a schema must have 1 to 63 of"), "{}", refused.stderr);
    }
    let kept = folder.run(&["sql", "--dialect", "postgres", "--schema", &long[1..]]);
    assert_eq!(kept.status.code(), Some(0), "{}", kept.stderr);
}

#[test]
fn a_dialect_is_required_and_a_known_one() {
    let folder = Folder::new("sql-dialect");
    for arguments in [&["sql"][..], &["sql", "--dialect", "oracle"]] {
        let refused = folder.run(arguments);
        assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(2), ""));
        assert!(refused.stderr.contains("--dialect"), "{}", refused.stderr);
    }
}
