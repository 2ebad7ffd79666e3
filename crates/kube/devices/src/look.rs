//! Why a claim gets no devices on a node: for each request how many devices what excludes.

use std::collections::BTreeMap;
use std::fmt;

use dovetail_objects::DeviceTaint;

/// What became of the devices that one alternative of a request looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLook {
    /// Name of the claim.
    pub claim: Box<str>,
    /// Name of the request, with that of the alternative after a slash where it has several.
    pub request: Box<str>,
    /// Name of the device class.
    pub class: Box<str>,
    /// Devices that are asked for.
    pub wanted: usize,
    /// Devices that the node reaches.
    pub reached: usize,
    /// How many of these may not be taken, by the first reason of each.
    pub excluded: BTreeMap<Exclusion, usize>,
}

/// Why a request may not have a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusion {
    /// It does not meet a selector of the class.
    Class,
    /// It does not meet the selector of this number, from 0, of the request.
    Selector(usize),
    /// A selector cannot be evaluated, or the request means nothing for it.
    Failed(String),
    /// The node does not reach it.
    Reach,
    /// It has a taint that the request does not tolerate.
    Taint {
        taint: DeviceTaint,
        /// Name of the DeviceTaintRule that it is of; `None` where its driver states it.
        rule: Option<Box<str>>,
    },
    /// Others have it.
    InUse,
    /// It has less left than is asked for, or may not be shared out so.
    Capacity,
    /// A counter of its pool has less left than it draws; which one, where that was asked for.
    Counters(Option<Box<str>>),
    /// No choice that satisfies this constraint of the claim has it.
    Constraint {
        /// Its number in the claim, from 0.
        number: usize,
        /// As the claim writes it: `matchAttribute` or `distinctAttribute`.
        rule: &'static str,
        attribute: Box<str>,
    },
    /// It needs something that is switched off.
    SwitchedOff,
}

impl RequestLook {
    /// Devices that it may have.
    pub fn left(&self) -> usize {
        self.reached - self.excluded.values().sum::<usize>()
    }
}

impl fmt::Display for RequestLook {
    /// For people: `request r of claim c needs 2 devices of class x; of 8 in reach of the node 6
    /// in use, 2 left`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claim, request, class, wanted, reached, .. } = self;
        let devices = if *wanted == 1 { "device" } else { "devices" };
        write!(
            out,
            "request {request} of claim {claim} needs {wanted} {devices} of class {class}"
        )?;
        if *reached == 0 {
            return write!(out, ", and no device is accessible from the node");
        }
        let what = if *reached == 1 { "device" } else { "devices" };
        write!(out, "; of {reached} {what} accessible from the node")?;
        let mut separator = ", ";
        for (why, count) in &self.excluded {
            write!(out, "{separator}{count} {why}")?;
            separator = ", ";
        }
        write!(out, "{separator}{} left", self.left())
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class => write!(out, "not of the class"),
            Self::Selector(number) => write!(out, "not met by selector #{number}"),
            Self::Failed(problem) => write!(out, "where {problem}"),
            Self::Reach => write!(out, "on other nodes"),
            Self::Taint { taint, rule: None } => write!(out, "with the taint {taint}"),
            Self::Taint { taint, rule: Some(rule) } => {
                write!(out, "with the taint {taint} of DeviceTaintRule {rule}")
            }
            Self::InUse => write!(out, "in use"),
            Self::Capacity => write!(out, "with too little capacity left"),
            Self::Counters(None) => write!(out, "with too little left in shared counters"),
            Self::Counters(Some(counter)) => {
                write!(out, "with too little left in shared counter {counter}")
            }
            Self::Constraint { number, rule, attribute } => {
                write!(out, "excluded by constraint #{number} ({rule} {attribute})")
            }
            Self::SwitchedOff => write!(out, "with features that are switched off"),
        }
    }
}
