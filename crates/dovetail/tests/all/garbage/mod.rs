//! Garbage in: whatever a stranger's file holds, a reader takes it or says what is wrong. It never
//! panics.

#[path = "../../../../../fuzz/readers.rs"]
mod readers;
mod spoil;

use std::panic::catch_unwind;

use readers::{FILE, READERS, Reader};

/// Readers whose errors have a place in a file. A table of names and an answer are named by whoever
/// has them.
const WITH_PLACE: [&str; 6] = ["bill", "cluster", "dump", "prices", "trace", "usage"];

#[test]
fn good_input_is_taken() {
    for Reader { name, read, seed } in READERS {
        assert_eq!(read(seed.as_bytes()), Ok(()), "{name}");
    }
}

#[test]
fn garbage_is_taken_or_refused_with_words() {
    let mut wrong = Vec::new();
    for Reader { name, read, seed } in READERS {
        let (mut refused, mut count) = (0, 0);
        for (what, bytes) in spoil::spoiled(seed) {
            count += 1;
            match catch_unwind(|| read(&bytes)) {
                Ok(Ok(())) => {}
                Ok(Err(text)) => {
                    refused += 1;
                    if WITH_PLACE.contains(&name) && !text.contains(FILE) {
                        wrong.push(format!("{name}: {what}: names no file: {text}"));
                    }
                    if text.len() > 4096 {
                        wrong.push(format!("{name}: {what}: {} bytes of error", text.len()));
                    }
                }
                Err(_) => wrong.push(format!("{name}: {what}: it panicked")),
            }
        }
        assert!(count >= 100, "{name}: {count} cases");
        assert!(refused >= 50 && refused < count, "{name}: {refused} of {count} refused");
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong, such as\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}
