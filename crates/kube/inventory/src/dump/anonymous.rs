//! What objects are called, replaced by keyed hashes. Whoever holds the key and the table can read
//! a report in the true names; nobody else can, and nobody can try names without the key.
//!
//! Every text is replaced unless it stands on a list of what says nothing about anybody: kinds,
//! phases, amounts, times, and the values of labels that checks and prices read. Equal texts get
//! equal hashes, so selectors still select.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::devices::{is_of_a_kind, is_of_one_device};
use super::domains::DOMAINS;
use super::fields::{TextRule, text_of};
use crate::facts::claims::class::BY_NAME;
use crate::facts::claims::driver::GpuDriver;
use crate::facts::claims::selector::reduced;
use crate::facts::layout_change;

/// Reasons that Kubernetes itself gives; whatever runs in a cluster may write others.
const REASONS: [&str; 17] = [
    "Completed",
    "ContainerCreating",
    "CrashLoopBackOff",
    "ErrImagePull",
    "Error",
    "Evicted",
    "FailedCreate",
    "ImagePullBackOff",
    "Inadmissible",
    "Infeasible",
    "KubeletReady",
    "OOMKilled",
    "Pending",
    "PodInitializing",
    "PreemptionByScheduler",
    "SchedulingGated",
    "Unschedulable",
];

/// Keys without a domain that checks read, and the field by which a pod names its node.
const KEYS: [&str; 5] =
    ["metadata.name", "model", "notebook-name", "pod-template-hash", "rollouts-pod-template-hash"];

/// The field of a node selector that has terms.
const SELECTOR_TERMS: &str = "nodeSelectorTerms";

/// Groups of Kubernetes' own kinds that have no domain.
const GROUPS: [&str; 5] = ["apps", "autoscaling", "batch", "extensions", "policy"];

/// Schedulers that everybody knows.
const SCHEDULERS: [&str; 6] =
    ["default-scheduler", "dovetail", "kai-scheduler", "runai-scheduler", "volcano", "yunikorn"];

/// Conditions that Kubernetes itself reports, ways to replace pods, and what autoscalers look at;
/// others are words of somebody.
const TYPES: [&str; 37] = [
    "Admitted",
    "AverageValue",
    "Complete",
    "Completed",
    "Container",
    "ContainersReady",
    "DiskPressure",
    "DisruptionTarget",
    "Failed",
    "FailureTarget",
    "Finished",
    "HyperNode",
    "Initialized",
    "MemoryPressure",
    "NetworkUnavailable",
    "Node",
    "OnDelete",
    "PIDPressure",
    "PersistentVolumeClaim",
    "Pod",
    "PodReadyToStartContainers",
    "PodResizeInProgress",
    "PodResizePending",
    "PodScheduled",
    "QuotaReserved",
    "Ready",
    "Recreate",
    "ReplicaFailure",
    "RollingUpdate",
    "Succeeded",
    "SuccessCriteriaMet",
    "Suspended",
    "Unschedulable",
    "Utilization",
    "Value",
    "cpu",
    "memory",
];

/// Where the devices of GPUs stand on a node.
const DEVICES: [&str; 3] = ["/dev/nvidia", "/dev/dri", "/dev/kfd"];

/// What `dovetail.dev/class` may say.
const CLASSES: [&str; 4] = ["batch", "inference", "interactive", "training"];

/// Labels that name a model: how large it is stays.
const MODELS: [&str; 2] = [labels::LLM_D_MODEL, "model"];

/// Labels whose values stay: models, sizes, places, ways of buying, roles in a gang.
const VALUES: [&str; 36] = [
    labels::AMD_PARTITION,
    labels::AMD_PRODUCT,
    labels::AMD_OLD_PRODUCT,
    labels::OLD_INSTANCE_TYPE,
    labels::GKE_ACCELERATOR,
    labels::GKE_ACCELERATOR_COUNT,
    labels::GKE_PARTITION,
    labels::GKE_PREEMPTIBLE,
    labels::GKE_SHARED_CLIENTS,
    labels::GKE_SPOT,
    labels::GKE_STRATEGY,
    labels::EKS_CAPACITY_TYPE,
    labels::OLD_REGION,
    labels::OLD_ZONE,
    labels::AWS_ACCELERATOR,
    labels::KARPENTER_GPU,
    labels::KARPENTER_GPU_COUNT,
    labels::KARPENTER_CAPACITY_TYPE,
    labels::AZURE_PRIORITY,
    labels::ARCHITECTURE,
    labels::OPERATING_SYSTEM,
    labels::INSTANCE_TYPE,
    labels::NVIDIA_COUNT,
    labels::NVIDIA_MEMORY,
    labels::NVIDIA_PRESENT,
    labels::NVIDIA_PRODUCT,
    labels::NVIDIA_REPLICAS,
    labels::NVIDIA_STRATEGY,
    labels::NVIDIA_MIG_STATE,
    labels::REGION,
    labels::ZONE,
    // By these the pods of a gang are known: they name operators and roles, never a job.
    labels::LEADER_WORKER_SET_WORKER_INDEX,
    labels::RAY_NODE_TYPE,
    labels::TRAINING_ROLE,
    labels::TRAINING_OPERATOR,
    labels::TRAINING_REPLICA_TYPE,
];

/// Annotations that say how many pods a gang has: numbers in them stay.
const GANG_SIZES: [&str; 4] = [
    labels::KUEUE_TOTAL_COUNT,
    labels::LEADER_WORKER_SET_SIZE,
    labels::MIN_MEMBERS,
    labels::MAX_MEMBERS,
];

/// Annotations whose values stay.
const ANNOTATION_SWITCHES: [&str; 3] = ["true", "false", ""];

/// Whether a label says how many Intel GPUs a node has; the keys say which they are.
fn counts_intel_gpus(key: &str) -> bool {
    [labels::INTEL_NUMBERS, labels::INTEL_DEVICE].iter().any(|label| key.starts_with(label))
}

/// Whether a text is numbers, such as `0.1.2`.
fn is_numbers(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit())
}

/// A table of names that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamesError {
    /// Not what [`Names::to_json`] writes.
    #[error("this is not a table of names: pass the file that `collect --anonymize` wrote")]
    Form,
}

/// A key, and what was replaced under it.
#[derive(Clone, Debug)]
pub struct Pseudonyms {
    key: Vec<u8>,
    /// True name by hash.
    names: BTreeMap<String, String>,
}

impl Pseudonyms {
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
        self.value(object, TextRule::Name)
    }

    /// A text in which hashes stand, with the true names. Columns of a table stay in place.
    pub fn translate(&self, text: &str) -> String {
        let mut told = Aligned::default();
        let mut rest = text;
        while let Some(at) = rest.find(PREFIX) {
            let end = at + PREFIX.len() + HASH_DIGITS;
            let name = rest.get(at..end).and_then(|hash| self.names.get(hash));
            let (until, shown) = match name {
                Some(name) => (end, name.as_str()),
                None => (at + PREFIX.len(), PREFIX),
            };
            told.copy(&rest[..at]);
            told.replace(until - at, shown);
            rest = &rest[until..];
        }
        told.copy(rest);
        told.text
    }

    fn value(&mut self, value: &Value, how: TextRule) -> Value {
        match value {
            Value::Object(attributes) if how == TextRule::Attributes => {
                Value::Object(self.attributes(attributes))
            }
            _ if matches!(how, TextRule::Whole | TextRule::Attributes) => value.clone(),
            Value::String(text) => Value::String(self.text(text, how)),
            Value::Array(items) => {
                // A list of requests is what a claim asks for, and no amounts.
                let how = if how == TextRule::Amounts { TextRule::Name } else { how };
                Value::Array(items.iter().map(|item| self.value(item, how)).collect())
            }
            Value::Object(fields) => Value::Object(match how {
                TextRule::Labels => self.labels(fields),
                TextRule::Annotations => self.annotations(fields),
                // Pods have the names of tasks as a label.
                TextRule::Tasks => {
                    let tasks = fields.iter().map(|(task, least)| (self.hash(task), least.clone()));
                    tasks.collect()
                }
                TextRule::Amounts => self.amounts(fields),
                TextRule::Measured => self.of_resource(fields),
                _ => self.fields(fields),
            }),
            _ => value.clone(),
        }
    }

    fn text(&mut self, text: &str, how: TextRule) -> String {
        let stays = match how {
            TextRule::Plain | TextRule::Whole | TextRule::Attributes | TextRule::Amounts => true,
            TextRule::Count => is_count(text),
            TextRule::Driver => GpuDriver::named(text).is_some(),
            // What a rule about pods counts.
            TextRule::Measured => text == "pods",
            TextRule::Mount => text.trim_end_matches('/') == "/dev/shm",
            TextRule::Reason => REASONS.contains(&text),
            TextRule::Scheduler => SCHEDULERS.contains(&text),
            TextRule::Type => TYPES.contains(&text),
            _ => false,
        };
        match how {
            _ if stays => text.to_owned(),
            TextRule::DeviceClass => self.device_class(text),
            TextRule::Image => self.image(text),
            TextRule::LabelKey => self.label_key(text),
            TextRule::Path => self.path(text),
            TextRule::Provider => self.provider_id(text),
            TextRule::Resource => self.resource(text),
            TextRule::Selector => reduced(text),
            TextRule::Reason | TextRule::Type => self.told_of_repair(text),
            _ => self.hash(text),
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>) -> Map<String, Value> {
        // A requirement on a label whose values stay keeps its values.
        let key = fields.get("key").and_then(Value::as_str).unwrap_or_default();
        let mut replaced = Map::new();
        for (name, value) in fields {
            let value = match name.as_str() {
                "values" | "value" if !key.is_empty() => self.label_values(key, value),
                name => self.value(value, text_of(name)),
            };
            replaced.insert(name.clone(), value);
        }
        replaced
    }

    fn labels(&mut self, labels: &Map<String, Value>) -> Map<String, Value> {
        let mut replaced = Map::new();
        for (key, value) in labels {
            // The node selector of an allocated claim has terms where that of a pod has labels.
            if key == SELECTOR_TERMS && value.is_array() {
                replaced.insert(key.clone(), self.value(value, TextRule::Name));
                continue;
            }
            let text = value.as_str().unwrap_or_default();
            let value = self.label_value(key, text);
            replaced.insert(self.label_key(key), Value::String(value));
        }
        replaced
    }

    /// Values that are asked of a label: a text, or a list of them.
    fn label_values(&mut self, key: &str, values: &Value) -> Value {
        match values {
            Value::String(text) => Value::String(self.label_value(key, text)),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.label_values(key, item)).collect())
            }
            other => self.value(other, TextRule::Name),
        }
    }

    fn label_value(&mut self, key: &str, value: &str) -> String {
        match key {
            _ if dovetail_audit::PLAIN_TAINT_VALUES.contains(&value) || VALUES.contains(&key) => {
                value.to_owned()
            }
            labels::CLASS if CLASSES.contains(&value) => value.to_owned(),
            _ if counts_intel_gpus(key) && is_numbers(value) => value.to_owned(),
            _ if MODELS.contains(&key) => self.model(value),
            _ => self.hash(value),
        }
    }

    /// Of a model's name its size stays, as in arguments.
    fn model(&mut self, name: &str) -> String {
        match dovetail_facts::ServedModel::of_name(name).map(crate::facts::model::argument) {
            Some(told) => format!("{}/{}", self.hash(name), told.trim_start_matches("--model=")),
            None => self.hash(name),
        }
    }

    /// Devices of GPUs are told apart from other paths; which one it is stays where it is a number.
    fn path(&mut self, path: &str) -> String {
        let device = DEVICES.iter().find_map(|device| Some((device, path.strip_prefix(device)?)));
        match device {
            Some((_, rest)) if rest.bytes().all(|byte| byte.is_ascii_digit()) => path.to_owned(),
            Some((device, rest)) => format!("{device}/{}", self.hash(rest)),
            None => self.hash(path),
        }
    }

    /// What kind of device it is stays, which one it is does not.
    fn attributes(&mut self, attributes: &Map<String, Value>) -> Map<String, Value> {
        let known = attributes.iter().filter_map(|(name, value)| {
            let told = match is_of_a_kind(name) {
                true => value.clone(),
                false if is_of_one_device(name) => self.value(value, TextRule::Name),
                false => return None,
            };
            Some((name.clone(), told))
        });
        known.collect()
    }

    /// Keys of annotations that were asked for by name stay, others are hashed; of values only
    /// switches stay.
    fn annotations(&mut self, annotations: &Map<String, Value>) -> Map<String, Value> {
        let mut replaced = Map::new();
        for (key, value) in annotations {
            let text = value.as_str().unwrap_or_default();
            let is_switch = ANNOTATION_SWITCHES.iter().any(|of| of.eq_ignore_ascii_case(text));
            let value = match key.as_str() {
                _ if is_switch => text.to_owned(),
                key if GANG_SIZES.contains(&key) && is_count(text) => text.to_owned(),
                labels::IGNORE => self.ignored(text),
                labels::HAMI_REGISTER => self.registered(text),
                layout_change::RECORD => layout_change::told_alone(text),
                // What is no time would not say that anything was stopped.
                labels::STOPPED => match text.parse::<jiff::Timestamp>() {
                    Ok(time) => time.to_string(),
                    Err(_) => self.hash(text),
                },
                _ => self.hash(text),
            };
            let has_known_domain = key.split_once('/').is_some_and(|(of, _)| is_known(of));
            // Those that mark a node for a repair have any name.
            let key = match dovetail_audit::names_a_repair(key) && !has_known_domain {
                true => self.told_of_repair(key),
                false => key.clone(),
            };
            replaced.insert(key, Value::String(value));
        }
        replaced
    }

    /// Of a text that may mark a node for a repair the words that do so stay.
    fn told_of_repair(&mut self, text: &str) -> String {
        match crate::facts::node::told_of_repair(text) {
            Some(told) => format!("{}/{told}", self.hash(text)),
            None => self.hash(text),
        }
    }

    /// The GPUs that HAMi's plugin registers stay in number, size and model, under other names: in
    /// JSON, or as older versions write them (`ID,COUNT,MEMORY,...:`).
    fn registered(&mut self, text: &str) -> String {
        let Ok(Value::Array(mut gpus)) = serde_json::from_str(text) else {
            let named = text.split(':').map(|gpu| match gpu.split_once(',') {
                Some((id, rest)) => format!("{},{rest}", self.hash(id)),
                None => String::new(),
            });
            return named.collect::<Vec<_>>().join(":");
        };
        for (name, value) in gpus.iter_mut().filter_map(Value::as_object_mut).flatten() {
            if let Value::String(text) = value
                && !["type", "mode"].contains(&name.as_str())
            {
                *text = self.hash(text);
            }
        }
        Value::Array(gpus).to_string()
    }

    /// Amounts stay, names of resources only where everybody has them.
    fn amounts(&mut self, amounts: &Map<String, Value>) -> Map<String, Value> {
        let amount = |(name, amount): (&String, &Value)| {
            // An amount is a number, or a text that begins with one.
            let is_amount =
                |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            let value = match amount {
                Value::String(text) if !is_amount(text) && name != "type" => {
                    Value::String(self.hash(text))
                }
                amount => amount.clone(),
            };
            (self.resource(name), value)
        };
        amounts.iter().map(amount).collect()
    }

    /// What an autoscaler looks at of a resource.
    fn of_resource(&mut self, fields: &Map<String, Value>) -> Map<String, Value> {
        let field = |(name, value): (&String, &Value)| {
            let value = match (name.as_str(), value) {
                ("name", Value::String(text)) => Value::String(self.resource(text)),
                ("container", value) => self.value(value, TextRule::Name),
                (_, value) => value.clone(),
            };
            (name.clone(), value)
        };
        fields.iter().map(field).collect()
    }

    /// Name of a resource, or of what a quota counts: `requests.nvidia.com/gpu`,
    /// `CLASS.storageclass.storage.k8s.io/requests.storage`. Of those that name a class of devices
    /// the class is hashed, unless it comes with a driver.
    fn resource(&mut self, name: &str) -> String {
        const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
        const OF_DEVICES: &str = ".deviceclass.resource.k8s.io/";
        if let Some((class, counted)) = name.split_once(OF_CLASS) {
            return format!("{}{OF_CLASS}{counted}", self.hash(class));
        }
        if let Some((class, counted)) = name.split_once(OF_DEVICES) {
            return format!("{}{OF_DEVICES}{counted}", self.device_class(class));
        }
        let side =
            ["requests.", "limits.", "count/"].into_iter().find(|side| name.starts_with(side));
        let (side, resource) = name.split_at(side.map_or(0, str::len));
        if let Some(class) = resource.strip_prefix(BY_NAME) {
            return format!("{side}{BY_NAME}{}", self.device_class(class));
        }
        let domain = resource.split_once('/').map(|(domain, _)| domain);
        match domain {
            _ if dovetail_model::is_gpu_resource(resource) => name.to_owned(),
            // An extended resource stays one: domain and name have their own hashes.
            Some(domain) if !is_known(domain) => {
                let rest = &resource[domain.len() + 1..];
                format!("{side}{}/{}", self.hash(domain), self.hash(rest))
            }
            // Kubernetes' own have no domain; of other kinds that are counted, the group is it.
            None if side == "count/"
                && resource
                    .split_once('.')
                    .is_some_and(|(_, group)| !is_known(group) && !GROUPS.contains(&group)) =>
            {
                format!("{side}{}", self.hash(resource))
            }
            _ => name.to_owned(),
        }
    }

    fn device_class(&mut self, class: &str) -> String {
        match GpuDriver::of_class(class) {
            Some(_) => class.to_owned(),
            None => self.hash(class),
        }
    }

    /// Names of checks stay, what somebody wrote beside them does not.
    fn ignored(&mut self, text: &str) -> String {
        let mut told =
            |word: &str| match dovetail_audit::check(word).is_some() || word == "idle-notice" {
                true => word.to_owned(),
                false => self.hash(word),
            };
        // As they are read: separated by commas or blanks.
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        words.map(&mut told).collect::<Vec<_>>().join(",")
    }

    fn label_key(&mut self, key: &str) -> String {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
        let is_team = crate::facts::TEAM_LABELS.contains(&key);
        if is_team || KEYS.contains(&key) || is_known(domain) {
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

/// The fewest spaces between two columns of a table.
const GAP: usize = 2;

/// A text whose columns stay in place although names in it get longer or shorter: the spaces up to
/// the next column make up for it.
#[derive(Default)]
struct Aligned {
    text: String,
    /// Columns of the current line that were read.
    read: usize,
    /// Columns of the current line that were written.
    written: usize,
}

impl Aligned {
    fn copy(&mut self, part: &str) {
        let mut spaces = 0;
        for c in part.chars() {
            if c == ' ' {
                spaces += 1;
                continue;
            }
            self.spaces(spaces);
            spaces = 0;
            self.text.push(c);
            (self.read, self.written) = match c {
                '\n' => (0, 0),
                _ => (self.read + 1, self.written + 1),
            };
        }
        self.spaces(spaces);
    }

    /// Writes a text instead of one that was so long.
    fn replace(&mut self, length: usize, text: &str) {
        self.text += text;
        self.read += length;
        self.written += text.chars().count();
    }

    fn spaces(&mut self, count: usize) {
        self.read += count;
        let count = match count {
            0 | 1 => count,
            _ => self.read.saturating_sub(self.written).max(GAP),
        };
        self.written += count;
        self.text += &" ".repeat(count);
    }
}

/// Whether a domain is one that everybody uses, or below one.
fn is_known(domain: &str) -> bool {
    DOMAINS.iter().any(|known| {
        let above = domain.strip_suffix(known);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

/// Whether a text is a number or a percentage.
fn is_count(text: &str) -> bool {
    let digits = text.strip_suffix('%').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
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
mod tests;
