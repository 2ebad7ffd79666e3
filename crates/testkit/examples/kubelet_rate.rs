//! How many transitions per second the kubelets make: `cargo run --release --package
//! dovetail-testkit --example kubelet_rate [PODS] [NODES]`.
//!
//! A control plane of its own. All pods are bound when the first kubelets start: one transition
//! each, to Running. Then all are asked to terminate, and new kubelets find them: two transitions
//! each, the end of the containers and of the object. The time runs from the start of the kubelets,
//! their initial lists included, to the last pod.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use dovetail_testkit::cluster::Options;
use dovetail_testkit::{ControlPlane, KubeletOptions, Kubelets, MachineShape};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

const WITHIN: Duration = Duration::from_secs(600);
const REQUESTS_IN_FLIGHT: usize = 64;
const PODS_PER_NODE: u32 = 100;

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let pods = arguments.next().map_or(Ok(6000), |text| text.parse::<u32>())?;
    let nodes = arguments.next().map_or(Ok(pods.div_ceil(PODS_PER_NODE)), |text| text.parse())?;
    let control_plane = ControlPlane::start(Options::default())?;
    let namespace = control_plane.namespace("rate").await?;
    let client = control_plane.client().await?;
    let (node_api, pod_api) = (
        Api::<Node>::all(client.clone()),
        Api::<Pod>::namespaced(client.clone(), namespace.name()),
    );

    let shape = "8xH100".parse::<MachineShape>()?;
    let create_node = |number: u32| {
        let node = serde_json::from_value::<Node>(shape.node(&format!("node-{number}")));
        let api = node_api.clone();
        async move {
            api.create(&PostParams::default(), &node?)
                .await
                .map(drop)
                .map_err(Box::<dyn Error>::from)
        }
    };
    all(0..nodes, create_node).await?;
    let create_pod = |number: u32| {
        let (api, pod) = (pod_api.clone(), pod(number, nodes));
        async move {
            api.create(&PostParams::default(), &pod?)
                .await
                .map(drop)
                .map_err(Box::<dyn Error>::from)
        }
    };
    let begun = Instant::now();
    all(0..pods, create_pod).await?;
    report("created by the test", u64::from(pods), begun)?;

    let wanted = u64::from(pods);
    let options = KubeletOptions { requests_in_flight: REQUESTS_IN_FLIGHT, ..Default::default() };
    let begun = Instant::now();
    let kubelets = Kubelets::start(client.clone(), options.clone());
    kubelets.wait_until(WITHIN, |counts| counts.transitions() == wanted).await?;
    report("pending to running", wanted, begun)?;
    drop(kubelets);

    let delete_pod = |number: u32| {
        let api = pod_api.clone();
        let name = format!("pod-{number}");
        async move {
            api.delete(&name, &DeleteParams::default())
                .await
                .map(drop)
                .map_err(Box::<dyn Error>::from)
        }
    };
    all(0..pods, delete_pod).await?;
    let begun = Instant::now();
    let kubelets = Kubelets::start(client, options);
    let counts = kubelets.wait_until(WITHIN, |counts| counts.deleted == wanted).await?;
    report("running to gone", counts.transitions(), begun)?;
    Ok(())
}

/// A small pod that is bound already.
fn pod(number: u32, nodes: u32) -> serde_json::Result<Pod> {
    serde_json::from_value(json!({
        "metadata": { "name": format!("pod-{number}") },
        "spec": {
            "nodeName": format!("node-{}", number % nodes),
            "containers": [{
                "name": "main",
                "image": "none",
                "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
            }],
        },
    }))
}

/// Does something for many numbers, some at a time, and stops at the first error.
async fn all<F, T>(numbers: std::ops::Range<u32>, one: F) -> Result<(), Box<dyn Error>>
where
    F: Fn(u32) -> T,
    T: Future<Output = Result<(), Box<dyn Error>>>,
{
    let mut done =
        futures_util::stream::iter(numbers).map(one).buffer_unordered(REQUESTS_IN_FLIGHT);
    while let Some(result) = done.next().await {
        result?;
    }
    Ok(())
}

fn report(what: &str, count: u64, begun: Instant) -> std::io::Result<()> {
    let seconds = begun.elapsed().as_secs_f64();
    let rate = count as f64 / seconds;
    writeln!(std::io::stdout(), "{what:<22} {count:>7} in {seconds:>6.2} s  {rate:>6.0}/s")
}
