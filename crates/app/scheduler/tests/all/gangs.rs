//! Gangs, from objects to binds: the loop of the scheduler without its wires.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_cluster::world::{Change, ObjectReport, Settings, World};
use dovetail_control::bind::{Bind, BindOutcome, BindReport, Cause};
use dovetail_control::order::{OrderEnd, PodOrder};
use dovetail_control::schedule::{News, Scheduler};
use dovetail_model::PendingReason;
use dovetail_objects::Kind;
use dovetail_plan::engine::EngineConfig;
use serde_json::{Value, json};

use crate::server::{Server, read};

/// A scheduler with the server that it watches.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) scheduler: Scheduler,
    pub(crate) now_ms: u64,
}

impl Cluster {
    /// Nodes of eight GPUs.
    pub(crate) fn of(nodes: usize) -> Self {
        let mut server = Server::default();
        for at in 0..nodes {
            node(&mut server, at);
        }
        Self::over(server)
    }

    /// A scheduler that begins with what a server has.
    pub(crate) fn over(server: Server) -> Self {
        Self::with(server, EngineConfig::default())
    }

    pub(crate) fn with(server: Server, config: EngineConfig) -> Self {
        Self::by(server, config, Settings::default())
    }

    pub(crate) fn by(mut server: Server, config: EngineConfig, settings: Settings) -> Self {
        let world = World::new(settings);
        let now_ms = 1_900_000_000_000;
        let mut scheduler = Scheduler::new(world, config, 1);
        for kind in Kind::ALL {
            for change in server.list(kind) {
                scheduler.change(change, now_ms);
            }
        }
        Self { server, scheduler, now_ms }
    }

    /// The watches deliver everything.
    pub(crate) fn watch(&mut self) {
        for kind in Kind::ALL {
            while let Some(message) = self.server.next(kind) {
                self.scheduler.change(message.change(), self.now_ms);
            }
        }
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.scheduler.wake(self.now_ms);
    }

    /// Decides; what is to be sent.
    pub(crate) fn decide(&mut self) -> Vec<Arc<Bind>> {
        self.watch();
        self.scheduler.decide(self.now_ms);
        self.unsent()
    }

    fn unsent(&mut self) -> Vec<Arc<Bind>> {
        std::iter::from_fn(|| self.scheduler.next_bind(self.now_ms)).collect()
    }

    /// A bind reaches the server.
    pub(crate) fn carry_out(&mut self, bind: Arc<Bind>) {
        let key = (Kind::Pod, bind.pod.namespace.to_string(), bind.pod.name.to_string());
        self.server.change(&key, |pod| {
            pod["spec"]["nodeName"] = json!(&*bind.node);
            pod["metadata"]["annotations"]["dovetail.dev/decision"] = json!(bind.tag);
        });
        let report = BindReport { bind, outcome: BindOutcome::Bound, answered_in_ms: Some(1) };
        self.scheduler.outcome(report, self.now_ms);
    }

    /// Decides, and everything is carried out; which pods are bound.
    pub(crate) fn run(&mut self) -> Vec<String> {
        let mut bound = Vec::new();
        for bind in self.decide() {
            bound.push(bind.pod.name.to_string());
            self.carry_out(bind);
        }
        self.watch();
        bound.sort();
        bound
    }

    /// Evictions that were ordered take place; whose they are.
    pub(crate) fn evict(&mut self) -> Vec<String> {
        let mut evicted = Vec::new();
        while let Some(order) = self.scheduler.next_order() {
            if let PodOrder::Evict { pod, .. } = &order {
                evicted.push(pod.name.to_string());
                self.delete(Kind::Pod, "blue", &pod.name);
            }
            self.scheduler.order_ended(&order, OrderEnd::Done, self.now_ms);
        }
        evicted
    }

    pub(crate) fn create(&mut self, name: &str, pod: Value) {
        self.server.apply(Kind::Pod, "blue", name, pod);
    }

    pub(crate) fn delete(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.server.delete(&(kind, namespace.to_owned(), name.to_owned()));
    }

    pub(crate) fn end(&mut self, name: &str, phase: &str) {
        let key = (Kind::Pod, "blue".to_owned(), name.to_owned());
        self.server.change(&key, |pod| pod["status"]["phase"] = json!(phase));
    }

    /// What a pod says that no node takes.
    pub(crate) fn says(&mut self, name: &str) -> String {
        let job = self.scheduler.world().pods().job_of("blue", name).expect("a job");
        let said = self.scheduler.ask().waiting_for(job, PendingReason::Unschedulable);
        said.expect("it waits").message
    }

    pub(crate) fn reports(&mut self) -> Vec<String> {
        let news = self.scheduler.news().into_iter();
        news.filter_map(|news| match news {
            News::Object(report) => Some(report.to_string()),
            News::Inconsistent(error) => panic!("{error}"),
            _ => None,
        })
        .collect()
    }
}

pub(crate) fn node(server: &mut Server, at: usize) {
    let allocatable = json!({"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"});
    let labels = json!({"kubernetes.io/hostname": format!("n{at}")});
    let body = json!({"metadata": {"labels": labels},
        "status": {"allocatable": allocatable, "capacity": allocatable}});
    server.apply(Kind::Node, "", &format!("n{at}"), body);
}

pub(crate) fn pod(gpus: usize) -> Value {
    let limits = json!({"nvidia.com/gpu": gpus.to_string()});
    json!({"spec": {"schedulerName": "dovetail",
        "containers": [{"name": "c", "resources": {"limits": limits, "requests": limits}}]}})
}

/// A member of gang `train` by annotations.
pub(crate) fn member(gpus: usize, min: usize, max: usize) -> Value {
    let mut pod = pod(gpus);
    pod["metadata"]["labels"] = json!({"dovetail.dev/gang": "train"});
    pod["metadata"]["annotations"] = json!({"dovetail.dev/min-members": min.to_string(),
        "dovetail.dev/max-members": max.to_string()});
    pod
}

/// A member of the native group `train`.
pub(crate) fn native(gpus: usize) -> Value {
    let mut pod = pod(gpus);
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
    pod
}

pub(crate) fn names(pods: &[&str]) -> Vec<String> {
    pods.iter().map(|pod| (*pod).to_owned()).collect()
}

fn tags(binds: &[Arc<Bind>]) -> BTreeMap<&str, usize> {
    let mut tags = BTreeMap::new();
    for bind in binds {
        *tags.entry(bind.tag.as_str()).or_default() += 1;
    }
    tags
}

#[test]
fn a_native_group_starts_with_min_count_pods_or_not_at_all() {
    let mut cluster = Cluster::of(3);
    (0..4).for_each(|at| cluster.create(&format!("p{at}"), native(8)));
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(cluster.reports(), names(&[]), "its group may be on its way");
    cluster.pass(2_000);
    assert_eq!(
        cluster.reports().first().map(String::as_str),
        Some("pod blue/p0 is skipped: podgroup blue/train does not exist: create it")
    );
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 4}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    assert_eq!(cluster.run(), names(&[]), "three nodes are too few");
    node(&mut cluster.server, 3);
    let binds = cluster.decide();
    assert_eq!(tags(&binds), BTreeMap::from([("1-1/4", 4)]));
    binds.into_iter().for_each(|bind| cluster.carry_out(bind));
    // Later pods of a group that has its size start by themselves.
    cluster.create("p4", native(1));
    node(&mut cluster.server, 4);
    assert_eq!(cluster.run(), names(&["p4"]));
}

#[test]
fn a_native_group_says_how_many_of_its_pods_are_there_as_they_come_and_go() {
    let mut cluster = Cluster::of(1);
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 4}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), native(1)));
    let says = |cluster: &mut Cluster, present: u32| {
        let there = format!("podgroup blue/train has {present} of the 4 pods that start together");
        let of = |who: &str| format!("{who} waits for members: {there}");
        let pods = (0..present).map(|at| of(&format!("pod blue/p{at}")));
        let expected: Vec<String> = pods.chain([of("podgroup blue/train")]).collect();
        cluster.watch();
        cluster.pass(3_000);
        assert_eq!(cluster.reports(), expected);
    };
    says(&mut cluster, 3);
    cluster.delete(Kind::Pod, "blue", "p2");
    says(&mut cluster, 2);
    (2..4).for_each(|at| cluster.create(&format!("p{at}"), native(1)));
    assert_eq!(cluster.run().len(), 4);
}

/// Ten pods of a class and a group to which the server gave no priority.
fn refused_group() -> Cluster {
    let mut cluster = Cluster::of(1);
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 0});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    for at in 0..10 {
        let mut member = native(1);
        member["spec"]["priority"] = json!(7);
        member["spec"]["priorityClassName"] = json!("high");
        cluster.create(&format!("p{at}"), member);
    }
    cluster
}

/// What is new among what was said: of pods, and of the group.
fn new_causes(cluster: &mut Cluster) -> (usize, usize) {
    let news = cluster.scheduler.news();
    let said = |is: fn(&ObjectReport) -> bool| {
        let reports = news.iter().filter_map(|news| match news {
            News::Object(report) => Some(report),
            _ => None,
        });
        reports.filter(|report| is(report)).count()
    };
    (
        said(|report| matches!(report, ObjectReport::Refused { is_repeat: false, .. })),
        said(|report| matches!(report, ObjectReport::Contradiction { is_repeat: false, .. })),
    )
}

#[test]
fn a_refused_gang_tells_each_pod_once_whoever_else_comes_and_goes() {
    let mut cluster = refused_group();
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(
        cluster.scheduler.world().pods().refused().next().map(|(_, why)| why.to_string()),
        Some(
            "podgroup blue/train: it has priority 0, and its pod p0 has 7: create the PodGroup \
             with spec.priorityClassName high, the class of its pods; without one, the API server \
             sets priority 0"
                .to_owned()
        )
    );
    assert_eq!(new_causes(&mut cluster), (10, 1));
    for at in 0..9 {
        cluster.delete(Kind::Pod, "blue", &format!("p{at}"));
        cluster.pass(1_000);
        assert_eq!(cluster.run(), names(&[]));
    }
    assert_eq!(new_causes(&mut cluster), (0, 0));
    let refused = cluster.scheduler.world().pods().refused().next().map(|(_, why)| why.to_string());
    assert!(refused.is_some_and(|why| why.contains("its pod p9 has 7")), "who is there is named");
    // Another cause is news; and so is the same one after five minutes.
    let key = (Kind::Pod, "blue".to_owned(), "p9".to_owned());
    cluster.server.change(&key, |pod| pod["spec"]["priority"] = json!(8));
    cluster.run();
    assert_eq!(new_causes(&mut cluster), (1, 1));
    cluster.pass(300_000);
    cluster.server.change(&key, |pod| pod["spec"]["priority"] = json!(7));
    cluster.run();
    assert_eq!(new_causes(&mut cluster), (1, 1));
}

#[test]
fn what_describes_a_gang_and_cannot_be_read_is_named_with_its_field() {
    let mut cluster = Cluster::of(1);
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": "three"}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    cluster.create("p0", native(1));
    assert_eq!(cluster.run(), names(&[]));
    let reports = cluster.reports();
    let field = "its field `spec.schedulingPolicy.gang.minCount` is invalid: ";
    let of =
        |begin: &str| reports.iter().any(|text| text.starts_with(begin) && text.contains(field));
    assert!(of("pod blue/p0 is skipped: podgroup blue/train: "), "{reports:?}");
    assert!(of("PodGroup blue/train: none of its pods is placed: "), "{reports:?}");
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 1}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    assert_eq!(cluster.run(), names(&["p0"]));
}

#[test]
fn terms_of_a_gang_without_a_gang_are_not_ignored() {
    let mut cluster = Cluster::of(1);
    for (name, annotation) in [("p0", "min-members"), ("p1", "topology-required")] {
        let mut pod = pod(1);
        pod["metadata"]["annotations"][format!("dovetail.dev/{annotation}")] = json!("5");
        cluster.create(name, pod);
    }
    assert_eq!(cluster.run(), names(&[]));
    let reports = cluster.reports();
    assert!(
        reports[0].contains("annotation dovetail.dev/min-members defines how pods"),
        "{reports:?}"
    );
    assert!(
        reports[1].contains("annotation dovetail.dev/topology-required defines"),
        "{reports:?}"
    );
}

#[test]
fn a_gang_that_can_do_with_fewer_waits_a_moment_for_the_others() {
    let mut cluster = Cluster::of(4);
    cluster.create("p0", member(8, 2, 4));
    cluster.pass(60_000);
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(3_000);
    assert_eq!(
        cluster.reports(),
        ["pod blue/p0 waits for members: gang blue/train has 1 of the 2 pods that start together"]
    );
    // Nothing new is said until there is something new.
    cluster.pass(3_000);
    assert_eq!(cluster.reports(), names(&[]));
    cluster.create("p1", member(8, 2, 4));
    cluster.watch();
    cluster.pass(1_999);
    cluster.create("p2", member(8, 2, 4));
    assert_eq!(cluster.run(), names(&[]));
    assert_eq!(cluster.scheduler.due_ms(), Some(cluster.now_ms + 2_000));
    cluster.pass(1_999);
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(1);
    assert_eq!(cluster.run(), names(&["p0", "p1", "p2"]));
    // The last one that is expected, and one too many.
    cluster.create("p3", member(8, 2, 4));
    assert_eq!(cluster.run(), names(&["p3"]));
    cluster.create("p4", member(0, 2, 4));
    assert_eq!(cluster.run(), names(&[]));
    assert!(cluster.reports()[0].contains("gang blue/train already runs its maximum of 4 pods"));
    cluster.end("p0", "Failed");
    assert_eq!(cluster.run(), names(&["p4"]));
}

#[test]
fn all_that_are_expected_start_at_once() {
    let mut cluster = Cluster::of(1);
    (0..4).for_each(|at| cluster.create(&format!("p{at}"), member(2, 2, 4)));
    assert_eq!(cluster.run(), names(&["p0", "p1", "p2", "p3"]));
}

#[test]
fn a_replaced_member_goes_ahead_of_whoever_waits() {
    let mut cluster = Cluster::of(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    assert_eq!(cluster.run().len(), 2);
    cluster.create("older", pod(8));
    assert_eq!(cluster.run(), names(&[]));
    cluster.delete(Kind::Pod, "blue", "p1");
    cluster.create("p9", member(8, 2, 2));
    assert_eq!(cluster.run(), names(&["p9"]));
    // Pods that are over are not missed; the gang starts anew when all of it is made anew.
    cluster.end("p0", "Succeeded");
    cluster.watch();
    assert_eq!(cluster.run(), names(&["older"]));
    assert!(cluster.scheduler.unwinding().is_empty());
}

#[test]
fn nothing_is_sent_of_a_gang_that_is_not_whole_any_more() {
    let mut cluster = Cluster::of(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    cluster.watch();
    cluster.scheduler.decide(cluster.now_ms);
    assert_eq!(cluster.scheduler.counts().to_send, 2);
    cluster.delete(Kind::Pod, "blue", "p1");
    cluster.watch();
    assert_eq!(cluster.unsent(), []);
    assert_eq!(cluster.scheduler.counts().to_send, 0);
    cluster.create("p2", member(8, 2, 2));
    assert_eq!(cluster.run(), names(&["p0", "p2"]));
}

#[test]
fn a_bind_without_effect_is_made_good_before_others() {
    let mut cluster = Cluster::of(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    let mut binds = cluster.decide();
    let failed = binds.pop().expect("two binds");
    let missing = failed.pod.clone();
    cluster.carry_out(binds.pop().expect("two binds"));
    let outcome = BindOutcome::NotBound(Cause::Conflict);
    let report = BindReport { bind: failed, outcome, answered_in_ms: Some(1) };
    cluster.scheduler.outcome(report, cluster.now_ms);
    cluster.pass(100);
    assert_eq!(cluster.run(), names(&[&missing.name]));
    cluster.pass(600_000);
    assert!(cluster.scheduler.unwinding().is_empty());
}

/// Two of four pods were bound when the leader was lost, on nodes that have room for one more.
fn half_bound(annotation: Option<&str>) -> Cluster {
    let mut server = Server::default();
    (0..3).for_each(|at| node(&mut server, at));
    for at in 0..4 {
        let mut pod = member(8, 4, 4);
        let annotations = &mut pod["metadata"]["annotations"];
        if let Some(policy) = annotation {
            annotations["dovetail.dev/on-lost-member"] = json!(policy);
        }
        if at < 2 {
            annotations["dovetail.dev/decision"] = json!("0-7/4");
            pod["spec"]["nodeName"] = json!(format!("n{at}"));
        }
        server.apply(Kind::Pod, "blue", &format!("p{at}"), pod);
    }
    Cluster::over(server)
}

#[test]
fn a_half_bound_gang_is_completed_if_it_fits_and_else_given_up() {
    let mut cluster = half_bound(None);
    assert_eq!(cluster.run(), names(&[]), "what is missing starts together, too");
    cluster.pass(59_999);
    assert!(cluster.scheduler.unwinding().is_empty());
    cluster.pass(1);
    let given_up = cluster.scheduler.unwinding();
    let [gang] = given_up.as_slice() else { panic!("{given_up:?}") };
    let pods: Vec<&str> = gang.pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!((gang.gang.to_string().as_str(), pods), ("gang blue/train", vec!["p0", "p1"]));
    // It is completed, and runs from then on.
    node(&mut cluster.server, 3);
    assert_eq!(cluster.run(), names(&["p2", "p3"]));
    cluster.delete(Kind::Pod, "blue", "p2");
    cluster.watch();
    cluster.pass(600_000);
    assert!(cluster.scheduler.unwinding().is_empty(), "a gang that had its size waits");
}

#[test]
fn a_gang_of_which_the_server_never_binds_one_is_given_up_in_time() {
    let mut cluster = Cluster::of(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    let mut last = None;
    // It is tried again after 1, 2, 4, 8 and 16 s, and then after 32 s.
    for pause_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 28_999] {
        let mut binds = cluster.decide();
        let bind = binds.pop().expect("a bind");
        assert!(last.is_none_or(|last| last == bind.pod) && binds.len() < 2);
        last = Some(bind.pod.clone());
        binds.into_iter().for_each(|bind| cluster.carry_out(bind));
        let cause = Cause::Refused { code: 422, message: "a policy".to_owned() };
        let report =
            BindReport { bind, outcome: BindOutcome::NotBound(cause), answered_in_ms: Some(1) };
        cluster.scheduler.outcome(report, cluster.now_ms);
        cluster.pass(pause_ms);
        assert!(cluster.scheduler.unwinding().is_empty());
    }
    cluster.pass(1);
    let given_up = cluster.scheduler.unwinding();
    assert!(matches!(given_up.as_slice(), [gang] if gang.pods.len() == 1), "{given_up:?}");
}

#[test]
fn the_owner_says_what_becomes_of_a_gang_that_stays_short() {
    let mut kept = half_bound(Some("keep"));
    kept.run();
    kept.pass(600_000);
    assert!(kept.scheduler.unwinding().is_empty());

    let mut restarted = half_bound(Some("restart"));
    node(&mut restarted.server, 3);
    assert_eq!(restarted.run().len(), 2);
    restarted.delete(Kind::Pod, "blue", "p0");
    restarted.watch();
    restarted.pass(60_000);
    let given_up: Vec<usize> =
        restarted.scheduler.unwinding().iter().map(|gang| gang.pods.len()).collect();
    assert_eq!(given_up, [3]);
}

#[test]
fn a_node_that_goes_takes_its_own_pods_and_no_others() {
    let mut cluster = Cluster::of(3);
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), member(4, 3, 3)));
    cluster.create("big", pod(5));
    assert_eq!(cluster.run().len(), 4);
    let node_of = |cluster: &Cluster, pod: &str| {
        let key = (Kind::Pod, "blue".to_owned(), pod.to_owned());
        cluster.server.objects[&key]["spec"]["nodeName"].as_str().map(str::to_owned).unwrap()
    };
    let gone = node_of(&cluster, "p0");
    cluster.delete(Kind::Node, "", &gone);
    cluster.watch();
    assert_eq!(cluster.reports(), Vec::<String>::new());
    let engine = cluster.scheduler.engine().expect("an engine").snapshot();
    let kept = (0..3).filter(|at| node_of(&cluster, &format!("p{at}")) != gone).count();
    let big = usize::from(node_of(&cluster, "big") != gone);
    let held = engine.holdings.iter().filter(|holding| *holding.node != *gone).count();
    assert_eq!(held, kept + big);
}

#[test]
fn members_that_differ_are_refused_by_name() {
    let mut cluster = Cluster::of(1);
    cluster.create("p0", member(1, 2, 2));
    let mut other = member(1, 2, 2);
    other["spec"]["priority"] = json!(7);
    cluster.create("p1", other);
    assert_eq!(cluster.run(), names(&[]));
    let text = "the pods of gang blue/train differ in priority: p0 has `0`, p1 has `7`; give all \
         of them the same value";
    let both = ["p0", "p1"].map(|pod| format!("pod blue/{pod} is skipped: {text}"));
    assert_eq!(cluster.reports(), both);
    let change =
        Change::Applied(read(Kind::Pod, &json!({"metadata": {"name": "x", "namespace": "blue"}})));
    cluster.scheduler.change(change, cluster.now_ms);
    assert_eq!(cluster.reports(), Vec::<String>::new(), "said once");
}

#[test]
fn the_place_of_a_lost_member_is_kept_for_a_while() {
    let mut cluster = Cluster::of(2);
    (0..2).for_each(|at| cluster.create(&format!("p{at}"), member(8, 2, 2)));
    assert_eq!(cluster.run().len(), 2);
    let mut urgent = pod(8);
    urgent["spec"]["priority"] = json!(9);
    cluster.create("urgent", urgent);
    assert_eq!(cluster.run(), names(&[]));
    // Before its owner has noticed, nobody else gets what it held.
    cluster.delete(Kind::Pod, "blue", "p1");
    cluster.watch();
    cluster.pass(29_999);
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(1);
    assert_eq!(cluster.run(), names(&["urgent"]));
    // A gang that is gone as a whole leaves nothing behind.
    cluster.create("late", pod(8));
    cluster.delete(Kind::Pod, "blue", "p0");
    assert_eq!(cluster.run(), names(&["late"]));
}

/// A gang of two of which one was lost, and made anew, while nobody led; another pod waits for the
/// room.
fn replaced_while_nobody_led(nodes: usize) -> Cluster {
    let mut server = Server::default();
    (0..nodes).for_each(|at| node(&mut server, at));
    let mut bound = member(8, 2, 2);
    bound["metadata"]["annotations"]["dovetail.dev/decision"] = json!("0-7/2");
    bound["spec"]["nodeName"] = json!("n0");
    bound["status"] = json!({"conditions": [{"type": "PodScheduled", "status": "True",
        "lastTransitionTime": "2026-11-01T10:00:30Z"}]});
    server.apply(Kind::Pod, "blue", "p0", bound);
    server.apply(Kind::Pod, "blue", "older", pod(8));
    // What is made next is made after the bind.
    (0..60).for_each(|_| server.apply(Kind::Namespace, "", "blue", json!({})));
    server.apply(Kind::Pod, "blue", "p9", member(8, 2, 2));
    Cluster::over(server)
}

#[test]
fn a_member_replaced_while_nobody_led_belongs_to_its_running_gang() {
    let mut cluster = replaced_while_nobody_led(2);
    assert_eq!(cluster.run(), names(&["p9"]), "ahead of whoever waits");
    // Where it finds no room its gang runs on: it was whole once.
    let mut cluster = replaced_while_nobody_led(1);
    assert_eq!(cluster.run(), names(&[]));
    cluster.pass(600_000);
    assert!(cluster.scheduler.unwinding().is_empty());
}

#[test]
fn a_gang_that_runs_is_one_job_again_after_a_restart() {
    let mut cluster = Cluster::of(2);
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), member(4, 3, 3)));
    cluster.create("single", pod(1));
    assert_eq!(cluster.run().len(), 4);
    let mut again = Cluster::over(cluster.server);
    assert_eq!(again.run(), names(&[]));
    let jobs = ["p0", "p1", "p2"].map(|pod| again.scheduler.world().pods().job_of("blue", pod));
    assert!(jobs[0].is_some() && jobs.iter().all(|job| *job == jobs[0]), "{jobs:?}");
    assert_ne!(again.scheduler.world().pods().job_of("blue", "single"), jobs[0]);
    let engine = again.scheduler.engine().expect("an engine").snapshot();
    let job = engine.jobs.iter().find(|job| Some(job.id) == jobs[0]).expect("a job");
    let present: Vec<u32> = job.pod_sets.iter().map(|set| set.present).collect();
    assert_eq!((job.name.as_str(), present), ("gang blue/train", vec![3]));
    // Its pods end one by one.
    again.end("p1", "Succeeded");
    again.watch();
    assert_eq!(again.reports(), names(&[]));
    let held = again.scheduler.engine().expect("an engine").snapshot().holdings.len();
    assert_eq!(held, 3);
}

#[test]
fn what_contradicts_its_pods_says_so_itself_once() {
    let mut cluster = Cluster::of(1);
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    cluster.server.apply(Kind::PodGroup, "blue", "train", json!({"spec": spec}));
    for at in 0..2 {
        let mut pod = native(1);
        pod["spec"]["priority"] = json!(7 * at);
        cluster.create(&format!("p{at}"), pod);
    }
    assert_eq!(cluster.run(), names(&[]));
    cluster.create("p2", native(1));
    assert_eq!(cluster.run(), names(&[]));
    let of_group = |report: &String| report.starts_with("PodGroup blue/train");
    let said: Vec<String> = cluster.reports().into_iter().filter(of_group).collect();
    let text = "PodGroup blue/train: none of its pods is placed: the pods of podgroup blue/train \
         differ in priority: p0 has `0`, p1 has `7`; give all of them the same value";
    assert_eq!(said, [text]);
}

/// Two of three pods would find room, so none starts; then somebody else binds one of them.
#[test]
fn what_another_scheduler_binds_of_a_waiting_gang_does_not_start_the_others_one_by_one() {
    let mut cluster = Cluster::of(2);
    (0..3).for_each(|at| cluster.create(&format!("p{at}"), member(8, 3, 3)));
    assert_eq!(cluster.run(), Vec::<String>::new());
    let key = (Kind::Pod, "blue".to_owned(), "p2".to_owned());
    cluster.server.change(&key, |pod| pod["spec"]["nodeName"] = json!("n1"));
    assert_eq!(cluster.run(), Vec::<String>::new(), "one alone would leave the gang in parts");
    // A scheduler that begins with it knows it, too.
    let mut cluster = Cluster::over(cluster.server);
    assert_eq!(cluster.run(), Vec::<String>::new());
    node(&mut cluster.server, 2);
    assert_eq!(cluster.run(), ["p0", "p1"], "together, with what is there now");
}
