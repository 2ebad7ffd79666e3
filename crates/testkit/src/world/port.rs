//! Host ports.

use serde_json::{Value, json};

use super::random::Draw;

/// Few of them, so that pods often ask for the same.
const PORTS: [u16; 3] = [80, 80, 9100];

/// Gives containers of a pod host ports, now and then a sidecar or the whole host network.
pub(super) fn add_host_ports(spec: &mut Value, draw: &mut Draw) {
    let ports =
        (0..1 + draw.below(2)).map(|_| host_port(draw.pick(&PORTS), draw)).collect::<Vec<Value>>();
    if draw.chance(20) {
        spec["initContainers"] = json!([{
            "name": "sidecar", "image": "registry.example/proxy:1", "restartPolicy": "Always",
            "resources": {}, "ports": ports,
        }]);
        return;
    }
    if draw.chance(10) {
        // An init container's port is free again before the pod runs: it never conflicts.
        spec["initContainers"] = json!([{
            "name": "setup", "image": "registry.example/setup:1", "resources": {},
            "ports": [host_port(draw.pick(&PORTS), draw)],
        }]);
    }
    spec["containers"][0]["ports"] = Value::Array(ports);
    if draw.chance(15) {
        spec["hostNetwork"] = json!(true);
    }
}

fn host_port(number: u16, draw: &mut Draw) -> Value {
    let mut port = json!({
        "containerPort": number,
        "hostPort": number,
        "protocol": draw.pick(&["TCP", "TCP", "TCP", "UDP", "SCTP"]),
    });
    match draw.below(8) {
        0 => port["hostIP"] = json!("127.0.0.1"),
        1 => port["hostIP"] = json!("10.0.0.7"),
        2 => port["hostIP"] = json!("0.0.0.0"),
        _ => {}
    }
    port
}
