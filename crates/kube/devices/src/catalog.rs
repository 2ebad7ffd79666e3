//! What drivers offer, classes of devices, rules that taint devices, and which devices meet which
//! selector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_model::node::NAME_LABEL;
use dovetail_objects::{DeviceClass, DeviceReach, DeviceTaintRule, Labels, ResourceSlice};
use rustc_hash::FxHashMap;

use crate::cel::{CelSelector, Language};
use crate::features::Features;

/// A node that devices are asked for on.
#[derive(Clone, Copy, Debug)]
pub struct CandidateNode<'a> {
    pub node: &'a str,
    pub labels: &'a Labels,
}

/// Slices, classes and taint rules by name.
#[derive(Debug)]
pub struct Catalog {
    features: Features,
    slices: BTreeMap<Box<str>, Arc<ResourceSlice>>,
    /// Names of slices with the devices of one node, by that node.
    of_node: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
    /// Names of the others.
    of_several: BTreeSet<Box<str>>,
    /// Names of slices by driver and pool.
    of_pool: BTreeMap<PoolKey, BTreeSet<Box<str>>>,
    classes: BTreeMap<Box<str>, Arc<DeviceClass>>,
    taint_rules: BTreeMap<Box<str>, DeviceTaintRule>,
    language: Language,
    /// What was found out before. It only saves time: the same question has the same answer.
    remembered: Mutex<Remembered>,
}

/// Driver and pool.
type PoolKey = (Box<str>, Box<str>);

#[derive(Debug, Default)]
struct Remembered {
    /// Selectors by their text.
    selectors: FxHashMap<Box<str>, Arc<KnownSelector>>,
    /// Answers by name of the slice, then by selector.
    by_slice: FxHashMap<Box<str>, FxHashMap<Box<str>, Answers>>,
}

#[derive(Debug)]
struct KnownSelector(Result<CelSelector, String>);

/// For each device of a slice whether it meets a selector, or what went wrong.
pub(crate) type Answers = Arc<[Result<bool, Box<str>>]>;

/// Selectors that are remembered at once; then all are forgotten.
const MOST_SELECTORS: usize = 4_096;

impl Catalog {
    /// Without slices and classes.
    pub fn new(features: Features) -> Self {
        Self {
            features,
            slices: BTreeMap::new(),
            of_node: BTreeMap::new(),
            of_several: BTreeSet::new(),
            of_pool: BTreeMap::new(),
            classes: BTreeMap::new(),
            taint_rules: BTreeMap::new(),
            language: Language::default(),
            remembered: Mutex::default(),
        }
    }

    pub(crate) fn features(&self) -> Features {
        self.features
    }

    /// Adds or replaces a slice.
    pub fn put_slice(&mut self, slice: ResourceSlice) {
        let name = slice.meta.name.clone();
        self.remove_slice(&name);
        match &slice.reach {
            DeviceReach::Node(node) => {
                self.of_node.entry(node.clone()).or_default().insert(name.clone());
            }
            _ => {
                self.of_several.insert(name.clone());
            }
        }
        let pool = (slice.driver.clone(), slice.pool.name.clone());
        self.of_pool.entry(pool).or_default().insert(name.clone());
        self.slices.insert(name, Arc::new(slice));
    }

    /// Forgets a slice.
    pub fn remove_slice(&mut self, name: &str) {
        let Some(slice) = self.slices.remove(name) else { return };
        self.of_several.remove(name);
        if let DeviceReach::Node(node) = &slice.reach {
            leave(&mut self.of_node, node, name);
        }
        leave(&mut self.of_pool, &(slice.driver.clone(), slice.pool.name.clone()), name);
        let remembered = self.remembered.get_mut().unwrap_or_else(PoisonError::into_inner);
        remembered.by_slice.remove(name);
    }

    /// Adds or replaces a class.
    pub fn put_class(&mut self, class: DeviceClass) {
        self.classes.insert(class.meta.name.clone(), Arc::new(class));
    }

    /// Forgets a class.
    pub fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// Adds or replaces a rule that taints devices.
    pub fn put_taint_rule(&mut self, rule: DeviceTaintRule) {
        self.taint_rules.insert(rule.meta.name.clone(), rule);
    }

    /// Forgets a rule that taints devices.
    pub fn remove_taint_rule(&mut self, name: &str) {
        self.taint_rules.remove(name);
    }

    /// A rule that taints devices.
    pub fn taint_rule(&self, name: &str) -> Option<&DeviceTaintRule> {
        self.taint_rules.get(name)
    }

    /// Names of all rules that taint devices.
    pub fn taint_rule_names(&self) -> impl Iterator<Item = &str> {
        self.taint_rules.keys().map(|name| &**name)
    }

    /// Rules that taint devices of a pool, by name.
    pub(crate) fn taint_rules_of(&self, driver: &str, pool: &str) -> Vec<&DeviceTaintRule> {
        let is_for_pool = |rule: &&DeviceTaintRule| {
            rule.selector.as_ref().is_some_and(|selector| selector.is_for_pool(driver, pool))
        };
        self.taint_rules.values().filter(is_for_pool).collect()
    }

    /// A slice.
    pub fn slice(&self, name: &str) -> Option<&ResourceSlice> {
        self.slices.get(name).map(|slice| &**slice)
    }

    /// Names of all slices.
    pub fn slice_names(&self) -> impl Iterator<Item = &str> {
        self.slices.keys().map(|name| &**name)
    }

    /// Nodes that slices have devices of which no other node reaches.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.of_node.keys().map(|node| &**node)
    }

    /// Slices with devices of one node, and no other.
    pub fn slices_of(&self, node: &str) -> impl Iterator<Item = &ResourceSlice> {
        let names = self.of_node.get(node).into_iter().flatten();
        names.filter_map(|name| self.slice(name))
    }

    /// Nodes that devices of a pool are in; `None` where others may reach some, too.
    pub fn nodes_of_pool(&self, driver: &str, pool: &str) -> Option<impl Iterator<Item = &str>> {
        let nodes: Option<BTreeSet<&str>> = self
            .slices_of_pool(driver, pool)
            .map(|slice| match &slice.reach {
                DeviceReach::Node(node) => Some(&**node),
                _ => None,
            })
            .collect();
        Some(nodes?.into_iter())
    }

    /// Whether any slice has devices that more than one node may reach.
    pub fn has_slices_of_several(&self) -> bool {
        !self.of_several.is_empty()
    }

    pub(crate) fn class(&self, name: &str) -> Option<&DeviceClass> {
        self.classes.get(name).map(|class| &**class)
    }

    /// Slices that could have devices for a node.
    pub(crate) fn slices_for<'c>(
        &'c self,
        node: &str,
    ) -> impl Iterator<Item = &'c ResourceSlice> + use<'c> {
        let own = self.of_node.get(node).into_iter().flatten();
        own.chain(&self.of_several).filter_map(|name| self.slice(name))
    }

    /// All slices of a pool, of whatever generation.
    pub(crate) fn slices_of_pool(
        &self,
        driver: &str,
        pool: &str,
    ) -> impl Iterator<Item = &ResourceSlice> {
        let names = self.of_pool.get(&(driver.into(), pool.into())).into_iter().flatten();
        names.filter_map(|name| self.slice(name))
    }

    /// Which devices of a slice meet a selector.
    pub(crate) fn meeting(&self, slice: &ResourceSlice, selector: &str) -> Answers {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let of_slice = remembered.by_slice.get(&slice.meta.name);
        if let Some(known) = of_slice.and_then(|answers| answers.get(selector)) {
            return Arc::clone(known);
        }
        if remembered.selectors.len() >= MOST_SELECTORS {
            *remembered = Remembered::default();
        }
        let known = remembered.selectors.get(selector).cloned();
        let known =
            known.unwrap_or_else(|| Arc::new(KnownSelector(self.language.compile(selector))));
        remembered.selectors.insert(selector.into(), Arc::clone(&known));
        let devices = slice.devices.iter();
        let answers: Answers = match &known.0 {
            Err(problem) => devices.map(|_| Err(problem.as_str().into())).collect(),
            Ok(selector) => {
                let meets = |device| self.language.meets(selector, &slice.driver, device);
                devices.map(|device| meets(device).map_err(Into::into)).collect()
            }
        };
        let of_slice = remembered.by_slice.entry(slice.meta.name.clone()).or_default();
        of_slice.insert(selector.into(), Arc::clone(&answers));
        answers
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new(Features::ALL)
    }
}

/// Whether a node reaches what says so; `EachDevice` says nothing.
pub(crate) fn is_reached(reach: &DeviceReach, place: CandidateNode<'_>) -> bool {
    match reach {
        DeviceReach::Node(node) => **node == *place.node,
        DeviceReach::AllNodes => true,
        DeviceReach::Where(any_of) => satisfies(any_of, place),
        DeviceReach::Nobody | DeviceReach::EachDevice => false,
    }
}

/// Whether a node satisfies one of the alternatives.
pub(crate) fn satisfies(
    any_of: &[Vec<dovetail_model::SelectorTerm>],
    place: CandidateNode<'_>,
) -> bool {
    let label = |key: &str| match key {
        NAME_LABEL => Some(place.node),
        key => place.labels.get(key),
    };
    any_of.iter().any(|terms| terms.iter().all(|term| term.accepts(label(&term.key))))
}

impl CandidateNode<'_> {
    /// Whether it satisfies one of the alternatives, as an allocation states them.
    pub fn satisfies(self, any_of: &[Vec<dovetail_model::SelectorTerm>]) -> bool {
        satisfies(any_of, self)
    }
}

fn leave<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Box<str>>>, key: &K, name: &str) {
    if let Some(names) = index.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            index.remove(key);
        }
    }
}
