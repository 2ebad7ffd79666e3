//! Disruption budgets: how many of which pods may be stopped now.

use std::collections::BTreeMap;

use dovetail_model::{Budget, Event};
use dovetail_objects::{DisruptionBudget, Meta};

use super::World;
use super::listing::Key;
use super::registry::Use;
use crate::translate::counting::Selector;

/// All budgets, each with the selector that is in use because of it.
#[derive(Debug, Default)]
pub(super) struct Budgets(BTreeMap<Key, (DisruptionBudget, Use)>);

impl Budgets {
    pub(super) fn meta(&self, namespace: &str, name: &str) -> Option<&Meta> {
        self.0.get(&(namespace.into(), name.into())).map(|(budget, _)| &budget.meta)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = Key> {
        self.0.keys().cloned()
    }

    fn all(&self) -> impl Iterator<Item = &DisruptionBudget> {
        self.0.values().map(|(budget, _)| budget)
    }
}

impl World {
    /// A budget is there or different.
    pub(super) fn put_budget(&mut self, budget: DisruptionBudget) {
        let key = (budget.meta.namespace.clone(), budget.meta.name.clone());
        let said = told(&budget);
        let (number, is_first) = self.registry.add(selector(&budget));
        if is_first {
            let selector = self.registry.selector(number).clone();
            self.mark_about(&selector);
        }
        let before = self.budgets.0.insert(key, (budget, number));
        if let Some((before, number)) = before {
            self.let_go(&before, number, said.name != told(&before).name);
        }
        self.say_budget(Event::BudgetChanged(said));
    }

    /// A budget is gone.
    pub(super) fn remove_budget(&mut self, namespace: &str, name: &str) {
        if let Some((before, number)) = self.budgets.0.remove(&(namespace.into(), name.into())) {
            self.let_go(&before, number, true);
        }
    }

    fn let_go(&mut self, before: &DisruptionBudget, number: Use, is_gone: bool) {
        if is_gone {
            self.say_budget(Event::BudgetRemoved { name: told(before).name });
        }
        if let Some(selector) = self.registry.release(number) {
            self.mark_about(&selector);
        }
    }

    /// What is told before everything is listed is in the snapshot.
    fn say_budget(&mut self, event: Event) {
        if self.is_ready {
            self.farewell.push(event);
        }
    }

    /// All budgets in the engine's words.
    pub(super) fn told_budgets(&self) -> Vec<Budget> {
        self.budgets.all().map(told).collect()
    }
}

fn selector(budget: &DisruptionBudget) -> Selector {
    Selector::Budget {
        namespace: budget.meta.namespace.clone(),
        name: budget.meta.name.clone(),
        pods: budget.selector.clone(),
    }
}

fn told(budget: &DisruptionBudget) -> Budget {
    Budget {
        name: selector(budget).to_string(),
        disruptions_allowed: i64::from(budget.disruptions_allowed),
    }
}
