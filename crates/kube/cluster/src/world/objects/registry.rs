//! The selectors in use, with who uses them, found by the pods they may be about.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_objects::{LabelSelector, LabelTest, Labels, Pod, PodTerm};

use dovetail_translate::counting::{CounterSelector, is_kept_away};

/// Number of a selector while it is in use.
pub(crate) type Use = u32;

/// The selectors in use.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: Vec<Option<SelectorEntry>>,
    free: Vec<Use>,
    numbers: BTreeMap<Arc<CounterSelector>, Use>,
    /// Selectors by the pods they may count.
    counting: Finder,
    /// Terms of carriers by the pods they may keep away.
    keeping_away: Finder,
}

#[derive(Debug)]
struct SelectorEntry {
    selector: Arc<CounterSelector>,
    name: Arc<str>,
    users: u32,
}

impl Registry {
    /// One more user of a selector; true if it is the first.
    pub(crate) fn add(&mut self, selector: CounterSelector) -> (Use, bool) {
        if let Some(number) = self.numbers.get(&selector) {
            let entry = self.entries[*number as usize].as_mut().expect("a selector in use");
            entry.users += 1;
            return (*number, false);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as Use - 1
        });
        let name = selector.to_string().into();
        let selector = Arc::new(selector);
        self.file(number, &selector, true);
        self.numbers.insert(Arc::clone(&selector), number);
        self.entries[number as usize] = Some(SelectorEntry { selector, name, users: 1 });
        (number, true)
    }

    /// One user less; the selector, if it was the last.
    pub(crate) fn release(&mut self, number: Use) -> Option<Arc<CounterSelector>> {
        let entry = self.entries[number as usize].as_mut().expect("a selector in use");
        entry.users -= 1;
        if entry.users > 0 {
            return None;
        }
        let entry = self.entries[number as usize].take().expect("a selector in use");
        self.file(number, &entry.selector, false);
        self.numbers.remove(&entry.selector);
        self.free.push(number);
        Some(entry.selector)
    }

    pub(crate) fn selector(&self, number: Use) -> &Arc<CounterSelector> {
        &self.entry(number).selector
    }

    /// Names of the selectors that count a pod because somebody chose it.
    pub(crate) fn counting(&self, pod: &Pod, namespace: Option<&Labels>) -> Vec<Arc<str>> {
        let found = self.counting.about(pod).into_iter().map(|number| self.entry(number));
        let counting = found.filter(|entry| entry.selector.counts(pod, namespace));
        counting.map(|entry| Arc::clone(&entry.name)).collect()
    }

    /// Terms of others that keep a pod away where their carriers are, in order.
    pub(crate) fn keeping_away(&self, pod: &Pod, namespace: Option<&Labels>) -> Vec<&PodTerm> {
        let found = self.keeping_away.about(pod).into_iter();
        let mut terms: Vec<&PodTerm> = found
            .filter_map(|number| match &*self.entry(number).selector {
                CounterSelector::Carriers(term) => Some(term),
                CounterSelector::Spread { .. }
                | CounterSelector::Budget { .. }
                | CounterSelector::Chosen(_)
                | CounterSelector::OtherClass(..)
                | CounterSelector::OtherNamespace(..) => None,
            })
            .filter(|term| is_kept_away(term, pod, namespace))
            .collect();
        terms.sort();
        terms
    }

    fn entry(&self, number: Use) -> &SelectorEntry {
        self.entries[number as usize].as_ref().expect("a selector in use")
    }

    fn file(&mut self, number: Use, selector: &CounterSelector, there: bool) {
        let (finder, labels) = match selector {
            CounterSelector::Spread { pods, .. } | CounterSelector::Budget { pods, .. } => {
                (&mut self.counting, pods)
            }
            CounterSelector::Chosen(selections) => (&mut self.counting, &selections[0].selector),
            CounterSelector::Carriers(term) => (&mut self.keeping_away, &term.pods.selector),
            CounterSelector::OtherClass(..) | CounterSelector::OtherNamespace(..) => {
                return self.counting.file(number, None, there);
            }
        };
        let bucket = match labels {
            LabelSelector::Of(terms) => terms.iter().find_map(|term| match &term.test {
                LabelTest::In(values) if values.len() == 1 => {
                    Some((term.key.clone(), values[0].clone()))
                }
                _ => None,
            }),
            LabelSelector::Nothing | LabelSelector::Unreadable(_) => None,
        };
        finder.file(number, bucket, there);
    }
}

/// Selectors by a label that every pod they are about has; the others apart.
#[derive(Debug, Default)]
struct Finder {
    by_label: BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<Use>>>,
    others: Vec<Use>,
}

impl Finder {
    fn file(&mut self, number: Use, label: Option<(Box<str>, Box<str>)>, there: bool) {
        let Some((key, value)) = label else {
            return note(&mut self.others, number, there);
        };
        let of_key = self.by_label.entry(key.clone()).or_default();
        let of_value = of_key.entry(value.clone()).or_default();
        note(of_value, number, there);
        if of_value.is_empty() {
            of_key.remove(&value);
        }
        if of_key.is_empty() {
            self.by_label.remove(&key);
        }
    }

    fn about(&self, pod: &Pod) -> Vec<Use> {
        let labels = pod.meta.labels.iter();
        let buckets = labels.filter_map(|(key, value)| self.by_label.get(key)?.get(value));
        buckets.flatten().chain(&self.others).copied().collect()
    }
}

fn note(numbers: &mut Vec<Use>, number: Use, there: bool) {
    match there {
        true => numbers.push(number),
        false => numbers.retain(|have| *have != number),
    }
}
