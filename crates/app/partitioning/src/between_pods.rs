//! Pending pods with rules about other pods, which a plan does not check.

use dovetail_console::table::plural;
use dovetail_model::{Requirement, RuleCause};
use dovetail_objects::Pod;

use crate::eligible::requirement;
use crate::gangs::asks_for_instances;
use crate::objects::Objects;

/// How many pending pods that request MIG instances have such rules, in words; `None` if none has.
pub(crate) fn not_checked(objects: &Objects) -> Option<String> {
    let is_meant = |pod: &&Pod| {
        let is_pending = pod.node.is_empty() && !pod.is_over();
        let has_rules = |needs: Requirement| needs.rules.iter().any(|rule| is_such(rule.cause));
        is_pending && asks_for_instances(pod) && requirement(pod, objects).is_ok_and(has_rules)
    };
    let count = objects.pods.values().filter(is_meant).count();
    let pods = plural(count, "pending pod has", "pending pods have");
    (count > 0).then(|| {
        format!(
            "{pods} rules that the plan does not check: affinity or anti-affinity between pods, \
             topology spread constraints or host ports"
        )
    })
}

fn is_such(cause: RuleCause) -> bool {
    use RuleCause::{Affinity, AntiAffinity, HostPort, Spread};
    matches!(cause, Affinity | AntiAffinity | HostPort | Spread)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: &str, affinity: &Value) -> ((String, String), Pod) {
        let limits = json!({"nvidia.com/mig-1g.10gb": "1"});
        let object = json!({"metadata": {"name": name, "namespace": "n"},
            "spec": {"nodeName": node, "affinity": affinity,
                "containers": [{"name": "c", "resources": {"limits": limits}}]}});
        (("n".to_owned(), name.to_owned()), serde_json::from_value(object).expect("a pod"))
    }

    #[test]
    fn pods_with_rules_about_other_pods_are_counted() {
        let term = json!({"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "a"}}});
        let apart = json!({"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        let told = |pods: Vec<((String, String), Pod)>| {
            let pods = pods.into_iter().collect();
            not_checked(&Objects { pods, ..Objects::default() })
        };
        assert_eq!(told(vec![pod("a", "", &json!({})), pod("b", "there", &apart)]), None);
        let text = told(vec![pod("a", "", &apart), pod("b", "", &apart)]).expect("two pods");
        assert!(text.starts_with("2 pending pods have rules that the plan does not check: "));
    }
}
