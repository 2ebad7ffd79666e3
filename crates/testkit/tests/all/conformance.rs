//! The script of a scheduler's requests, against the fake server and the real one.

use dovetail_testkit::cluster::Options;
use dovetail_testkit::{ControlPlane, FakeApi};

use crate::script::{Answer, Step, run};
use crate::session::Session;
use crate::steps::{AROUND, BINDING, CUSTOM, EVICTING, EXPIRED, READING, WRITING};

fn all_steps() -> Vec<Step> {
    let parts = [READING, WRITING, BINDING, EVICTING, AROUND, CUSTOM];
    parts.into_iter().flatten().map(Step::copied).collect()
}

async fn fake_answers() -> Vec<Answer> {
    let api = FakeApi::start().expect("a free port");
    let session = Session::plain(api.url());
    let mut answers = run(&session, "script-1", &all_steps()).await;
    api.compact();
    answers.extend(run(&session, "script-1", EXPIRED).await);
    answers
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

#[tokio::test(flavor = "multi_thread")]
async fn the_real_server_answers_every_step_as_the_fake_one_does() {
    let control_plane = ControlPlane::start(Options::default()).expect("a control plane");
    let session = Session::new(control_plane.config().await.expect("its kubeconfig"));
    let mut real = run(&session, "script-1", &all_steps()).await;
    // A server that starts knows nothing of what was before.
    control_plane.kill_api_server().expect("a kill");
    control_plane.start_api_server().expect("a start");
    real.extend(run(&session, "script-1", EXPIRED).await);
    let fake = fake_answers().await;
    let differ = real.iter().zip(&fake).filter(|(real, fake)| real != fake);
    let differ: Vec<String> = differ.map(|(real, fake)| difference(real, fake)).collect();
    assert!(differ.is_empty(), "{} steps differ:\n{}", differ.len(), differ.join("\n"));
}

/// Both answers to a step, one below the other.
fn difference(real: &Answer, fake: &Answer) -> String {
    format!("{}\n  real {} {}\n  fake {} {}", real.step, real.code, real.body, fake.code, fake.body)
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
