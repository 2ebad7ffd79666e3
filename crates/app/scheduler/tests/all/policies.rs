//! Another policy while the scheduler runs.

use std::sync::{Arc, Mutex};

use dovetail_control::control::Settings;
use dovetail_control::record::{EngineEntry, Record, RecordEntry, Recording};
use dovetail_model::Event;
use dovetail_plan::{EngineConfig, PolicySpec};
use dovetail_scheduler::Options;
use dovetail_testkit::FakeApi;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::schedule::{Running, config, fake_nodes, pod, until};

/// Names of the policies that the engine was told of.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Record for Told {
    fn begin(&mut self, _settings: &Settings) {}

    fn step(&mut self, _entry: RecordEntry, engines: Vec<EngineEntry>) {
        let mut told = self.0.lock().expect("no panic");
        for entry in engines {
            match entry {
                EngineEntry::Begins(begun) => told.push(begun.0.policy.name),
                EngineEntry::Steps { events, .. } => {
                    told.extend(events.into_iter().filter_map(|event| match event {
                        Event::PolicyChanged { name } => Some(name),
                        _ => None,
                    }));
                }
            }
        }
    }

    fn end(&mut self) {}

    fn is_broken(&self) -> bool {
        false
    }
}

/// Creates a pod of one GPU and of CPU that shows in the scores of nodes; where it is bound.
async fn node_of(api: &FakeApi, name: &str) -> String {
    let mut created = pod(name, 1);
    created["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "16"});
    api.create("pods", "default", &created).expect("a new pod");
    let node = || {
        let pods = api.all("pods");
        let pod = pods.iter().find(|pod| pod["metadata"]["name"] == name)?;
        pod["spec"]["nodeName"].as_str().map(str::to_owned)
    };
    until(api, || node().is_some()).await;
    node().expect("bound")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_policy_chooses_the_next_node_without_a_restart() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 3);
    let (policy, policies) = watch::channel("best-fit".to_owned());
    let told = Told::default();
    let options = || Options {
        engine: EngineConfig { policy: PolicySpec::named("best-fit"), ..EngineConfig::default() },
        policies: Some(policies.clone()),
        recording: Some(Recording::new(told.clone())),
        ..Options::default()
    };
    let scheduler = Running::start(config(&api), options());
    let first = node_of(&api, "a").await;
    assert_eq!(node_of(&api, "b").await, first, "pods go together");
    policy.send_replace("kube-default".to_owned());
    let spread = node_of(&api, "c").await;
    assert_ne!(spread, first, "pods go apart");
    policy.send_replace("best-fit".to_owned());
    assert_eq!(node_of(&api, "d").await, first, "pods go together again");
    policy.send_replace("kube-default".to_owned());
    let names: Vec<Value> = api.bound().iter().map(|bound| bound.pod.clone().into()).collect();
    assert_eq!(names, ["a", "b", "c", "d"], "each pod is bound once");
    scheduler.stop().await;
    // A leadership that begins later knows what was said before it.
    let scheduler = Running::start(config(&api), options());
    let last = node_of(&api, "e").await;
    assert!(last != first && last != spread, "{last} is empty");
    scheduler.stop().await;
    let told = told.0.lock().expect("no panic").clone();
    assert_eq!(told[..3], ["best-fit", "kube-default", "best-fit"]);
    assert_eq!(told.last().map(String::as_str), Some("kube-default"));
}
