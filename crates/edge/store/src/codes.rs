//! States, signals and causes as numbers that never change: they stand in rows that outlive every
//! version. A new name gets the next free place at the end; none is ever taken away.

use std::collections::BTreeMap;

use dovetail_account::cost::Paid;
use dovetail_account::device_time::{ActiveWork, DeviceState};
use dovetail_account::signal::Signal;
use dovetail_model::FreeCause;

/// States by their number.
const STATES: [&str; 23] = [
    "unavailable",
    "free_of_unknown_cause",
    "free_draining_or_cordoned",
    "free_starting",
    "free_reserved",
    "free_taint",
    "free_type_mismatch",
    "free_topology",
    "free_stranded_by_cpu",
    "free_stranded_by_memory",
    "free_stranded_by_other",
    "free_fragmented",
    "free_gang_short",
    "free_quota",
    "free_no_demand",
    "provisioning",
    "gang_wait",
    "active_useful",
    "active_checkpointing",
    "active_repeated",
    "active_not_separable",
    "idle",
    "free_layout_rest",
];

/// The state that stands after all others, so that its number stays where it is.
const UNKNOWN: (&str, u8) = ("unknown", 31);

/// Signals by their number, from 1; 0 is none.
const SIGNALS: [&str; 6] = [
    "sm_active",
    "amd_sm_active",
    "gr_engine_active",
    "amd_gfx_activity",
    "intel_engine_ratio",
    "gpu_util",
];

/// Causes that are no states.
const HELD_CPU_MEMORY: u8 = 64;
const UNUSED_CPU_MEMORY: u8 = 65;
const UNUSED_SHARE: u8 = 66;
const UNUSED_SHARE_OF_WASTE: u8 = 67;

/// The numbers of this version, both ways.
#[derive(Debug)]
pub(crate) struct Codes {
    of_state: BTreeMap<DeviceState, u8>,
    states: BTreeMap<u8, DeviceState>,
    of_signal: BTreeMap<Signal, u8>,
    signals: BTreeMap<u8, Signal>,
}

impl Codes {
    pub(crate) fn new() -> Self {
        let number = |state: &DeviceState| {
            let name = state.name();
            let place = STATES.iter().position(|known| *known == name);
            place.map_or(UNKNOWN.1, |place| place as u8)
        };
        let of_state: BTreeMap<DeviceState, u8> =
            all_states().map(|state| (state, number(&state))).collect();
        let place = |signal: Signal| SIGNALS.iter().position(|name| *name == signal.name());
        let of_signal: BTreeMap<Signal, u8> = Signal::ALL
            .into_iter()
            .filter_map(|signal| Some((signal, place(signal)? as u8 + 1)))
            .collect();
        Self {
            states: of_state.iter().map(|(state, code)| (*code, *state)).collect(),
            signals: of_signal.iter().map(|(signal, code)| (*code, *signal)).collect(),
            of_state,
            of_signal,
        }
    }

    /// 0 to 31.
    pub(crate) fn of_state(&self, state: DeviceState) -> u8 {
        self.of_state.get(&state).copied().unwrap_or(UNKNOWN.1)
    }

    pub(crate) fn state(&self, code: u8) -> Option<DeviceState> {
        self.states.get(&code).copied()
    }

    /// 0 to 7; 0 is none.
    pub(crate) fn of_signal(&self, signal: Option<Signal>) -> u8 {
        signal.and_then(|signal| self.of_signal.get(&signal).copied()).unwrap_or(0)
    }

    /// The outer `None` is a number that this version does not know.
    pub(crate) fn signal(&self, code: u8) -> Option<Option<Signal>> {
        match code {
            0 => Some(None),
            code => self.signals.get(&code).map(|signal| Some(*signal)),
        }
    }

    pub(crate) fn of_paid(&self, paid: Paid) -> u8 {
        match paid {
            Paid::Gpus(state) => self.of_state(state),
            Paid::HeldCpuMemory => HELD_CPU_MEMORY,
            Paid::UnusedCpuMemory => UNUSED_CPU_MEMORY,
            Paid::UnusedShare { is_waste: false } => UNUSED_SHARE,
            Paid::UnusedShare { is_waste: true } => UNUSED_SHARE_OF_WASTE,
        }
    }

    pub(crate) fn paid(&self, code: u8) -> Option<Paid> {
        match code {
            HELD_CPU_MEMORY => Some(Paid::HeldCpuMemory),
            UNUSED_CPU_MEMORY => Some(Paid::UnusedCpuMemory),
            UNUSED_SHARE => Some(Paid::UnusedShare { is_waste: false }),
            UNUSED_SHARE_OF_WASTE => Some(Paid::UnusedShare { is_waste: true }),
            code => self.state(code).map(Paid::Gpus),
        }
    }
}

fn all_states() -> impl Iterator<Item = DeviceState> {
    use DeviceState::{Active, Free, GangWait, Idle, Provisioning, Unavailable, Unknown};
    let plain = [Unavailable, Free(None), Provisioning, GangWait, Idle, Unknown];
    let free = FreeCause::ALL.into_iter().map(|cause| Free(Some(cause)));
    plain.into_iter().chain(free).chain(ActiveWork::ALL.into_iter().map(Active))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_the_ledger_knows_has_its_own_number_and_the_way_back() {
        let codes = Codes::new();
        for state in all_states() {
            assert_eq!(codes.state(codes.of_state(state)), Some(state));
            assert_eq!(codes.paid(codes.of_paid(Paid::Gpus(state))), Some(Paid::Gpus(state)));
            assert!(state == DeviceState::Unknown || STATES.contains(&state.name().as_str()));
            assert!(codes.of_state(state) < 32);
        }
        for signal in Signal::ALL {
            let code = codes.of_signal(Some(signal));
            assert!((1..8).contains(&code));
            assert_eq!(codes.signal(code), Some(Some(signal)));
        }
        let shares = [false, true].map(|is_waste| Paid::UnusedShare { is_waste });
        for paid in [Paid::HeldCpuMemory, Paid::UnusedCpuMemory].into_iter().chain(shares) {
            assert_eq!(codes.paid(codes.of_paid(paid)), Some(paid));
        }
        assert_eq!((codes.state(30), codes.signal(7), codes.paid(68)), (None, None, None));
        assert_eq!(UNKNOWN.0, DeviceState::Unknown.name());
    }
}
