//! What is left after some devices were chosen. Nothing else decides what can still be chosen, so
//! two ways to one state need one search.

use crate::classes::{CandidateClass, EqualDevices, Need};
use crate::demand::{Draw, ValueRule};

/// What is left, and what is still needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SearchState {
    /// What is left in each counter.
    pub(crate) counters: Vec<i128>,
    /// Devices of each class that are given away.
    pub(crate) taken: Vec<usize>,
    pub(crate) progress: Vec<NeedProgress>,
    /// For each constraint the values that its devices have in common, or have together; nothing
    /// before the first.
    pub(crate) values: Vec<Option<Vec<u32>>>,
}

/// How far a need is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NeedProgress {
    pub(crate) missing: usize,
    /// The option that the last device came from: none before it is used again.
    pub(crate) from: usize,
    /// How many came from it.
    pub(crate) of_it: usize,
}

impl SearchState {
    pub(crate) fn new(
        counters: &[i128],
        classes: &[EqualDevices],
        needs: &[Need],
        rules: &[ValueRule],
    ) -> Self {
        let progress =
            needs.iter().map(|need| NeedProgress { missing: need.count, from: 0, of_it: 0 });
        Self {
            counters: counters.to_vec(),
            taken: vec![0; classes.len()],
            progress: progress.collect(),
            values: vec![None; rules.len()],
        }
    }

    /// What one more device draws.
    pub(crate) fn draws<'a>(
        &self,
        classes: &[EqualDevices],
        need: &Need,
        option: &'a CandidateClass,
    ) -> &'a [Draw] {
        match (need.only_looks_on, classes[option.class].is_shared) {
            (true, _) => &[],
            (false, true) if self.taken[option.class] > 0 => &option.draws,
            (false, _) => &option.first,
        }
    }

    /// What each further device draws: a shared device draws less from the second time on.
    pub(crate) fn draws_again<'a>(
        &self,
        classes: &[EqualDevices],
        need: &Need,
        option: &'a CandidateClass,
    ) -> &'a [Draw] {
        match classes[option.class].is_shared && !need.only_looks_on {
            true => &option.draws,
            false => self.draws(classes, need, option),
        }
    }

    /// The most devices that a need can get from one of its options, were there no other need.
    pub(crate) fn most(
        &self,
        classes: &[EqualDevices],
        rules: &[ValueRule],
        (number, need): (usize, &Need),
        at: usize,
    ) -> usize {
        let (option, progress) = (&need.options[at], self.progress[number]);
        let class = &classes[option.class];
        if at < progress.from || !self.meets(rules, need, class) {
            return 0;
        }
        let of_it = if at == progress.from { progress.of_it } else { 0 };
        let devices = match (need.only_looks_on, class.is_shared) {
            (true, _) => class.devices.len() - of_it,
            (false, true) if need.is_each_once => 1 - of_it.min(1),
            (false, true) => progress.missing,
            (false, false) => class.devices.len() - self.taken[option.class],
        };
        let is_distinct = |at: &usize| rules[*at] == ValueRule::Distinct;
        let devices = match need.constraints.iter().any(is_distinct) {
            true => devices.min(1),
            false => devices,
        };
        let draws = self.draws(classes, need, option);
        let again = self.draws_again(classes, need, option);
        if draws.iter().any(|draw| self.counters[draw.counter] < draw.amount) {
            return 0;
        }
        let times = again.iter().map(|draw| self.counters[draw.counter] / draw.amount).min();
        devices.min(times.map_or(usize::MAX, |times| usize::try_from(times).unwrap_or(usize::MAX)))
    }

    /// Whether another device of a class meets the constraints of a need.
    fn meets(&self, rules: &[ValueRule], need: &Need, class: &EqualDevices) -> bool {
        need.constraints.iter().all(|at| {
            let values = &class.values[*at];
            let Some(before) = &self.values[*at] else { return !values.is_empty() };
            let has_common = values.iter().any(|value| before.contains(value));
            match rules[*at] {
                ValueRule::Match => has_common,
                ValueRule::Distinct => !values.is_empty() && !has_common,
            }
        })
    }

    /// Gives one device of an option to a need.
    pub(crate) fn take(
        &mut self,
        classes: &[EqualDevices],
        rules: &[ValueRule],
        (number, need): (usize, &Need),
        at: usize,
    ) {
        let option = &need.options[at];
        for draw in self.draws(classes, need, option) {
            self.counters[draw.counter] -= draw.amount;
        }
        if !need.only_looks_on {
            let is_shared = classes[option.class].is_shared;
            let taken = &mut self.taken[option.class];
            // Of a shared device it matters whether anybody has it.
            *taken = if is_shared { 1 } else { *taken + 1 };
        }
        let progress = &mut self.progress[number];
        progress.missing -= 1;
        progress.of_it = if at == progress.from { progress.of_it + 1 } else { 1 };
        progress.from = at;
        for constraint in &need.constraints {
            let values = &classes[option.class].values[*constraint];
            let after = match (&self.values[*constraint], rules[*constraint]) {
                (None, _) => values.clone(),
                (Some(before), ValueRule::Match) => {
                    before.iter().filter(|value| values.contains(value)).copied().collect()
                }
                (Some(before), ValueRule::Distinct) => {
                    let mut all = [before.as_slice(), values].concat();
                    all.sort_unstable();
                    all
                }
            };
            self.values[*constraint] = Some(after);
        }
        if self.progress[number].missing == 0 {
            // Where its last device came from matters to nothing any more.
            self.progress[number] = NeedProgress { missing: 0, from: 0, of_it: 0 };
        }
    }
}
