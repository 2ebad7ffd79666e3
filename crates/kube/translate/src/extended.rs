//! Extended resources that a device class maps to devices, as requests of a claim: those of
//! kube-scheduler 1.37 (`createRequestsAndMappings`), so that kubelets and other schedulers know
//! what serves which container.

use std::collections::BTreeMap;

use dovetail_objects::{AskedCount, ClaimRequest, DeviceAsked, ExtendedContainer, ExtendedMapping};

/// The requests for the devices of containers, and which of them serves which container. `classes`:
/// the device class of each resource that devices serve.
///
/// Init containers that end before others start share one request, and use those of the containers
/// that start after them first.
pub fn device_requests(
    containers: &[ExtendedContainer],
    classes: &BTreeMap<&str, &str>,
) -> (Vec<ClaimRequest>, Vec<ExtendedMapping>) {
    let (mut requests, mut mappings) = (Vec::new(), Vec::new());
    for (resource, class) in classes {
        let of_resource = of_resource(containers, resource);
        requests.extend(of_resource.requests.into_iter().map(|one| request(one, class)));
        mappings.extend(of_resource.mappings);
    }
    requests.sort_by(|one: &ClaimRequest, other| one.name.cmp(&other.name));
    (requests, mappings)
}

/// So many devices, under the name of a request.
#[derive(Clone, Debug)]
struct DeviceCount {
    name: Box<str>,
    count: i64,
}

#[derive(Debug, Default)]
struct OfResource {
    requests: Vec<DeviceCount>,
    mappings: Vec<ExtendedMapping>,
}

fn of_resource(containers: &[ExtendedContainer], resource: &str) -> OfResource {
    let mut lasting: Vec<Option<DeviceCount>> = vec![None; containers.len()];
    let mut all = OfResource::default();
    for (at, container) in containers.iter().enumerate().filter(|(_, one)| !one.is_short_lived) {
        let (own, mapped) = of_container(container, resource, &[]);
        lasting[at] = own;
        all.mappings.extend(mapped);
    }
    let mut most: Option<DeviceCount> = None;
    let (mut names, mut short_lived) = (Vec::new(), Vec::new());
    for (at, container) in containers.iter().enumerate().filter(|(_, one)| one.is_short_lived) {
        let (own, mapped) = of_container(container, resource, &lasting[at..]);
        short_lived.extend(mapped);
        let Some(own) = own else { continue };
        names.push(own.name.clone());
        if most.as_ref().is_none_or(|most| most.count < own.count) {
            most = Some(own);
        }
    }
    if let Some(most) = &most {
        let theirs = short_lived.iter_mut().filter(|one| names.contains(&one.request));
        theirs.for_each(|mapping| mapping.request = most.name.clone());
    }
    all.requests.extend(most);
    all.requests.extend(lasting.into_iter().flatten());
    all.mappings.extend(short_lived);
    all
}

/// What a container requests beside what it may use of others, and what serves it.
fn of_container(
    container: &ExtendedContainer,
    resource: &str,
    usable: &[Option<DeviceCount>],
) -> (Option<DeviceCount>, Vec<ExtendedMapping>) {
    let Some(asked) = container.requests.iter().find(|one| *one.resource == *resource) else {
        return (None, Vec::new());
    };
    let mapping = |request: &str| ExtendedMapping {
        container: container.name.clone(),
        resource: resource.into(),
        request: request.into(),
    };
    let (mut mappings, mut used) = (Vec::new(), 0);
    for other in usable.iter().flatten() {
        used += other.count;
        mappings.push(mapping(&other.name));
        if used >= asked.amount {
            return (None, mappings);
        }
    }
    let name = format!("container-{}-request-{}", container.index, asked.index).into_boxed_str();
    mappings.push(mapping(&name));
    (Some(DeviceCount { name, count: asked.amount - used }), mappings)
}

fn request(DeviceCount { name, count }: DeviceCount, class: &str) -> ClaimRequest {
    let count = AskedCount::Exactly(count);
    let asked = DeviceAsked { class: class.into(), count, ..DeviceAsked::default() };
    ClaimRequest { name, alternatives: vec![asked], is_list: false }
}

#[cfg(test)]
mod tests {
    use dovetail_objects::Pod;
    use serde_json::{Value, json};

    use super::*;

    /// Names and counts of requests, and `container=request` of mappings, for a pod.
    fn requests_of(spec: Value) -> (Vec<String>, Vec<String>) {
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a pod");
        let classes = BTreeMap::from([("x.com/gpu", "gpu"), ("x.com/nic", "nic")]);
        let (requests, mappings) = device_requests(&pod.extended, &classes);
        let request = |one: &ClaimRequest| match one.alternatives[0].count {
            AskedCount::Exactly(count) => format!("{} {count}", one.name),
            _ => panic!("{one:?}"),
        };
        let mapping = |one: &ExtendedMapping| format!("{}={}", one.container, one.request);
        (requests.iter().map(request).collect(), mappings.iter().map(mapping).collect())
    }

    fn container(name: &str, requests: Value) -> Value {
        json!({"name": name, "resources": {"requests": requests}})
    }

    #[test]
    fn each_container_has_a_request_named_by_its_place_and_that_of_the_resource() {
        let spec = json!({"containers": [
            container("a", json!({"cpu": "1", "x.com/gpu": "2", "x.com/nic": "1"})),
            container("b", json!({"cpu": "1"})),
            container("c", json!({"x.com/gpu": "1", "y.com/other": "1"}))]});
        let (requests, mappings) = requests_of(spec);
        let expected =
            ["container-0-request-1 2", "container-0-request-2 1", "container-2-request-0 1"];
        assert_eq!(requests, expected);
        let expected =
            ["a=container-0-request-1", "c=container-2-request-0", "a=container-0-request-2"];
        assert_eq!(mappings, expected);
    }

    #[test]
    fn init_containers_use_devices_of_later_containers_and_share_one_request_for_the_rest() {
        let mut sidecar = container("sidecar", json!({"x.com/gpu": "1"}));
        sidecar["restartPolicy"] = json!("Always");
        let spec = json!({
            "initContainers": [container("first", json!({"x.com/gpu": "4"})), sidecar,
                container("second", json!({"x.com/gpu": "5"}))],
            "containers": [container("main", json!({"x.com/gpu": "2"}))]});
        let (requests, mappings) = requests_of(spec);
        // Of 4 the first uses 3 of others, of 5 the second 2.
        let expected =
            ["container-1-request-0 1", "container-2-request-0 3", "container-3-request-0 2"];
        assert_eq!(requests, expected);
        let expected = [
            "sidecar=container-1-request-0",
            "main=container-3-request-0",
            "first=container-1-request-0",
            "first=container-3-request-0",
            "first=container-2-request-0",
            "second=container-3-request-0",
            "second=container-2-request-0",
        ];
        assert_eq!(mappings, expected);
    }

    #[test]
    fn an_init_container_that_needs_no_more_has_no_request_of_its_own() {
        let spec = json!({
            "initContainers": [container("init", json!({"x.com/gpu": "2"}))],
            "containers": [container("main", json!({"x.com/gpu": "2"}))]});
        let (requests, mappings) = requests_of(spec);
        assert_eq!(requests, ["container-1-request-0 2"]);
        assert_eq!(mappings, ["main=container-1-request-0", "init=container-1-request-0"]);
    }
}
