//! Runs the kubelets against an API server: watches in, timers, requests out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dovetail_rehearsal::kubelets::{Identity, KubeletWrite, Kubelets, PodTransition, Wish};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::KubeletCounts;
use super::devices::carry_out;
use super::pauses::Pauses;
use super::request::{RequestOutcome, perform};
use crate::dra_driver::DraDriver;

/// Below the limits at which load balancers cut a silent connection.
const WATCH_SECONDS: u32 = 200;

pub(super) struct Driver {
    client: Client,
    world: Arc<Mutex<Kubelets>>,
    devices: Option<Arc<DraDriver>>,
    counts: watch::Sender<KubeletCounts>,
    /// By due time; equal times keep their order.
    timers: BTreeMap<(Instant, u64), (String, PodTransition)>,
    timers_made: u64,
    /// Requests that wait for one of those under way to end.
    queue: VecDeque<(Identity, KubeletWrite)>,
    requests: JoinSet<(Identity, KubeletWrite, RequestOutcome)>,
    requests_in_flight: usize,
}

/// What a watch that was cut has listed so far.
struct Listed<K>(Vec<K>);

impl Driver {
    pub(super) fn new(
        client: Client,
        world: Arc<Mutex<Kubelets>>,
        devices: Option<Arc<DraDriver>>,
        counts: watch::Sender<KubeletCounts>,
        requests_in_flight: usize,
    ) -> Self {
        Self {
            client,
            world,
            devices,
            counts,
            timers: BTreeMap::new(),
            timers_made: 0,
            queue: VecDeque::new(),
            requests: JoinSet::new(),
            requests_in_flight: requests_in_flight.max(1),
        }
    }

    /// Plays the kubelets until the task is aborted.
    pub(super) async fn run(mut self) {
        let mut pods = Box::pin(events::<Pod>(&self.client, Some("spec.nodeName!=")));
        let mut nodes = Box::pin(events::<Node>(&self.client, None));
        let (mut listed_pods, mut listed_nodes) = (Listed(Vec::new()), Listed(Vec::new()));
        loop {
            let next = self.timers.keys().next().map(|(due, _)| *due);
            tokio::select! {
                Some(event) = pods.next() => self.pod_event(event, &mut listed_pods),
                Some(event) = nodes.next() => self.node_event(event, &mut listed_nodes),
                Some(done) = self.requests.join_next() => self.request_done(done),
                () = until(next), if next.is_some() => self.timer_due(),
            }
        }
    }

    fn pod_event(&mut self, event: Event<Pod>, listed: &mut Listed<Pod>) {
        let wishes = match event {
            Event::Init => return listed.0.clear(),
            Event::InitApply(pod) => return listed.0.push(pod),
            Event::InitDone => {
                if let Some(devices) = &self.devices {
                    let uids = listed.0.iter().filter_map(|pod| pod.metadata.uid.clone());
                    devices.keep_only(&uids.collect());
                }
                let pods = listed.0.drain(..).map(|pod| plain(&pod)).collect();
                self.counts.send_modify(|counts| counts.pods_listed = true);
                self.ask(|world, wishes| world.pods_listed(pods, wishes))
            }
            Event::Apply(pod) => self.ask(|world, wishes| world.pod_applied(&plain(&pod), wishes)),
            Event::Delete(pod) => {
                let uid = pod.metadata.uid.unwrap_or_default();
                if let Some(devices) = &self.devices {
                    devices.unprepare(&uid);
                }
                self.counts.send_modify(|counts| counts.gone += 1);
                self.ask(|world, _| world.pod_deleted(&uid))
            }
        };
        self.grant(wishes);
    }

    fn node_event(&mut self, event: Event<Node>, listed: &mut Listed<Node>) {
        let wishes = match event {
            Event::Init => return listed.0.clear(),
            Event::InitApply(node) => return listed.0.push(node),
            Event::InitDone => {
                let nodes: Vec<Value> = listed.0.drain(..).map(|node| plain(&node)).collect();
                self.counts.send_modify(|counts| counts.nodes_listed = true);
                self.ask(|world, wishes| world.nodes_listed(&nodes, wishes))
            }
            Event::Apply(node) => {
                self.ask(|world, wishes| world.node_applied(&plain(&node), wishes))
            }
            Event::Delete(node) => {
                let name = node.metadata.name.unwrap_or_default();
                self.ask(|world, _| world.node_deleted(&name))
            }
        };
        self.grant(wishes);
    }

    fn timer_due(&mut self) {
        if let Some((_, (uid, step))) = self.timers.pop_first() {
            let wishes = self.ask(|world, wishes| world.step(&uid, step, wishes));
            self.grant(wishes);
        }
    }

    fn request_done(
        &mut self,
        done: Result<(Identity, KubeletWrite, RequestOutcome), tokio::task::JoinError>,
    ) {
        // A request that panicked is a bug of ours: let the test see it.
        let (identity, write, outcome) = match done {
            Ok(done) => done,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        self.counts.send_modify(|counts| counts.add(&write, outcome));
        if let Some((identity, write)) = self.queue.pop_front() {
            self.send(identity, write);
        }
        let wishes = self.ask(|world, wishes| world.written(&identity.uid, wishes));
        self.grant(wishes);
    }

    fn ask(&mut self, question: impl FnOnce(&mut Kubelets, &mut Vec<Wish>)) -> Vec<Wish> {
        let mut wishes = Vec::new();
        question(&mut lock(&self.world), &mut wishes);
        wishes
    }

    fn grant(&mut self, wishes: Vec<Wish>) {
        for wish in wishes {
            match wish {
                Wish::Write(identity, write) if self.requests.len() < self.requests_in_flight => {
                    self.send(identity, write);
                }
                Wish::Write(identity, write) => self.queue.push_back((identity, write)),
                Wish::Wait(delay, uid, step) => {
                    self.timers_made += 1;
                    self.timers.insert((Instant::now() + delay, self.timers_made), (uid, step));
                }
            }
        }
    }

    fn send(&mut self, identity: Identity, write: KubeletWrite) {
        let (client, devices) = (self.client.clone(), self.devices.clone());
        self.requests.spawn(async move {
            let outcome = match &devices {
                Some(devices) => carry_out(&client, devices, &identity, &write).await,
                None => perform(&client, &identity, &write).await,
            };
            (identity, write, outcome)
        });
    }
}

pub(super) fn lock(world: &Mutex<Kubelets>) -> MutexGuard<'_, Kubelets> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An object as the kubelets read it.
pub(super) fn plain(object: &impl Serialize) -> Value {
    // What came as JSON goes back into it.
    serde_json::to_value(object).unwrap_or_default()
}

async fn until(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due).await;
    }
}

/// A watch that never ends: what breaks it is tried again.
fn events<K>(client: &Client, fields: Option<&str>) -> impl Stream<Item = Event<K>> + Send + use<K>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
    K: serde::de::DeserializeOwned,
{
    let mut config = watcher::Config::default().timeout(WATCH_SECONDS);
    if let Some(fields) = fields {
        config = config.fields(fields);
    }
    watcher(Api::<K>::all(client.clone()), config)
        .backoff(Pauses::default())
        .filter_map(|event| std::future::ready(event.ok()))
}
