//! What drivers offer, classes of devices, rules that taint devices, and which devices meet which
//! selector.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use dovetail_model::node::NAME_LABEL;
use dovetail_objects::{
    DeviceClass, DeviceReach, DeviceTaintRule, Labels, OfferedDevice, ResourceSlice,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cel::{CelSelector, Language};
use crate::features::Features;
use crate::offer::{NodeOffer, OfferShape};

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
    /// Answers by selector, then by what it reads of a device.
    by_content: FxHashMap<Box<str>, FxHashMap<String, DeviceAnswer>>,
    /// What nodes offer, by name. It follows from slices.
    offers: FxHashMap<Box<str>, Arc<NodeOffer>>,
    /// What several of them have in common.
    shapes: FxHashSet<Arc<OfferShape>>,
}

/// Whether a device meets a selector, or what went wrong.
pub(crate) type DeviceAnswer = Result<bool, Box<str>>;

#[derive(Debug)]
struct KnownSelector(Result<CelSelector, String>);

/// What a selector says of the devices of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    /// For each device whether it meets the selector, or what went wrong.
    pub(crate) each: Arc<[DeviceAnswer]>,
    /// Whether anything went wrong.
    pub(crate) has_failed: bool,
}

/// Selectors that are remembered at once; then all are forgotten.
const MOST_SELECTORS: usize = 4_096;
/// Different devices that are remembered for a selector.
const MOST_CONTENTS: usize = 256;

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
        self.of_pool.entry(pool.clone()).or_default().insert(name.clone());
        self.slices.insert(name, Arc::new(slice));
        self.forget_offers(&pool);
    }

    /// What nodes offer follows anew from the slices of a pool: whether a pool is complete concerns
    /// all nodes with devices of it.
    fn forget_offers(&mut self, (driver, pool): &PoolKey) {
        let nodes = self.slices_of_pool(driver, pool).filter_map(|slice| match &slice.reach {
            DeviceReach::Node(node) => Some(node.clone()),
            _ => None,
        });
        let nodes: BTreeSet<Box<str>> = nodes.collect();
        let remembered = self.remembered.get_mut().unwrap_or_else(PoisonError::into_inner);
        for node in nodes {
            remembered.offers.remove(&node);
        }
    }

    /// Forgets a slice.
    pub fn remove_slice(&mut self, name: &str) {
        let of = self.slices.get(name).map(|of| (of.driver.clone(), of.pool.name.clone()));
        if let Some(pool) = of {
            self.forget_offers(&pool);
        }
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
            return known.clone();
        }
        if remembered.selectors.len() >= MOST_SELECTORS {
            *remembered = Remembered::default();
        }
        let known = remembered.selectors.get(selector).cloned();
        let known =
            known.unwrap_or_else(|| Arc::new(KnownSelector(self.language.compile(selector))));
        remembered.selectors.insert(selector.into(), Arc::clone(&known));
        let mut by_content = remembered.by_content.remove(selector).unwrap_or_default();
        let devices = slice.devices.iter();
        let each: Arc<[DeviceAnswer]> = match &known.0 {
            Err(problem) => devices.map(|_| Err(problem.as_str().into())).collect(),
            Ok(selector) => {
                let known = &mut by_content;
                devices.map(|one| self.answer(selector, (&*slice.driver, one), known)).collect()
            }
        };
        remembered.by_content.insert(selector.into(), by_content);
        let answers = Answers { has_failed: each.iter().any(Result::is_err), each };
        let of_slice = remembered.by_slice.entry(slice.meta.name.clone()).or_default();
        of_slice.insert(selector.into(), answers.clone());
        answers
    }

    /// Whether a device of a driver meets a selector. It is evaluated once for all devices that are
    /// equal in what it reads.
    fn answer(
        &self,
        selector: &CelSelector,
        (driver, device): (&str, &OfferedDevice),
        known: &mut FxHashMap<String, DeviceAnswer>,
    ) -> DeviceAnswer {
        let meets = || -> DeviceAnswer {
            self.language.meets(selector, driver, device).map_err(Into::into)
        };
        let Some(content) = selector.content(driver, device) else { return meets() };
        if let Some(known) = known.get(&content) {
            return known.clone();
        }
        let answer = meets();
        if known.len() < MOST_CONTENTS {
            known.insert(content, answer.clone());
        }
        answer
    }

    /// What a node offers, whoever has it. It is kept where no labels of nodes decide it.
    pub(crate) fn offer(&self, place: CandidateNode<'_>) -> Arc<NodeOffer> {
        if self.has_slices_of_several() {
            return Arc::new(NodeOffer::of(self, place));
        }
        let lock = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().offers.get(place.node) {
            return Arc::clone(known);
        }
        let mut offer = NodeOffer::of(self, place);
        let mut remembered = lock();
        offer.shape = remembered.shared(offer.shape);
        let offer = Arc::new(offer);
        remembered.offers.insert(place.node.into(), Arc::clone(&offer));
        offer
    }
}

impl Remembered {
    /// A shape, or the one that is equal and known.
    fn shared(&mut self, shape: Arc<OfferShape>) -> Arc<OfferShape> {
        if let Some(known) = self.shapes.get(&shape) {
            return Arc::clone(known);
        }
        // Each node has one: at least half of them are nobody's.
        if self.shapes.len() > 2 * self.offers.len() + 64 {
            // order-free: which shapes stay is decided one by one.
            self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
        }
        self.shapes.insert(Arc::clone(&shape));
        shape
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
