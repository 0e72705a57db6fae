//! What is dropped is erased: after everything that knew a secret was dropped, the memory of a
//! process contains neither the secret nor a key that was derived from it.
//!
//! A process makes generators and so on, and reports when it has dropped them; its parent, which
//! knows what to look for, reads its memory.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    if std::env::var_os(linux::CHILD).is_some() {
        linux::use_the_secret();
    } else {
        linux::what_is_dropped_is_erased();
    }
}

#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout, reason = "how a process talks to its parent")]
mod linux {
    use std::{
        env,
        fs::{self, File},
        hint,
        io::{self, BufRead, BufReader, Read, Write},
        os::unix::fs::FileExt,
        process::{Child, Command, Stdio},
    };

    use hkdf::Hkdf;
    use randflake::{
        Cloak, Clock, Codes, Id, Inspector, Lease, NodeIds, Randflake, Secret, SystemClock,
    };
    use sha2::Sha256;

    pub(crate) const CHILD: &str = "RANDFLAKE_TEST_SECRETS";
    const LABEL: &str = "orders.id";

    /// Reads a secret, makes all that can be made with it, and drops that. Reports each step, then
    /// waits for a line.
    pub(crate) fn use_the_secret() {
        // Without the standard library's buffer.
        let mut bytes = [0; Secret::BYTES];
        File::open("/dev/stdin").and_then(|mut stdin| stdin.read_exact(&mut bytes)).expect("16");
        let secret = Secret::from_bytes(&bytes).expect("16 bytes");
        bytes.fill(0);
        hint::black_box(&bytes);

        let now = SystemClock.now().expect("a time") / 1_000_000_000;
        let lease = Lease::new(now, now + 100).expect("a lease");
        let builder = |node_id| Randflake::builder(&secret).node_id(node_id).restart_safe(false);
        let flakes = vec![
            builder(1).build().expect("free"),
            builder(1).build().expect("the same"),
            builder(2).granted_lease(lease).build().expect("free"),
        ];
        let mut ids = [Id::default(); 200];
        for flake in &flakes {
            flake.fill(&mut ids).expect("ids");
            ids[0] = flake.generate().expect("an id");
            assert_eq!(flake.inspect(ids[1]), flake.inspect(ids[1]));
        }
        assert!(builder(2).build().is_err(), "an error knows nothing either");
        assert_eq!(NodeIds::of_secret(&secret).grant(&[1]), [1]);
        let cloak = Cloak::new(&secret, LABEL);
        cloak.hide_in_place(&mut [7; 100]);
        assert_eq!(cloak.clone().reveal(cloak.hide(7)), 7);
        let codes = Codes::builder(&secret, LABEL).check(2).build().expect("codes");
        let code = codes.clone().encode(7).expect("a code");
        assert_eq!(codes.decode(&code), Ok(7));
        assert!(codes.decode("00000000").is_err(), "an error knows nothing either");
        let inspector = Inspector::new(&secret);
        let mut raws = ids.map(i64::from);
        inspector.clone().inspect_many(&raws.clone(), &mut raws, &mut [0; 200], &mut [0; 200]);
        hint::black_box(secret.hmac(&[b"fingerprint"]));
        let (copy, weakness) = (secret.clone(), secret.weakness());
        let moved = vec![Box::new((flakes, cloak, codes, inspector, copy, secret))];
        hint::black_box((&moved, weakness));

        say("held");
        drop(moved);
        say("dropped");
    }

    fn say(what: &str) {
        println!("{what}");
        let mut go_on = [0];
        File::open("/dev/stdin")
            .and_then(|mut stdin| stdin.read_exact(&mut go_on))
            .expect("a byte");
    }

    pub(crate) fn what_is_dropped_is_erased() {
        let mut secret = [0; Secret::BYTES];
        File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut secret))
            .expect("random");
        let mut keys = Keys { secret, cloak: [0; 16], codes: [0; 32] };
        let derived = Hkdf::<Sha256>::new(None, &secret);
        let derive = |purpose: &str, key: &mut [u8]| {
            derived.expand_multi_info(&[purpose.as_bytes(), LABEL.as_bytes()], key).expect("short");
        };
        derive("randflake cloak v1", &mut keys.cloak);
        derive("randflake codes v1", &mut keys.codes);

        let this = env::current_exe().expect("a path");
        let mut command = Command::new(this);
        command.env(CHILD, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut to_child = child.stdin.take().expect("a pipe");
        let mut from_child = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut says = |what: &str| {
            let mut line = String::new();
            from_child.read_line(&mut line).expect("a line");
            assert_eq!(line.trim_end(), what);
        };
        to_child.write_all(&secret).expect("a reader");
        says("held");
        let held = found(&child, &keys).expect("memory that can be read");
        to_child.write_all(&[0]).expect("a reader");
        says("dropped");
        let dropped = found(&child, &keys).expect("memory that can be read");
        to_child.write_all(&[0]).expect("a reader");
        assert!(child.wait().expect("an end").success());

        let mut known = vec!["secret", "round keys", "round keys of the cloak"];
        // Where AES is in the processor, the schedule begins with the key.
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("aes") {
            known.push("key of the codes");
        }
        for what in known {
            assert!(
                held.iter().any(|found| found.starts_with(what)),
                "{what} while held: {held:?}"
            );
        }
        assert!(dropped.is_empty(), "{dropped:#?}");
    }

    struct Keys {
        secret: [u8; 16],
        cloak: [u8; 16],
        codes: [u8; 32],
    }

    /// Returns which parts of the secret and its keys are in the writable memory of a process, and
    /// where.
    fn found(child: &Child, keys: &Keys) -> io::Result<Vec<String>> {
        let mut needles = needles("secret", "round keys", &keys.secret);
        needles.extend(self::needles("key of the cloak", "round keys of the cloak", &keys.cloak));
        for part in keys.codes.as_chunks().0 {
            needles.push(("key of the codes".to_owned(), *part));
        }
        let maps = fs::read_to_string(format!("/proc/{}/maps", child.id()))?;
        let memory = File::open(format!("/proc/{}/mem", child.id()))?;
        let mut found = Vec::new();
        for line in maps.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(range), Some(rights)) = (fields.next(), fields.next()) else { continue };
            let name = fields.nth(3).unwrap_or("");
            if !rights.starts_with("rw") {
                continue;
            }
            let (start, end) = range.split_once('-').expect("a range");
            let number = |text| u64::from_str_radix(text, 16).expect("an address");
            let (start, end) = (number(start), number(end));
            let mut bytes = vec![0; usize::try_from(end - start).expect("fits")];
            if memory.read_exact_at(&mut bytes, start).is_err() {
                continue; // the kernel's own
            }
            for at in 0..bytes.len().saturating_sub(8) {
                let window: [u8; 8] = bytes[at..at + 8].try_into().expect("8 bytes");
                for (what, needle) in &needles {
                    if window == *needle {
                        let address = start + at as u64;
                        found.push(format!("{what} at {address:x} of {range} {name}"));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Eight bytes each: of a key as bytes and as the words of the cipher, and of its round keys.
    fn needles(key: &'static str, keys: &'static str, bytes: &[u8; 16]) -> Vec<(String, [u8; 8])> {
        let mut words = [0_u16; 8];
        for (word, pair) in words.iter_mut().zip(bytes.chunks_exact(2)) {
            *word = u16::from_be_bytes([pair[0], pair[1]]);
        }
        let four = |words: [u16; 4]| {
            let mut bytes = [0; 8];
            for (pair, word) in bytes.chunks_exact_mut(2).zip(words) {
                pair.copy_from_slice(&word.to_ne_bytes());
            }
            bytes
        };
        let mut needles: Vec<_> = [0, 8]
            .map(|half| (key.to_owned(), bytes[half..half + 8].try_into().expect("8 bytes")))
            .into();
        // The key schedule of the paper, with the words as they are, and each of them twice.
        for counter in 1..=16_u16 {
            for word in 0..5 {
                needles.push((
                    format!("{keys} ({counter})"),
                    four([0, 1, 2, 3].map(|i| words[word + i])),
                ));
            }
            for word in [0, 2, 4] {
                let [one, other] = [words[word], words[word + 1]];
                needles.push((format!("{keys} ({counter})"), four([one, one, other, other])));
            }
            let x = words[0].rotate_right(7).wrapping_add(words[1]);
            let y = words[1].rotate_left(2) ^ x;
            (words[0], words[1]) = (x, y);
            words[2] = words[2].wrapping_add(x);
            words[3] = words[3].wrapping_add(y);
            words[7] = words[7].wrapping_add(counter);
            words.rotate_right(2);
        }
        needles
    }
}
