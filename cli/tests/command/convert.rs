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
        // From the input, with lines of Windows and an empty one.
        let input = given.replace('\n', "\r\n") + "\n";
        let mut command = folder.command(&[verb]);
        expect(&run(command.env_remove("RANDFLAKE_SECRET"), &input), 0, expected, "");
    }
}

#[test]
fn what_is_none_is_named_and_the_others_are_converted() {
    let folder = Folder::new("convert-bad");
    for (verb, bad, good, expected) in [
        ("text", "3vgoe12ccb8gh", "7", "7\n"),
        ("text", "9223372036854775808", "10", "a\n"),
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
