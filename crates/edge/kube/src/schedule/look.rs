//! Reads a cluster once and decides once, for questions about it. Nothing is written.

use std::time::Duration;

use futures_util::StreamExt;
use kube::Config;
use kube::runtime::watcher;
use thiserror::Error;

use super::Options;
use super::scheduler::Scheduler;
use crate::client::{ClientError, Clients};
use crate::object::Kind;
use crate::watch::{Notice, served, watch};
use crate::world::World;

/// Why a cluster cannot be read.
#[derive(Debug, Error)]
pub enum LookError {
    /// No client could be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server cannot be asked which kinds it has.
    #[error("the API server does not say which kinds of objects it has")]
    Kinds(#[source] kube::Error),
    /// A kind cannot be listed.
    #[error("{} objects cannot be listed: give your user the right to list and watch {}", .kind.name(), .kind.plural())]
    Refused {
        /// The kind.
        kind: Kind,
        /// What the server says.
        #[source]
        problem: Box<watcher::Error>,
    },
    /// It takes too long.
    #[error("the API server has not sent all objects within {} s: name a nearer server, or wait longer", .limit.as_secs())]
    Late {
        /// How long was waited.
        limit: Duration,
    },
}

/// The cluster as it is at `now_ms`, with every decision that the scheduler of these options would take about it.
///
/// # Errors
/// When the server cannot be reached or refuses to list something.
pub async fn look(
    config: &Config,
    options: &Options,
    limit: Duration,
    now_ms: u64,
) -> Result<Scheduler, LookError> {
    let clients = Clients::new(config)?;
    let reading = read(&clients, options, now_ms);
    let read = tokio::time::timeout(limit, reading).await;
    let mut scheduler = read.map_err(|_| LookError::Late { limit })??;
    scheduler.decide(now_ms);
    Ok(scheduler)
}

async fn read(clients: &Clients, options: &Options, now_ms: u64) -> Result<Scheduler, LookError> {
    let kinds = served(&clients.watches).await.map_err(LookError::Kinds)?;
    let world = World::new(options.world.clone());
    let mut scheduler = Scheduler::new(world, options.engine.clone(), 0);
    scheduler.only_ask();
    let mut notices = watch(&clients.watches, &kinds, options.watch);
    while !scheduler.is_ready() {
        // Watches never end.
        match notices.next().await {
            Some(Notice::Change(change)) => scheduler.change(change, now_ms),
            Some(Notice::Interrupted { kind, problem }) if is_refusal(&problem) => {
                return Err(LookError::Refused { kind, problem });
            }
            Some(Notice::Interrupted { .. } | Notice::Absent { .. }) | None => {}
        }
    }
    Ok(scheduler)
}

fn is_refusal(problem: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) =
        problem
    else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if matches!(status.code, 401 | 403))
}
