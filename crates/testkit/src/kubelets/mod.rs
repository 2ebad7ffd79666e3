//! One task that plays the kubelets of all nodes, against a real or a fake API server.
//!
//! What they do is up to the kubelets of `dovetail-rehearsal`; here are the watches, timers and
//! requests.

mod devices;
mod driver;
mod pauses;
mod request;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use dovetail_rehearsal::kubelets::{EXIT_CODE, KubeletOptions, RUN_MS};

use crate::dra_driver::DraDriver;
use dovetail_rehearsal::kubelets::{self as model, KubeletWrite};
use driver::{Driver, lock};
use request::RequestOutcome;

/// The kubelets of all nodes. They stop when the value is dropped.
pub struct Kubelets {
    client: Client,
    world: Arc<Mutex<model::Kubelets>>,
    counts: watch::Receiver<KubeletCounts>,
    task: JoinHandle<()>,
}

/// What the kubelets have told the API server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KubeletCounts {
    /// Pods that run or ran.
    pub running: u64,
    /// Pods that a node did not take.
    pub rejected: u64,
    /// Pods whose containers ended, by themselves or because they were deleted.
    pub ended: u64,
    /// Pods whose object was taken away after their containers ended.
    pub deleted: u64,
    /// Requests that the API server will never take: a mistake of these kubelets, told on stderr.
    pub refused: u64,
    /// Pods that did not start, because their claims were not prepared
    /// ([`DraDriver::refusals`]).
    pub unprepared: u64,
    /// Bound pods that were seen to go, whoever deleted them.
    pub gone: u64,
    pods_listed: bool,
    nodes_listed: bool,
}

impl KubeletCounts {
    /// Everything that changed a pod.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.running + self.rejected + self.ended + self.deleted
    }

    fn add(&mut self, write: &KubeletWrite, outcome: RequestOutcome) {
        match (outcome, write) {
            (RequestOutcome::Done, KubeletWrite::Reject(_)) => self.rejected += 1,
            (RequestOutcome::Done, KubeletWrite::Run) => self.running += 1,
            (RequestOutcome::Done, KubeletWrite::End(_)) => self.ended += 1,
            (RequestOutcome::Done, KubeletWrite::Delete) => self.deleted += 1,
            (RequestOutcome::Refused, _) => self.refused += 1,
            (RequestOutcome::Unprepared, KubeletWrite::Run) => self.unprepared += 1,
            (RequestOutcome::Gone | RequestOutcome::Unprepared, _) => {}
        }
    }
}

impl Kubelets {
    /// Starts the kubelets of all nodes that the client sees, on the runtime of the caller.
    /// Requests that fail are repeated here; a client made with `default_retry` off does not delay
    /// that.
    #[must_use]
    pub fn start(client: Client, options: KubeletOptions) -> Self {
        Self::play(client, options, None)
    }

    /// As [`Kubelets::start`]. A pod runs when the driver has prepared its claims; one of which it
    /// refuses a claim stays `ContainerCreating`.
    #[must_use]
    pub fn start_with_devices(
        client: Client,
        options: KubeletOptions,
        devices: Arc<DraDriver>,
    ) -> Self {
        Self::play(client, options, Some(devices))
    }

    fn play(client: Client, options: KubeletOptions, devices: Option<Arc<DraDriver>>) -> Self {
        let requests_in_flight = options.requests_in_flight;
        let world = Arc::new(Mutex::new(model::Kubelets::new(options)));
        let (sender, counts) = watch::channel(KubeletCounts::default());
        let driver =
            Driver::new(client.clone(), Arc::clone(&world), devices, sender, requests_in_flight);
        let task = tokio::spawn(driver.run());
        Self { client, world, counts, task }
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> KubeletCounts {
        *self.counts.borrow()
    }

    /// Waits until both watches have delivered what was there before.
    ///
    /// # Errors
    /// As [`Kubelets::wait_until`].
    pub async fn wait_until_listed(&self, within: Duration) -> Result<(), KubeletError> {
        self.wait_until(within, |counts| counts.pods_listed && counts.nodes_listed).await.map(drop)
    }

    /// Waits until enough has happened.
    ///
    /// # Errors
    /// When it has not happened in time, or when the kubelets' task ended by a panic.
    pub async fn wait_until(
        &self,
        within: Duration,
        enough: impl Fn(&KubeletCounts) -> bool,
    ) -> Result<KubeletCounts, KubeletError> {
        let mut counts = self.counts.clone();
        let waited = tokio::time::timeout(within, counts.wait_for(enough)).await;
        match waited {
            Ok(Ok(counts)) => Ok(*counts),
            Ok(Err(_)) => Err(KubeletError::Stopped),
            Err(_) => Err(KubeletError::TooLate { within, counts: self.counts() }),
        }
    }

    /// Breaks devices behind the back of the API server: from now on only `healthy` devices of this
    /// resource work on a node, while its Node object promises what it did. A pod that gets none
    /// fails with `UnexpectedAdmissionError`. Pods that run go on.
    pub fn break_devices(&self, node: &str, resource: &str, healthy: u32) {
        lock(&self.world).set_healthy(node, resource, i64::from(healthy));
    }

    /// Changes what a node offers, in its Node object. Pods that run go on, even where they hold
    /// more.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn set_allocatable(
        &self,
        node: &str,
        resource: &str,
        quantity: &str,
    ) -> Result<(), kube::Error> {
        let api: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({ "status": { "allocatable": { resource: quantity } } }));
        api.patch_status(node, &PatchParams::default(), &patch).await.map(drop)
    }

    /// How many pods are admitted on a node and not over.
    #[must_use]
    pub fn pods_on(&self, node: &str) -> usize {
        lock(&self.world).pods_on(node)
    }
}

impl fmt::Debug for Kubelets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kubelets").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why waiting for kubelets ended without what was waited for.
#[derive(Debug, Error)]
pub enum KubeletError {
    /// It did not happen in time.
    #[error("the kubelets did not get there within {within:?}: {counts:?}")]
    TooLate {
        /// How long was waited.
        within: Duration,
        /// How far they came.
        counts: KubeletCounts,
    },
    /// Their task ended.
    #[error("the kubelets ended by a panic: its message is above")]
    Stopped,
}
