//! Host ports (`NodePorts`): two pods of one node must not take the same port of the same address.

use dovetail_model::node::NAME_LABEL;
use dovetail_model::{CounterRule, CounterScope, RuleCause, RuleKind};

use dovetail_objects::{HostPort, Pod};

const EVERY_ADDRESS: &str = "0.0.0.0";

/// The counters that count the pod because of its ports.
pub fn counted_by(pod: &Pod) -> impl Iterator<Item = String> {
    pod.ports.iter().flat_map(|port| [any_use(port), use_at(port, &port.address)])
}

/// What the pod's ports ask of its node.
pub fn rules(pod: &Pod) -> impl Iterator<Item = CounterRule> {
    let selectors = pod.ports.iter().flat_map(|port| match &*port.address {
        EVERY_ADDRESS => vec![any_use(port)],
        address => vec![use_at(port, EVERY_ADDRESS), use_at(port, address)],
    });
    selectors.map(|selector| CounterRule {
        selector,
        label: NAME_LABEL.to_owned(),
        kind: RuleKind::AntiAffinity,
        scope: CounterScope::AllNodes,
        cause: RuleCause::HostPort,
    })
}

fn any_use(port: &HostPort) -> String {
    format!("port:{}/{}", port.protocol, port.port)
}

fn use_at(port: &HostPort, address: &str) -> String {
    format!("port:{}/{}/{address}", port.protocol, port.port)
}
