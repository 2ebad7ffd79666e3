//! The thread that a connection runs on.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// A runtime that does everything on the thread which waits for it.
///
/// # Errors
/// A system that gives no event queue.
pub fn connection_runtime() -> Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start a thread for the connection")
}
