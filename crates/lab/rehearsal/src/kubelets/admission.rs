//! Whether a node takes a pod: the kubelet's own check, with its reasons and messages.
//!
//! The order is that of the kubelet of Kubernetes 1.37: pod slots, processors, memory, ephemeral
//! storage, extended resources; only the first shortage is reported. An extended resource that the
//! node does not offer at all is not checked. Then the devices are handed out, and a shortage there
//! is an unexpected error: the Node object still promised what broke in the meantime. Node
//! affinity, host ports, taints and topology alignment are not checked.

use std::collections::BTreeMap;

use super::requests::Amounts;

/// What one node offers, and who holds it.
#[derive(Debug, Default)]
pub(crate) struct NodeCapacity {
    /// What the Node object promises.
    pub(crate) allocatable: Amounts,
    /// Devices that work, where that is less than the Node object promises.
    pub(crate) healthy: Amounts,
    /// The admitted pods by UID.
    pods: BTreeMap<String, Amounts>,
    held: Amounts,
}

/// A pod that a node did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// Resources with a reason of their own, in the order of the check.
const NATIVE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

impl NodeCapacity {
    /// Takes a pod, or says why not.
    pub(crate) fn admit(&mut self, uid: &str, requests: &Amounts) -> Result<(), Rejection> {
        if let Some(rejection) = self.shortage(requests).or_else(|| self.broken(requests)) {
            return Err(rejection);
        }
        self.hold(uid, requests);
        Ok(())
    }

    /// Counts a pod that was admitted before, whatever is free.
    pub(crate) fn hold(&mut self, uid: &str, requests: &Amounts) {
        for (name, amount) in requests {
            *self.held.entry(name.clone()).or_insert(0) += amount;
        }
        self.pods.insert(uid.to_owned(), requests.clone());
    }

    /// Gives back what a pod holds; nothing happens where it holds nothing.
    pub(crate) fn release(&mut self, uid: &str) {
        for (name, amount) in self.pods.remove(uid).unwrap_or_default() {
            *self.held.entry(name).or_insert(0) -= amount;
        }
    }

    /// How many pods are admitted and not over.
    pub(crate) fn pods(&self) -> usize {
        self.pods.len()
    }

    fn held(&self, name: &str) -> i64 {
        self.held.get(name).copied().unwrap_or(0)
    }

    fn shortage(&self, requests: &Amounts) -> Option<Rejection> {
        let pods = self.pods.len() as i64;
        let slots = self.allocatable.get("pods").copied().unwrap_or(0);
        if pods + 1 > slots {
            return Some(Rejection::out_of("pods", 1, pods, slots));
        }
        let extended = requests
            .iter()
            .filter(|(name, _)| is_extended(name) && self.allocatable.contains_key(*name));
        let native = NATIVE.iter().filter_map(|name| requests.get_key_value(*name));
        for (name, requested) in native.chain(extended) {
            let capacity = self.allocatable.get(name).copied().unwrap_or(0);
            let used = self.held(name);
            if *requested > 0 && *requested > capacity - used {
                return Some(Rejection::out_of(name, *requested, used, capacity));
            }
        }
        None
    }

    fn broken(&self, requests: &Amounts) -> Option<Rejection> {
        let too_few = |(name, healthy): (&String, &i64)| {
            let requested = *requests.get(name)?;
            let available = (healthy - self.held(name)).max(0);
            (requested > available).then(|| Rejection::devices(name, requested, available))
        };
        self.healthy.iter().find_map(too_few)
    }
}

impl Rejection {
    fn out_of(resource: &str, requested: i64, used: i64, capacity: i64) -> Self {
        Self {
            reason: format!("OutOf{resource}"),
            message: format!(
                "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
                 capacity: {capacity}"
            ),
        }
    }

    fn devices(resource: &str, requested: i64, available: i64) -> Self {
        Self {
            reason: "UnexpectedAdmissionError".to_owned(),
            message: format!(
                "Allocate failed due to requested number of devices unavailable for {resource}. \
                 Requested: {requested}, Available: {available}, which is unexpected"
            ),
        }
    }
}

/// Whether a name is a resource that someone added to a node: it has a domain that is not
/// Kubernetes'.
fn is_extended(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(list: &[(&str, i64)]) -> Amounts {
        list.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
    }

    fn room() -> NodeCapacity {
        let allocatable =
            amounts(&[("pods", 3), ("cpu", 4000), ("memory", 100), ("nvidia.com/gpu", 2)]);
        NodeCapacity { allocatable, ..NodeCapacity::default() }
    }

    fn reason(room: &mut NodeCapacity, uid: &str, requests: &[(&str, i64)]) -> String {
        match room.admit(uid, &amounts(requests)) {
            Ok(()) => "admitted".to_owned(),
            Err(rejection) => rejection.reason,
        }
    }

    #[test]
    fn the_first_shortage_is_the_reason_in_the_kubelets_order() {
        let mut room = room();
        let all = [("cpu", 4001), ("memory", 101), ("nvidia.com/gpu", 3)];
        assert_eq!(reason(&mut room, "a", &all), "OutOfcpu");
        assert_eq!(reason(&mut room, "a", &all[1..]), "OutOfmemory");
        let rejection = room.admit("a", &amounts(&all[2..])).unwrap_err();
        assert_eq!(rejection.reason, "OutOfnvidia.com/gpu");
        let text =
            "Node didn't have enough resource: nvidia.com/gpu, requested: 3, used: 0, capacity: 2";
        assert_eq!(rejection.message, text);
        for uid in ["a", "b", "c"] {
            assert_eq!(reason(&mut room, uid, &[]), "admitted");
        }
        assert_eq!(reason(&mut room, "d", &all), "OutOfpods");
    }

    #[test]
    fn what_is_released_can_be_had_again_and_an_absent_resource_is_not_checked() {
        let mut room = room();
        assert_eq!(reason(&mut room, "a", &[("nvidia.com/gpu", 2)]), "admitted");
        assert_eq!(reason(&mut room, "b", &[("nvidia.com/gpu", 1)]), "OutOfnvidia.com/gpu");
        assert_eq!(reason(&mut room, "b", &[("amd.com/gpu", 1)]), "admitted");
        room.release("a");
        room.release("a");
        assert_eq!(reason(&mut room, "c", &[("nvidia.com/gpu", 2)]), "admitted");
        assert_eq!(room.pods(), 2);
    }

    #[test]
    fn a_device_that_broke_unseen_is_an_unexpected_error_and_a_seen_one_a_shortage() {
        let mut room = room();
        room.healthy = amounts(&[("nvidia.com/gpu", 1)]);
        assert_eq!(reason(&mut room, "a", &[("nvidia.com/gpu", 2)]), "UnexpectedAdmissionError");
        assert_eq!(reason(&mut room, "a", &[("nvidia.com/gpu", 1)]), "admitted");
        let rejection = room.admit("b", &amounts(&[("nvidia.com/gpu", 1)])).unwrap_err();
        assert!(rejection.message.contains("Requested: 1, Available: 0, which"), "{rejection:?}");
        room.allocatable.insert("nvidia.com/gpu".to_owned(), 1);
        assert_eq!(reason(&mut room, "b", &[("nvidia.com/gpu", 1)]), "OutOfnvidia.com/gpu");
    }
}
