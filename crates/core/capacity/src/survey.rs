//! One node: who holds what of its devices, and which pieces are free.

use std::collections::BTreeMap;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{HoldingId, NodeAvailability, NodeId, Owner, in_proportion};
use dovetail_plan::Engine;

use crate::weight;

/// Where milli-GPU of one model are booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CapacityAccount {
    Installed,
    Unavailable,
    /// Held by jobs of a queue, by number; `None` by others.
    Allocated(Option<u32>),
    Draining,
    Starting,
    /// Kept by reservations on a ready node.
    Kept,
    /// Free on a ready node: demand decides the cause.
    Open,
}

/// The free part of the devices of one node that are in the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeDevices {
    /// Number of the device state.
    pub(crate) device: u32,
    pub(crate) model: u32,
    pub(crate) gpu_milli: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeSurvey {
    /// Milli-GPU by model and account, ascending, each pair once.
    pub(crate) booked: Vec<((u32, CapacityAccount), i64)>,
    /// Pieces in [`CapacityAccount::Open`], by device state.
    pub(crate) pieces: Vec<FreeDevices>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TextNumbers {
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl TextNumbers {
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

/// Surveys nodes and remembers what device states and names mean.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surveyor {
    pub(crate) models: TextNumbers,
    pub(crate) queues: TextNumbers,
    /// Model and free milli-GPU per number of a device state.
    states: Vec<Option<(u32, i64)>>,
}

/// One holder of one device.
#[derive(Clone, Copy, Debug)]
struct Share {
    device: u16,
    holding: HoldingId,
    holder: CapacityAccount,
    share: i128,
}

impl Surveyor {
    /// Looks at a node; a slot without one has nothing.
    pub(crate) fn survey(&mut self, engine: &Engine, slot: NodeId) -> NodeSurvey {
        let Some(node) = engine.supply().node(slot) else { return NodeSurvey::default() };
        let (free, kept) = match node.condition {
            NodeAvailability::Ready => (CapacityAccount::Open, CapacityAccount::Kept),
            NodeAvailability::Cordoned => (CapacityAccount::Draining, CapacityAccount::Draining),
            NodeAvailability::Starting => (CapacityAccount::Starting, CapacityAccount::Starting),
            NodeAvailability::NotReady => {
                (CapacityAccount::Unavailable, CapacityAccount::Unavailable)
            }
        };
        let mut found = NodeSurvey::default();
        let numbers: Vec<Option<u32>> = engine.supply().device_numbers(slot).collect();
        let shares = self.shares(engine, slot, &numbers, kept);
        for (index, number) in numbers.iter().enumerate() {
            let Some(number) = number else {
                let model = self.models.number(&node.devices[index].model);
                found.book(model, CapacityAccount::Installed, WHOLE_DEVICE_MILLI);
                found.book(model, CapacityAccount::Unavailable, WHOLE_DEVICE_MILLI);
                continue;
            };
            let (model, free_milli) = self.state(engine, *number);
            found.book(model, CapacityAccount::Installed, WHOLE_DEVICE_MILLI);
            found.book(model, free, free_milli);
            if free == CapacityAccount::Open && free_milli > 0 {
                found.add_piece(FreeDevices { device: *number, model, gpu_milli: free_milli });
            }
            let from = shares.partition_point(|share| usize::from(share.device) < index);
            let to = shares.partition_point(|share| usize::from(share.device) <= index);
            found.book_held(model, WHOLE_DEVICE_MILLI - free_milli, &shares[from..to]);
        }
        found.booked.sort_unstable();
        found.booked.retain(|(_, gpu_milli)| *gpu_milli > 0);
        found
    }

    /// Holders of the usable devices of a node, by device, then by holding.
    fn shares(
        &mut self,
        engine: &Engine,
        slot: NodeId,
        numbers: &[Option<u32>],
        kept: CapacityAccount,
    ) -> Vec<Share> {
        let mut shares = Vec::new();
        for (holding, owner, devices) in engine.supply().node_holdings(slot) {
            if devices.is_empty() {
                continue;
            }
            let holder = match owner {
                Owner::Reservation => kept,
                Owner::Foreign(_) => CapacityAccount::Allocated(None),
                Owner::Pod(pod) => CapacityAccount::Allocated(
                    engine.job(pod.job).map(|job| self.queues.number(&job.queue)),
                ),
            };
            for (device, amount) in devices {
                // Held beyond what the node has, or on a lost device: no usable device is held.
                let Some(number) = numbers.get(usize::from(*device)).copied().flatten() else {
                    continue;
                };
                let share = weight::held_share(&engine.supply().device_state(number), amount);
                shares.push(Share { device: *device, holding, holder, share });
            }
        }
        shares.sort_unstable_by_key(|share| (share.device, share.holding));
        shares
    }

    fn state(&mut self, engine: &Engine, number: u32) -> (u32, i64) {
        let place = number as usize;
        if self.states.len() <= place {
            self.states.resize(place + 1, None);
        }
        if let Some(known) = self.states[place] {
            return known;
        }
        let device = engine.supply().device_state(number);
        let state = (self.models.number(device.model), weight::free_milli(&device));
        self.states[place] = Some(state);
        state
    }
}

impl NodeSurvey {
    fn book(&mut self, model: u32, account: CapacityAccount, gpu_milli: i64) {
        let key = (model, account);
        match self.booked.iter_mut().find(|(have, _)| *have == key) {
            Some((_, booked)) => *booked += gpu_milli,
            None => self.booked.push((key, gpu_milli)),
        }
    }

    fn add_piece(&mut self, piece: FreeDevices) {
        match self.pieces.iter_mut().find(|have| have.device == piece.device) {
            Some(have) => have.gpu_milli += piece.gpu_milli,
            None => self.pieces.push(piece),
        }
    }

    /// Books what is not free of a device to its holders, in proportion to their shares.
    fn book_held(&mut self, model: u32, held_milli: i64, shares: &[Share]) {
        match shares {
            _ if held_milli == 0 => {}
            [] => self.book(model, CapacityAccount::Allocated(None), held_milli),
            [only] => self.book(model, only.holder, held_milli),
            _ => {
                let weights: Vec<i128> = shares.iter().map(|share| share.share).collect();
                let parts = in_proportion(i128::from(held_milli), &weights);
                for (share, part) in shares.iter().zip(parts) {
                    self.book(model, share.holder, part as i64);
                }
            }
        }
    }
}
