//! A real control plane starts, breaks, restarts and ends.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use dovetail_testkit::ControlPlane;
use dovetail_testkit::cluster::{Cluster, Options, StartError, User};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// The variable that turns one test into the program that another one kills.
const VICTIM: &str = "DOVETAIL_TESTKIT_VICTIM";

#[tokio::test(flavor = "multi_thread")]
async fn the_server_has_its_version_and_the_newest_one_the_native_gang_api() {
    let control_plane = ControlPlane::shared().unwrap();
    let namespace = control_plane.namespace("gang api").await.unwrap();
    assert!(namespace.name().starts_with("gang-api-"));
    let client = control_plane.client().await.unwrap();
    let version = client.apiserver_version().await.unwrap().git_version;
    if !control_plane.cluster().release().has_gangs() {
        assert_eq!(version, "v1.35.4");
        return;
    }
    assert_eq!(version, "v1.37.1");
    let gangs = client.list_api_group_resources("scheduling.k8s.io/v1beta1").await.unwrap();
    assert!(gangs.resources.iter().any(|resource| resource.name == "podgroups"), "{gangs:?}");
}

/// Also a kind that was defined, which can be defined anew.
#[test]
fn a_fresh_server_has_nothing_of_the_test_before() {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "versions": [version],
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things",
                "singular": "thing"}}});
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "dovetail", "namespace": "default"}, "spec": {}});
    let paths = [
        "/api/v1/nodes/n0",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/dovetail",
        "/apis/example.com/v1/things/a",
        "/apis/example.com/v1",
    ];
    let mut servers = Vec::new();
    for _ in 0..2 {
        let control_plane = ControlPlane::fresh().unwrap();
        servers.push(control_plane.cluster().server().to_owned());
        for path in paths {
            assert_eq!(control_plane.object(path), None, "{path}");
        }
        assert!(control_plane.object("/api/v1/namespaces/kube-system").is_some());
        for object in [&node, &lease, &definition, &thing] {
            control_plane.create(object).unwrap();
        }
        for path in &paths[..3] {
            assert!(control_plane.object(path).is_some(), "{path}");
        }
        let unknown = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "spec": {"unknown": true}});
        assert!(control_plane.create(&unknown).is_err(), "as kubectl, it refuses unknown fields");
    }
    assert_eq!(servers[0], servers[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_survive_a_killed_api_server_and_users_have_only_their_rights() {
    let user = User { name: "system:serviceaccount:gpu:agent".to_owned(), groups: Vec::new() };
    let options = Options { users: vec![user.clone()], ..Options::default() };
    let control_plane = ControlPlane::start(options).unwrap();
    let namespace = control_plane.namespace("survival").await.unwrap();
    let client = control_plane.client().await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace.name());
    let mut map = ConfigMap::default();
    map.metadata.name = Some("kept".to_owned());
    let created = maps.create(&PostParams::default(), &map).await.unwrap();

    control_plane.kill_api_server().unwrap();
    assert!(maps.get("kept").await.is_err());
    control_plane.start_api_server().unwrap();
    let kept = maps.get("kept").await.unwrap();
    assert_eq!(kept.metadata.uid, created.metadata.uid);

    let theirs = control_plane.config_of(&user.name).await.unwrap();
    let theirs = Api::<Node>::all(Client::try_from(theirs).unwrap());
    match theirs.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403, "{status}"),
        other => panic!("a user without rights listed nodes: {other:?}"),
    }
    let ours = Api::<Node>::all(client);
    assert!(ours.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[test]
fn an_error_quotes_the_log_and_keeps_it() {
    let options =
        Options { api_server_arguments: vec!["--no-such-flag".to_owned()], ..Options::default() };
    match Cluster::start(options, &mut |_| {}) {
        Err(StartError::Ended { program, log, tail }) => {
            assert_eq!(program, "kube-apiserver");
            assert!(tail.contains("no-such-flag"), "{tail}");
            assert!(std::fs::read_to_string(&log).unwrap().contains("no-such-flag"));
            std::fs::remove_dir_all(log.parent().unwrap()).unwrap();
        }
        other => panic!("an unknown flag was taken: {other:?}"),
    }
}

#[test]
fn a_control_plane_ends_when_its_process_is_killed() {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["control_plane::victim", "--exact", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let mut addresses = lines
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("listens on ").map(str::to_owned));
    let address = addresses.next().expect("the victim started a control plane");
    let mut connection = TcpStream::connect(&address).unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    // A dying server closes its sockets one by one, so a new connection may be taken once more.
    loop {
        assert_ends(&mut connection);
        match TcpStream::connect(&address) {
            Ok(another) => connection = another,
            Err(_) => break,
        }
    }
}

/// Waits for the end of a connection, which breaks with its server. A server that lives on lets the
/// read time out.
fn assert_ends(connection: &mut TcpStream) {
    connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    match connection.read(&mut [0; 1]) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
}

/// What the test above kills; nothing else.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let cluster = Cluster::start(Options::default(), &mut |_| {}).unwrap();
    let address = cluster.server().trim_start_matches("https://").to_owned();
    println(&format!("\nlistens on {address}"));
    // Until the parent kills this process, or a minute after it was forgotten.
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let _ = receiver.recv_timeout(Duration::from_secs(60));
}

fn println(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}
