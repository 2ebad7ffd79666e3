//! Disruption budgets: how many of which pods may be evicted now.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{Budget, Event};
use dovetail_objects::{DisruptionBudget, Meta};

use super::listing::Key;
use super::registry::{Registry, Use};
use dovetail_translate::counting::CounterSelector;

/// All budgets, each with the selector that is in use because of it.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    all: BTreeMap<Key, (DisruptionBudget, Use)>,
    /// Events that were not taken yet.
    events: Vec<Event>,
}

impl Budgets {
    pub(crate) fn meta(&self, namespace: &str, name: &str) -> Option<&Meta> {
        self.all.get(&(namespace.into(), name.into())).map(|(budget, _)| &budget.meta)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = Key> {
        self.all.keys().cloned()
    }

    /// Whether any budget selects a pod.
    pub(crate) fn selects(&self, pod: &Meta) -> bool {
        self.all.values().any(|(budget, _)| {
            budget.meta.namespace == pod.namespace && budget.selector.matches(&pod.labels)
        })
    }

    /// Namespace and name of the budget that the engine knows by this name.
    pub(crate) fn shown(&self, engine_name: &str) -> Option<String> {
        let mut budgets = self.all.values().map(|(budget, _)| budget);
        let budget = budgets.find(|budget| translated(budget).name == engine_name)?;
        Some(format!("{}/{}", budget.meta.namespace, budget.meta.name))
    }

    /// All budgets in the engine's words.
    pub(crate) fn translated(&self) -> Vec<Budget> {
        self.all.values().map(|(budget, _)| translated(budget)).collect()
    }

    /// What is to be reported to the engine since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// A budget is there or different; the selectors that count now and did not, or the reverse.
    pub(crate) fn put(
        &mut self,
        budget: DisruptionBudget,
        registry: &mut Registry,
    ) -> Vec<Arc<CounterSelector>> {
        let key = (budget.meta.namespace.clone(), budget.meta.name.clone());
        let now = translated(&budget);
        let (number, is_first) = registry.add(selector(&budget));
        let new = is_first.then(|| Arc::clone(registry.selector(number)));
        let mut gone = None;
        if let Some((before, number)) = self.all.insert(key, (budget, number)) {
            let before = translated(&before).name;
            if before != now.name {
                self.events.push(Event::BudgetRemoved { name: before });
            }
            gone = registry.release(number);
        }
        self.events.push(Event::BudgetChanged(now));
        new.into_iter().chain(gone).collect()
    }

    /// A budget is gone; the selector that counts no more.
    pub(crate) fn remove(
        &mut self,
        namespace: &str,
        name: &str,
        registry: &mut Registry,
    ) -> Option<Arc<CounterSelector>> {
        let (before, number) = self.all.remove(&(namespace.into(), name.into()))?;
        self.events.push(Event::BudgetRemoved { name: translated(&before).name });
        registry.release(number)
    }
}

fn selector(budget: &DisruptionBudget) -> CounterSelector {
    CounterSelector::Budget {
        namespace: budget.meta.namespace.clone(),
        name: budget.meta.name.clone(),
        pods: budget.selector.clone(),
    }
}

fn translated(budget: &DisruptionBudget) -> Budget {
    Budget {
        name: selector(budget).to_string(),
        disruptions_allowed: i64::from(budget.disruptions_allowed),
    }
}
