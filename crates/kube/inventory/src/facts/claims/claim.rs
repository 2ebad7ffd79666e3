//! Resource claims and their templates: what is asked for, what was given, and who has it.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use dovetail_objects::{AllocatedDevice, AskedCount, ClaimRequest, ResourceClaim};

use super::class::Classes;
use super::driver::GpuDriver;
use super::nodes::NodeTerms;
use super::selector::Selected;
use super::slice::DeviceKey;
use super::whose::Whose;
use crate::facts::shown_by;

/// No claim can be given more.
const MOST_DEVICES: i64 = 1 << 20;

#[derive(Default)]
pub(super) struct Claim {
    pub(super) requests: Vec<RequestFacts>,
    /// GPUs that it was given; `None` until it is given anything.
    pub(super) given: Option<Vec<Given>>,
    /// What nodes satisfy that can use what it was given, GPUs or not; `None` where all can.
    pub(super) nodes: Option<NodeTerms>,
    /// Pods it is reserved for, by name.
    pub(super) pods: Vec<Box<str>>,
    /// Whether its pods ask for the same by an extended resource.
    pub(super) is_for_extended_resource: bool,
}

/// A device that was given to a claim.
pub(super) struct Given {
    pub(super) device: DeviceKey,
    /// How much of it, by capacity, where several claims may have it.
    pub(super) consumed: BTreeMap<Box<str>, i64>,
}

/// What is asked for; of alternatives the first.
#[derive(Clone, Debug)]
pub(super) struct RequestFacts {
    class: Box<str>,
    selected: Selected,
    /// How many devices; `None` is all that there are.
    count: Option<i64>,
    /// Whether it only looks on while others use the device.
    looks_on: bool,
}

impl RequestFacts {
    /// What it asks for in the first place; `None` if for nothing of any class.
    pub(super) fn of(request: ClaimRequest) -> Option<Self> {
        let first = request.alternatives.into_iter().next();
        let asked = first.filter(|asked| !asked.class.is_empty())?;
        Some(Self {
            selected: selected(&asked.selectors),
            looks_on: asked.is_admin(),
            count: match asked.count {
                AskedCount::Exactly(count) => Some(count),
                AskedCount::Other(_) => Some(1),
                AskedCount::All => None,
            },
            class: asked.class,
        })
    }

    /// One device of a class, whichever.
    pub(super) fn one_of(class: &str) -> Self {
        Self { class: class.into(), selected: Selected::default(), count: Some(1), looks_on: false }
    }
}

#[derive(Debug, Default)]
pub(super) struct WantedGpus {
    /// What is sure of it, by resource name.
    pub(super) gpus: BTreeMap<String, i64>,
    /// Why nobody can tell all of it, where that is so.
    pub(super) not_told: Option<NotTold>,
}

/// Why nobody can tell what is wanted.
#[derive(Clone, Debug)]
pub(super) struct NotTold {
    /// In words, of the pod: the first reason of several.
    pub(super) reason: String,
    /// What shows more of that.
    pub(super) command: &'static str,
    /// Whose devices it may be about.
    pub(super) whose: Whose,
}

impl NotTold {
    pub(super) fn of(reason: &str, whose: Whose) -> Self {
        Self { reason: reason.to_owned(), command: shown_by::POD, whose }
    }

    /// The same, where it is for want of objects that a command shows.
    pub(super) fn shown_by(self, command: &'static str) -> Self {
        Self { command, ..self }
    }
}

impl From<NotTold> for WantedGpus {
    fn from(not_told: NotTold) -> Self {
        Self { gpus: BTreeMap::new(), not_told: Some(not_told) }
    }
}

impl WantedGpus {
    /// With what is wanted beside it.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (resource, count) in other.gpus {
            let sum = self.gpus.entry(resource).or_default();
            *sum = sum.saturating_add(count);
        }
        self.not_told = match (self.not_told, other.not_told) {
            (Some(first), Some(more)) => {
                Some(NotTold { whose: first.whose.or(more.whose), ..first })
            }
            (one, more) => one.or(more),
        };
        self
    }
}

/// What requests come to in GPUs. `classes` say which devices those of the cluster's owner are.
pub(super) fn wanted(requests: &[RequestFacts], classes: &Classes) -> WantedGpus {
    let asked = requests.iter().filter(|request| !request.looks_on);
    let of_each = asked.filter_map(|request| match wanted_by(request, classes) {
        Ok(wanted) => {
            let gpus = BTreeMap::from([wanted?]);
            Some(WantedGpus { gpus, not_told: None })
        }
        Err(not_told) => Some(not_told.into()),
    });
    of_each.fold(WantedGpus::default(), WantedGpus::and)
}

/// The resource, and how much of it; `None` where it is about no GPU.
fn wanted_by(request: &RequestFacts, classes: &Classes) -> Result<Option<(String, i64)>, NotTold> {
    let class = classes.named(&request.class);
    let of_class = class.map(|class| class.selected.clone()).unwrap_or_default();
    let selected = request.selected.clone().and(of_class);
    let whose = selected.whose;
    let Some(driver) = GpuDriver::of_class(&request.class).or(whose.only()) else {
        return match class {
            _ if !whose.may_be_gpus() => Ok(None),
            Some(_) => Err(no_driver(&request.class, whose)),
            None => Err(no_class(&request.class, whose)),
        };
    };
    let is_part = selected.is_part || driver.is_class_of_parts(&request.class);
    let resource = match &selected.profile {
        Some(profile) => driver.part(profile),
        None if is_part => {
            let reason = "its claim does not specify which slice of a GPU it requests";
            return Err(NotTold::of(reason, Whose::of(driver)));
        }
        None => driver.resource.to_owned(),
    };
    let Some(count) = request.count else {
        let reason = "its claim requests all devices of a node, whatever their number";
        return Err(NotTold::of(reason, Whose::of(driver)));
    };
    // Who asks for none waits for no GPU.
    Ok((count > 0).then(|| (resource, count.min(MOST_DEVICES))))
}

fn no_driver(class: &str, whose: Whose) -> NotTold {
    NotTold::of(&format!("device class {class} does not specify the driver of its devices"), whose)
}

fn no_class(class: &str, whose: Whose) -> NotTold {
    NotTold::of(
        &format!("device class {class}, of which it requests a device, was not read"),
        whose,
    )
    .shown_by(shown_by::DEVICE_CLASSES)
}

impl Claim {
    /// What a claim is about.
    pub(super) fn of(claim: ResourceClaim) -> Self {
        let annotation = claim.meta.annotations.get(labels::EXTENDED_RESOURCE_CLAIM);
        let nodes = claim.allocation.as_ref().and_then(|all| all.nodes.clone());
        let given = claim.allocation.map(|all| {
            let taken = all.devices.into_iter().filter(|device| !device.is_admin);
            taken.filter_map(Given::of).collect()
        });
        let pods = claim.reserved_for.into_iter().filter(|of| &*of.resource == "pods");
        Self {
            is_for_extended_resource: annotation == Some("true"),
            requests: claim.asked.requests.into_iter().filter_map(RequestFacts::of).collect(),
            given,
            nodes,
            pods: pods.map(|consumer| consumer.name).collect(),
        }
    }
}

impl Given {
    /// `None` where it is no GPU.
    fn of(device: AllocatedDevice) -> Option<Self> {
        let driver = GpuDriver::named(&device.driver)?;
        let consumed = device.consumed.iter();
        let consumed =
            consumed.map(|(name, amount)| (driver.plain(name).into(), amount.to_units())).collect();
        Some(Self { device: (driver.name, device.pool, device.device), consumed })
    }
}

/// What selectors select together.
pub(super) fn selected(selectors: &[String]) -> Selected {
    let of_each = selectors.iter().map(|expression| Selected::by(expression));
    of_each.fold(Selected::default(), Selected::and)
}
