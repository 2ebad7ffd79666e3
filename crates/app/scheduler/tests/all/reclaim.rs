//! On a real server with its controllers and kubelets: a queue gets back what it is guaranteed by
//! evictions that disruption budgets allow, and by no others.

use std::sync::Arc;

use dovetail_apiserver::client::Clients;
use dovetail_cluster::world::PodKey;
use dovetail_control::order::{EvictionCause, EvictionDecision, OrderEnd, PodOrder};
use dovetail_control::writes::Ended;
use dovetail_model::PreemptReason;
use dovetail_order::Turns;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Order as Line, PreemptionConfig};
use dovetail_scheduler::Options;
use dovetail_scheduler::lead::{Alone, Clock};
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets, cluster};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::queue_objects;
use crate::schedule::{PATIENCE, Running, create_nodes, elected, pause, pod};
use crate::sender::{Given, Sender};

pub(crate) fn fair() -> Options {
    let turns = Turns::preset("fair").expect("a preset");
    let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
    let engine =
        EngineConfig { order: Line::Dovetail, turns, preemption, ..EngineConfig::default() };
    let mut options = Options { engine, ..elected("one") };
    options.world.rules.queues_borrow = true;
    options
}

pub(crate) async fn submit(pods: &Api<Pod>, queue: &str, name: &str) {
    let mut object = pod(name, 4);
    object["metadata"]["labels"] = json!({"dovetail.dev/queue": queue, "team": queue});
    // It cannot be read, which its event says; the pod is placed all the same.
    object["metadata"]["annotations"] = json!({"dovetail.dev/runtime": "soon"});
    object["spec"]["terminationGracePeriodSeconds"] = json!(5);
    let object = serde_json::from_value(object).expect("a pod");
    pods.create(&PostParams::default(), &object).await.expect("a new pod");
}

pub(crate) async fn until(what: &str, mut enough: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !enough().await {
            pause().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what} in time"));
}

/// Names of the pods of a queue that run and stay.
pub(crate) async fn running(pods: &Api<Pod>, queue: &str) -> Vec<String> {
    let of_queue = ListParams::default().labels(&format!("team={queue}"));
    let all = pods.list(&of_queue).await.expect("pods").items.into_iter();
    let runs = all.filter(|pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
    });
    runs.filter_map(|pod| pod.metadata.name).collect()
}

/// Lets all but so many pods of a team be disrupted.
async fn budget(budgets: &Api<PodDisruptionBudget>, min_available: u32) {
    let patch = Patch::Merge(json!({"spec": {"minAvailable": min_available}}));
    budgets.patch("lent", &PatchParams::default(), &patch).await.expect("a budget");
}

/// A budget that allows nothing, once its four pods are counted.
async fn create_budget(budgets: &Api<PodDisruptionBudget>) {
    let budget = json!({"metadata": {"name": "lent"}, "spec": {"minAvailable": 4,
        "selector": {"matchLabels": {"team": "lent"}}}});
    let budget = serde_json::from_value(budget).expect("a budget");
    budgets.create(&PostParams::default(), &budget).await.expect("a new budget");
    until("a budget that is counted", async || {
        let status = budgets.get("lent").await.expect("a budget").status;
        status.is_some_and(|status| (status.current_healthy, status.desired_healthy) == (4, 4))
    })
    .await;
}

/// Evicts two pods together, which the budget does not allow: how that ends, pod by pod.
async fn evict_both(config: &Config, pods: &Api<Pod>) -> Vec<OrderEnd> {
    let clients = Clients::new(config).expect("clients");
    let sender = Sender::start(clients, Arc::new(Alone::new(Clock, 4_000)), 0, 1);
    let mut keys = Vec::new();
    for name in ["lent-0", "lent-1"] {
        let uid = pods.get(name).await.expect("a pod").metadata.uid.expect("a UID");
        keys.push(PodKey { namespace: "default".into(), name: name.into(), uid: uid.into() });
    }
    let decision = EvictionDecision::new(1, keys.clone(), Vec::new());
    let why = EvictionCause::Preempted(PreemptReason::Reclaim);
    for pod in keys {
        sender.give(Given::Order(PodOrder::Evict { pod, why, decision: decision.clone() }));
    }
    let ended = sender.finish().await.into_iter();
    let ends = ended.filter_map(|ended| match ended {
        Ended::Order(report) => Some(report.end),
        _ => None,
    });
    ends.collect()
}

fn condition(pod: &Pod) -> Option<Value> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let target = conditions.iter().find(|one| one.type_ == "DisruptionTarget")?;
    Some(json!({"status": target.status, "reason": target.reason}))
}

/// Two pods were evicted for a queue, and two say a run time that cannot be read.
async fn events_say_why(events: &Api<Event>) {
    until("two events", async || {
        let reclaimed = ListParams::default().fields("reason=Reclaimed");
        let told = events.list(&reclaimed).await.expect("events").items;
        told.len() == 2
            && told.iter().all(|event| {
                let text = event.message.as_deref().unwrap_or_default();
                text.contains("the queue of that pod uses less than its quota")
            })
    })
    .await;
    until("events about run times", async || {
        let unreadable = ListParams::default().fields("reason=UnreadableRunTime");
        let told = events.list(&unreadable).await.expect("events").items;
        let is_told = |name: &str| {
            told.iter().any(|event| {
                let text = event.message.as_deref().unwrap_or_default();
                event.involved_object.name.as_deref() == Some(name)
                    && text.contains("dovetail.dev/runtime: `soon` is not a duration")
            })
        };
        is_told("ours-0") && is_told("ours-1")
    })
    .await;
}

/// Of a pod for which the budget allows no eviction.
async fn an_event_names_the_budget(events: &Api<Event>) {
    let why = "pods of queue lent were evicted, which PodDisruptionBudget default/lent does not";
    until("an event that names the budget", async || {
        let failed = ListParams::default().fields("reason=FailedPreemption");
        let told = events.list(&failed).await.expect("events").items;
        told.iter().any(|event| event.message.as_deref().unwrap_or_default().contains(why))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_gets_its_guarantee_back_as_far_as_disruption_budgets_allow() {
    let options = cluster::Options { controller_manager: true, ..cluster::Options::default() };
    let control_plane = ControlPlane::start(options).expect("a control plane");
    queue_objects::install(&control_plane);
    let client: Client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 2).await;
    for name in ["ours", "lent"] {
        // A queue that does not say borrows where quota is reclaimed.
        let spec = json!({"guaranteed": {"nvidia.com/gpu": 8}, "namespaceSelector": {}});
        queue_objects::create(&control_plane, &queue_objects::queue(name, spec));
    }
    let kubelets = Kubelets::start(client.clone(), KubeletOptions::default());
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let budgets = Api::<PodDisruptionBudget>::default_namespaced(client.clone());
    let config = control_plane.config().await.expect("a kubeconfig");
    let scheduler = Running::start(config.clone(), fair());
    for at in 0..4 {
        submit(&pods, "lent", &format!("lent-{at}")).await;
    }
    kubelets.wait_until(PATIENCE, |counts| counts.running == 4).await.expect("pods that run");
    create_budget(&budgets).await;
    for at in 0..2 {
        submit(&pods, "ours", &format!("ours-{at}")).await;
    }
    let says = async |name: &str, reason: &str| {
        let pod = pods.get(name).await.expect("a pod");
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|one| one.reason.as_deref() == Some(reason))
    };
    until("it waits", async || says("ours-0", "Unschedulable").await).await;
    let events = Api::<Event>::default_namespaced(client);
    an_event_names_the_budget(&events).await;
    // The server itself refuses: none of both is evicted, also where the second alone is kept.
    let ends = evict_both(&config, &pods).await;
    let is_refused = |end: &OrderEnd| {
        matches!(end, OrderEnd::Refused { code: 429, message }
            if message.contains("disruption budget"))
    };
    assert!(ends.iter().any(is_refused), "{ends:?}");
    assert!(!ends.contains(&OrderEnd::Done), "{ends:?}");
    assert_eq!(running(&pods, "lent").await.len(), 4);

    // One may go: one pod of the queue gets its room.
    budget(&budgets, 3).await;
    until("one of ours", async || running(&pods, "ours").await.len() == 1).await;
    assert_eq!(running(&pods, "lent").await.len(), 3, "no more than the budget allows");
    // And then the other one; nobody takes what the other queue is guaranteed.
    budget(&budgets, 2).await;
    until("both of ours", async || running(&pods, "ours").await.len() == 2).await;
    assert_eq!(running(&pods, "lent").await.len(), 2, "what it is guaranteed itself");
    events_say_why(&events).await;
    for name in running(&pods, "lent").await {
        let target = condition(&pods.get(&name).await.expect("a pod"));
        assert!(target.is_none_or(|target| target["status"] == "False"), "{name} stays");
    }
    scheduler.stop().await;
}
