//! What a pod asks of a node, by the rules of the kubelet.
//!
//! Kubernetes, "Resource sharing within containers" in the page on init containers, and "Pod
//! Overhead": containers and restartable init containers add up; a plain init container needs its
//! own and those of the restartable ones before it; the greater of both counts; overhead comes on
//! top. Requests at the level of the pod replace the sum for the resources that they name.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::quantity;

/// Amounts by resource name: thousandths for `cpu`, whole units for everything else.
pub(super) type Amounts = BTreeMap<String, i64>;

/// The requests of a pod.
pub(super) fn of_pod(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let mut needed = of_containers(spec);
    if let Some(level) = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()) {
        needed.extend(amounts(level));
    }
    if let Some(overhead) = &spec.overhead {
        add(&mut needed, &amounts(overhead));
    }
    needed
}

/// Amounts from a list of quantities. What is no quantity counts nothing: the API server refuses
/// it.
pub(super) fn amounts(list: &BTreeMap<String, Quantity>) -> Amounts {
    let amount = |(name, quantity): (&String, &Quantity)| {
        let parse = if name == "cpu" { quantity::milli } else { quantity::whole };
        Some((name.clone(), parse(&quantity.0)?))
    };
    list.iter().filter_map(amount).collect()
}

fn of_containers(spec: &PodSpec) -> Amounts {
    let mut running = Amounts::new();
    for container in &spec.containers {
        add(&mut running, &of_container(container));
    }
    let mut restartable = Amounts::new();
    let mut starting = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let mut own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut running, &own);
            add(&mut restartable, &own);
            own = restartable.clone();
        } else {
            add(&mut own, &restartable);
        }
        for (name, amount) in own {
            let most = starting.entry(name).or_insert(0);
            *most = amount.max(*most);
        }
    }
    for (name, amount) in starting {
        let most = running.entry(name).or_insert(0);
        *most = amount.max(*most);
    }
    running
}

fn of_container(container: &Container) -> Amounts {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    requests.map(amounts).unwrap_or_default()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_insert(0) += amount;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn requests(spec: serde_json::Value) -> Amounts {
        of_pod(&serde_json::from_value(json!({ "spec": spec })).unwrap())
    }

    fn cpu(cpu: &str) -> serde_json::Value {
        json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } })
    }

    #[test]
    fn init_containers_take_turns_and_restartable_ones_stay() {
        let sidecar = |amount: &str| {
            let mut container = cpu(amount);
            container["restartPolicy"] = json!("Always");
            container
        };
        let spec = json!({
            "containers": [cpu("1"), cpu("500m")],
            "initContainers": [cpu("3"), sidecar("200m"), cpu("2900m"), sidecar("100m")],
        });
        // Turns: 3000; 200; 2900 + 200; 300. Running: 1500 + 300.
        assert_eq!(requests(spec)["cpu"], 3100);
        let spec = json!({ "containers": [cpu("4")], "initContainers": [cpu("3"), sidecar("1")] });
        assert_eq!(requests(spec)["cpu"], 5000);
    }

    #[test]
    fn overhead_is_added_and_the_pods_own_level_replaces() {
        let spec = json!({
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1", "nvidia.com/gpu": "2" } } }],
            "resources": { "requests": { "cpu": "6", "memory": "1Gi" } },
            "overhead": { "cpu": "250m" },
        });
        let expected = [("cpu", 6250), ("memory", 1 << 30), ("nvidia.com/gpu", 2)];
        let expected = expected.map(|(name, amount)| (name.to_owned(), amount));
        assert_eq!(requests(spec), Amounts::from(expected));
    }
}
