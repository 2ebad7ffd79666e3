//! How many expected pods a node carries by what it has beside CPU, memory and devices: pod slots,
//! ephemeral storage, extended resources.
//!
//! Most nodes have plenty of all of it. Where they do, the number is [`PLENTY`], and nothing is
//! looked up.

use dovetail_model::NodeId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::learn::PodKind;
use crate::steps::Steps;
use dovetail_state::State;
use dovetail_state::holdings::Amounts;

/// Number of a node on which nothing of it keeps an expected pod off.
pub(crate) const PLENTY: u32 = 0;

/// The other resources under one mix.
#[derive(Debug)]
pub(crate) struct OtherResources {
    deepest: u8,
    kinds: usize,
    /// Resources that expected pods ask for.
    asked: Vec<(Resource, Steps)>,
    /// Numbers of combinations of steps of pod slots and of each resource.
    numbers: FxHashMap<SmallVec<[u16; 4]>, u32>,
    /// Pods by number and kind.
    pods: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Resource {
    EphemeralStorage,
    /// Interned name.
    Extended(u32),
}

impl OtherResources {
    /// More than `deepest` pods are not told apart.
    pub(crate) fn new(state: &mut State, mix: &[(PodKind, i64)], deepest: u8) -> Self {
        let mut asked = Vec::new();
        let mut add = |resource, amounts: Vec<i64>| {
            if amounts.iter().any(|amount| *amount > 0) {
                asked.push((resource, Steps::new(&amounts, deepest)));
            }
        };
        let ephemeral = mix.iter().map(|(kind, _)| kind.ephemeral_bytes).collect();
        add(Resource::EphemeralStorage, ephemeral);
        let mut names: Vec<&String> =
            mix.iter().flat_map(|(kind, _)| kind.extended.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let of = |(kind, _): &(PodKind, i64)| kind.extended.get(name).copied().unwrap_or(0);
            let number = state.names.extended.intern(name).0;
            add(Resource::Extended(number), mix.iter().map(of).collect());
        }
        let (numbers, kinds) = (FxHashMap::default(), mix.len());
        Self { deepest, kinds, asked, numbers, pods: vec![u8::MAX; kinds] }
    }

    /// Whether a node has plenty, also after one pod more, as far as that shows at a glance.
    #[inline]
    pub(crate) fn is_plenty(&self, slots_left: i32) -> bool {
        self.asked.is_empty() && slots_left > i32::from(self.deepest)
    }

    /// The number of a node from which so much is taken.
    #[inline]
    pub(crate) fn of(&mut self, state: &State, node: NodeId, taken: Option<&Amounts>) -> u32 {
        match self.is_plenty(state.nodes.hot(node).slots_left) {
            true => PLENTY,
            false => self.number(state, node, taken),
        }
    }

    #[cold]
    fn number(&mut self, state: &State, node: NodeId, taken: Option<&Amounts>) -> u32 {
        let (hot, cold) = (state.nodes.hot(node), state.nodes.cold(node));
        let slots_taken = taken.map_or(0, |amounts| amounts.pod_slots);
        let slots_left = i64::from(hot.slots_left) - slots_taken;
        let slots = slots_left.clamp(0, i64::from(self.deepest)) as u16;
        let left = |resource: &Resource| match resource {
            Resource::EphemeralStorage => {
                cold.ephemeral_left_bytes - taken.map_or(0, |amounts| amounts.ephemeral_bytes)
            }
            Resource::Extended(name) => {
                let asked = taken.and_then(|amounts| amounts.of_extended(*name));
                cold.extended_left(*name) - asked.unwrap_or(0)
            }
        };
        let steps = self.asked.iter().map(|(resource, steps)| steps.step(left(resource)));
        let combined: SmallVec<[u16; 4]> = std::iter::once(slots).chain(steps).collect();
        if let Some(number) = self.numbers.get(&combined) {
            return *number;
        }
        let slots = if slots < u16::from(self.deepest) { slots as u8 } else { u8::MAX };
        let by_resource = self.asked.iter().zip(&combined[1..]);
        let by_resource: Vec<&[u8]> =
            by_resource.map(|((_, steps), step)| steps.pods(*step)).collect();
        let carried = |kind: usize| by_resource.iter().map(|pods| pods[kind]).fold(slots, u8::min);
        let pods: Vec<u8> = (0..self.kinds).map(carried).collect();
        let number = match pods.iter().all(|pods| *pods == u8::MAX) {
            true => PLENTY,
            false => {
                self.pods.extend(pods);
                (self.pods.len() / self.kinds) as u32 - 1
            }
        };
        self.numbers.insert(combined, number);
        number
    }

    /// How many pods of each kind a node of this number carries; [`u8::MAX`] is any number.
    #[inline]
    pub(crate) fn pods(&self, number: u32) -> &[u8] {
        &self.pods[number as usize * self.kinds..][..self.kinds]
    }
}
