//! Questions of people who may not see everything.

use std::time::Duration;

use dovetail_control::lead::LeaseTimes;
use dovetail_scheduler::lead::LeaseName;
use dovetail_scheduler::{Election, Options, look};
use dovetail_testkit::FakeApi;
use dovetail_testkit::fake_api::{ApiFault, FaultRule, On, Verb};

use crate::schedule::{config, fake_nodes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_kinds_that_may_not_be_listed_are_named_at_once() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    let forbid = |plural| {
        let on = On::new(&[Verb::List, Verb::Watch], plural);
        FaultRule::some(on, 1_000_000, ApiFault::ServerError { code: 403 })
    };
    let plurals = ["storageclasses", "pods", "nodes"];
    api.set_faults(1, plurals.map(forbid).to_vec());
    let asked = look(&config(&api), &Options::default(), Duration::from_secs(60), 0).await;
    let told = asked.err().expect("a refusal").to_string();
    let begin = "your user is not allowed to list and watch nodes, pods, \
         storageclasses.storage.k8s.io: grant this permission, as the ClusterRole of \
         deploy/viewer.yaml does; ";
    assert!(told.starts_with(begin), "{told}");
    assert!(!told.contains("ApiError") && !told.contains("Status {"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_learned_need_not_be_readable() {
    let api = FakeApi::start().expect("a free port");
    fake_nodes(&api, 1);
    let lease = LeaseName { namespace: "here".to_owned(), name: "dovetail".to_owned() };
    let election = Election { lease, identity: "asks".to_owned(), terms: LeaseTimes::default() };
    let options = Options { election: Some(election), ..Options::default() };
    for (code, told) in
        [(404, None), (403, Some("here/dovetail-learned: the API server rejected it (403)"))]
    {
        let on = On::new(&[Verb::Get], "configmaps");
        let fault = FaultRule::some(on, 1_000_000, ApiFault::ServerError { code });
        api.set_faults(1, vec![fault]);
        let seen = look(&config(&api), &options, Duration::from_secs(60), 0).await;
        let seen = seen.unwrap_or_else(|error| panic!("{code}: {error}"));
        assert_eq!(seen.unlearned.is_some(), told.is_some(), "{:?}", seen.unlearned);
        assert!(seen.unlearned.iter().all(|text| told.is_some_and(|told| text.contains(told))));
    }
}
