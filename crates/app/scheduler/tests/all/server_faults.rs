//! A real server on which everything goes wrong: it is killed, leaders are killed and frozen while
//! they bind, nodes go with their pods, and another scheduler binds to the same nodes. Owners make
//! anew what they lose.
//!
//! `DOVETAIL_SERVER_FAULT_SEEDS` sets how many runs there are (2). In runs of an even seed the
//! other scheduler has nodes of its own: then no kubelet may reject anything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets, MachineShape, cluster};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::freeze::Process;
use crate::history::Choices;
use crate::schedule::{PATIENCE, assert_within, pod};

const NODES: usize = 10;
/// Gangs of four pods of two GPUs each: 64 GPUs of 80.
const GANGS: usize = 8;
const SIZE: usize = 4;
/// Pods of one GPU that the other scheduler binds. Wherever they go, there are pairs of GPUs left
/// for all gangs.
const FOREIGN: usize = 6;

/// What happens to a run, once each, in the order that its seed gives.
#[derive(Clone, Copy, Debug)]
enum Step {
    KillServer,
    KillLeader,
    FreezeLeader,
    RemoveNode,
    BindAnother,
}

struct Run {
    control_plane: ControlPlane,
    client: Client,
    kubelets: Kubelets,
    choose: Choices,
    steps: Vec<Step>,
    wanted: BTreeMap<String, Pod>,
    schedulers: BTreeMap<String, Process>,
    started: usize,
    /// By the name under which it runs for the leadership, and for how many looks.
    frozen: Option<(String, Process, usize)>,
    away: Option<(String, usize)>,
    foreign: usize,
    apart: bool,
}

fn member(gang: usize, at: usize) -> Value {
    let mut pod = pod(&format!("g{gang}-{at}"), 2);
    pod["metadata"]["labels"] = json!({"dovetail.dev/gang": format!("g{gang}")});
    pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": SIZE.to_string()});
    pod
}

fn wanted() -> BTreeMap<String, Pod> {
    let all = (0..GANGS * SIZE).map(|at| member(at / SIZE, at % SIZE));
    let typed = |value: Value| {
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (name, serde_json::from_value(value).expect("a pod"))
    };
    all.map(typed).collect()
}

fn steps(choose: &mut Choices) -> Vec<Step> {
    let mut steps = vec![
        Step::KillServer,
        Step::KillLeader,
        Step::FreezeLeader,
        Step::RemoveNode,
        Step::RemoveNode,
    ];
    steps.extend([Step::BindAnother; FOREIGN]);
    for at in (1..steps.len()).rev() {
        steps.swap(at, choose.below(at + 1));
    }
    steps
}

impl Run {
    async fn new(seed: u64) -> Self {
        let options = cluster::Options::default();
        let control_plane = ControlPlane::start(options).expect("a control plane");
        let client = control_plane.client().await.expect("a client");
        let mut choose = Choices(seed);
        let steps = steps(&mut choose);
        let options = KubeletOptions { terminate_after: Duration::ZERO, ..Default::default() };
        let kubelets = Kubelets::start(client.clone(), options);
        let mut run = Self {
            control_plane,
            client,
            kubelets,
            choose,
            steps,
            wanted: wanted(),
            schedulers: BTreeMap::new(),
            started: 0,
            frozen: None,
            away: None,
            foreign: 0,
            apart: seed.is_multiple_of(2),
        };
        for at in 0..NODES {
            run.add_node(&format!("n{at}"), false).await;
        }
        if run.apart {
            run.add_node("other", true).await;
        }
        run.start_scheduler();
        run.start_scheduler();
        run
    }

    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    async fn all_pods(&self) -> Vec<Pod> {
        self.pods().list(&ListParams::default()).await.expect("all pods").items
    }

    async fn add_node(&self, name: &str, tainted: bool) {
        let mut node = "8xH100".parse::<MachineShape>().expect("a shape").node(name);
        if tainted {
            let taint = json!({"key": "other", "value": "only", "effect": "NoSchedule"});
            node["spec"]["taints"] = json!([taint]);
        }
        let node: Node = serde_json::from_value(node).expect("a node");
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.create(&PostParams::default(), &node).await.expect("a new node");
    }

    fn start_scheduler(&mut self) {
        let identity = format!("s{}", self.started);
        self.started += 1;
        let process = Process::start(self.control_plane.kubeconfig(), &identity);
        self.schedulers.insert(identity, process);
    }

    /// The process that leads, taken out of the running ones; none while nobody does.
    async fn leader(&mut self) -> Option<(String, Process)> {
        let leases = Api::<Lease>::default_namespaced(self.client.clone());
        let lease = leases.get_opt("dovetail").await.expect("an answer")?;
        self.schedulers.remove_entry(&lease.spec?.holder_identity?)
    }

    /// Owners replace the pods that have failed or are gone.
    async fn make_anew(&self) {
        let there = self.all_pods().await;
        let failed = |pod: &&Pod| phase(pod) == "Failed";
        for pod in there.iter().filter(failed) {
            self.forget(&name(pod)).await;
        }
        let names: BTreeSet<String> = there.iter().map(name).collect();
        for (_, pod) in self.wanted.iter().filter(|(name, _)| !names.contains(*name)) {
            // It may be on its way out still.
            _ = self.pods().create(&PostParams::default(), pod).await;
        }
    }

    async fn forget(&self, name: &str) {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        // It may be gone already.
        _ = self.pods().delete(name, &now).await;
    }

    /// Does the next step, or says that it has to wait.
    async fn take(&mut self, step: Step) -> bool {
        match step {
            Step::KillServer => tokio::task::block_in_place(|| {
                self.control_plane.kill_api_server().expect("a killed server");
                self.control_plane.start_api_server().expect("a server that comes back");
            }),
            Step::KillLeader => {
                let Some(leader) = self.leader().await else { return false };
                drop(leader);
                self.start_scheduler();
            }
            Step::FreezeLeader => {
                if self.frozen.is_some() {
                    return false;
                }
                let Some((name, leader)) = self.leader().await else { return false };
                leader.signal("-STOP");
                self.frozen = Some((name, leader, 20 + self.choose.below(40)));
            }
            Step::RemoveNode => {
                if self.away.is_some() {
                    return false;
                }
                let node = format!("n{}", self.choose.below(NODES));
                let nodes = Api::<Node>::all(self.client.clone());
                nodes.delete(&node, &DeleteParams::default()).await.expect("a node that is there");
                self.sweep(&node).await;
                self.away = Some((node, self.choose.below(20)));
            }
            Step::BindAnother => return self.bind_another().await,
        }
        true
    }

    /// The other scheduler binds a pod of its own to a node that it sees with room.
    async fn bind_another(&mut self) -> bool {
        let all = self.all_pods().await;
        let mut free: BTreeMap<String, i64> = if self.apart {
            BTreeMap::from([("other".to_owned(), 8)])
        } else {
            (0..NODES).map(|at| (format!("n{at}"), 8)).collect()
        };
        if let Some((gone, _)) = &self.away {
            free.remove(gone);
        }
        for pod in all.iter().filter(|pod| phase(pod) != "Failed") {
            let Some(free) = node_of(pod).and_then(|node| free.get_mut(&node)) else { continue };
            *free -= i64::from(gpus(pod));
        }
        let with_room: Vec<String> =
            free.into_iter().filter(|(_, free)| *free > 0).map(|(node, _)| node).collect();
        if with_room.is_empty() {
            return false;
        }
        let node = with_room[self.choose.below(with_room.len())].clone();
        let mut pod = pod(&format!("other-{}", self.foreign), 1);
        pod["spec"]["schedulerName"] = json!("other");
        pod["spec"]["nodeName"] = json!(node);
        let pod = serde_json::from_value(pod).expect("a pod");
        self.pods().create(&PostParams::default(), &pod).await.expect("a new pod");
        self.foreign += 1;
        true
    }

    /// What the garbage collector of pods does for a node that is gone.
    async fn sweep(&self, node: &str) {
        for pod in self.all_pods().await.iter().filter(|pod| node_of(pod).as_deref() == Some(node))
        {
            self.forget(&name(pod)).await;
        }
    }

    /// Everybody else does something.
    async fn meddle(&mut self) {
        self.make_anew().await;
        match self.away.take() {
            Some((node, 0)) => {
                self.sweep(&node).await;
                self.add_node(&node, false).await;
            }
            Some((node, looks)) => self.away = Some((node, looks - 1)),
            None => {}
        }
        match self.frozen.take() {
            Some((name, process, 0)) => {
                process.signal("-CONT");
                // It may lead again.
                self.schedulers.insert(name, process);
            }
            Some((name, process, looks)) => self.frozen = Some((name, process, looks - 1)),
            None => {}
        }
        if self.choose.once_in(3)
            && let Some(step) = self.steps.pop()
            && !self.take(step).await
        {
            self.steps.insert(0, step);
        }
    }

    async fn is_over(&self) -> bool {
        let ours = |pod: &&Pod| self.wanted.contains_key(&name(pod)) && phase(pod) == "Running";
        self.steps.is_empty()
            && self.away.is_none()
            && self.frozen.is_none()
            && self.all_pods().await.iter().filter(ours).count() == GANGS * SIZE
    }

    async fn judge(&self, seed: u64) {
        let all = self.all_pods().await;
        let running = all.iter().filter(|pod| phase(pod) == "Running");
        assert_within(running.map(|pod| (node_of(pod).expect("a node"), gpus(pod))));
        if self.apart {
            assert_eq!(self.kubelets.counts().rejected, 0, "seed {seed}");
        }
    }
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn gpus(pod: &Pod) -> u32 {
    if name(pod).starts_with("other") { 1 } else { 2 }
}

async fn survive(seed: u64) {
    let mut run = Run::new(seed).await;
    let going_on = async {
        while !run.is_over().await {
            run.meddle().await;
            let seen = run.kubelets.counts().transitions();
            // Something happens, or nothing does but what is to happen next.
            let more = run
                .kubelets
                .wait_until(Duration::from_millis(50), |counts| counts.transitions() > seen);
            _ = more.await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, going_on).await;
    assert!(ended.is_ok(), "seed {seed}: {:?} {:#?}", run.steps, standing(&run).await);
    run.judge(seed).await;
}

/// What each pod is up to, for people.
async fn standing(run: &Run) -> Vec<String> {
    let line = |pod: &Pod| {
        format!("{} {} {}", name(pod), node_of(pod).unwrap_or_else(|| "-".to_owned()), phase(pod))
    };
    run.all_pods().await.iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangs_are_whole_after_whatever_happens_to_a_real_server() {
    let seeds = std::env::var("DOVETAIL_SERVER_FAULT_SEEDS").ok();
    let seeds = seeds.map_or(2, |text| text.parse().expect("the variable is a number"));
    for seed in 0..seeds {
        survive(seed).await;
    }
}
