//! All nodes and their pods, without clock and network: events in, writes and delays out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::admission::NodeCapacity;
use super::options::KubeletOptions;
use super::requests::amounts;
use super::seat::{KubeletWrite, PodStage, PodTransition, Seat, node_of, phase_of};
use super::status::{Identity, TERMINATED};

/// The kubelets of all nodes: what they see in, what they write and wait for out.
#[derive(Debug)]
pub struct Kubelets {
    options: KubeletOptions,
    kubelets: BTreeMap<String, Kubelet>,
    /// By UID.
    seats: BTreeMap<String, Seat>,
}

/// One node.
#[derive(Debug, Default)]
struct Kubelet {
    room: NodeCapacity,
    /// Whether its Node object is there: without it no pod is admitted.
    present: bool,
    /// Pods that came before the Node object, in bind order.
    waiting: Vec<String>,
}

/// What the kubelets want done.
#[derive(Debug)]
pub enum Wish {
    /// Tell the API server, then [`Kubelets::written`].
    Write(Identity, KubeletWrite),
    /// Call [`Kubelets::step`] after a while.
    Wait(Duration, String, PodTransition),
}

impl Kubelets {
    /// Kubelets that know nothing yet.
    pub fn new(options: KubeletOptions) -> Self {
        Self { options, kubelets: BTreeMap::new(), seats: BTreeMap::new() }
    }

    /// A Node object came or changed.
    pub fn node_applied(&mut self, node: &Value, wishes: &mut Vec<Wish>) {
        let Some(name) = node["metadata"]["name"].as_str() else { return };
        let kubelet = self.kubelets.entry(name.to_owned()).or_default();
        kubelet.room.allocatable = amounts(&node["status"]["allocatable"]);
        kubelet.present = true;
        for uid in std::mem::take(&mut kubelet.waiting) {
            self.step(&uid, PodTransition::Admit, wishes);
        }
    }

    /// A Node object is gone. Its pods stay as they are, as on a machine that lost its network.
    pub fn node_deleted(&mut self, name: &str) {
        if let Some(kubelet) = self.kubelets.get_mut(name) {
            kubelet.present = false;
        }
    }

    /// All Node objects there are, after a time without a watch.
    pub fn nodes_listed(&mut self, nodes: &[Value], wishes: &mut Vec<Wish>) {
        let names: BTreeSet<&str> =
            nodes.iter().filter_map(|node| node["metadata"]["name"].as_str()).collect();
        for (name, kubelet) in &mut self.kubelets {
            kubelet.present &= names.contains(name.as_str());
        }
        for node in nodes {
            self.node_applied(node, wishes);
        }
    }

    /// All bound pods there are, after a time without a watch.
    pub fn pods_listed(&mut self, mut pods: Vec<Value>, wishes: &mut Vec<Wish>) {
        let listed: BTreeSet<&str> =
            pods.iter().filter_map(|pod| pod["metadata"]["uid"].as_str()).collect();
        let gone = self.seats.keys().filter(|uid| !listed.contains(uid.as_str()));
        for uid in gone.cloned().collect::<Vec<_>>() {
            self.pod_deleted(&uid);
        }
        // A list is sorted by name. Those that run were admitted first; of the others the one whose
        // last change is oldest was bound first.
        pods.sort_by_key(|pod| {
            let version = pod["metadata"]["resourceVersion"].as_str();
            let version = version.and_then(|version| version.parse::<u64>().ok());
            (phase_of(pod) != "Running", version)
        });
        for pod in &pods {
            self.pod_applied(pod, wishes);
        }
    }

    /// A bound pod came or changed.
    pub fn pod_applied(&mut self, pod: &Value, wishes: &mut Vec<Wish>) {
        let (Some(uid), Some(node)) = (pod["metadata"]["uid"].as_str(), node_of(pod)) else {
            return;
        };
        let over = matches!(phase_of(pod), "Succeeded" | "Failed");
        if !self.seats.contains_key(uid) {
            self.take_seat(uid, node, pod, wishes);
        } else if over {
            self.leave(uid);
        }
        let Some(seat) = self.seats.get_mut(uid) else { return };
        if !is_deleting(pod) || seat.doomed {
            return;
        }
        seat.doomed = true;
        let delay = match seat.stage {
            // No container runs.
            PodStage::Queued | PodStage::Over => Duration::ZERO,
            PodStage::Starting | PodStage::Running => {
                let grace_s = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
                let grace = Duration::from_secs(grace_s.unwrap_or(0));
                self.options.terminate_after.min(grace)
            }
        };
        self.after(delay, uid, PodTransition::Stop, wishes);
    }

    fn take_seat(&mut self, uid: &str, node: &str, pod: &Value, wishes: &mut Vec<Wish>) {
        let Some(mut seat) = Seat::new(pod, node, &self.options) else { return };
        let room = &mut self.kubelets.entry(node.to_owned()).or_default().room;
        seat.stage = match phase_of(pod) {
            "Succeeded" | "Failed" => PodStage::Over,
            "Running" => PodStage::Running,
            _ => PodStage::Queued,
        };
        let (stage, ends) = (seat.stage, seat.ends);
        if stage == PodStage::Running {
            room.hold(uid, &seat.requests);
        }
        self.seats.insert(uid.to_owned(), seat);
        match (stage, ends) {
            (PodStage::Queued, _) if !is_deleting(pod) => {
                self.after(self.options.admit_after, uid, PodTransition::Admit, wishes);
            }
            (PodStage::Running, Some((run_for, _))) => {
                self.after(run_for, uid, PodTransition::Finish, wishes)
            }
            _ => {}
        }
    }

    /// A pod is gone for good.
    pub fn pod_deleted(&mut self, uid: &str) {
        self.leave(uid);
        self.seats.remove(uid);
    }

    /// A delay is over.
    pub fn step(&mut self, uid: &str, step: PodTransition, wishes: &mut Vec<Wish>) {
        let Some(seat) = self.seats.get_mut(uid) else { return };
        match (step, seat.stage) {
            (PodTransition::Admit, PodStage::Queued) if !seat.doomed => self.admit(uid, wishes),
            (PodTransition::Start, PodStage::Starting) if !seat.doomed => {
                seat.stage = PodStage::Running;
                let ends = seat.ends;
                self.write(uid, KubeletWrite::Run, wishes);
                if let Some((run_for, _)) = ends {
                    self.after(run_for, uid, PodTransition::Finish, wishes);
                }
            }
            (PodTransition::Finish, PodStage::Running) if !seat.doomed => {
                let exit = seat.ends.map_or(TERMINATED, |(_, exit)| exit);
                self.leave(uid);
                self.write(uid, KubeletWrite::End(exit), wishes);
            }
            (PodTransition::Stop, stage) => {
                self.leave(uid);
                if matches!(stage, PodStage::Starting | PodStage::Running) {
                    self.write(uid, KubeletWrite::End(TERMINATED), wishes);
                }
                self.write(uid, KubeletWrite::Delete, wishes);
            }
            // The pod went another way in the meantime.
            _ => {}
        }
    }

    /// The first write of a pod was done, or the pod turned out to be gone.
    pub fn written(&mut self, uid: &str, wishes: &mut Vec<Wish>) {
        let Some(seat) = self.seats.get_mut(uid) else { return };
        seat.writes.pop_front();
        if let Some(next) = seat.writes.front() {
            wishes.push(Wish::Write(seat.identity.clone(), next.clone()));
        }
    }

    /// From now on only so many devices of a node work, whatever its Node object says.
    pub fn set_healthy(&mut self, node: &str, resource: &str, devices: i64) {
        let room = &mut self.kubelets.entry(node.to_owned()).or_default().room;
        room.healthy.insert(resource.to_owned(), devices);
    }

    /// How many pods are admitted on a node and not over.
    pub fn pods_on(&self, node: &str) -> usize {
        self.kubelets.get(node).map_or(0, |kubelet| kubelet.room.pods())
    }

    fn admit(&mut self, uid: &str, wishes: &mut Vec<Wish>) {
        let Some(seat) = self.seats.get_mut(uid) else { return };
        let kubelet = self.kubelets.entry(seat.node.clone()).or_default();
        if !kubelet.present {
            kubelet.waiting.push(uid.to_owned());
            return;
        }
        match kubelet.room.admit(uid, &seat.requests) {
            Ok(()) => {
                seat.stage = PodStage::Starting;
                self.after(self.options.start_after, uid, PodTransition::Start, wishes);
            }
            Err(rejection) => {
                seat.stage = PodStage::Over;
                self.write(uid, KubeletWrite::Reject(rejection), wishes);
            }
        }
    }

    /// Gives back what a pod holds. It happens when its containers end, before the API server is
    /// told: who learns of it there finds the room free.
    fn leave(&mut self, uid: &str) {
        let Some(seat) = self.seats.get_mut(uid) else { return };
        seat.stage = PodStage::Over;
        if let Some(kubelet) = self.kubelets.get_mut(&seat.node) {
            kubelet.room.release(uid);
        }
    }

    fn after(&mut self, delay: Duration, uid: &str, step: PodTransition, wishes: &mut Vec<Wish>) {
        if delay.is_zero() {
            self.step(uid, step, wishes);
        } else {
            wishes.push(Wish::Wait(delay, uid.to_owned(), step));
        }
    }

    /// Writes of one pod go out one after the other: a late one would undo a later one.
    fn write(&mut self, uid: &str, write: KubeletWrite, wishes: &mut Vec<Wish>) {
        let Some(seat) = self.seats.get_mut(uid) else { return };
        if seat.writes.is_empty() {
            wishes.push(Wish::Write(seat.identity.clone(), write.clone()));
        }
        seat.writes.push_back(write);
    }
}

fn is_deleting(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

#[cfg(test)]
mod tests {
    use std::collections::btree_map::Entry;

    use dovetail_cases::cases;
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::requests::requests_of;
    use super::*;

    const LONG: Duration = Duration::from_secs(9);

    fn node(name: &str, gpus: i64) -> Value {
        let allocatable = json!({ "pods": "110", "nvidia.com/gpu": gpus.to_string() });
        json!({ "metadata": { "name": name }, "status": { "allocatable": allocatable } })
    }

    fn pod(uid: &str, node: &str, gpus: i64, deleted: bool) -> Value {
        let mut pod = json!({
            "metadata": { "uid": uid, "namespace": "default", "name": uid, "resourceVersion": "7" },
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "containers": [{
                    "name": "main",
                    "resources": { "requests": { "nvidia.com/gpu": gpus.to_string() } },
                }],
            },
        });
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
        pod
    }

    /// What a step asked for, in short: `run a`, `wait b Stop`.
    fn short(wishes: &mut Vec<Wish>) -> Vec<String> {
        let one = |wish: Wish| match wish {
            Wish::Wait(_, uid, step) => format!("wait {uid} {step:?}"),
            Wish::Write(identity, write) => {
                let verb = match write {
                    KubeletWrite::Reject(_) => "reject",
                    KubeletWrite::Run => "run",
                    KubeletWrite::End(_) => "end",
                    KubeletWrite::Delete => "delete",
                };
                format!("{verb} {}", identity.uid)
            }
        };
        wishes.drain(..).map(one).collect()
    }

    #[test]
    fn pods_wait_for_their_node_and_are_admitted_in_bind_order() {
        let mut world = Kubelets::new(KubeletOptions::default());
        let mut wishes = Vec::new();
        for uid in ["z", "m", "a"] {
            world.pod_applied(&pod(uid, "n", 1, false), &mut wishes);
        }
        assert!(short(&mut wishes).is_empty());
        world.node_applied(&node("n", 2), &mut wishes);
        assert_eq!(short(&mut wishes), ["run z", "run m", "reject a"]);
        // The same again changes nothing.
        world.pod_applied(&pod("a", "n", 1, false), &mut wishes);
        world.node_applied(&node("n", 2), &mut wishes);
        assert!(short(&mut wishes).is_empty());
    }

    #[test]
    fn writes_of_a_pod_go_out_in_order_and_a_deleted_pod_ends_before_it_goes() {
        let options = KubeletOptions { terminate_after: LONG, ..KubeletOptions::default() };
        let mut world = Kubelets::new(options);
        let mut wishes = Vec::new();
        world.node_applied(&node("n", 2), &mut wishes);
        world.pod_applied(&pod("a", "n", 2, false), &mut wishes);
        assert_eq!(short(&mut wishes), ["run a"]);
        world.pod_applied(&pod("a", "n", 2, true), &mut wishes);
        assert_eq!(short(&mut wishes), ["wait a Stop"]);
        // Until its containers end it holds its devices; from then on others may have them.
        world.pod_applied(&pod("b", "n", 2, false), &mut wishes);
        assert_eq!(short(&mut wishes), ["reject b"]);
        world.step("a", PodTransition::Stop, &mut wishes);
        assert!(short(&mut wishes).is_empty(), "the write of Running is under way");
        world.pod_applied(&pod("c", "n", 2, false), &mut wishes);
        assert_eq!(short(&mut wishes), ["run c"]);
        for next in ["end a", "delete a"] {
            world.written("a", &mut wishes);
            assert_eq!(short(&mut wishes), [next]);
        }
        world.written("a", &mut wishes);
        world.pod_deleted("a");
        assert!(short(&mut wishes).is_empty());
    }

    #[test]
    fn a_pod_that_goes_before_it_starts_never_runs() {
        let options = KubeletOptions { start_after: LONG, ..KubeletOptions::default() };
        let mut world = Kubelets::new(options);
        let mut wishes = Vec::new();
        world.node_applied(&node("n", 1), &mut wishes);
        world.pod_applied(&pod("a", "n", 1, false), &mut wishes);
        assert_eq!(short(&mut wishes), ["wait a Start"]);
        world.pods_listed(vec![pod("b", "n", 1, false)], &mut wishes);
        assert_eq!(short(&mut wishes), ["wait b Start"], "the place of the lost pod is free");
        world.step("a", PodTransition::Start, &mut wishes);
        world.pod_applied(&pod("b", "n", 1, true), &mut wishes);
        world.step("b", PodTransition::Start, &mut wishes);
        assert_eq!(short(&mut wishes), ["end b"], "no time to terminate: it ends at once");
    }

    /// One thing that happens to the world.
    #[derive(Clone, Debug)]
    enum Happens {
        Node(u8, i64),
        NodeGone(u8),
        Pod(u8, u8, i64),
        Delete(u8),
        Gone(u8),
        /// The oldest delay is over.
        Due,
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            1 => (0..3_u8, 0..9_i64).prop_map(|(node, gpus)| Happens::Node(node, gpus)),
            1 => (0..3_u8).prop_map(Happens::NodeGone),
            6 => (0..40_u8, 0..3_u8, 0..5_i64).prop_map(|(pod, node, gpus)| Happens::Pod(pod, node, gpus)),
            3 => (0..40_u8).prop_map(Happens::Delete),
            1 => (0..40_u8).prop_map(Happens::Gone),
            8 => Just(Happens::Due),
        ]
    }

    /// Keeps the books from what the API server is told alone: who was admitted (told to run) and
    /// has not ended holds devices.
    #[derive(Default)]
    struct Books {
        promised: BTreeMap<String, i64>,
        pods: BTreeMap<String, Value>,
        gone: BTreeSet<String>,
        told: BTreeMap<String, Vec<&'static str>>,
    }

    fn gpus(pod: &Value) -> i64 {
        requests_of(pod)["nvidia.com/gpu"]
    }

    impl Books {
        fn running_on(&self, node: &str) -> i64 {
            let running = self.told.iter().filter(|(_, told)| told.last() == Some(&"run"));
            let there = running.filter(|(uid, _)| !self.gone.contains(*uid));
            let pods = there.filter_map(|(uid, _)| self.pods.get(uid));
            pods.filter(|pod| node_of(pod) == Some(node)).map(gpus).sum()
        }

        /// Takes what is told now, and checks that it may be told after what was told before.
        fn tell(&mut self, uid: &str, write: &KubeletWrite) {
            let told = self.told.entry(uid.to_owned()).or_default();
            let (verb, after): (_, &[Option<&str>]) = match write {
                KubeletWrite::Run => ("run", &[None]),
                KubeletWrite::Reject(_) => ("reject", &[None]),
                KubeletWrite::End(_) => ("end", &[None, Some("run")]),
                KubeletWrite::Delete => ("delete", &[None, Some("end"), Some("reject")]),
            };
            assert!(after.contains(&told.last().copied()), "{uid}: {verb} after {told:?}");
            told.push(verb);
        }
    }

    /// Every request succeeds at once.
    fn grant(
        world: &mut Kubelets,
        books: &mut Books,
        due: &mut std::collections::VecDeque<(String, PodTransition)>,
        mut wishes: Vec<Wish>,
        plain: bool,
    ) -> Result<(), TestCaseError> {
        while !wishes.is_empty() {
            for wish in std::mem::take(&mut wishes) {
                let (identity, write) = match wish {
                    Wish::Write(identity, write) => (identity, write),
                    Wish::Wait(_, uid, step) => {
                        due.push_back((uid, step));
                        continue;
                    }
                };
                books.tell(&identity.uid, &write);
                let pod = &books.pods[&identity.uid];
                // Who asks for nothing is welcome on a node that shrank, who starts later was
                // admitted under another promise, and who ends at once has left before the
                // server hears of it.
                if plain && write == KubeletWrite::Run && gpus(pod) > 0 {
                    let node = node_of(pod).unwrap();
                    prop_assert!(books.running_on(node) <= books.promised[node]);
                }
                world.written(&identity.uid, &mut wishes);
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn no_node_admits_more_than_it_promises_and_no_pod_goes_backwards(
            story in prop::collection::vec(happens(), 1..120),
            delays in (0..2_u64, 0..2_u64, prop::option::of(0..2_u64), 0..2_u64),
        ) {
            let second = Duration::from_secs;
            let options = KubeletOptions {
                admit_after: second(delays.0),
                start_after: second(delays.1),
                run_for: delays.2.map(second),
                terminate_after: second(delays.3),
                requests_in_flight: 1,
            };
            let mut world = Kubelets::new(options);
            let mut books = Books::default();
            let mut due: std::collections::VecDeque<(String, PodTransition)> = Default::default();
            for event in story {
                let mut wishes = Vec::new();
                match event {
                    Happens::Node(name, gpus) => {
                        books.promised.insert(name.to_string(), gpus);
                        world.node_applied(&node(&name.to_string(), gpus), &mut wishes);
                    }
                    Happens::NodeGone(name) => world.node_deleted(&name.to_string()),
                    Happens::Pod(uid, node, gpus) => {
                        let uid = uid.to_string();
                        // A UID comes once.
                        if let Entry::Vacant(entry) = books.pods.entry(uid) {
                            let pod = pod(entry.key(), &node.to_string(), gpus, false);
                            world.pod_applied(entry.insert(pod), &mut wishes);
                        }
                    }
                    Happens::Delete(uid) => {
                        let uid = uid.to_string();
                        if let Some(pod) = books.pods.get(&uid).filter(|_| !books.gone.contains(&uid)) {
                            let node = node_of(pod).unwrap().to_owned();
                            let deleted = tests::pod(&uid, &node, gpus(pod), true);
                            world.pod_applied(&deleted, &mut wishes);
                        }
                    }
                    Happens::Gone(uid) => {
                        let uid = uid.to_string();
                        if books.pods.contains_key(&uid) {
                            world.pod_deleted(&uid);
                            books.gone.insert(uid);
                        }
                    }
                    Happens::Due => {
                        if let Some((uid, step)) = due.pop_front() {
                            world.step(&uid, step, &mut wishes);
                        }
                    }
                }
                let plain = delays.1 == 0 && delays.2 != Some(0);
                grant(&mut world, &mut books, &mut due, wishes, plain)?;
            }
        }
    }
}
