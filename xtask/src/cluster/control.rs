//! The socket by which `status` and `down` reach the process that holds the control plane.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// Sends one word and reads the whole answer; `None` where no control plane is running.
pub(super) fn ask(word: &str) -> Result<Option<String>> {
    // A socket of a killed process is a file that nobody answers.
    let Ok(mut stream) = UnixStream::connect(path()) else { return Ok(None) };
    stream.write_all(word.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("the control plane's process broke off")?;
    Ok(Some(answer))
}

/// Takes the socket of this clone. Who asks before [`answer_at`] waits.
pub(super) fn open() -> Result<UnixListener> {
    let path = path();
    ensure!(UnixStream::connect(&path).is_err(), "another control plane of this clone is running");
    // What a killed process left.
    let _ = std::fs::remove_file(&path);
    UnixListener::bind(&path).with_context(|| format!("bind {}", path.display()))
}

/// Answers until `answer` says that it was the last time, and gives back who asked then.
pub(super) fn answer_at(
    listener: &UnixListener,
    mut answer: impl FnMut(&str) -> ControlAnswer,
) -> Result<UnixStream> {
    loop {
        let (mut stream, _) = listener.accept()?;
        let mut word = String::new();
        if stream.read_to_string(&mut word).is_err() {
            continue;
        }
        match answer(&word) {
            // Whoever asked may be gone.
            ControlAnswer::Text(text) => drop(stream.write_all(text.as_bytes())),
            ControlAnswer::Stop => return Ok(stream),
        }
    }
}

/// Takes the socket away when nobody answers any more.
pub(super) fn close() {
    let _ = std::fs::remove_file(path());
}

pub(super) enum ControlAnswer {
    Text(String),
    /// Stop listening; the asker gets its answer later.
    Stop,
}

/// In the system's temporary folder, because a socket's path must be short; with the number that
/// stands for this clone, because each has a control plane of its own.
fn path() -> PathBuf {
    let clone = super::folder();
    let bytes = clone.as_os_str().as_encoded_bytes();
    // FNV-1a: any hash that stays the same from run to run.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    std::env::temp_dir().join(format!("dovetail-cluster-{hash:016x}.sock"))
}
