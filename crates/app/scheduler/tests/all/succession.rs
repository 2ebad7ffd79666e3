//! On a real server, with everything that a decision may rest on: when a leader dies with all it
//! knew, the next one decides as it would have.

use std::collections::BTreeMap;

use dovetail_control::ask::{Question, QueueLines, Reply};
use dovetail_control::control::Settings;
use dovetail_plan::EstimatesConfig;
use dovetail_plan::engine::EngineConfig;
use dovetail_scheduler::lead::LeaseName;
use dovetail_testkit::{ControlPlane, FreshControlPlane, KubeletOptions, Kubelets};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Config};
use serde_json::{Value, json};

use crate::agree::{Leader, assert_same_line, create_learned, queues, written};
use crate::queue_objects::{self, create, kubectl, queue};
use crate::receipts::fair;
use crate::reservation_objects;
use crate::schedule::{create_nodes, pod};

const MINUTE_MS: u64 = 60_000;
const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/train";

/// What becomes of the first leader, and of what it wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Lives,
    /// Nothing but the objects is left for the next one.
    Dies,
    /// Nor are usage, receipts and learned run times, which the objects say.
    DiesUnread,
}

/// What is decided in a history, and how it ends.
#[derive(Debug)]
struct Told {
    decisions: Vec<String>,
    /// Of each queue, beside its usage.
    statuses: BTreeMap<String, Value>,
    /// GPU-time that counts against the queue which borrows, in seconds of the cluster.
    usage_s: f64,
    /// Over which time it was counted.
    counted_s: f64,
}

struct History {
    config: Config,
    leader: Leader,
    decisions: Vec<String>,
    // Last: those before it ask it until they are dropped.
    control_plane: FreshControlPlane,
}

fn settings() -> Settings {
    let estimates = EstimatesConfig { learn: true, ..EstimatesConfig::default() };
    let engine = EngineConfig { estimates, ..fair() };
    let lease = LeaseName { namespace: "kube-system".to_owned(), name: "dovetail".to_owned() };
    Settings { engine, learned: Some(lease.learned()), ..Settings::default() }
}

/// Pods that are on a node and stay, each with its node.
type Placed = BTreeMap<String, String>;

fn placed(control_plane: &ControlPlane) -> Placed {
    let said = control_plane.object("/api/v1/namespaces/default/pods").expect("pods");
    let stays = said["items"].as_array().expect("a list").iter().filter_map(|pod| {
        let node = pod["spec"]["nodeName"].as_str()?;
        let name = pod["metadata"]["name"].as_str()?;
        let is_ending = pod["metadata"]["deletionTimestamp"].is_string();
        (!is_ending).then(|| (name.to_owned(), node.to_owned()))
    });
    stays.collect()
}

impl History {
    /// Three nodes, one of them reserved for queue `kept`; `ours` is guaranteed the other two.
    async fn begin() -> Self {
        let control_plane = ControlPlane::fresh().expect("a control plane");
        queue_objects::install(&control_plane);
        reservation_objects::install(&control_plane);
        create_learned(&control_plane);
        for (name, guaranteed) in [("ours", 16), ("lent", 0), ("rest", 0), ("kept", 0)] {
            let spec = json!({"guaranteed": {"nvidia.com/gpu": guaranteed}, "namespaceSelector": {},
                "borrowing": "WhenFree", "halfLife": "7d"});
            create(&control_plane, &queue(name, spec));
        }
        let hours = (-60, 8 * 3_600);
        create(&control_plane, &reservation_objects::reservation("kept", "kept", 1, hours));
        let client = control_plane.client().await.expect("a client");
        create_nodes(&Api::<Node>::all(client), 3).await;
        let config = control_plane.config().await.expect("a kubeconfig");
        let leader = Leader::of_epoch(0, &config, settings()).await;
        let mut history = Self { control_plane, config, leader, decisions: Vec::new() };
        history
            .wait("a reserved node", |server| {
                reservation_objects::status(server, "kept")["phase"] == "Active"
            })
            .await;
        history
    }

    async fn wait(&mut self, what: &str, mut enough: impl FnMut(&ControlPlane) -> bool) {
        let server: &ControlPlane = &self.control_plane;
        self.leader.until(what, |_| enough(server)).await;
    }

    /// A pod that takes a node, and stays pending for now.
    fn submit(&self, name: &str, queue: &str, annotations: Value) {
        let mut object = pod(name, 8);
        (object["apiVersion"], object["kind"]) = (json!("v1"), json!("Pod"));
        object["metadata"]["namespace"] = json!("default");
        object["metadata"]["labels"] = json!({"dovetail.dev/queue": queue});
        object["metadata"]["annotations"] = annotations;
        object["spec"]["terminationGracePeriodSeconds"] = json!(1);
        create(&self.control_plane, &object);
    }

    /// A pod of Job `train`, which is of queue `lent`.
    fn submit_of_job(&self, name: &str) {
        let job = self.control_plane.object(JOB).expect("a Job");
        let mut object = pod(name, 8);
        (object["apiVersion"], object["kind"]) = (json!("v1"), json!("Pod"));
        object["metadata"] = json!({"name": name, "namespace": "default",
            "labels": {"dovetail.dev/queue": "lent", "batch.kubernetes.io/job-name": "train"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train",
                "uid": job["metadata"]["uid"], "controller": true}]});
        object["spec"]["terminationGracePeriodSeconds"] = json!(1);
        create(&self.control_plane, &object);
    }

    fn end(&self, pod: &str) {
        let now = ["delete", "pod", pod, "--grace-period=0", "--force", "--wait=false"];
        let (said, is_done) = kubectl(&self.control_plane, &now, "");
        assert!(is_done, "{said}");
    }

    /// Waits until a pod starts beside these, and notes which, and whether on the reserved node.
    async fn next_start(&mut self, before: &Placed) -> String {
        let mut started = Placed::new();
        self.wait("a start", |server| {
            let now = placed(server);
            started = now.into_iter().filter(|(pod, _)| !before.contains_key(pod)).collect();
            !started.is_empty()
        })
        .await;
        let kept = reservation_objects::status(&self.control_plane, "kept");
        let is_kept = |node: &str| kept["nodes"][0] == *node;
        let names = started.iter().map(|(pod, node)| match is_kept(node) {
            true => format!("{pod} on the reserved node"),
            false => pod.clone(),
        });
        let names = names.collect::<Vec<_>>().join(", ");
        self.decisions.push(format!("starts: {names}"));
        names
    }

    /// Waits until one of these pods is evicted, and notes which.
    async fn next_victim(&mut self, before: &Placed) -> String {
        let mut gone = String::new();
        self.wait("a victim", |server| {
            let now = placed(server);
            let evicted = before.keys().filter(|pod| !now.contains_key(*pod));
            gone = evicted.cloned().collect::<Vec<_>>().join(", ");
            !gone.is_empty()
        })
        .await;
        self.decisions.push(format!("evicted: {gone}"));
        gone
    }

    fn placed(&self) -> Placed {
        placed(&self.control_plane)
    }

    /// `ours` takes back a node from Job `train`, which is then left alone for a day, and ends;
    /// `lent` borrows both nodes. Then one more pod of each of `lent` and `rest` waits.
    async fn until_all_is_taken(&mut self) {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i"}]}}}});
        create(&self.control_plane, &job);
        self.submit("ours-0", "ours", json!({}));
        self.next_start(&Placed::new()).await;
        let before = self.placed();
        self.submit_of_job("train-x");
        self.next_start(&before).await;
        let before = self.placed();
        self.submit("ours-1", "ours", json!({}));
        assert_eq!(self.next_victim(&before).await, "train-x");
        self.next_start(&before).await;
        self.wait("a receipt", |server| receipt(server) == "1").await;
        // By the time that each would lose, `train` would be the first victim again.
        self.submit("lent-0", "lent", json!({"dovetail.dev/restart-cost": "20m"}));
        for (ends, starts) in [("ours-0", "lent-0"), ("ours-1", "train-y")] {
            if starts == "train-y" {
                self.submit_of_job(starts);
            }
            let before = self.placed();
            self.end(ends);
            assert_eq!(self.next_start(&before).await, starts);
        }
        self.submit("lent-1", "lent", json!({"dovetail.dev/runtime": "2h"}));
        let waits = |count| {
            move |leader: &mut Leader| {
                let at_ms = leader.now_ms();
                queues(&mut leader.control, at_ms).waiting.len() == count
            }
        };
        self.leader.until("a pod that waits", waits(1)).await;
        self.submit("rest-0", "rest", json!({"dovetail.dev/runtime": "1h"}));
        self.leader.until("both pods that wait", waits(2)).await;
    }

    /// The leader is gone with all it knew, and another one takes over.
    async fn next_leader(&mut self, fate: Fate) {
        if fate == Fate::DiesUnread {
            for name in ["ours", "lent", "rest", "kept"] {
                let patch = json!({"status": null}).to_string();
                let forget =
                    ["patch", "queue", name, "--subresource=status", "--type=merge", "-p", &patch];
                assert!(kubectl(&self.control_plane, &forget, "").1, "{name}");
            }
            let names = [
                "preemptions",
                "attained-gpu-seconds",
                "lost-gpu-seconds",
                "last-preempted",
                "first-submitted",
            ];
            let names: Vec<String> = names.iter().map(|of| format!("dovetail.dev/{of}-")).collect();
            let mut forget = vec!["annotate", "job", "train"];
            forget.extend(names.iter().map(String::as_str));
            assert!(kubectl(&self.control_plane, &forget, "").1);
            let forget = ["delete", "configmap", "dovetail-learned", "-n", "kube-system"];
            assert!(kubectl(&self.control_plane, &forget, "").1);
        }
        let ahead_ms = self.leader.ahead_ms;
        let next = Leader::of_epoch(1, &self.config, settings()).await;
        let mut last = std::mem::replace(&mut self.leader, next);
        self.leader.ahead_ms = ahead_ms;
        let waits = |leader: &mut Leader| {
            let at_ms = leader.now_ms();
            // Until everything is listed there is no answer.
            let known = leader.control.ask(&Question::Queues { starts: false }, at_ms);
            matches!(known, Some(Reply::Queues(queues)) if queues.waiting.len() == 2)
        };
        self.leader.until("the pods that wait", waits).await;
        if fate == Fate::DiesUnread {
            return;
        }
        // What the one that stands still would say now.
        let at_ms = self.leader.now_ms();
        let before = queues(&mut last.control, at_ms);
        let after = queues(&mut self.leader.control, at_ms);
        assert_same_line(&before, &after);
        let used_s = |lines: &QueueLines| {
            let lent = lines.queues.iter().find(|line| line.name == "lent").expect("a queue");
            lent.used_cluster_hours.expect("the order counts it") * 3_600.0
        };
        let lost_s = used_s(&before) - used_s(&after);
        assert!(lost_s.abs() <= 30.0, "{lost_s} s of the cluster: more than one batch is lost");
    }

    /// A pod for the reserved node comes, `ours` wants a node back, and two others end.
    async fn all_starts(&mut self) {
        let before = self.placed();
        self.submit("kept-0", "kept", json!({}));
        self.next_start(&before).await;
        let before = self.placed();
        self.submit("ours-2", "ours", json!({}));
        self.next_victim(&before).await;
        self.next_start(&before).await;
        for _ in 0..2 {
            let before = self.placed();
            let mut others = before.keys().filter(|pod| !["kept-0", "ours-2"].contains(&&***pod));
            let ends = others.next().expect("a pod that borrows").clone();
            self.end(&ends);
            self.next_start(&before).await;
        }
        let receipt = receipt(&self.control_plane);
        self.decisions.push(format!("preemptions of the Job: {receipt}"));
    }
}

/// How often pods of the Job were preempted, as it says.
fn receipt(control_plane: &ControlPlane) -> Value {
    let job = control_plane.object(JOB).expect("a Job");
    job["metadata"]["annotations"]["dovetail.dev/preemptions"].clone()
}

/// What the status of the queue that borrows says of its usage, and for which time, in seconds.
fn written_usage(control_plane: &ControlPlane) -> Option<(f64, u64)> {
    let usage = &written(control_plane, "lent")["usage"];
    let at = usage["asOf"].as_str()?.parse::<Timestamp>().expect("a time");
    let at_s = u64::try_from(at.as_second()).expect("after 1970");
    Some((usage["all"].as_f64()? / 1e9, at_s))
}

async fn told(fate: Fate) -> Told {
    let mut history = History::begin().await;
    let _kubelets = {
        let client = history.control_plane.client().await.expect("a client");
        Kubelets::start(client, KubeletOptions::default())
    };
    history.until_all_is_taken().await;
    let began_s = history.leader.now_ms() / 1_000;
    history.leader.ahead_ms += 90 * MINUTE_MS;
    let is_written = |server: &ControlPlane| {
        written_usage(server).is_some_and(|(_, at_s)| at_s >= began_s + 90 * 60)
    };
    history.wait("the usage of 90 minutes", is_written).await;
    // What was used since then is in no object.
    history.leader.ahead_ms += 20_000;
    if fate != Fate::Lives {
        history.next_leader(fate).await;
    }
    history.all_starts().await;
    // Usage is counted only while somebody waits for what is used.
    history.submit("rest-1", "rest", json!({}));
    let waits = |leader: &mut Leader| {
        let at_ms = leader.now_ms();
        !queues(&mut leader.control, at_ms).waiting.is_empty()
    };
    history.leader.until("a pod that waits", waits).await;
    history.leader.ahead_ms += MINUTE_MS;
    let enough_s = history.leader.now_ms() / 1_000;
    let is_written = |server: &ControlPlane| {
        let rest = written(server, "rest");
        let uses = |name: &str| written(server, name)["used"] != json!({});
        rest["pending"]["jobs"] == 1
            && !uses("rest")
            && ["ours", "lent", "kept"].into_iter().all(uses)
            && written_usage(server).is_some_and(|(_, at_s)| at_s >= enough_s)
    };
    history.wait("the statuses at the end", is_written).await;
    let (usage_s, at_s) = written_usage(&history.control_plane).expect("a status");
    let names = ["ours", "lent", "rest", "kept"].into_iter();
    let statuses = names.map(|name| {
        let mut status = written(&history.control_plane, name);
        let status = status.as_object_mut().expect("a status");
        status.retain(|key, _| ["used", "borrowed", "share", "pending"].contains(&&**key));
        (name.to_owned(), json!(status))
    });
    let statuses = statuses.collect();
    let counted_s = (at_s - began_s) as f64;
    Told { decisions: history.decisions, statuses, usage_s, counted_s }
}

/// Order, guarantees, usage, reservations, receipts, learned and stated run times all have a part
/// in what is decided after the leader died. Hours pass for the leaders alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_decides_on_a_real_server_as_the_one_that_died_would_have() {
    let (lives, dies) = (told(Fate::Lives).await, told(Fate::Dies).await);
    assert_eq!(dies.decisions, lives.decisions);
    let decided = |what: &str| lives.decisions.iter().any(|decision| decision == what);
    for what in ["starts: kept-0 on the reserved node", "evicted: lent-0"] {
        assert!(decided(what), "{what}: {:?}", lives.decisions);
    }
    assert_eq!(dies.statuses, lives.statuses);
    assert!(lives.usage_s > 1_800.0, "{lives:?}");
    let apart_s = (dies.usage_s - lives.usage_s).abs();
    let most_s = 30.0 + (dies.counted_s - lives.counted_s).abs();
    assert!(apart_s <= most_s, "{apart_s} s of the cluster, not {most_s}");
    let unread = told(Fate::DiesUnread).await;
    assert_ne!(unread.decisions, lives.decisions, "what the objects say does not matter");
}
