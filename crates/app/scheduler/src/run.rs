//! Runs a scheduler: elected or alone, one leadership after the other.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dovetail_apiserver::client::{ClientError, Clients};
use dovetail_apiserver::watch as watches;
use dovetail_cluster::world;
use dovetail_control::control::Settings;
use dovetail_control::lead::{ElectionPhase, LeaseTimes, TermsError};
use dovetail_control::record::Recording;
use dovetail_control::schedule::Comparison;
use dovetail_plan::engine::EngineConfig;
use kube::Config;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::first_lists::ListPatience;
use super::leader_loop::LeaderLoop;
use super::metrics::Metrics;
use super::reading::Unlisted;
use super::status::{ProcessPhase, Status};
use crate::lead::{Alone, Clock, Keeper, LeaseName};

/// Until the lease is seen, it is asked for so often whether it was.
const LOOK: Duration = Duration::from_secs(1);

/// How a scheduler runs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Decide and report, write nothing.
    pub dry_run: bool,
    /// Who may write; `None`: this process, always. Not looked at in a dry run.
    pub election: Option<Election>,
    /// What the pods' own scheduler does is compared with what this one decides; for a dry run that
    /// looks at the pods of another scheduler.
    pub comparison: Option<Arc<Mutex<Comparison>>>,
    /// Where everything that is decided is written down.
    pub recording: Option<Recording>,
    /// Name of this process in the events it writes; if empty, that of the scheduler.
    pub instance: String,
    /// How is decided.
    pub engine: EngineConfig,
    /// The name of the policy, where it may change while the scheduler runs.
    pub policies: Option<watch::Receiver<String>>,
    /// Whose pods, and how they are read.
    pub world: world::Settings,
    pub watch: watches::Settings,
    /// What follows when the cluster cannot be read.
    pub lists: ListPatience,
    /// How volumes are waited for.
    pub volumes: world::VolumePatience,
}

impl Options {
    /// What the deciding part is told.
    pub(super) fn control(&self) -> Settings {
        Settings {
            instance: self.instance.clone(),
            only_asks: false,
            world: self.world.clone(),
            engine: self.engine.clone(),
            volumes: self.volumes,
            learned: self.election.as_ref().map(|election| election.lease.learned()),
            dry_run: self.dry_run,
            comparison: self.comparison.clone(),
            recording: self.recording.clone(),
        }
    }

    pub(super) fn watching(&self) -> watches::Settings {
        watches::Settings { keeps_json: self.recording.is_some(), ..self.watch }
    }
}

/// Several processes, of which one writes.
#[derive(Clone, Debug)]
pub struct Election {
    pub lease: LeaseName,
    /// Name of this process, which no other may ever have.
    pub identity: String,
    pub terms: LeaseTimes,
}

/// A scheduler cannot run.
#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The times of the election are not safe.
    #[error(transparent)]
    Terms(#[from] TermsError),
}

/// What all parts of a process share.
pub(super) struct Shared {
    pub(super) clients: Clients,
    /// Address of the server.
    pub(super) server: String,
    pub(super) status: Arc<Status>,
    pub(super) metrics: Arc<Metrics>,
}

/// Runs a scheduler until `stop` says true or is dropped; then every bind that was begun is over,
/// and the leadership is given up.
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
    let server = config.cluster_url.to_string();
    let shared = Arc::new(Shared { clients, server, status, metrics });
    match options.election.clone().filter(|_| !options.dry_run) {
        None => alone(shared.clone(), &options, stop).await,
        Some(election) => elected(shared.clone(), &options, election, stop).await?,
    }
    info!("stopped");
    Ok(())
}

/// Without election there is one leadership, for ever.
async fn alone(shared: Arc<Shared>, options: &Options, mut stop: watch::Receiver<bool>) {
    let leadership = Arc::new(Alone::new(Clock, LeaseTimes::default().write_timeout_ms));
    let mut term = LeaderLoop::new(shared.clone(), leadership, options, 0);
    let is_listed = tokio::select! {
        // There is no lease to give up: it is tried for ever.
        listed = term.begin(None) => listed.is_ok(),
        () = stopped(&mut stop) => false,
    };
    if !is_listed {
        return shared.status.set(ProcessPhase::Stopping);
    }
    tokio::select! {
        () = term.run() => {}
        () = stopped(&mut stop) => {}
    }
    shared.status.set(ProcessPhase::Stopping);
    term.end().await;
}

async fn elected(
    shared: Arc<Shared>,
    options: &Options,
    election: Election,
    mut stop: watch::Receiver<bool>,
) -> Result<(), TermsError> {
    let Election { lease, identity, terms } = election;
    info!(identity, namespace = lease.namespace, lease = lease.name, "trying to become the leader");
    let client = shared.clients.lease.clone();
    let (server, clock) = (shared.server.clone(), Clock);
    let keeper = Arc::new(Keeper::new(client, server, lease, identity, terms, clock)?);
    let mut running = renew(&keeper);
    loop {
        let phases = keeper.phases();
        let epoch = tokio::select! {
            epoch = to_relist(&shared, &keeper, phases) => epoch,
            () = stopped(&mut stop) => break,
        };
        match lead(&shared, &keeper, options, epoch, &mut stop).await {
            End::Stopped => break,
            End::Over => warn!(epoch, "no longer the leader"),
            End::Unlisted(problem) => {
                let pause = Duration::from_millis(options.lists.pause_ms);
                warn!(
                    epoch,
                    pause_s = pause.as_secs(),
                    "giving up the leadership so that another process can take it: {problem}"
                );
                give_up(&keeper, running).await;
                shared.status.set_with(ProcessPhase::Starting, Some(problem));
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stopped(&mut stop) => {
                        shared.status.set(ProcessPhase::Stopping);
                        return Ok(());
                    }
                }
                running = renew(&keeper);
            }
        }
    }
    shared.status.set(ProcessPhase::Stopping);
    give_up(&keeper, running).await;
    Ok(())
}

/// Runs for the leadership and keeps it, on a task of its own: no decision delays a renewal.
fn renew(keeper: &Arc<Keeper>) -> JoinHandle<()> {
    let keeper = keeper.clone();
    tokio::spawn(async move { keeper.run().await })
}

/// Runs for the leadership no longer; gives it up.
async fn give_up(keeper: &Keeper, running: JoinHandle<()>) {
    running.abort();
    // An aborted task ends with an error that says so.
    _ = running.await;
    keeper.resign().await;
}

/// How a leadership ended.
enum End {
    /// Another may lead.
    Over,
    Stopped,
    /// The cluster cannot be read, and why.
    Unlisted(String),
}

async fn lead(
    shared: &Arc<Shared>,
    keeper: &Arc<Keeper>,
    options: &Options,
    epoch: u64,
    stop: &mut watch::Receiver<bool>,
) -> End {
    info!(epoch, "leading: reading all objects");
    let mut term = LeaderLoop::new(shared.clone(), keeper.clone(), options, epoch);
    let listed = tokio::select! {
        listed = term.begin(Some(options.lists)) => listed,
        () = is_over(keeper, epoch) => return End::Over,
        () = stopped(stop) => return End::Stopped,
    };
    if let Err(Unlisted(problem)) = listed {
        return End::Unlisted(problem);
    }
    keeper.relisted(epoch);
    let end = tokio::select! {
        () = term.run() => End::Over,
        () = is_over(keeper, epoch) => End::Over,
        () = stopped(stop) => End::Stopped,
    };
    if matches!(end, End::Stopped) {
        shared.status.set(ProcessPhase::Stopping);
    }
    term.end().await;
    end
}

/// Waits until this process leads and must read the world.
async fn to_relist(
    shared: &Shared,
    keeper: &Keeper,
    mut phases: watch::Receiver<ElectionPhase>,
) -> u64 {
    loop {
        let phase = *phases.borrow_and_update();
        if let ElectionPhase::Relisting { epoch } = phase {
            return epoch;
        }
        let standing = match keeper.holder() {
            Some(_) => ProcessPhase::StandingBy,
            None => ProcessPhase::Starting,
        };
        shared.status.set_with(standing, keeper.trouble());
        // The lease may be seen without a change of phase. The keeper outlives its receivers.
        _ = tokio::time::timeout(LOOK, phases.changed()).await;
    }
}

/// Waits until a leadership is over.
async fn is_over(keeper: &Keeper, epoch: u64) {
    let mut phases = keeper.phases();
    let ours = |phase: &ElectionPhase| {
        *phase == ElectionPhase::Relisting { epoch } || *phase == (ElectionPhase::Leading { epoch })
    };
    // The sender lives as long as the keeper.
    _ = phases.wait_for(|phase| !ours(phase)).await;
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say stop being gone means the same.
    _ = stop.wait_for(|stop| *stop).await;
}
