//! What amounts of a recording may be, so that no sum of them overflows: those of the traces that
//! are simulated, as `docs/reference/trace-formats.md` lists them.

use std::fmt;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{
    Action, Booking, DeviceAmount, DeviceRequest, Event, Holding, Job, Node, Place, PodSet,
    Requirement, Resources, Snapshot,
};
use dovetail_trace::limits::{MAX_CPU_MILLI, MAX_MEMORY_BYTES, MAX_PODS};
use thiserror::Error;

/// Most of a counter or an extended resource: both may count bytes.
const MOST_UNITS: i64 = MAX_MEMORY_BYTES;

/// An amount that no simulation has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {value}, expected {least} to {most}")]
pub(super) struct AmountError {
    /// With the object in front of it, and the place in that.
    field: String,
    value: i64,
    least: i64,
    most: i64,
}

impl AmountError {
    /// The same, of a field of another.
    fn inside(self, outer: impl fmt::Display) -> Self {
        Self { field: format!("{outer}.{}", self.field), ..self }
    }

    /// The same, with whose it is.
    fn of(self, whose: impl fmt::Display) -> Self {
        Self { field: format!("{whose}: {}", self.field), ..self }
    }
}

type Checked = Result<(), AmountError>;

/// Checks all amounts of nodes, and all that pods ask for and hold.
///
/// # Errors
/// The first amount that is beyond its limits, with whose it is, its field and its limits.
pub(super) fn check_snapshot(snapshot: &Snapshot) -> Checked {
    snapshot.nodes.iter().try_for_each(check_node)?;
    snapshot.jobs.iter().try_for_each(check_job)?;
    snapshot.holdings.iter().try_for_each(check_holding)?;
    let reserved = snapshot.reserved.iter().map(|reserved| &reserved.claim);
    let booked = snapshot.bookings.iter().map(|booked| &booked.claim);
    for claim in snapshot.claims.iter().chain(reserved).chain(booked) {
        check_places(&claim.places)?;
    }
    snapshot.bookings.iter().try_for_each(|booked| check_booking(&booked.booking))?;
    for sleeping in &snapshot.sleeping {
        check_sets(&sleeping.pod_sets).map_err(|error| error.of("sleeping"))?;
    }
    Ok(())
}

/// The same of what happened in a step and was decided.
///
/// # Errors
/// As [`check_snapshot`].
pub(super) fn check_step(events: &[Event], actions: &[Action]) -> Checked {
    events.iter().try_for_each(check_event)?;
    actions.iter().try_for_each(check_action)
}

fn check_event(event: &Event) -> Checked {
    match event {
        Event::NodeChanged(node) => check_node(node),
        Event::Submitted(job) | Event::JobChanged(job) => check_job(job),
        Event::Adopted { job, holdings } => {
            check_job(job)?;
            holdings.iter().try_for_each(check_holding)
        }
        Event::HeldChanged(holding) | Event::ForeignHeld(holding) => check_holding(holding),
        Event::BookingSet(booking) => check_booking(booking),
        // The rest says nothing of what anybody asks for, has or holds.
        _ => Ok(()),
    }
}

fn check_action(action: &Action) -> Checked {
    match action {
        Action::Bind { pod, devices, .. } => {
            check_devices(devices).map_err(|error| error.of(format_args!("pod {pod}")))
        }
        Action::Preempt { places, .. } => check_places(places),
        _ => Ok(()),
    }
}

fn check_node(node: &Node) -> Checked {
    let of_node = |error: AmountError| error.of(format_args!("node {}", node.name));
    let allocatable = check_resources(&node.allocatable);
    allocatable.map_err(|error| of_node(error.inside("allocatable")))?;
    for (index, device) in node.devices.iter().enumerate() {
        let of_device =
            |error: AmountError| of_node(error.inside(format_args!("devices[{index}]")));
        up_to("memory_bytes", device.memory_bytes, MAX_MEMORY_BYTES).map_err(of_device)?;
        for (name, total) in &device.counters {
            let counter = up_to(name, *total, MOST_UNITS);
            counter.map_err(|error| of_device(error.inside("counters")))?;
        }
    }
    Ok(())
}

fn check_job(job: &Job) -> Checked {
    check_sets(&job.pod_sets).map_err(|error| error.of(format_args!("job {}", job.name)))
}

fn check_sets(sets: &[PodSet]) -> Checked {
    sets.iter().try_for_each(|set| {
        let requirement = check_requirement(&set.requirement);
        requirement.map_err(|error| error.of(format_args!("pod set {}", set.name)))
    })
}

fn check_booking(booking: &Booking) -> Checked {
    let requirement = check_requirement(&booking.requirement);
    requirement.map_err(|error| error.of(format_args!("booking {}", booking.name)))
}

fn check_holding(holding: &Holding) -> Checked {
    let resources = check_resources(&holding.resources).map_err(|error| error.inside("resources"));
    let checked = resources.and_then(|()| check_devices(&holding.devices));
    let Holding { id, node, .. } = holding;
    checked.map_err(|error| error.of(format_args!("holding {id} on node {node}")))
}

fn check_places(places: &[Place]) -> Checked {
    places.iter().try_for_each(|place| {
        let devices = check_devices(&place.devices);
        devices.map_err(|error| error.of(format_args!("pod {}", place.pod)))
    })
}

fn check_requirement(requirement: &Requirement) -> Checked {
    check_resources(&requirement.resources).map_err(|error| error.inside("resources"))?;
    let least_memory_bytes = requirement.min_device_memory_bytes;
    up_to("min_device_memory_bytes", least_memory_bytes, MAX_MEMORY_BYTES)?;
    check_request(&requirement.device).map_err(|error| error.inside("device"))
}

fn check_request(request: &DeviceRequest) -> Checked {
    match request {
        DeviceRequest::Share { compute_milli, memory_bytes } => {
            let compute = between("compute_milli", *compute_milli, 1, WHOLE_DEVICE_MILLI - 1);
            let memory = || up_to("memory_bytes", *memory_bytes, MAX_MEMORY_BYTES);
            compute.and_then(|()| memory()).map_err(|error| error.inside("share"))
        }
        DeviceRequest::Counters { amounts } => amounts.iter().try_for_each(|(name, amount)| {
            up_to(name, *amount, MOST_UNITS).map_err(|error| error.inside("counters"))
        }),
        // Counts of a type that is small enough.
        DeviceRequest::None
        | DeviceRequest::Whole { .. }
        | DeviceRequest::Replicas { .. }
        | DeviceRequest::Slice { .. } => Ok(()),
    }
}

fn check_resources(resources: &Resources) -> Checked {
    let Resources { cpu_milli, memory_bytes, ephemeral_bytes, pod_slots, extended } = resources;
    up_to("cpu_milli", *cpu_milli, MAX_CPU_MILLI)?;
    up_to("memory_bytes", *memory_bytes, MAX_MEMORY_BYTES)?;
    up_to("ephemeral_bytes", *ephemeral_bytes, MAX_MEMORY_BYTES)?;
    up_to("pod_slots", *pod_slots, MAX_PODS.into())?;
    extended.iter().try_for_each(|(name, amount)| {
        up_to(name, *amount, MOST_UNITS).map_err(|error| error.inside("extended"))
    })
}

fn check_devices(devices: &[(u16, DeviceAmount)]) -> Checked {
    devices.iter().try_for_each(|(index, amount)| {
        let device = check_device(amount);
        device.map_err(|error| error.inside(format_args!("devices[{index}]")))
    })
}

fn check_device(amount: &DeviceAmount) -> Checked {
    up_to("compute_milli", amount.compute_milli, WHOLE_DEVICE_MILLI)?;
    up_to("memory_bytes", amount.memory_bytes, MAX_MEMORY_BYTES)?;
    amount.counters.iter().try_for_each(|held| up_to("counters", *held, MOST_UNITS))
}

fn up_to(field: &str, value: i64, most: i64) -> Checked {
    between(field, value, 0, most)
}

fn between(field: &str, value: i64, least: i64, most: i64) -> Checked {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(AmountError { field: field.to_owned(), value, least, most }),
    }
}
