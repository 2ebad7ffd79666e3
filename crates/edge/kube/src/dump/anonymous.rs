//! What objects are called, replaced by keyed hashes. Whoever holds the key and the table can read a report in
//! the true names; nobody else can, and nobody can try names without the key.
//!
//! Every text is replaced unless it stands on a list of what says nothing about anybody: kinds, phases, amounts,
//! times, and the values of labels that checks and prices read. Equal texts get equal hashes, so selectors
//! still select.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Fields whose texts stay, wherever they stand.
const FIELDS: [&str; 32] = [
    "about",
    "apiVersion",
    "collectedAt",
    "consolidateAfter",
    "consolidationPolicy",
    "creationTimestamp",
    "declaredFeatures",
    "deletionTimestamp",
    "effect",
    "finishedAt",
    "hostPort",
    "kind",
    "lastTransitionTime",
    "medium",
    "minDomains",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "operator",
    "phase",
    "policy",
    "protocol",
    "reason",
    "restartPolicy",
    "sizeLimit",
    "status",
    "timeAdded",
    "topologyKey",
    "type",
    "unschedulable",
    "volumeBindingMode",
    "volumeMode",
    "whenUnsatisfiable",
];

/// Fields in which everything stays: amounts by resource, and the one variable and the one argument that are kept.
const WHOLE: [&str; 20] = [
    "accessModes",
    "args",
    "attributes",
    "allocatable",
    "allocatedResources",
    "capacity",
    "complete",
    "containerResource",
    "env",
    "hard",
    "limits",
    "maxSurge",
    "maxUnavailable",
    "minAvailable",
    "overhead",
    "requests",
    "resource",
    "target",
    "topologyPolicies",
    "upperBound",
];

/// Domains of label keys that everybody uses; other keys are names of somebody.
const DOMAINS: [&str; 20] = [
    "agentpool",
    "alpha.eksctl.io",
    "amd.com",
    "cloud.google.com",
    "dovetail.dev",
    "eks.amazonaws.com",
    "feature.node.kubernetes.io",
    "gpu.intel.com",
    "k8s.amazonaws.com",
    "k8s.io",
    "kai.scheduler",
    "karpenter.k8s.aws",
    "karpenter.sh",
    "kubeflow.org",
    "kubernetes.azure.com",
    "kubernetes.io",
    "nvidia.com",
    "runai",
    "sigs.k8s.io",
    "volcano.sh",
];

/// Labels whose values stay: models, sizes, places, ways of buying.
const VALUES: [&str; 23] = [
    "beta.kubernetes.io/instance-type",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-preemptible",
    "cloud.google.com/gke-spot",
    "dovetail.dev/class",
    "eks.amazonaws.com/capacityType",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.sh/capacity-type",
    "kubernetes.azure.com/scalesetpriority",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.replicas",
    "nvidia.com/mig.config.state",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Annotations whose values stay.
const ANNOTATION_SWITCHES: [&str; 3] = ["true", "false", ""];

/// A table of names that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamesError {
    /// Not what [`Names::to_json`] writes.
    #[error("this is no table of names: give the file that `collect --anonymise` wrote")]
    Form,
}

/// A key, and what was replaced under it.
#[derive(Clone, Debug)]
pub struct Names {
    key: Vec<u8>,
    /// True name by hash.
    names: BTreeMap<String, String>,
}

impl Names {
    /// No names yet, under a key that nobody can guess.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key: key.to_vec(), names: BTreeMap::new() }
    }

    /// A table that was written before: its names keep their hashes.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_json(text: &str) -> Result<Self, NamesError> {
        let value: Value = serde_json::from_str(text).map_err(|_| NamesError::Form)?;
        let key = value["key"].as_str().and_then(bytes).filter(|key| key.len() == 32);
        let names = value["names"].as_object().ok_or(NamesError::Form)?;
        let names =
            names.iter().map(|(hash, name)| Some((hash.clone(), name.as_str()?.to_owned())));
        let names: Option<BTreeMap<String, String>> = names.collect();
        Ok(Self { key: key.ok_or(NamesError::Form)?, names: names.ok_or(NamesError::Form)? })
    }

    /// The key and all names, for whoever owns them.
    pub fn to_json(&self) -> String {
        serde_json::json!({"key": hex(&self.key), "names": self.names}).to_string()
    }

    /// An object with everything that is a name replaced.
    pub fn replace(&mut self, object: &Value) -> Value {
        self.value(object, "")
    }

    /// A text in which hashes stand, with the true names.
    pub fn translate(&self, text: &str) -> String {
        let mut told = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(PREFIX) {
            let end = at + PREFIX.len() + HASH_DIGITS;
            let name = rest.get(at..end).and_then(|hash| self.names.get(hash));
            let (until, shown) = match name {
                Some(name) => (end, name.as_str()),
                None => (at + PREFIX.len(), PREFIX),
            };
            told += &rest[..at];
            told += shown;
            rest = &rest[until..];
        }
        told + rest
    }

    fn value(&mut self, value: &Value, field: &str) -> Value {
        match value {
            _ if WHOLE.contains(&field) => value.clone(),
            Value::String(text) if FIELDS.contains(&field) => Value::String(text.clone()),
            Value::String(text) => Value::String(match field {
                "key" => self.label_key(text),
                "providerID" => self.provider_id(text),
                "image" => self.image(text),
                _ => self.hash(text),
            }),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item, field)).collect())
            }
            Value::Object(fields) => match field {
                "labels" | "matchLabels" | "nodeSelector" => Value::Object(self.labels(fields)),
                "annotations" => Value::Object(self.annotations(fields)),
                _ => Value::Object(self.fields(fields)),
            },
            _ => value.clone(),
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>) -> Map<String, Value> {
        // A requirement on a label whose values stay keeps its values.
        let key = fields.get("key").and_then(Value::as_str).unwrap_or_default();
        let stays = VALUES.contains(&key);
        let mut replaced = Map::new();
        for (name, value) in fields {
            let value = match name.as_str() {
                "values" | "value" if stays => value.clone(),
                name => self.value(value, name),
            };
            replaced.insert(name.clone(), value);
        }
        replaced
    }

    fn labels(&mut self, labels: &Map<String, Value>) -> Map<String, Value> {
        let mut replaced = Map::new();
        for (key, value) in labels {
            let text = value.as_str().unwrap_or_default();
            let value =
                if VALUES.contains(&key.as_str()) { text.to_owned() } else { self.hash(text) };
            replaced.insert(self.label_key(key), Value::String(value));
        }
        replaced
    }

    /// Keys of annotations are those that were asked for by name; of values only switches stay.
    fn annotations(&mut self, annotations: &Map<String, Value>) -> Map<String, Value> {
        let mut replaced = Map::new();
        for (key, value) in annotations {
            let text = value.as_str().unwrap_or_default();
            let stays = ANNOTATION_SWITCHES.contains(&text) || key == "dovetail.dev/ignore";
            let value = if stays { text.to_owned() } else { self.hash(text) };
            replaced.insert(key.clone(), Value::String(value));
        }
        replaced
    }

    fn label_key(&mut self, key: &str) -> String {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let is_known = |known: &str| {
            let above = domain.strip_suffix(known);
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        let is_team = crate::facts::TEAM_LABELS.contains(&key);
        if is_team || DOMAINS.iter().any(|known| is_known(known)) {
            return key.to_owned();
        }
        self.hash(key)
    }

    /// The provider stays, which machine it is does not.
    fn provider_id(&mut self, id: &str) -> String {
        match id.split_once("://") {
            Some((scheme, path)) => format!("{scheme}:///{}", self.hash(path)),
            None => self.hash(id),
        }
    }

    /// Images are told apart by what they seem to be; registry, owner and tag are names.
    fn image(&mut self, image: &str) -> String {
        match crate::facts::class::known_part(image) {
            Some(kind) => format!("{}/{kind}", self.hash(image)),
            None => self.hash(image),
        }
    }

    fn hash(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let hash = format!("{PREFIX}{}", &hex(&keyed(&self.key, text.as_bytes()))[..HASH_DIGITS]);
        self.names.entry(hash.clone()).or_insert_with(|| text.to_owned());
        hash
    }
}

/// A name that Kubernetes takes, and that no one gives.
const PREFIX: &str = "anon-";

/// 64 bits: among a million names two are alike once in 40 million collections.
const HASH_DIGITS: usize = 16;

/// HMAC-SHA-256 (RFC 2104) for keys up to a block.
fn keyed(key: &[u8], text: &[u8]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let pad = |with: u8| -> Vec<u8> {
        (0..BLOCK).map(|place| key.get(place).copied().unwrap_or(0) ^ with).collect()
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hashes_are_those_of_the_standard() {
        // RFC 4231, test case 2.
        let found = hex(&keyed(b"Jefe", b"what do ya want for nothing?"));
        assert_eq!(found, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn what_is_called_something_is_not_recognised_and_comes_back_under_the_key() {
        let mut names = Names::new([7; 32]);
        let pod = json!({
            "kind": "Pod",
            "metadata": {"name": "payroll-0", "namespace": "finance", "labels": {
                "team": "finance", "secret-project": "x1", "nvidia.com/gpu.product": "NVIDIA-L4"}},
            "spec": {"nodeName": "node-7", "containers": [{
                "name": "main", "image": "registry.corp/finance/vllm:1",
                "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
                "affinity": {"nodeAffinity": {"expressions": [
                    {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4"]},
                    {"key": "secret-project", "operator": "In", "values": ["x1"]}]}}},
            "status": {"phase": "Running"}
        });
        let replaced = names.replace(&pod);
        let text = replaced.to_string();
        for name in ["payroll", "finance", "secret", "x1", "node-7", "corp", "main"] {
            assert!(!text.contains(name), "{name}: {text}");
        }
        for kept in ["NVIDIA-L4", "\"nvidia.com/gpu\":\"1\"", "Running", "/vllm", "\"team\":"] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        // A selector still selects.
        let labels = replaced["metadata"]["labels"].as_object().unwrap();
        let wanted = &replaced["spec"]["affinity"]["nodeAffinity"]["expressions"][1];
        assert_eq!(labels[wanted["key"].as_str().unwrap()], wanted["values"][0]);
        // The table brings a report back, also after it was written; another key knows nothing.
        let report = format!(
            "Pod {}/{}",
            replaced["metadata"]["namespace"].as_str().unwrap(),
            replaced["metadata"]["name"].as_str().unwrap()
        );
        let table = Names::from_json(&names.to_json()).unwrap();
        assert_eq!(table.translate(&report), "Pod finance/payroll-0");
        assert_eq!(Names::new([8; 32]).translate(&report), report);
        assert_eq!(table.translate("anon-é anon-"), "anon-é anon-");
        assert_ne!(Names::new([8; 32]).replace(&pod), replaced);
        assert_eq!(Names::from_json("{}").unwrap_err(), NamesError::Form);
    }
}
