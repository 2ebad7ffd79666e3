//! Pods that should not share a GPU. NVIDIA's device plugin gives any of them a replica: memory and
//! faults are not separate, so who shares with whom is worth a look.

use std::collections::BTreeSet;

use dovetail_objects::Pod;
use dovetail_objects::labels::CLASS;

use crate::gpu_amounts::uses_gpus;
use crate::policy::PolicySpec;
use crate::replicas::Method;

/// The class that takes turns on GPUs only where a policy says so: its latency grows with each
/// neighbor.
const INFERENCE: &str = "inference";

/// What is wrong with the pods that share the GPUs of a node under a policy; `None` if nothing is.
pub fn mixed(spec: &PolicySpec, pods: &[&Pod]) -> Option<String> {
    let method = spec.sharing()?.method;
    let pods = || pods.iter().filter(|pod| uses_gpus(pod));
    let class = |pod: &Pod| pod.meta.labels.get(CLASS).map(str::to_owned);
    let is_named = |class: &str| spec.classes.iter().any(|named| named == class);
    let is_wrong = |class: &str| match spec.classes.is_empty() {
        true => method == Method::TimeSlicing && class == INFERENCE,
        false => !is_named(class),
    };
    let classes: BTreeSet<String> = pods().filter_map(|pod| class(pod)).collect();
    let several = (method == Method::TimeSlicing && classes.len() > 1).then(|| {
        let classes: Vec<String> = classes.into_iter().collect();
        format!("pods of several classes share GPUs: {}", classes.join(", "))
    });
    for pod in pods() {
        if let Some(class) = class(pod).filter(|class| is_wrong(class)) {
            let (namespace, name) = (&pod.meta.namespace, &pod.meta.name);
            let why = match spec.classes.is_empty() {
                true => {
                    "its latency grows with each neighbor, so it needs a policy that lists the class \
                         in spec.classes"
                }
                false => "spec.classes does not list the class",
            };
            let also = several.map(|several| format!("; {several}")).unwrap_or_default();
            return Some(format!(
                "pod {namespace}/{name} of class {class} shares GPUs: {why}{also}"
            ));
        }
    }
    if several.is_some() {
        return several;
    }
    let namespaces: BTreeSet<&str> = pods().map(|pod| &*pod.meta.namespace).collect();
    if method == Method::Mps && namespaces.len() > 1 {
        let namespaces: Vec<&str> = namespaces.into_iter().collect();
        return Some(format!(
            "pods of several namespaces are clients of one MPS server, and a fatal fault of one \
             can terminate all: {}",
            namespaces.join(", ")
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(namespace: &str, class: &str) -> Pod {
        let object = json!({
            "metadata": {"name": "p", "namespace": namespace, "labels": {CLASS: class}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources":
                {"limits": {"nvidia.com/gpu.shared": "1"}}}]},
            "status": {"phase": "Running"}});
        serde_json::from_value(object).expect("a pod")
    }

    #[test]
    fn one_class_or_one_namespace_shares_a_node() {
        let spec = |mode: &str, classes: &[&str]| -> PolicySpec {
            let spec = json!({"mode": mode, "replicas": 4, "classes": classes});
            serde_json::from_value(spec).expect("a policy")
        };
        let (a, b) = (pod("x", "batch"), pod("y", "interactive"));
        let service = pod("x", "inference");
        let of = |spec: &PolicySpec, pods: &[&Pod]| mixed(spec, pods).unwrap_or_default();
        let sliced = spec("time-slicing", &[]);
        assert_eq!(of(&sliced, &[&a, &a]), "");
        assert!(of(&sliced, &[&a, &b]).ends_with("several classes share GPUs: batch, interactive"));
        let alone = of(&sliced, &[&service]);
        assert!(
            alone.starts_with("pod x/p of class inference shares GPUs: its latency"),
            "{alone}"
        );
        assert!(alone.ends_with("needs a policy that lists the class in spec.classes"), "{alone}");
        // The classes that it meets are named, too.
        let both = of(&sliced, &[&a, &service]);
        assert!(both.starts_with("pod x/p of class inference"), "{both}");
        assert!(both.ends_with("; pods of several classes share GPUs: batch, inference"), "{both}");
        let listed = of(&spec("time-slicing", &["batch"]), &[&b]);
        assert!(listed.ends_with("shares GPUs: spec.classes does not list the class"), "{listed}");
        assert_eq!(of(&spec("time-slicing", &["inference"]), &[&service]), "");
        assert_eq!(of(&spec("mps", &[]), &[&service]), "");
        assert!(of(&spec("mps", &["batch"]), &[&b]).starts_with("pod y/p of class interactive"));
        let mps = spec("mps", &["batch", "interactive"]);
        assert!(of(&mps, &[&a, &b]).ends_with("a fatal fault of one can terminate all: x, y"));
        assert!(!of(&mps, &[&a, &service]).is_empty());
        assert_eq!(of(&spec("mps", &["batch", "inference"]), &[&a, &service]), "");
    }
}
