//! What a pod asks of a node, by the rules of the kubelet.
//!
//! Kubernetes, "Resource sharing within containers" in the page on init containers, and "Pod
//! Overhead": containers and restartable init containers add up; a plain init container needs its
//! own and those of the restartable ones before it; the greater of both counts; overhead comes on
//! top. Requests at the level of the pod replace the sum for the resources that they name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::quantity;

/// Amounts by resource name: thousandths for `cpu`, whole units for everything else.
pub type Amounts = BTreeMap<String, i64>;

/// The requests of a pod.
pub fn requests_of(pod: &Value) -> Amounts {
    let spec = &pod["spec"];
    let mut needed = of_containers(spec);
    needed.extend(amounts(&spec["resources"]["requests"]));
    add(&mut needed, &amounts(&spec["overhead"]));
    needed
}

/// Amounts from a list of quantities. What is no quantity counts nothing: the API server refuses
/// it.
pub fn amounts(list: &Value) -> Amounts {
    let amount = |(name, quantity): (&String, &Value)| {
        let parse = if name == "cpu" { quantity::milli } else { quantity::whole };
        let amount = match quantity {
            Value::String(text) => parse(text)?,
            Value::Number(number) => parse(&number.to_string())?,
            _ => return None,
        };
        Some((name.clone(), amount))
    };
    list.as_object().into_iter().flatten().filter_map(amount).collect()
}

fn of_containers(spec: &Value) -> Amounts {
    let list = |key: &str| spec[key].as_array().into_iter().flatten();
    let of_container = |container: &Value| amounts(&container["resources"]["requests"]);
    let mut running = Amounts::new();
    for container in list("containers") {
        add(&mut running, &of_container(container));
    }
    let mut restartable = Amounts::new();
    let mut starting = Amounts::new();
    for container in list("initContainers") {
        let mut own = of_container(container);
        if container["restartPolicy"] == "Always" {
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
        requests_of(&json!({ "spec": spec }))
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
