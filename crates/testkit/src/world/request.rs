//! Resources that pods ask for: containers, init containers, overhead, pod-level, resize status.

use serde_json::{Value, json};

use super::random::Draw;

/// What a pod asks of its node's capacity.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Appetite {
    /// Nothing, or next to nothing.
    None,
    /// Fits on most nodes several times.
    Small,
    /// Fits on some nodes, or needs something rare.
    Large,
}

/// Puts `containers`, `initContainers`, `overhead` and pod-level `resources` into a pod's spec.
pub(super) fn add_containers(spec: &mut Value, appetite: Appetite, draw: &mut Draw) {
    let containers = if appetite == Appetite::Large { 1 + draw.below(3) } else { 1 };
    spec["containers"] = (0..containers)
        .map(|number| container(&format!("main-{number}"), appetite, draw))
        .collect();
    if appetite != Appetite::Large {
        return;
    }
    if draw.chance(45) {
        let inits = 1 + draw.below(3);
        spec["initContainers"] = (0..inits)
            .map(|number| {
                let mut init = container(&format!("init-{number}"), appetite, draw);
                if draw.chance(50) {
                    init["restartPolicy"] = json!("Always");
                }
                init
            })
            .collect();
    }
    if draw.chance(20) {
        spec["overhead"] = json!({"cpu": "250m", "memory": draw.pick(&["120Mi", "1Gi"])});
    }
    if draw.chance(20) {
        // The server demands that it is no less than the containers' sum; the scheduler does not
        // look.
        spec["resources"] = match draw.below(3) {
            0 => json!({"requests": {"cpu": "9"}}),
            1 => json!({"requests": {"cpu": "6500m", "memory": "20Gi"}}),
            _ => json!({"requests": {"memory": "40Gi"}}),
        };
    }
}

fn container(name: &str, appetite: Appetite, draw: &mut Draw) -> Value {
    let mut container = json!({"name": name, "image": "registry.example/app:1", "resources": {}});
    let requests = requests(appetite, draw);
    if requests.as_object().is_some_and(|requests| !requests.is_empty()) {
        container["resources"]["requests"] = requests;
    }
    container
}

fn requests(appetite: Appetite, draw: &mut Draw) -> Value {
    let mut requests = json!({});
    match appetite {
        Appetite::None => {
            if draw.chance(30) {
                requests["cpu"] = json!("0");
            }
        }
        Appetite::Small => {
            requests["cpu"] = json!(draw.pick(&["100m", "250m", "500m", "1"]));
            requests["memory"] = json!(draw.pick(&["128Mi", "1Gi", "500M", "100m"]));
            if draw.chance(15) {
                requests["nvidia.com/gpu"] = json!("1");
            }
        }
        Appetite::Large => {
            for (name, percent, amounts) in LARGE {
                if draw.chance(percent) {
                    requests[name] = json!(draw.pick(&amounts));
                }
            }
        }
    }
    requests
}

/// Resource, how often a container asks for it, and how much.
const LARGE: [(&str, usize, [&str; 4]); 7] = [
    ("cpu", 60, ["500m", "2", "3500m", "7900m"]),
    ("memory", 50, ["1Gi", "6Gi", "15Gi", "30G"]),
    ("ephemeral-storage", 15, ["1Gi", "20Gi", "45Gi", "80G"]),
    ("nvidia.com/gpu", 25, ["1", "2", "4", "8"]),
    ("nvidia.com/mig-1g.10gb", 6, ["1", "2", "3", "7"]),
    ("example.com/fpga", 8, ["0", "1", "1", "2"]),
    ("hugepages-2Mi", 5, ["2Mi", "512Mi", "1Gi", "2Gi"]),
];

/// Gives an existing pod the status of an in-place resize: what its containers were allocated and
/// what the runtime applied differ from what the spec wants.
pub(super) fn add_resize(pod: &mut Value, draw: &mut Draw) {
    for (containers, statuses) in
        [("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")]
    {
        let Some(containers) = pod["spec"][containers].as_array() else { continue };
        pod["status"][statuses] =
            containers.iter().map(|container| resized(&container["name"], draw)).collect();
    }
    if draw.chance(25) {
        // What the kubelet reports of the pod as a whole stands for all its containers.
        let whole = |cpu: &str| json!({"cpu": cpu, "memory": "2Gi"});
        pod["status"]["allocatedResources"] = whole(draw.pick(&["1", "4"]));
        pod["status"]["resources"] = json!({"requests": whole(draw.pick(&["1", "5"]))});
    }
    if draw.chance(50) {
        let reason = draw.pick(&["Infeasible", "Deferred"]);
        pod["status"]["conditions"] =
            json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
    }
}

fn resized(container: &Value, draw: &mut Draw) -> Value {
    let mut status = json!({"name": container});
    if draw.chance(80) {
        status["allocatedResources"] = json!({
            "cpu": draw.pick(&["100m", "2", "5"]),
            "memory": draw.pick(&["256Mi", "4Gi"]),
        });
    }
    if draw.chance(70) {
        status["resources"] = json!({"requests": {
            "cpu": draw.pick(&["100m", "2", "6"]),
            "memory": draw.pick(&["256Mi", "8Gi"]),
        }});
    }
    status
}
