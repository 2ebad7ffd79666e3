//! A leader that is frozen as a process, on a real server.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use dovetail_scheduler::{Metrics, Status, run};
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Config};
use tokio::sync::watch;

use crate::schedule::{PATIENCE, assert_within, create_nodes, create_pods, elected, held};

/// The variables that turn one test into a scheduler: its kubeconfig and its identity.
const KUBECONFIG: &str = "DOVETAIL_TEST_KUBECONFIG";
const IDENTITY: &str = "DOVETAIL_TEST_IDENTITY";

/// A scheduler in a process of its own; it ends with the value.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(kubeconfig: &Path, identity: &str) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["freeze::scheduler", "--exact"])
            .env(KUBECONFIG, kubeconfig)
            .env(IDENTITY, identity)
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("a second process"))
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let done = Command::new("kill").args([signal, &pid]).status();
        assert!(done.expect("the program kill").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// What the test below starts, freezes and kills; nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scheduler() {
    let Some(path) = std::env::var_os(KUBECONFIG) else { return };
    let identity = std::env::var(IDENTITY).expect("an identity");
    let kubeconfig = Kubeconfig::read_from(path).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let (_stop, stopped) = watch::channel(false);
    let (status, metrics) = (Arc::<Status>::default(), Arc::<Metrics>::default());
    let options = elected(&identity);
    run(&config.expect("a config"), options, status, metrics, stopped).await.expect("a scheduler");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_leader_is_followed_and_yields_when_it_wakes() {
    let control_plane = ControlPlane::fresh().expect("a control plane");
    let client = control_plane.client().await.expect("a client");
    create_nodes(&Api::<Node>::all(client.clone()), 60).await;
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let kubelets = Kubelets::start(client, KubeletOptions::default());
    let running = |count| kubelets.wait_until(PATIENCE, move |counts| counts.running >= count);

    let old = Process::start(control_plane.kubeconfig(), "old");
    create_pods(&pods, 0..1).await;
    running(1).await.expect("a leader");
    let new = Process::start(control_plane.kubeconfig(), "new");
    // Frozen while it binds; the rest of the pods it never hears of.
    let freezing = async {
        running(50).await.expect("pods that run");
        old.signal("-STOP");
    };
    tokio::join!(create_pods(&pods, 1..200), freezing);
    create_pods(&pods, 200..400).await;
    running(400).await.expect("a new leader");
    old.signal("-CONT");
    create_pods(&pods, 400..440).await;
    let counts = running(440).await.expect("one leader");
    assert_eq!(counts.rejected, 0);

    let all = pods.list(&ListParams::default()).await.expect("all pods").items;
    assert_within(held(&all));
    let epoch_of = |number: usize| {
        let name = format!("p{number}");
        let pod = all.iter().find(|pod| pod.metadata.name.as_deref() == Some(&name));
        let annotations = pod.and_then(|pod| pod.metadata.annotations.as_ref());
        let epoch = annotations.and_then(|all| all.get("dovetail.dev/epoch"));
        epoch.and_then(|epoch| epoch.parse::<u64>().ok())
    };
    assert_eq!(epoch_of(0), Some(0));
    // On a busy machine the new leader may lose the lease and win it again.
    let late: BTreeSet<Option<u64>> = (200..440).map(epoch_of).collect();
    assert!(late.iter().all(|epoch| epoch.is_some_and(|epoch| epoch > 0)), "{late:?}");
    drop((old, new));
}
