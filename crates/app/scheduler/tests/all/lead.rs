//! Leaders that freeze, lose their lease and come back.

use std::sync::Arc;
use std::time::Duration;

use dovetail_apiserver::client::Clients;
use dovetail_cluster::world::PodKey;
use dovetail_control::bind::{Bind, BindOutcome, Cause};
use dovetail_control::lead::{ElectionPhase, LeaseTimes};
use dovetail_scheduler::lead::{Clock, Keeper, Leadership, LeaseName};
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::sender::{Given, Sender};

const PATIENCE: Duration = Duration::from_secs(60);

fn terms() -> LeaseTimes {
    LeaseTimes { lease_ms: 3_000, renew_deadline_ms: 2_000, retry_ms: 400, write_timeout_ms: 900 }
}

/// A process: it stands still unless its runtime is driven.
struct Process {
    runtime: Runtime,
    keeper: Arc<Keeper>,
    clients: Clients,
}

impl Process {
    fn new(api: &FakeApi, identity: &str) -> Self {
        let config = kube::Config::new(api.url().parse().expect("an address"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let clients = {
            let _inside = runtime.enter();
            Clients::new(&config).expect("clients without TLS")
        };
        let place = LeaseName { namespace: "default".to_owned(), name: "dovetail".to_owned() };
        let lease = clients.lease.clone();
        let server = api.url().to_owned();
        let identity = identity.to_owned();
        let keeper = Keeper::new(lease, server, place, identity, terms(), Clock);
        Self { runtime, keeper: Arc::new(keeper.expect("safe terms")), clients }
    }

    /// Drives the process until something else is done.
    fn drive<T>(&self, until: impl Future<Output = T>) -> T {
        let keeper = self.keeper.clone();
        self.runtime.block_on(async {
            let both = async {
                tokio::select! {
                    () = keeper.run() => unreachable!("a keeper runs until it is cancelled"),
                    done = until => done,
                }
            };
            tokio::time::timeout(PATIENCE, both).await.expect("progress in time")
        })
    }

    fn drive_to_lead(&self) -> u64 {
        let mut phases = self.keeper.phases();
        self.drive(async {
            loop {
                let phase = *phases.borrow_and_update();
                match phase {
                    ElectionPhase::Leading { epoch } => return epoch,
                    ElectionPhase::Relisting { epoch } => self.keeper.relisted(epoch),
                    ElectionPhase::Following | ElectionPhase::Settling { .. } => {
                        phases.changed().await.expect("a keeper");
                    }
                }
            }
        })
    }

    fn sender(&self, epoch: u64, binds_at_once: usize) -> Sender {
        let _inside = self.runtime.enter();
        Sender::start(self.clients.clone(), self.keeper.clone(), epoch, binds_at_once)
    }
}

fn add_pods(api: &FakeApi, count: usize) {
    for at in 0..count {
        let pod = json!({"metadata": {"name": format!("p{at}")}, "spec": {"containers": [{"name": "c"}]}});
        api.create("pods", "default", &pod).expect("a new pod");
    }
}

fn decided(api: &FakeApi, pod: usize, node: &str, epoch: u64) -> Bind {
    let name = format!("p{pod}");
    let object = api.get("pods", "default", &name).expect("the pod");
    Bind {
        decision: pod as u64,
        pod: PodKey {
            namespace: "default".into(),
            name: name.into(),
            uid: object["metadata"]["uid"].as_str().expect("a UID").into(),
        },
        node: node.into(),
        epoch,
        tag: format!("{node}-{epoch}"),
    }
}

#[test]
fn a_frozen_leader_lands_the_write_it_began_and_no_other() {
    let api = FakeApi::start().expect("a free port");
    add_pods(&api, 6);
    let (old, new) = (Process::new(&api, "old"), Process::new(&api, "new"));
    let epoch = old.drive_to_lead();
    let mut old_sender = old.sender(epoch, 1);
    api.set_faults(1, vec![FaultRule::first(On::binds(), 1, ApiFault::Hold)]);
    for pod in 0..6 {
        old_sender.give(Given::Bind(decided(&api, pod, "old", epoch)));
    }
    old.drive(api.held(1));
    // From here the old leader stands still, with one bind at the server and five decided.
    api.release();
    let mut written = api.written();
    new.drive(async {
        while api.bound().is_empty() {
            written.changed().await.expect("a server");
        }
    });

    let next_epoch = new.drive_to_lead();
    assert!(next_epoch > epoch);
    assert_eq!(old.keeper.permit(), None, "its clock went on");
    let mut new_sender = new.sender(next_epoch, 8);
    for pod in 0..6 {
        new_sender.give(Given::Bind(decided(&api, pod, "new", next_epoch)));
    }
    let outcomes = new.drive(async {
        let mut outcomes = Vec::new();
        for _ in 0..6 {
            outcomes.push(new_sender.report().await.outcome);
        }
        outcomes
    });
    let taken = BindOutcome::BoundByOther { node: "old".to_owned() };
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == taken).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == BindOutcome::Bound).count(), 5);

    let outcomes = old.drive(async {
        let mut outcomes = Vec::new();
        for _ in 0..6 {
            outcomes.push(old_sender.report().await.outcome);
        }
        outcomes
    });
    let not_leading = BindOutcome::NotBound(Cause::NotLeading);
    assert_eq!(outcomes[0], BindOutcome::Bound);
    assert!(outcomes[1..].iter().all(|outcome| *outcome == not_leading), "{outcomes:?}");
    assert_eq!(api.bound().len(), 6, "every pod once");
}

#[test]
fn a_leader_that_resigns_is_followed_without_waiting_for_the_lease() {
    let api = FakeApi::start().expect("a free port");
    let (old, new) = (Process::new(&api, "old"), Process::new(&api, "new"));
    let first = old.drive_to_lead();
    assert_eq!(old.keeper.permit().map(|permit| permit.epoch), Some(first));
    old.runtime.block_on(old.keeper.resign());
    assert_eq!(old.keeper.permit(), None);
    let lease = api.get("leases", "default", "dovetail").expect("the lease");
    assert_eq!(lease["spec"]["holderIdentity"], "");
    assert_eq!(new.drive_to_lead(), first + 1);
    assert_eq!(old.keeper.permit(), None);
}

#[test]
fn a_deleted_lease_ends_the_leadership() {
    let api = FakeApi::start().expect("a free port");
    let process = Process::new(&api, "one");
    let epoch = process.drive_to_lead();
    api.delete("leases", "default", "dovetail", &json!(null)).expect("the lease");
    let mut phases = process.keeper.phases();
    process.drive(async {
        while *phases.borrow_and_update() == (ElectionPhase::Leading { epoch }) {
            phases.changed().await.expect("a keeper");
        }
    });
    assert_eq!(process.keeper.permit(), None);
}
