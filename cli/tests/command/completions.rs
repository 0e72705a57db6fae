//! Completion scripts, run by the installed shells.
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::process::Command;

use crate::{Folder, run};

/// The command that completes `randflake lease l`, in each shell that can be asked.
const ASKED: [(&str, &str); 3] = [
    ("bash", ". ./script; _randflake randflake l lease; echo \"${COMPREPLY[@]}\""),
    ("fish", "source ./script; complete --do-complete 'randflake lease l'"),
    // Its completions appear only while editing a line; its being registered shows that it ran.
    ("zsh", "autoload -U compinit; compinit -D -u; . ./script; print list $_comps[randflake]"),
];

#[test]
fn shells_complete() {
    for (shell, asks) in ASKED {
        let folder = Folder::new(&format!("completions-{shell}"));
        let script = folder.run(&["completions", shell]);
        assert_eq!((script.status.code(), script.stderr.as_str()), (Some(0), ""), "{shell}");
        std::fs::write(folder.0.join("script"), &script.stdout).expect("a file can be written");
        let is_here = Command::new(shell).args(["-c", "true"]).output().is_ok();
        if !is_here {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{shell} is not installed");
            eprintln!("SKIPPED: {shell} is not installed");
            continue;
        }
        let before =
            if shell == "bash" { "COMP_WORDS=(randflake lease l); COMP_CWORD=2; " } else { "" };
        let mut command = Command::new(shell);
        command.args(["-c", &format!("{before}{asks}")]).current_dir(&folder.0);
        let answer = run(command.env("HOME", &folder.0), "");
        assert_eq!(answer.stderr, "", "{shell}");
        assert!(answer.stdout.starts_with("list"), "{shell}: {}", answer.stdout);
        if shell == "zsh" {
            assert!(answer.stdout.contains("_randflake"), "{}", answer.stdout);
        }
    }
}

#[test]
fn other_shells_have_a_script_too() {
    let folder = Folder::new("completions");
    for shell in ["powershell", "elvish"] {
        let script = folder.run(&["completions", shell]);
        assert_eq!(script.status.code(), Some(0), "{}", script.stderr);
        assert!(script.stdout.contains("allow-weak-store"), "{}", script.stdout);
    }
    let wrong = folder.run(&["completions", "cmd"]);
    assert_eq!((wrong.status.code(), wrong.stdout.as_str()), (Some(2), ""));
}
