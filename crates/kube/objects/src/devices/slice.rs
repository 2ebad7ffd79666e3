//! Devices that drivers offer.

use std::collections::BTreeMap;

use dovetail_model::{Quantity, SelectorTerm};
use serde::Deserialize;

use super::amounts;
use super::taint::{DeviceTaint, TaintEffectOfDevice};
use crate::affinity::NodeTermsJson;
use crate::json::{DeviceQuantity, nullable};
use crate::meta::Meta;

/// Devices of one driver and one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "SliceJson")]
pub struct ResourceSlice {
    pub meta: Meta,
    pub driver: Box<str>,
    /// The node they are in; empty if several nodes reach them.
    pub node: Box<str>,
    /// Which nodes reach its devices.
    pub reach: DeviceReach,
    pub pool: DevicePool,
    pub devices: Vec<OfferedDevice>,
    /// What devices of the pool share.
    pub counter_sets: Vec<CounterSet>,
}

/// Which nodes reach a device, or the devices of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceReach {
    /// It does not say, or in a way that is not known: no node.
    #[default]
    Nobody,
    /// The node of this name.
    Node(Box<str>),
    AllNodes,
    /// Nodes that satisfy one of the alternatives.
    Where(Vec<Vec<SelectorTerm>>),
    /// Each device of the slice says it for itself.
    EachDevice,
}

/// Counters that devices of a pool draw from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSet {
    /// Its name, unique in the pool.
    pub name: Box<str>,
    pub counters: BTreeMap<Box<str>, Quantity>,
}

/// The pool of which a slice is a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DevicePool {
    /// Its name, unique for the driver.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// Slices of an older generation are out of date.
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    /// Slices of the pool in this generation.
    #[serde(rename = "resourceSliceCount", deserialize_with = "nullable")]
    pub slices: i64,
}

/// A device as its driver offers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedDevice {
    /// Its name, unique in the pool.
    pub name: Box<str>,
    /// The node it is in; empty if several nodes reach it.
    pub node: Box<str>,
    /// Which nodes reach it, where each device of its slice says so.
    pub reach: DeviceReach,
    /// By their names as the driver writes them.
    pub attributes: BTreeMap<Box<str>, DeviceAttribute>,
    /// By their names as the driver writes them.
    pub capacity: BTreeMap<Box<str>, DeviceCapacity>,
    /// What it draws from counter sets of its pool.
    pub draws: Vec<CounterSet>,
    /// Whether several claims may have it at a time.
    pub is_for_several: bool,
    pub taints: Vec<DeviceTaint>,
    /// Whether who has it is bound to the node it was allocated on.
    pub binds_to_node: bool,
    /// Conditions that must come true before a pod that has it is bound, and those that say that
    /// they never will.
    pub binding: BindingConditions,
    /// Whether it says with which devices it may be allocated together.
    pub is_grouped: bool,
}

/// What must come true of a device before its pod is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingConditions {
    pub awaited: Vec<Box<str>>,
    pub failures: Vec<Box<str>>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceAttribute {
    Text(Box<str>),
    Number(i64),
    Truth(bool),
    /// A semantic version.
    Version(Box<str>),
    /// Several values, of whatever type.
    List(Vec<DeviceAttribute>),
    /// Of a type that is not known.
    Other,
}

/// How much of something a device has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCapacity {
    pub value: Quantity,
    /// How much of it claims take that share the device.
    pub policy: Option<RequestPolicy>,
}

/// How much of a capacity a claim takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestPolicy {
    /// Where it does not say.
    pub default: Option<Quantity>,
    /// The only amounts, ascending; what is asked for is rounded up to one.
    pub values: Vec<Quantity>,
    pub range: Option<RequestRange>,
}

/// Amounts from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRange {
    pub least: Option<Quantity>,
    pub most: Option<Quantity>,
    /// Amounts are the least and multiples of this.
    pub step: Option<Quantity>,
}

impl OfferedDevice {
    /// Attributes that are texts, by name; without empty ones.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attributes.iter().filter_map(|(name, value)| match value {
            DeviceAttribute::Text(text) if !text.is_empty() => Some((&**name, &**text)),
            _ => None,
        })
    }

    /// Whether a taint of its own keeps it from being allocated.
    pub fn is_tainted(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect != TaintEffectOfDevice::None)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SliceJson {
    #[serde(deserialize_with = "nullable")]
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: SpecJson,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecJson {
    #[serde(deserialize_with = "nullable")]
    driver: Box<str>,
    #[serde(deserialize_with = "nullable")]
    node_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    all_nodes: bool,
    node_selector: Option<NodeTermsJson>,
    #[serde(deserialize_with = "nullable")]
    per_device_node_selection: bool,
    #[serde(deserialize_with = "nullable")]
    pool: DevicePool,
    #[serde(deserialize_with = "nullable")]
    devices: Vec<DeviceJson>,
    #[serde(deserialize_with = "nullable")]
    shared_counters: Vec<CountersJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeviceJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    node_name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    all_nodes: bool,
    node_selector: Option<NodeTermsJson>,
    #[serde(deserialize_with = "nullable")]
    attributes: BTreeMap<Box<str>, AttributeJson>,
    #[serde(deserialize_with = "nullable")]
    capacity: BTreeMap<Box<str>, CapacityJson>,
    #[serde(deserialize_with = "nullable")]
    consumes_counters: Vec<CountersJson>,
    #[serde(deserialize_with = "nullable")]
    allow_multiple_allocations: bool,
    #[serde(deserialize_with = "nullable")]
    taints: Vec<DeviceTaint>,
    #[serde(deserialize_with = "nullable")]
    binds_to_node: bool,
    #[serde(deserialize_with = "nullable")]
    binding_conditions: Vec<Box<str>>,
    #[serde(deserialize_with = "nullable")]
    binding_failure_conditions: Vec<Box<str>>,
    /// All but the name, in `v1beta1`.
    basic: Option<Box<DeviceJson>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AttributeJson {
    string: Option<Box<str>>,
    int: Option<i64>,
    bool: Option<bool>,
    version: Option<Box<str>>,
    strings: Option<Vec<Box<str>>>,
    ints: Option<Vec<i64>>,
    bools: Option<Vec<bool>>,
    versions: Option<Vec<Box<str>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CapacityJson {
    value: Option<DeviceQuantity>,
    request_policy: Option<PolicyJson>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PolicyJson {
    default: Option<DeviceQuantity>,
    #[serde(deserialize_with = "nullable")]
    valid_values: Vec<DeviceQuantity>,
    valid_range: Option<RangeJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RangeJson {
    min: Option<DeviceQuantity>,
    max: Option<DeviceQuantity>,
    step: Option<DeviceQuantity>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CountersJson {
    #[serde(deserialize_with = "nullable")]
    name: Box<str>,
    #[serde(deserialize_with = "nullable")]
    counter_set: Box<str>,
    #[serde(deserialize_with = "nullable")]
    compatibility_groups: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    counters: BTreeMap<Box<str>, CounterJson>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CounterJson {
    value: Option<DeviceQuantity>,
}

impl From<SliceJson> for ResourceSlice {
    fn from(SliceJson { metadata, spec }: SliceJson) -> Self {
        let reach = match spec.per_device_node_selection {
            true => DeviceReach::EachDevice,
            false => reach(&spec.node_name, spec.all_nodes, spec.node_selector),
        };
        let devices = spec.devices.into_iter().map(|device| device.read(&spec.node_name));
        Self {
            meta: metadata,
            driver: spec.driver,
            reach,
            pool: spec.pool,
            devices: devices.collect(),
            counter_sets: spec.shared_counters.into_iter().map(CountersJson::read).collect(),
            node: spec.node_name,
        }
    }
}

fn reach(node: &str, all_nodes: bool, selected: Option<NodeTermsJson>) -> DeviceReach {
    match (node, all_nodes, selected) {
        ("", true, _) => DeviceReach::AllNodes,
        ("", false, Some(terms)) => DeviceReach::Where(terms.read()),
        ("", false, None) => DeviceReach::Nobody,
        (node, ..) => DeviceReach::Node(node.into()),
    }
}

impl DeviceJson {
    fn read(mut self, node: &str) -> OfferedDevice {
        if let Some(basic) = self.basic.take() {
            self = Self { name: self.name, ..*basic };
        }
        let capacity = self.capacity.into_iter();
        let mut counters = self.consumes_counters.iter();
        let is_grouped = counters.any(|counters| !counters.compatibility_groups.is_empty());
        OfferedDevice {
            name: self.name,
            reach: reach(&self.node_name, self.all_nodes, self.node_selector),
            node: if self.node_name.is_empty() { node.into() } else { self.node_name },
            attributes: self.attributes.into_iter().map(|(name, of)| (name, of.read())).collect(),
            capacity: capacity.filter_map(|(name, of)| Some((name, of.read()?))).collect(),
            draws: self.consumes_counters.into_iter().map(CountersJson::read).collect(),
            is_for_several: self.allow_multiple_allocations,
            taints: self.taints,
            binds_to_node: self.binds_to_node,
            binding: BindingConditions {
                awaited: self.binding_conditions,
                failures: self.binding_failure_conditions,
            },
            is_grouped,
        }
    }
}

impl AttributeJson {
    fn read(self) -> DeviceAttribute {
        fn list<T>(of: Vec<T>, each: fn(T) -> DeviceAttribute) -> DeviceAttribute {
            DeviceAttribute::List(of.into_iter().map(each).collect())
        }
        match self {
            Self { int: Some(number), .. } => DeviceAttribute::Number(number),
            Self { bool: Some(truth), .. } => DeviceAttribute::Truth(truth),
            Self { string: Some(text), .. } => DeviceAttribute::Text(text),
            Self { version: Some(text), .. } => DeviceAttribute::Version(text),
            Self { strings: Some(all), .. } => list(all, DeviceAttribute::Text),
            Self { ints: Some(all), .. } => list(all, DeviceAttribute::Number),
            Self { bools: Some(all), .. } => list(all, DeviceAttribute::Truth),
            Self { versions: Some(all), .. } => list(all, DeviceAttribute::Version),
            _ => DeviceAttribute::Other,
        }
    }
}

impl CapacityJson {
    fn read(self) -> Option<DeviceCapacity> {
        let quantity = |amount: Option<DeviceQuantity>| amount.map(|amount| amount.0);
        let policy = self.request_policy.map(|policy| RequestPolicy {
            default: quantity(policy.default),
            values: policy.valid_values.into_iter().map(|amount| amount.0).collect(),
            range: policy.valid_range.map(|range| RequestRange {
                least: quantity(range.min),
                most: quantity(range.max),
                step: quantity(range.step),
            }),
        });
        Some(DeviceCapacity { value: self.value?.0, policy })
    }
}

impl CountersJson {
    fn read(self) -> CounterSet {
        let name = if self.counter_set.is_empty() { self.name } else { self.counter_set };
        let counters = self.counters.into_iter().map(|(name, counter)| (name, counter.value));
        CounterSet { name, counters: amounts(counters) }
    }
}
