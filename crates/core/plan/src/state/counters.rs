//! Counters of pods per label value, for spread and affinity rules.

use dovetail_model::{Node, NodeId};
use rustc_hash::FxHashMap;

use crate::state::State;
use crate::state::holdings::HoldingRecord;
use crate::state::intern::Interner;
use crate::state::log::ChangeLog;

/// All counters, and the label keys they read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    selectors: Interner<String>,
    keys: Interner<String>,
    key_tables: Vec<KeyTable>,
    counters: Vec<Counter>,
    numbers: FxHashMap<(u32, u32), u32>,
    of_selector: FxHashMap<u32, Vec<u32>>,
}

/// Which node has which value of a label.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyTable {
    values: Interner<String>,
    value_of: Vec<Option<u32>>,
    /// Nodes per value, in no order.
    pub(crate) nodes: Vec<Vec<NodeId>>,
}

/// One selector × label.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) key: u32,
    /// Pods per value.
    pub(crate) counts: Vec<i64>,
    pub(crate) total: i64,
}

impl Counters {
    pub(crate) fn selector(&mut self, name: &str) -> u32 {
        self.selectors.intern(&name.to_owned()).0
    }

    pub(crate) fn selector_name(&self, number: u32) -> &str {
        self.selectors.get(number)
    }

    pub(crate) fn get(&self, counter: u32) -> &Counter {
        &self.counters[counter as usize]
    }

    pub(crate) fn key_of(&self, counter: u32) -> &KeyTable {
        &self.key_tables[self.get(counter).key as usize]
    }

    /// Counts or uncounts a pod.
    pub(crate) fn apply(&mut self, record: &HoldingRecord, sign: i64, log: &mut ChangeLog) {
        for selector in &record.counts_into {
            let Some(counters) = self.of_selector.get(selector) else { continue };
            for number in counters {
                let counter = &mut self.counters[*number as usize];
                let table = &self.key_tables[counter.key as usize];
                if let Some(value) = table.value(record.node) {
                    counter.add(value, sign);
                    log.move_counter(*number, value);
                }
            }
        }
    }

    /// Takes over the labels of a node (`None`: it is gone). Its pods must not be counted meanwhile.
    pub(crate) fn relabel(&mut self, slot: NodeId, node: Option<&Node>) {
        for (number, table) in self.key_tables.iter_mut().enumerate() {
            let key = self.keys.get(number as u32);
            table.set(slot, node.and_then(|node| node.labels.get(key)));
        }
    }
}

impl KeyTable {
    #[inline]
    pub(crate) fn value(&self, node: NodeId) -> Option<u32> {
        self.value_of.get(node.index()).copied().flatten()
    }

    pub(crate) fn values(&self) -> usize {
        self.nodes.len()
    }

    fn set(&mut self, node: NodeId, value: Option<&String>) {
        if self.value_of.len() <= node.index() {
            self.value_of.resize(node.index() + 1, None);
        }
        if let Some(old) = self.value_of[node.index()].take() {
            self.nodes[old as usize].retain(|other| *other != node);
        }
        if let Some(value) = value {
            let (number, new) = self.values.intern(value);
            if new {
                self.nodes.push(Vec::new());
            }
            self.nodes[number as usize].push(node);
            self.value_of[node.index()] = Some(number);
        }
    }
}

impl Counter {
    /// Pods counted for a value.
    #[inline]
    pub(crate) fn count(&self, value: u32) -> i64 {
        self.counts.get(value as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, value: u32, amount: i64) {
        if self.counts.len() <= value as usize {
            self.counts.resize(value as usize + 1, 0);
        }
        self.counts[value as usize] += amount;
        self.total += amount;
    }
}

impl State {
    /// The number of a selector × label; a new one is filled from what is held.
    pub(crate) fn intern_counter(&mut self, selector: &str, label: &str) -> u32 {
        let selector = self.counters.selector(selector);
        let (key, new_key) = self.counters.keys.intern(&label.to_owned());
        if new_key {
            let mut table = KeyTable::default();
            for (slot, node) in self.nodes.present() {
                table.set(slot, node.labels.get(label));
            }
            self.counters.key_tables.push(table);
        }
        if let Some(number) = self.counters.numbers.get(&(selector, key)) {
            return *number;
        }
        let number = self.counters.counters.len() as u32;
        let mut counter = Counter { key, counts: Vec::new(), total: 0 };
        let table = &self.counters.key_tables[key as usize];
        for (_, record) in self.holdings.iter() {
            if record.counts_into.contains(&selector)
                && let Some(value) = table.value(record.node)
            {
                counter.add(value, 1);
            }
        }
        self.counters.counters.push(counter);
        self.counters.numbers.insert((selector, key), number);
        self.counters.of_selector.entry(selector).or_default().push(number);
        number
    }
}
