//! GPUs that HAMi or Volcano allocates: dovetail gives out none of them.

use dovetail_objects::Kind;
use serde_json::{Value, json};

use crate::gangs::{Cluster, names, pod};

const HAMI: &str = "hami.io/node-nvidia-register";

fn annotate_node(cluster: &mut Cluster, annotations: Value) {
    let key = (Kind::Node, String::new(), "n0".to_owned());
    cluster.server.change(&key, |node| node["metadata"]["annotations"] = annotations);
}

#[test]
fn gpus_of_a_node_that_hami_shares_are_not_free() {
    let mut cluster = Cluster::of(1);
    let list = "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,8,81559,100,NVIDIA-H100,0,true:";
    annotate_node(&mut cluster, json!({HAMI: list, "hami.io/node-handshake": "Requesting"}));
    cluster.create("p", pod(1));
    cluster.create("no-gpu", pod(0));
    assert_eq!(cluster.run(), names(&["no-gpu"]));
    let told = "dovetail places no pods that request GPUs on node n0: HAMi or Volcano allocates its \
                GPUs (annotation hami.io/node-nvidia-register)";
    assert!(cluster.reports().contains(&told.to_owned()));
    annotate_node(&mut cluster, json!({}));
    assert_eq!(cluster.run(), names(&["p"]), "HAMi no longer manages the node");
}

/// A device plugin offers GPUs that a pod of Volcano's GPU sharing uses: the kubelet does not know
/// which.
#[test]
fn gpus_of_a_node_with_a_pod_of_vgpus_are_not_free() {
    let allocations = [
        ("volcano.sh/vgpu-ids-new", "GPU-76f93f2b-8cd8-4dd0-e555-56418bde1457,NVIDIA,1126,0:"),
        ("volcano.sh/gpu-index", "0"),
        (
            "hami.io/vgpu-devices-allocated",
            "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,NVIDIA,3000,0:;",
        ),
    ];
    for (key, held) in allocations {
        let mut cluster = Cluster::of(1);
        let mut shares = pod(0);
        shares["metadata"]["annotations"] = json!({key: held});
        shares["spec"]["schedulerName"] = json!("volcano");
        shares["spec"]["nodeName"] = json!("n0");
        shares["status"] = json!({"phase": "Running"});
        cluster.create("shares", shares);
        cluster.create("p", pod(1));
        assert_eq!(cluster.run(), names(&[]), "{key}");
        let told = cluster.reports();
        assert!(told.iter().any(|text| text.contains(&format!("pod blue/shares has {key}"))));
        cluster.end("shares", "Succeeded");
        assert_eq!(cluster.run(), names(&["p"]), "{key}");
        // One that is gone holds nothing either.
        cluster.create("q", pod(8));
        cluster.end("p", "Succeeded");
        cluster.delete(Kind::Pod, "blue", "shares");
        assert_eq!(cluster.run(), names(&["q"]), "{key}");
    }
}
