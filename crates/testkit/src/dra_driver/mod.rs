//! NVIDIA's DRA driver with dynamic MIG, on nodes that have no GPUs.
//!
//! It publishes the GPUs of its nodes as the driver does: every profile at every place is a device,
//! and the devices of one GPU draw from its counters. [`Kubelets`](crate::Kubelets) ask it before
//! the containers of a pod run: it checks the pod's claims as a kubelet does, makes the devices by
//! books of its own, and refuses what the GPUs have not. The devices go when the last pod that uses
//! the claim has ended, before the API server hears of that end: only then may others get them.
//!
//! Claims of pods that ran before the driver did are not known to it. A real kubelet tries again
//! what was refused; here it is final, so that nobody misses it.

mod books;
mod claims;
mod gpu;
mod slices;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::resource::v1::{DeviceClass, ResourceSlice};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::Value;

use books::Books;
pub use gpu::DraGpu;

/// The driver on some nodes.
#[derive(Debug)]
pub struct DraDriver {
    gpus: BTreeMap<String, Vec<DraGpu>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By node.
    books: BTreeMap<String, Books>,
    refusals: Vec<Refusal>,
    /// UIDs of the pods that were refused.
    refused: BTreeSet<String>,
}

/// A pod that did not start because a claim was not prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `namespace/name`.
    pub pod: String,
    /// The name of the claim; empty where the pod has not got it.
    pub claim: String,
    pub reason: String,
}

/// The ResourceSlices that the driver publishes for a node with these GPUs: one with the counters
/// of all of them, then one with the devices of each.
pub fn published_slices(node: &str, gpus: &[DraGpu]) -> Vec<Value> {
    slices::slices(node, gpus)
}

impl DraDriver {
    /// A driver of nodes with up to eight GPUs each.
    #[must_use]
    pub fn new(gpus: BTreeMap<String, Vec<DraGpu>>) -> Self {
        let books = gpus.iter().map(|(node, gpus)| (node.clone(), Books::of(gpus))).collect();
        Self {
            gpus,
            state: Mutex::new(State { books, refusals: Vec::new(), refused: BTreeSet::new() }),
        }
    }

    /// Creates the device classes and the slices of all nodes.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn publish(&self, client: &Client) -> Result<(), kube::Error> {
        let create = PostParams::default();
        let of_classes: Api<DeviceClass> = Api::all(client.clone());
        for class in slices::classes() {
            of_classes.create(&create, &object(class)).await?;
        }
        let of_slices: Api<ResourceSlice> = Api::all(client.clone());
        for (node, gpus) in &self.gpus {
            for slice in slices::slices(node, gpus) {
                of_slices.create(&create, &object(slice)).await?;
            }
        }
        Ok(())
    }

    /// Pods that did not start, and why.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refusal> {
        self.state().refusals.clone()
    }

    /// Names of the devices that are prepared on a node.
    #[must_use]
    pub fn devices_on(&self, node: &str) -> Vec<String> {
        self.state().books.get(node).map(Books::devices).unwrap_or_default()
    }

    /// Names of the claims that a bound pod needs before it starts, in its namespace.
    ///
    /// # Errors
    /// When a claim of the pod is not made yet: it does not start.
    pub fn claims_of(&self, pod: &Value) -> Result<Vec<String>, Refusal> {
        claims::claims_of(pod).map_err(|reason| self.refuse(pod, "", reason))
    }

    /// Checks the claims of a bound pod and makes their devices on its node; `None` stands for a
    /// claim that is not there.
    ///
    /// # Errors
    /// When one of the claims is not prepared: the pod does not start. Claims before it stay
    /// prepared until the pod ends, as on a real node.
    pub fn prepare(&self, pod: &Value, named: &[(String, Option<Value>)]) -> Result<(), Refusal> {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        for (name, claim) in named {
            let made = match claim {
                None => Err("it is not there".to_owned()),
                Some(claim) => claims::devices_of(claim, pod, node).and_then(|devices| {
                    let claim = claim["metadata"]["uid"].as_str().unwrap_or_default();
                    match self.state().books.get_mut(node) {
                        Some(books) => books.prepare(claim, devices, uid),
                        None => Err(format!("node {node} has no driver")),
                    }
                }),
            };
            made.map_err(|reason| self.refuse(pod, name, reason))?;
        }
        Ok(())
    }

    /// Whether a pod did not start.
    pub(crate) fn has_refused(&self, pod_uid: &str) -> bool {
        self.state().refused.contains(pod_uid)
    }

    /// A pod has ended.
    pub fn unprepare(&self, pod_uid: &str) {
        self.state().books.values_mut().for_each(|books| books.unprepare(pod_uid));
    }

    /// Only these pods are left.
    pub(crate) fn keep_only(&self, pod_uids: &BTreeSet<String>) {
        let prepared: Vec<BTreeSet<String>> =
            self.state().books.values().map(Books::pods).collect();
        let gone = prepared.iter().flatten().filter(|uid| !pod_uids.contains(*uid));
        gone.for_each(|uid| self.unprepare(uid));
    }

    fn refuse(&self, pod: &Value, claim: &str, reason: String) -> Refusal {
        let part = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
        let pod = format!("{}/{}", part("namespace"), part("name"));
        let refusal = Refusal { pod, claim: claim.to_owned(), reason };
        let mut state = self.state();
        state.refusals.push(refusal.clone());
        state.refused.insert(part("uid").to_owned());
        refusal
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn object<T: serde::de::DeserializeOwned>(fields: Value) -> T {
    serde_json::from_value(fields)
        .unwrap_or_else(|error| panic!("an object of the driver: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn driver() -> DraDriver {
        DraDriver::new(BTreeMap::from([
            ("n0".to_owned(), vec![DraGpu::A100_40GB]),
            ("n1".to_owned(), vec![DraGpu::H100]),
        ]))
    }

    /// A pod on node `n0` that uses the claim `c`.
    fn pod(name: &str) -> Value {
        let claims = json!([{"name": "gpu", "resourceClaimName": "c"}]);
        json!({"metadata": {"namespace": "team", "name": name, "uid": format!("uid-{name}")},
            "spec": {"nodeName": "n0", "resourceClaims": claims}})
    }

    /// A claim that has a device of node `n0` and is reserved for pods.
    fn claim(uid: &str, device: &str, pods: &[&str]) -> Value {
        let user =
            |name: &&str| json!({"resource": "pods", "name": name, "uid": format!("uid-{name}")});
        let users: Vec<Value> = pods.iter().map(user).collect();
        let only = json!([{"key": "metadata.name", "operator": "In", "values": ["n0"]}]);
        let result =
            json!({"request": "r", "driver": "gpu.nvidia.com", "pool": "n0", "device": device});
        json!({"metadata": {"namespace": "team", "name": "c", "uid": uid}, "status": {
            "allocation": {"devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": only}]}},
            "reservedFor": users}})
    }

    /// Why a claim is not prepared for a pod; empty: it is.
    fn refused(driver: &DraDriver, pod: &Value, claim: Value) -> String {
        let outcome = driver.prepare(pod, &[("c".to_owned(), Some(claim))]);
        outcome.map_or_else(|refusal| refusal.reason, |()| String::new())
    }

    const THREE: &str = "gpu-0-mig-3g20gb-9-0";
    const ONE: &str = "gpu-0-mig-1g5gb-19-2";

    #[test]
    fn devices_that_overlap_are_refused_until_the_first_is_gone() {
        let driver = driver();
        assert_eq!(refused(&driver, &pod("p"), claim("a", THREE, &["p", "q"])), "");
        assert_eq!(refused(&driver, &pod("q"), claim("a", THREE, &["p", "q"])), "");
        let why = refused(&driver, &pod("r"), claim("b", ONE, &["r"]));
        assert_eq!(
            why,
            "device gpu-0-mig-1g5gb-19-2 needs 1 memory-slice-2 of GPU 0, which has 1, of which 1 \
             are taken"
        );
        let refusal = Refusal { pod: "team/r".to_owned(), claim: "c".to_owned(), reason: why };
        assert_eq!(driver.refusals(), [refusal]);
        driver.unprepare("uid-p");
        assert_eq!(driver.devices_on("n0"), [THREE]);
        driver.keep_only(&BTreeSet::from(["uid-r".to_owned()]));
        assert_eq!(refused(&driver, &pod("r"), claim("b", ONE, &["r"])), "");
        assert_eq!(driver.devices_on("n0"), [ONE]);
    }

    #[test]
    fn a_pod_gets_only_claims_that_are_for_it_and_its_node() {
        let driver = driver();
        let say = |edit: &dyn Fn(&mut Value, &mut Value)| {
            let (mut pod, mut claim) = (pod("p"), claim("a", ONE, &["p"]));
            edit(&mut pod, &mut claim);
            refused(&driver, &pod, claim)
        };
        let reserved = "it is not reserved for the pod";
        assert_eq!(say(&|_, claim| claim["status"]["reservedFor"] = json!([])), reserved);
        // Another pod had its name.
        assert_eq!(say(&|pod, _| pod["metadata"]["uid"] = json!("uid-new")), reserved);
        let user = json!({"apiGroup": "batch", "resource": "pods", "name": "p", "uid": "uid-p"});
        assert_eq!(say(&|_, claim| claim["status"]["reservedFor"] = json!([user])), reserved);
        let name = |_: &mut Value, claim: &mut Value| {
            claim["status"]["reservedFor"][0]["name"] = json!("q");
        };
        assert_eq!(say(&name), "it is reserved under the name q");
        let nothing = |_: &mut Value, claim: &mut Value| {
            claim["status"]["allocation"] = Value::Null;
        };
        assert_eq!(say(&nothing), "it is not allocated");
        let moved = |pod: &mut Value, _: &mut Value| pod["spec"]["nodeName"] = json!("n1");
        assert_eq!(say(&moved), "it is not allocated to node n1");
        let pool = |_: &mut Value, claim: &mut Value| {
            claim["status"]["allocation"]["devices"]["results"][0]["pool"] = json!("n1");
        };
        assert_eq!(say(&pool), "device gpu-0-mig-1g5gb-19-2 is on node n1");
        let owner = |_: &mut Value, claim: &mut Value| {
            claim["metadata"]["ownerReferences"] =
                json!([{"controller": true, "kind": "Pod", "name": "q", "uid": "uid-q"}]);
        };
        assert_eq!(say(&owner), "it belongs to pod q");
        assert!(driver.devices_on("n0").is_empty());
        assert_eq!(driver.refusals().len(), 8);
        assert_eq!(say(&|_, _| {}), "");
    }

    #[test]
    fn claims_of_templates_and_of_extended_resources_are_found_by_their_status() {
        let driver = driver();
        let mut pod = pod("p");
        pod["spec"]["resourceClaims"] = json!([{"name": "own", "resourceClaimTemplateName": "t"},
            {"name": "none", "resourceClaimTemplateName": "t"},
            {"name": "gpu", "resourceClaimName": "c"}]);
        let missing = driver.claims_of(&pod).expect_err("no claim yet");
        assert_eq!(missing.reason, "the claim own of the pod's template is not made");
        let made = json!([{"name": "own", "resourceClaimName": "p-own"}, {"name": "none"}]);
        pod["status"] = json!({"resourceClaimStatuses": made,
            "extendedResourceClaimStatus": {"resourceClaimName": "p-extended"}});
        assert_eq!(
            driver.claims_of(&pod),
            Ok(vec!["p-own".into(), "c".into(), "p-extended".into()])
        );
        let gone = driver.prepare(&pod, &[("p-own".to_owned(), None)]).expect_err("no claim");
        assert_eq!(gone.reason, "it is not there");
    }
}
