//! Questions of people who may not see everything.

use std::time::Duration;

use dovetail_scheduler::{Options, look};
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{Fault, FaultRule, On, Verb};

use crate::schedule::{config, fake_nodes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_kinds_that_may_not_be_listed_are_named_at_once() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    let forbid = |plural| {
        let on = On::new(&[Verb::List, Verb::Watch], plural);
        FaultRule::some(on, 1_000_000, Fault::ServerError { code: 403 })
    };
    let plurals = ["storageclasses", "pods", "nodes"];
    api.set_faults(1, plurals.map(forbid).to_vec());
    let asked = look(&config(&api), &Options::default(), Duration::from_secs(60), 0).await;
    let told = asked.err().expect("a refusal").to_string();
    let begin = "your user may not list and watch nodes, pods, storageclasses.storage.k8s.io: give it that right, as \
                 the ClusterRole of deploy/viewer.yaml does; ";
    assert!(told.starts_with(begin), "{told}");
    assert!(!told.contains("ApiError") && !told.contains("Status {"), "{told}");
}
