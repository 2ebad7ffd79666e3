//! Devices for requests whose alternatives are chosen: the need with the least slack first, one
//! device at a time. Each state that was refuted is remembered, so none is searched twice.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::classes::{EqualDevices, Need, classify};
use crate::demand::{DeviceDemand, DeviceSupply, ValueRule};
use crate::state::SearchState;

/// What came of it.
pub(crate) enum FoundDevices {
    /// The devices of each need.
    Devices(Vec<Vec<usize>>),
    No,
    /// The steps ran out.
    Undecided,
}

/// Devices for the first requests with these alternatives. `steps` is what may still be spent.
pub(crate) fn search(
    supply: &DeviceSupply,
    demand: &DeviceDemand,
    alternatives: &[usize],
    steps: &mut u64,
) -> FoundDevices {
    let (classes, needs) = classify(supply, demand, alternatives);
    let rules: Vec<ValueRule> = demand.constraints.iter().map(|of| of.rule).collect();
    let state = SearchState::new(&supply.counters, &classes, &needs, &rules);
    let mut search = Search { classes, needs, rules, refuted: FxHashSet::default(), taken: vec![] };
    match search.serve(state, steps) {
        Some(true) => FoundDevices::Devices(search.devices()),
        Some(false) => FoundDevices::No,
        None => FoundDevices::Undecided,
    }
}

struct Search {
    classes: Vec<EqualDevices>,
    needs: Vec<Need>,
    rules: Vec<ValueRule>,
    refuted: FxHashSet<SearchState>,
    /// Needs and the options that devices were taken from, on the way to the present state.
    taken: Vec<(usize, usize)>,
}

impl Search {
    /// Whether all that is missing can be had; `None` where the steps ran out.
    fn serve(&mut self, state: SearchState, steps: &mut u64) -> Option<bool> {
        *steps = steps.checked_sub(1)?;
        let mut tightest: Option<(usize, usize)> = None;
        for (number, progress) in state.progress.iter().enumerate() {
            if progress.missing == 0 {
                continue;
            }
            let Some(slack) = self.most(&state, number).checked_sub(progress.missing) else {
                return Some(false);
            };
            if tightest.is_none_or(|(least, _)| slack < least) {
                tightest = Some((slack, number));
            }
        }
        let Some((_, number)) = tightest else { return Some(true) };
        if self.refuted.contains(&state) {
            return Some(false);
        }
        for at in state.progress[number].from..self.needs[number].options.len() {
            let need = (number, &self.needs[number]);
            if state.most(&self.classes, &self.rules, need, at) == 0 {
                continue;
            }
            let mut next = state.clone();
            next.take(&self.classes, &self.rules, need, at);
            self.taken.push((number, at));
            if self.serve(next, steps)? {
                return Some(true);
            }
            self.taken.pop();
        }
        self.refuted.insert(state);
        Some(false)
    }

    /// No more devices than this can a need get, were there no other one. Options that draw from
    /// one counter get no more together than it allows.
    fn most(&self, state: &SearchState, number: usize) -> usize {
        let need = &self.needs[number];
        let mut alone = 0_usize;
        // By counter: devices of its options, and the least that one of them draws.
        let mut together: BTreeMap<usize, (usize, i128)> = BTreeMap::new();
        for at in state.progress[number].from..need.options.len() {
            let most = state.most(&self.classes, &self.rules, (number, need), at);
            if most == 0 {
                continue;
            }
            let option = &need.options[at];
            let draws = state.draws_again(&self.classes, need, option);
            let of = |counter| draws.iter().find(|draw| draw.counter == counter);
            match option.bottleneck.and_then(of) {
                Some(draw) => {
                    let (devices, least) = together.entry(draw.counter).or_insert((0, draw.amount));
                    *devices = devices.saturating_add(most);
                    *least = draw.amount.min(*least);
                }
                None => alone = alone.saturating_add(most),
            }
        }
        let capped = together.into_iter().map(|(counter, (devices, least))| {
            devices.min(usize::try_from(state.counters[counter] / least).unwrap_or(usize::MAX))
        });
        capped.fold(alone, usize::saturating_add)
    }

    /// The devices that were taken, the first of each class first.
    fn devices(&self) -> Vec<Vec<usize>> {
        let mut given = vec![0; self.classes.len()];
        let mut devices = vec![Vec::new(); self.needs.len()];
        let mut looked_on = BTreeMap::new();
        for (number, at) in &self.taken {
            let need = &self.needs[*number];
            let class = need.options[*at].class;
            let next = match need.only_looks_on {
                true => looked_on.entry((*number, class)).or_insert(0),
                false if self.classes[class].is_shared => &mut 0,
                false => &mut given[class],
            };
            devices[*number].push(self.classes[class].devices[*next]);
            *next += 1;
        }
        devices
    }
}
