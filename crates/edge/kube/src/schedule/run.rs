//! Runs a scheduler: elected or alone, one leadership after the other.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Config;
use thiserror::Error;
use tokio::sync::watch;
use tracing::{info, warn};

use super::comparison::Comparison;
use super::metrics::Metrics;
use super::record::Recording;
use super::status::{Standing, Status};
use super::term::Term;
use crate::bind::BinderSettings;
use crate::client::{ClientError, Clients};
use crate::lead::{Alone, Clock, Keeper, LeaseName, Phase, Terms, TermsError};
use crate::{watch as watches, world};
use dovetail_plan::engine::EngineConfig;

/// Until the lease is seen, it is asked for so often whether it was.
const LOOK: Duration = Duration::from_secs(1);

/// How a scheduler runs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Decide and report, write nothing.
    pub dry_run: bool,
    /// Who may write; `None`: this process, always. Not looked at in a dry run.
    pub election: Option<Election>,
    /// What the pods' own scheduler does is compared with what this one decides; for a dry run that looks at the
    /// pods of another scheduler.
    pub comparison: Option<Arc<Mutex<Comparison>>>,
    /// Where everything that is decided is written down.
    pub recording: Option<Recording>,
    /// Limits of the binds.
    pub binder: BinderSettings,
    /// Name of this process in the events it writes; if empty, that of the scheduler.
    pub instance: String,
    /// How is decided.
    pub engine: EngineConfig,
    /// Whose pods, and how they are read.
    pub world: world::Settings,
    /// How is watched.
    pub watch: watches::Settings,
}

/// Several processes, of which one writes.
#[derive(Clone, Debug)]
pub struct Election {
    /// The Lease.
    pub lease: LeaseName,
    /// Name of this process, which no other may ever have.
    pub identity: String,
    /// Its times.
    pub terms: Terms,
}

/// A scheduler cannot run.
#[derive(Debug, Error)]
pub enum RunError {
    /// No client could be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The times of the election are not safe.
    #[error(transparent)]
    Terms(#[from] TermsError),
}

/// What all parts of a process share.
pub(super) struct Shared {
    pub(super) clients: Clients,
    pub(super) status: Arc<Status>,
    pub(super) metrics: Arc<Metrics>,
}

impl Shared {
    /// Time for people and for the engine, in milliseconds since 1970.
    pub(super) fn now_ms(&self) -> u64 {
        jiff::Timestamp::now().as_millisecond().max(0).cast_unsigned()
    }
}

/// Runs a scheduler until `stop` says true or is dropped; then every bind that was begun is over, and
/// the leadership is given up.
///
/// # Errors
/// When it cannot start. What goes wrong later is logged, counted and tried again.
pub async fn run(
    config: &Config,
    options: Options,
    status: Arc<Status>,
    metrics: Arc<Metrics>,
    stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let clients = Clients::new(config)?;
    let shared = Arc::new(Shared { clients, status, metrics });
    match options.election.clone().filter(|_| !options.dry_run) {
        None => alone(shared.clone(), &options, stop).await,
        Some(election) => elected(shared.clone(), &options, election, stop).await?,
    }
    info!("stopped");
    Ok(())
}

/// Without election there is one leadership, for ever.
async fn alone(shared: Arc<Shared>, options: &Options, mut stop: watch::Receiver<bool>) {
    let leadership = Arc::new(Alone::new(Clock::machine(), Terms::default().write_timeout_ms));
    let beginning = Term::begin(shared.clone(), leadership, options, 0);
    let mut term = tokio::select! {
        term = beginning => term,
        () = stopped(&mut stop) => return,
    };
    tokio::select! {
        () = term.run() => {}
        () = stopped(&mut stop) => {}
    }
    shared.status.set(Standing::Stopping);
    term.end().await;
}

async fn elected(
    shared: Arc<Shared>,
    options: &Options,
    election: Election,
    mut stop: watch::Receiver<bool>,
) -> Result<(), TermsError> {
    let Election { lease, identity, terms } = election;
    info!(identity, namespace = lease.namespace, lease = lease.name, "running for the leadership");
    let client = shared.clients.lease.clone();
    let keeper = Arc::new(Keeper::new(client, lease, identity, terms, Clock::machine())?);
    // On a task of its own: no decision delays a renewal.
    let running = tokio::spawn({
        let keeper = keeper.clone();
        async move { keeper.run().await }
    });
    loop {
        let phases = keeper.phases();
        let epoch = tokio::select! {
            epoch = to_relist(&shared, &keeper, phases) => epoch,
            () = stopped(&mut stop) => break,
        };
        let is_stopped = lead(&shared, &keeper, options, epoch, &mut stop).await;
        if is_stopped {
            break;
        }
        warn!(epoch, "the leadership is over");
    }
    shared.status.set(Standing::Stopping);
    running.abort();
    // An aborted task ends with an error that says so.
    _ = running.await;
    keeper.resign().await;
    Ok(())
}

/// One leadership; true if it ended because the process is to stop.
async fn lead(
    shared: &Arc<Shared>,
    keeper: &Arc<Keeper>,
    options: &Options,
    epoch: u64,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    info!(epoch, "leading: reading the world");
    let beginning = Term::begin(shared.clone(), keeper.clone(), options, epoch);
    let mut term = tokio::select! {
        term = beginning => term,
        () = is_over(keeper, epoch) => return false,
        () = stopped(stop) => return true,
    };
    keeper.relisted(epoch);
    let is_stopped = tokio::select! {
        () = term.run() => false,
        () = is_over(keeper, epoch) => false,
        () = stopped(stop) => true,
    };
    if is_stopped {
        shared.status.set(Standing::Stopping);
    }
    term.end().await;
    is_stopped
}

/// Waits until this process leads and must read the world.
async fn to_relist(shared: &Shared, keeper: &Keeper, mut phases: watch::Receiver<Phase>) -> u64 {
    loop {
        let phase = *phases.borrow_and_update();
        if let Phase::Relisting { epoch } = phase {
            return epoch;
        }
        if keeper.holder().is_some() {
            shared.status.set(Standing::StandingBy);
        }
        // The lease may be seen without a change of phase. The keeper outlives its receivers.
        _ = tokio::time::timeout(LOOK, phases.changed()).await;
    }
}

/// Waits until a leadership is over.
async fn is_over(keeper: &Keeper, epoch: u64) {
    let mut phases = keeper.phases();
    let ours = |phase: &Phase| {
        *phase == Phase::Relisting { epoch } || *phase == (Phase::Leading { epoch })
    };
    // The sender lives as long as the keeper.
    _ = phases.wait_for(|phase| !ours(phase)).await;
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say stop being gone means the same.
    _ = stop.wait_for(|stop| *stop).await;
}
