//! `randflake text` and `randflake number`.

use crate::{Folder, expect, run};

#[test]
fn numbers_become_text_and_text_becomes_numbers_without_a_secret() {
    let folder = Folder::new("convert");
    let numbers = "4594531474933654033\n-6187568801575574419\n0\n-1\n-9223372036854775808\n";
    let texts = "3vgoe12ccb8gh\nak8amul3cop3d\n0\nfvvvvvvvvvvvv\n8000000000000\n";
    for (verb, given, expected) in [("text", numbers, texts), ("number", texts, numbers)] {
        let arguments: Vec<_> = [verb].into_iter().chain(given.lines()).collect();
        let mut command = folder.command(&arguments);
        expect(&run(command.env_remove("RANDFLAKE_SECRET"), ""), 0, expected, "");
        // From the input, with Windows line ends and an empty line.
        let input = given.replace('\n', "\r\n") + "\n";
        let mut command = folder.command(&[verb]);
        expect(&run(command.env_remove("RANDFLAKE_SECRET"), &input), 0, expected, "");
    }
}

#[test]
fn a_first_line_that_names_a_column_is_no_id() {
    let folder = Folder::new("header");
    for name in ["id", "code", "number", "user_id", "ID", "\u{feff}id"] {
        for (verb, line, expected) in
            [("number", "3vgoe12ccb8gh", "4594531474933654033\n"), ("text", "33", "11\n")]
        {
            let input = format!("{name}\r\n{line}\r\n");
            let done = run(&mut folder.command(&[verb]), &input);
            assert_eq!((done.status.code(), done.stdout.as_str()), (Some(1), expected), "{name}");
            assert!(done.stderr.contains("--skip-header"), "{}", done.stderr);
            expect(&run(&mut folder.command(&[verb, "--skip-header"]), &input), 0, expected, "");
        }
    }
    // As an argument, or after the first line, it is an id.
    expect(&folder.run(&["number", "id"]), 0, "589\n", "");
    expect(&run(&mut folder.command(&["number"]), "7\nid\n"), 0, "7\n589\n", "");
    let seen = run(&mut folder.command(&["inspect", "--json"]), "id\n3vgoe12ccb8gh\n");
    assert_eq!((seen.status.code(), seen.stdout.lines().count()), (Some(1), 1), "{}", seen.stderr);
    let skipped = run(&mut folder.command(&["inspect", "--json", "--skip-header"]), "id\n7\n");
    assert_eq!((skipped.status.code(), skipped.stdout.lines().count()), (Some(0), 1));
}

#[test]
fn a_mark_of_the_order_of_bytes_and_unsigned_numbers_are_read() {
    let folder = Folder::new("unsigned");
    let input = "\u{feff}18446744073709551615\n-1\n9223372036854775808\n";
    let texts = "fvvvvvvvvvvvv\nfvvvvvvvvvvvv\n8000000000000\n";
    expect(&run(&mut folder.command(&["text"]), input), 0, texts, "");
    let seen = run(&mut folder.command(&["inspect", "--json"]), input);
    assert_eq!(seen.stdout.matches(r#""id":"-1""#).count(), 2, "{}", seen.stdout);
}

#[test]
fn a_prefix_is_put_on_and_taken_off() {
    let folder = Folder::new("prefix");
    let (number, text) = ("4594531474933654033", "order_3vgoe12ccb8gh");
    let with = ["--prefix", "order_"];
    expect(&folder.run(&[&["text", number][..], &with].concat()), 0, &format!("{text}\n"), "");
    expect(&folder.run(&[&["number", text][..], &with].concat()), 0, &format!("{number}\n"), "");
    let seen = folder.run(&[&["inspect", "--json", text][..], &with].concat());
    assert!(seen.stdout.starts_with(&format!(r#"{{"id":"{number}""#)), "{}", seen.stderr);
    let other = folder.run(&["number", "--prefix", "item_", text]);
    assert_eq!(other.status.code(), Some(1));
    assert!(other.stderr.contains("prefix \"item_\""), "{}", other.stderr);
    // Without the option, the error says what is wrong with it.
    for verb in ["number", "inspect"] {
        let refused = folder.run(&[verb, text]);
        assert!(refused.stderr.contains("a prefix of 6 characters"), "{}", refused.stderr);
    }
}

#[test]
fn what_is_none_is_named_and_the_others_are_converted() {
    let folder = Folder::new("convert-bad");
    for (verb, bad, good, expected) in [
        ("text", "3vgoe12ccb8gh", "7", "7\n"),
        ("text", "18446744073709551616", "10", "a\n"),
        ("number", "4594531474933654033", "10", "32\n"),
        ("number", "3VGOE12CCB8GH", "a", "10\n"),
        ("number", "007", "7", "7\n"),
    ] {
        let done = folder.run(&[verb, bad, good]);
        assert_eq!((done.status.code(), done.stdout.as_str()), (Some(1), expected), "{bad}");
        let start = format!("randflake: INVALID_ID: \"{bad}\": ");
        assert!(done.stderr.starts_with(&start), "{}", done.stderr);
    }
}
