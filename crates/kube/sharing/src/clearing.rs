//! Pods on a node whose GPUs must be free of an operator's own pods before they change: which of
//! them leave by a taint, and which are in the way.

use dovetail_objects::Pod;
use dovetail_objects::labels::APPLICATION;

use crate::component::Component;
use crate::eviction::EvictionFacts;
use crate::node_state::{Seen, gpu_pod};

/// DaemonSets in the namespace of an operator that use no GPU: the component itself, and feature
/// discovery.
const WITHOUT_GPUS: [&str; 2] = ["device-config-manager", "node-feature-discovery"];

impl Seen {
    /// The node with the pods that the clearing taint of a component evicts, and with those that
    /// go on using GPUs. Pods without facts do not tolerate it. `operator`: the namespace of its
    /// operator, whose DaemonSets are to leave the GPUs.
    #[must_use]
    pub fn clearing<'p>(
        mut self,
        by: Component,
        pods: impl IntoIterator<Item = (&'p Pod, Option<&'p EvictionFacts>)>,
        operator: &str,
    ) -> Self {
        let Some(taint) = by.clearing_taint() else { return self };
        (self.operands, self.evicted, self.staying) = Default::default();
        for (pod, facts) in pods {
            if pod.is_over() || pod.node.is_empty() {
                continue;
            }
            let is_operand = pod.meta.controller.is_daemon_set && *pod.meta.namespace == *operator;
            let uses_none =
                pod.meta.labels.get(APPLICATION).is_some_and(|of| WITHOUT_GPUS.contains(&of));
            let list = match facts.filter(|facts| facts.stays(&taint)) {
                None if is_operand => &mut self.operands,
                None => &mut self.evicted,
                Some(facts) if facts.has_devices || is_operand && !uses_none => &mut self.staying,
                Some(_) => continue,
            };
            list.push(gpu_pod(pod).name);
        }
        self
    }

    /// Why a change would evict pods that it should not, or could not evict those that keep the
    /// GPUs busy.
    pub fn in_the_way(&self, by: Component) -> Option<String> {
        let taint = by.clearing_taint()?;
        let (taint, by) = (format!("{}={}", taint.key, taint.value), by.words());
        if !self.staying.is_empty() {
            return Some(format!(
                "{} use its GPUs and would stay, because they tolerate the taint {taint}, which removes pods for {by}: \
                 remove the toleration from them",
                self.staying.join(", "),
            ));
        }
        (!self.evicted.is_empty()).then(|| {
            format!(
                "pods would be evicted, because they do not tolerate the taint {taint} of {by}, or only for their \
                 tolerationSeconds: {}; add the toleration without tolerationSeconds, or move them to another node",
                self.evicted.join(", "),
            )
        })
    }

    /// Whether no pod keeps a change from its GPUs.
    pub(crate) fn is_free(&self) -> bool {
        self.gpu_pods.is_empty() && self.evicted.is_empty() && self.staying.is_empty()
    }
}
