//! The question, as plain data, and its answer. Devices, counters and requests are numbered from 0.

use std::ops::Range;

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSupply {
    /// What is left in each counter, in whatever unit the draws have.
    pub counters: Vec<i128>,
    /// Devices, those first that are to be given away first where several fit.
    pub devices: Vec<AllocatableDevice>,
}

/// A device that may be given away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatableDevice {
    /// Whether several requests may have it at a time, or one several times.
    pub is_shared: bool,
    /// What it draws from counters when it is given away for the first time.
    pub draws: Vec<Draw>,
}

/// An amount that is taken from a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Draw {
    pub counter: usize,
    pub amount: i128,
}

/// What is asked for at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceDemand {
    pub requests: Vec<Request>,
    /// Requests of one claim, with the most devices that they may have together.
    pub groups: Vec<RequestGroup>,
    pub constraints: Vec<Constraint>,
}

/// Alternatives, the best first. Exactly one is served.
pub type Request = Vec<Alternative>;

/// A number of devices out of some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alternative {
    pub count: usize,
    /// Whether it gets each shared device once at most.
    pub is_each_once: bool,
    /// Whether it uses devices that others have, and takes nothing away (admin access).
    pub only_looks_on: bool,
    /// Devices it may have, each once.
    pub candidates: Vec<CandidateDevice>,
}

/// A device that an alternative may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidateDevice {
    pub device: usize,
    /// What this use draws, beside what the device draws.
    pub draws: Vec<Draw>,
}

/// Requests of one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestGroup {
    /// Numbers of its requests.
    pub requests: Range<usize>,
    /// The most devices that they may have together.
    pub most_devices: usize,
}

/// What the devices of some requests must have in common, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    pub rule: ValueRule,
    /// Requests, or one alternative of them, whose devices it is about.
    pub covers: Vec<(usize, Option<usize>)>,
    /// The values of each device, sorted; a device without any never meets the constraint.
    pub values: Vec<Vec<u32>>,
}

/// How the values of devices must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRule {
    /// All devices have a value in common.
    Match,
    /// No two devices have a value in common.
    Distinct,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchResult {
    Fits(DeviceChoice),
    /// There is no choice, whatever is tried.
    No,
    /// The steps ran out before either was known.
    Undecided,
}

/// Alternatives and devices that satisfy a demand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceChoice {
    /// The alternative of each request.
    pub alternatives: Vec<usize>,
    /// The devices of each request.
    pub devices: Vec<Vec<usize>>,
    pub steps: u64,
}

impl Constraint {
    /// Whether it is about an alternative of a request.
    pub fn covers(&self, request: usize, alternative: usize) -> bool {
        let is_it = |(of, only): &(usize, Option<usize>)| {
            *of == request && only.is_none_or(|only| only == alternative)
        };
        self.covers.iter().any(is_it)
    }
}
