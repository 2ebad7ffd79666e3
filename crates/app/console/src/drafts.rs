//! Files that are not whole yet: a signal that ends the program (Ctrl-C) removes them first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

static DRAFTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A draft as long as it is written.
#[derive(Debug)]
pub(crate) struct Listed(PathBuf);

impl Listed {
    pub(crate) fn new(draft: &Path) -> Self {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            let (armed, is_armed) = channel();
            drop(thread::Builder::new().spawn(move || watch(armed)));
            // No draft before signals are waited for. If they cannot be, nothing comes.
            _ = is_armed.recv();
        });
        with_drafts(|drafts| drafts.insert(draft.to_owned()));
        Self(draft.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        with_drafts(|drafts| drafts.remove(&self.0));
    }
}

fn with_drafts(change: impl FnOnce(&mut BTreeSet<PathBuf>) -> bool) {
    // A set is whole after every change, whatever panicked meanwhile.
    change(&mut DRAFTS.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Ends the program on a signal, without the drafts.
fn watch(armed: Sender<()>) {
    // Without a runtime signals end the program as they always do.
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let Some(code) = runtime.block_on(signalled(armed)) else { return };
    with_drafts(|drafts| {
        // There is nobody to tell if that fails.
        drafts.iter().for_each(|draft| drop(fs::remove_file(draft)));
        false
    });
    std::process::exit(code);
}

/// Waits for a signal, and says when it begins to; answers with the exit code that shells give to
/// it.
#[cfg(unix)]
async fn signalled(armed: Sender<()>) -> Option<i32> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).ok()?;
    let mut terminate = signal(SignalKind::terminate()).ok()?;
    _ = armed.send(());
    tokio::select! {
        got = interrupt.recv() => got.map(|()| 130),
        got = terminate.recv() => got.map(|()| 143),
    }
}

#[cfg(not(unix))]
async fn signalled(armed: Sender<()>) -> Option<i32> {
    _ = armed.send(());
    tokio::signal::ctrl_c().await.ok().map(|()| 130)
}
