//! An allocation as the API server stores it.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::SelectorTerm;
use dovetail_model::node::NAME_LABEL;
use dovetail_objects::{DeviceReach, ResourceClaim};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::allocate::{Allotment, GivenDevice};
use crate::catalog::Catalog;
use crate::held::DeviceKey;
use crate::question::Reached;

impl Allotment {
    /// The field `status.allocation` of the claim with this UID. Shares get names that follow from
    /// it, so that writing the same again changes nothing.
    pub fn to_json(&self, claim_uid: &str) -> Value {
        let results = self.devices.iter().enumerate();
        let results = results.map(|(number, given)| result(given, claim_uid, number));
        let results: Vec<Value> = results.collect();
        let mut devices = json!({"results": results});
        if !self.config.is_empty() {
            devices["config"] = json!(self.config);
        }
        let mut allocation = json!({"devices": devices});
        if let Some(nodes) = &self.nodes {
            allocation["nodeSelector"] = nodes.clone();
        }
        allocation
    }
}

fn result(given: &GivenDevice, claim_uid: &str, number: usize) -> Value {
    let DeviceKey { driver, pool, device } = given.device.clone().unwrap_or_else(|| DeviceKey {
        driver: Box::default(),
        pool: Box::default(),
        device: Box::default(),
    });
    let mut result = json!({
        "request": given.request, "driver": driver, "pool": pool, "device": device,
    });
    if given.is_admin {
        result["adminAccess"] = json!(true);
    }
    if !given.tolerations.is_empty() {
        result["tolerations"] = json!(given.tolerations);
    }
    if given.is_share {
        result["shareID"] = json!(share(claim_uid, number));
    }
    if !given.consumed.is_empty() {
        let amounts = given.consumed.iter();
        let amounts: BTreeMap<&str, String> =
            amounts.map(|(name, amount)| (&**name, amount.to_string())).collect();
        result["consumedCapacity"] = json!(amounts);
    }
    for (field, names) in [
        ("bindingConditions", &given.binding.awaited),
        ("bindingFailureConditions", &given.binding.failures),
    ] {
        if !names.is_empty() {
            result[field] = json!(names);
        }
    }
    result
}

/// A UUID (version 8, RFC 9562) from the claim and the number of the device in it.
fn share(claim_uid: &str, number: usize) -> String {
    let digest = Sha256::digest(format!("{claim_uid}/{number}").as_bytes());
    let mut bytes: [u8; 16] = std::array::from_fn(|at| digest[at]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let cut = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", cut(0, 8), cut(8, 12), cut(12, 16), cut(16, 20), cut(20, 32))
}

/// What drivers are told: first what the classes say, then what the claim says, each with the names
/// of the requests it is for; without names it is for all.
pub(crate) fn config(catalog: &Catalog, claim: &ResourceClaim, chosen: &[usize]) -> Vec<Value> {
    let requests: Vec<(&str, String, &str)> = claim
        .asked
        .requests
        .iter()
        .zip(chosen)
        .map(|(request, at)| {
            let asked = &request.alternatives[*at];
            let written = match request.is_list {
                true => format!("{}/{}", request.name, asked.name),
                false => request.name.to_string(),
            };
            (&*request.name, written, &*asked.class)
        })
        .collect();
    let mut entries: Vec<(&str, Vec<String>, &Value)> = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (_, _, class) in &requests {
        let Some(of) = catalog.class(class).filter(|_| seen.insert(class)) else { continue };
        let with = requests.iter().filter(|(.., other)| other == class);
        let names: Vec<String> = with.map(|(_, written, _)| written.clone()).collect();
        entries.extend(of.config.iter().map(|value| ("FromClass", names.clone(), value)));
    }
    for value in &claim.asked.config {
        let names = value["requests"].as_array().into_iter().flatten();
        let names: Vec<String> = names.filter_map(Value::as_str).map(str::to_owned).collect();
        let is_for = |(name, written, _): &(&str, String, &str)| {
            names.iter().any(|one| one == name || one == written)
        };
        if names.is_empty() || requests.iter().any(is_for) {
            entries.push(("FromClaim", names, value));
        }
    }
    let is_for_all = |names: &[String]| {
        let mut each = requests.iter();
        each.all(|(name, written, _)| names.iter().any(|one| one == name || one == written))
    };
    let write = |(source, names, value): (&str, Vec<String>, &Value)| {
        let mut entry: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
        entry.insert("source".to_owned(), json!(source));
        match names.is_empty() || is_for_all(&names) {
            true => entry.remove("requests"),
            false => entry.insert("requests".to_owned(), json!(names)),
        };
        Value::Object(entry)
    };
    entries.into_iter().map(write).collect()
}

/// The node selector of an allocation: the node itself where a device is there alone, else what all
/// its devices ask for.
pub(crate) fn nodes(
    reached: &Reached<'_>,
    devices: &[GivenDevice],
) -> Result<Option<Value>, String> {
    let (mut labels, mut fields) = (Vec::new(), Vec::new());
    for given in devices {
        let Some(key) = &given.device else { continue };
        let Some(one) = reached.devices.iter().find(|one| one.is(key)) else { continue };
        let reach = match &one.slice.reach {
            DeviceReach::EachDevice => &one.device.reach,
            of_slice => of_slice,
        };
        if matches!(reach, DeviceReach::Node(_)) || one.device.binds_to_node {
            let only =
                json!([{"key": NAME_LABEL, "operator": "In", "values": [reached.place.node]}]);
            return Ok(Some(json!({"nodeSelectorTerms": [{"matchFields": only}]})));
        }
        let DeviceReach::Where(any_of) = reach else { continue };
        let terms = match &**any_of {
            [] => continue,
            [terms] => terms,
            more => {
                let count = more.len();
                return Err(format!(
                    "unsupported: spec.nodeSelector of the ResourceSlice has {count} terms, at most 1 is supported"
                ));
            }
        };
        for term in terms {
            let (list, term) = match term.key == NAME_LABEL {
                true => (&mut fields, requirement(term)),
                false => (&mut labels, requirement(term)),
            };
            if !list.contains(&term) {
                list.push(term);
            }
        }
    }
    let mut term = Map::new();
    for (name, list) in [("matchExpressions", labels), ("matchFields", fields)] {
        if !list.is_empty() {
            term.insert(name.to_owned(), Value::Array(list));
        }
    }
    Ok((!term.is_empty()).then(|| json!({"nodeSelectorTerms": [term]})))
}

fn requirement(term: &SelectorTerm) -> Value {
    let mut written = json!({"key": term.key, "operator": term.operator.name()});
    if !term.values.is_empty() {
        written["values"] = json!(term.values);
    }
    written
}
