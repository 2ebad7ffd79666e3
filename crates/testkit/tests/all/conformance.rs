//! The script of a scheduler's requests, against the fake server.

use dovetail_testkit::FakeApi;

use crate::script::{Answer, Step, run};
use crate::session::Session;
use crate::steps::{AROUND, BINDING, CUSTOM, EVICTING, READING, WRITING};

fn all_steps() -> Vec<Step> {
    let parts = [READING, WRITING, BINDING, EVICTING, AROUND, CUSTOM];
    parts.into_iter().flatten().map(Step::copied).collect()
}

async fn fake_answers() -> Vec<Answer> {
    let api = FakeApi::start().expect("a free port");
    let session = Session::plain(api.url());
    run(&session, "script-1", &all_steps()).await
}

#[tokio::test]
async fn the_fake_server_answers_every_step_as_written_down() {
    let lines = fake_answers().await.iter().map(Answer::line).collect::<Vec<_>>();
    let expected = include_str!("../golden/conformance.txt");
    for (line, expected) in lines.iter().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(lines.len(), expected.lines().count(), "{lines:#?}");
}

#[tokio::test]
async fn the_usual_client_reads_what_the_fake_server_answers() {
    let api = FakeApi::start().expect("a free port");
    let config = kube::Config::new(api.url().parse().expect("an address"));
    let client = kube::Client::try_from(config).expect("a client without TLS");
    let pods = kube::Api::<k8s_openapi::api::core::v1::Pod>::default_namespaced(client.clone());
    let pod = serde_json::json!({
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let created =
        pods.create(&Default::default(), &serde_json::from_value(pod).expect("a pod")).await;
    assert_eq!(created.expect("a new pod").spec.expect("a spec").priority, Some(0));
    let labelled = kube::api::ListParams::default().labels("a=b").limit(10);
    assert_eq!(pods.list(&labelled).await.expect("a list").items.len(), 1);
    let deleted = pods.delete("p", &Default::default()).await.expect("a deletion");
    assert!(deleted.left().is_some(), "the pod itself comes back");
    let refused = pods.get("p").await.expect_err("no pod");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 404));
    let groups = client.list_api_groups().await.expect("the groups");
    assert!(groups.groups.iter().any(|group| group.name == "coordination.k8s.io"));
}
