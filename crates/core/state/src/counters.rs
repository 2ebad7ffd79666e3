//! Counters of pods per label value, for rules over the pods that are already there.

use std::collections::BTreeMap;

use dovetail_model::{Node, NodeId};
use rustc_hash::FxHashMap;

use crate::holdings::HoldingRecord;
use crate::intern::Interner;
use crate::log::ChangeLog;
use crate::nodes::Nodes;
use crate::scopes::{Scope, Scopes};

/// All counters, and the label keys and scopes they read.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    selectors: Interner<String>,
    keys: Interner<String>,
    key_tables: Vec<KeyTable>,
    scopes: Scopes,
    counters: Vec<Counter>,
    numbers: FxHashMap<CounterKey, u32>,
    of_selector: Vec<OfSelector>,
    domains: Vec<DomainTable>,
    domain_numbers: FxHashMap<(u32, Option<u32>), u32>,
}

/// Selector, label and scope (`None`: all nodes) by number.
type CounterKey = (u32, u32, Option<u32>);

/// What is known of one selector.
#[derive(Clone, Debug, Default)]
struct OfSelector {
    counters: Vec<u32>,
    /// Pods per node slot, where there are any: what a new counter starts from.
    pods: FxHashMap<u32, i64>,
}

/// Which node has which value of a label.
#[derive(Clone, Debug, Default)]
pub struct KeyTable {
    values: Interner<String>,
    value_of: Vec<Option<u32>>,
    /// Nodes per value, in no order.
    pub nodes: Vec<Vec<NodeId>>,
}

/// The domains of a label within a scope: for rules that ask for the emptiest.
#[derive(Clone, Debug)]
struct DomainTable {
    key: u32,
    scope: Option<u32>,
    nodes: Vec<u32>,
    /// Values with at least one such node.
    live: u32,
    /// Counters that are ranked over these domains.
    counters: Vec<u32>,
}

/// One selector × label × scope.
#[derive(Clone, Debug)]
pub struct Counter {
    key: u32,
    scope: Option<u32>,
    counts: Vec<i64>,
    pub total: i64,
    ranking: Option<Ranking>,
}

/// Live domains by the number of pods they have.
#[derive(Clone, Debug, Default)]
struct Ranking {
    table: u32,
    domains: BTreeMap<i64, u32>,
}

impl Counters {
    /// The number of a selector, new where it has none.
    pub fn selector(&mut self, name: &str) -> u32 {
        let (number, new) = self.selectors.intern(&name.to_owned());
        if new {
            self.of_selector.push(OfSelector::default());
        }
        number
    }

    /// How many selectors have numbers.
    pub fn selector_count(&self) -> usize {
        self.selectors.count()
    }

    /// The selector behind a number.
    pub fn selector_name(&self, number: u32) -> &str {
        self.selectors.get(number)
    }

    /// What a counter counts.
    #[inline]
    pub fn get(&self, counter: u32) -> &Counter {
        &self.counters[counter as usize]
    }

    /// The label values that a counter tells apart.
    #[inline]
    pub fn key_of(&self, counter: u32) -> &KeyTable {
        &self.key_tables[self.get(counter).key as usize]
    }

    /// Pods in the emptiest domain of a ranked counter; 0 where there are fewer domains than
    /// `min_domains`.
    #[inline]
    pub fn emptiest(&self, counter: u32, min_domains: u32) -> i64 {
        let ranking = self.get(counter).ranking.as_ref().expect("a spread rule ranks its counter");
        match ranking.domains.first_key_value() {
            Some((pods, _)) if self.domains[ranking.table as usize].live >= min_domains => *pods,
            _ => 0,
        }
    }

    /// Counts or uncounts a pod.
    pub fn apply(&mut self, record: &HoldingRecord, sign: i64, log: &mut ChangeLog) {
        for selector in &record.counts_into {
            let of_selector = &mut self.of_selector[*selector as usize];
            let pods = of_selector.pods.entry(record.node.0).or_default();
            *pods += sign;
            if *pods == 0 {
                of_selector.pods.remove(&record.node.0);
            }
            for number in &of_selector.counters {
                let counter = &mut self.counters[*number as usize];
                if !self.scopes.has(counter.scope, record.node) {
                    continue;
                }
                let table = &self.key_tables[counter.key as usize];
                if let Some(value) = table.value(record.node) {
                    counter.add(value, sign, &self.domains);
                    log.move_counter(*number, value);
                }
            }
        }
    }

    /// Takes over labels, name and taints of a node (`None`: it is gone). Its pods must not be
    /// counted meanwhile.
    pub fn relabel(&mut self, slot: NodeId, node: Option<&Node>) {
        self.count_domains(slot, -1);
        for (number, table) in self.key_tables.iter_mut().enumerate() {
            let key = self.keys.get(number as u32);
            table.set(slot, node.and_then(|node| node.label(key)));
        }
        self.scopes.set(slot, node);
        self.count_domains(slot, 1);
    }

    /// Adds (`sign` 1) or takes away (−1) a node as part of its domains.
    fn count_domains(&mut self, slot: NodeId, sign: i64) {
        for table in &mut self.domains {
            let value = self.key_tables[table.key as usize].value(slot);
            let Some(value) = value.filter(|_| self.scopes.has(table.scope, slot)) else {
                continue;
            };
            if table.count(value, sign) {
                for number in &table.counters {
                    self.counters[*number as usize].rank(value, sign);
                }
            }
        }
    }

    /// The table of a label × scope; a new one is filled from the nodes that are there.
    fn domain_table(&mut self, key: u32, scope: Option<u32>) -> u32 {
        if let Some(number) = self.domain_numbers.get(&(key, scope)) {
            return *number;
        }
        let mut table =
            DomainTable { key, scope, nodes: Vec::new(), live: 0, counters: Vec::new() };
        for (value, nodes) in self.key_tables[key as usize].nodes.iter().enumerate() {
            for _ in nodes.iter().filter(|node| self.scopes.has(scope, **node)) {
                table.count(value as u32, 1);
            }
        }
        let number = self.domains.len() as u32;
        self.domains.push(table);
        self.domain_numbers.insert((key, scope), number);
        number
    }

    /// Keeps the domains of a counter ranked from now on.
    fn rank(&mut self, number: u32) {
        let counter = &self.counters[number as usize];
        if counter.ranking.is_some() {
            return;
        }
        let place = self.domain_table(counter.key, counter.scope);
        let table = &mut self.domains[place as usize];
        table.counters.push(number);
        let counter = &mut self.counters[number as usize];
        counter.ranking = Some(Ranking { table: place, domains: BTreeMap::new() });
        for value in (0..table.nodes.len() as u32).filter(|value| table.is_live(*value)) {
            counter.rank(value, 1);
        }
    }
}

impl KeyTable {
    /// The number of a node's label value; `None` if the node lacks the label.
    #[inline]
    pub fn value(&self, node: NodeId) -> Option<u32> {
        self.value_of.get(node.index()).copied().flatten()
    }

    /// The label value behind a number.
    pub fn value_name(&self, value: u32) -> &str {
        self.values.get(value)
    }

    /// How many label values have numbers.
    pub fn values(&self) -> usize {
        self.nodes.len()
    }

    fn set(&mut self, node: NodeId, value: Option<&str>) {
        if self.value_of.len() <= node.index() {
            self.value_of.resize(node.index() + 1, None);
        }
        let old = self.value_of[node.index()];
        if old.map(|old| self.values.get(old).as_str()) == value {
            return;
        }
        if let Some(old) = old {
            self.nodes[old as usize].retain(|other| *other != node);
        }
        self.value_of[node.index()] = value.map(|value| {
            let (number, new) = self.values.intern(&value.to_owned());
            if new {
                self.nodes.push(Vec::new());
            }
            self.nodes[number as usize].push(node);
            number
        });
    }
}

impl DomainTable {
    fn is_live(&self, value: u32) -> bool {
        self.nodes.get(value as usize).is_some_and(|nodes| *nodes > 0)
    }

    /// Counts a node; true if its domain came into being or ceased to be.
    fn count(&mut self, value: u32, sign: i64) -> bool {
        if self.nodes.len() <= value as usize {
            self.nodes.resize(value as usize + 1, 0);
        }
        let nodes = &mut self.nodes[value as usize];
        *nodes = (i64::from(*nodes) + sign) as u32;
        let turned = *nodes == u32::from(sign > 0);
        if turned {
            self.live = (i64::from(self.live) + sign) as u32;
        }
        turned
    }
}

impl Counter {
    /// Pods counted for a value.
    #[inline]
    pub fn count(&self, value: u32) -> i64 {
        self.counts.get(value as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, value: u32, amount: i64, tables: &[DomainTable]) {
        let table = self.ranking.as_ref().map(|ranking| &tables[ranking.table as usize]);
        let ranked = table.is_some_and(|table| table.is_live(value));
        if ranked {
            self.rank(value, -1);
        }
        if self.counts.len() <= value as usize {
            self.counts.resize(value as usize + 1, 0);
        }
        self.counts[value as usize] += amount;
        self.total += amount;
        if ranked {
            self.rank(value, 1);
        }
    }

    /// Takes a domain into the ranking (`sign` 1) or out of it (−1).
    fn rank(&mut self, value: u32, sign: i64) {
        let pods = self.count(value);
        let Some(ranking) = &mut self.ranking else { return };
        let domains = ranking.domains.entry(pods).or_default();
        *domains = (i64::from(*domains) + sign) as u32;
        if *domains == 0 {
            ranking.domains.remove(&pods);
        }
    }
}

impl Counters {
    /// The number of a selector × label × scope (`None`: all nodes), ranked by its domains if asked
    /// for; a new one is filled from what is held.
    pub fn intern(
        &mut self,
        nodes: &Nodes,
        selector: &str,
        label: &str,
        scope: Option<&Scope>,
        ranked: bool,
    ) -> u32 {
        let selector = self.selector(selector);
        let (key, new_key) = self.keys.intern(&label.to_owned());
        if new_key {
            let mut table = KeyTable::default();
            for (slot, node) in nodes.present() {
                table.set(slot, node.label(label));
            }
            self.key_tables.push(table);
        }
        let scope = scope.map(|scope| self.scopes.intern(scope, nodes.present()));
        let number = match self.numbers.get(&(selector, key, scope)) {
            Some(number) => *number,
            None => self.add_counter((selector, key, scope)),
        };
        if ranked {
            self.rank(number);
        }
        number
    }

    fn add_counter(&mut self, (selector, key, scope): CounterKey) -> u32 {
        let number = self.counters.len() as u32;
        let mut counter = Counter { key, scope, counts: Vec::new(), total: 0, ranking: None };
        let table = &self.key_tables[key as usize];
        let of_selector = &mut self.of_selector[selector as usize];
        // order-free: sums
        for (slot, pods) in &of_selector.pods {
            let node = NodeId(*slot);
            if let Some(value) = table.value(node).filter(|_| self.scopes.has(scope, node)) {
                counter.add(value, *pods, &[]);
            }
        }
        of_selector.counters.push(number);
        self.counters.push(counter);
        self.numbers.insert((selector, key, scope), number);
        number
    }
}
