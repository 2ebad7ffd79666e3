//! How much of a device's capacity a request takes, by the policies of the device
//! (`consumable_capacity.go` upstream).

use std::collections::BTreeMap;

use dovetail_model::Quantity;
use dovetail_objects::{DeviceCapacity, OfferedDevice, RequestPolicy, RequestRange};

const UNIT: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;
/// The most units, or thousandths, that ranges count: upstream counts them in 64 bits.
const MOST: i128 = i64::MAX as i128;
const NOT_REPRESENTED: &str =
    "capacity request cannot be represented in the device's range arithmetic";

/// What a request takes, by capacity.
pub(crate) type Taken = BTreeMap<Box<str>, Quantity>;

/// What a request takes of each capacity of a device: `Ok(None)` where the device cannot give that
/// by its policies, or lacks a capacity; an error where the request means nothing, whatever the
/// device.
pub(crate) fn taken(
    asked: Option<&BTreeMap<Box<str>, Quantity>>,
    device: &OfferedDevice,
    fractional_ranges: bool,
) -> Result<Option<Taken>, String> {
    let mut names = asked.into_iter().flat_map(BTreeMap::keys);
    if names.any(|name| !device.capacity.contains_key(name)) {
        return Ok(None);
    }
    let mut taken = Taken::new();
    for (name, capacity) in &device.capacity {
        let asked = asked.and_then(|asked| asked.get(name)).copied();
        let amount = rounded(asked, capacity, fractional_ranges)
            .map_err(|problem| format!("capacity \"{name}\": {problem}"))?;
        if amount.to_billionths() < 0 {
            return Err(format!("capacity \"{name}\": capacity value is negative"));
        }
        taken.insert(name.clone(), amount);
    }
    let is_allowed = device.capacity.iter().all(|(name, capacity)| {
        let policy = capacity.policy.as_ref();
        policy.is_none_or(|policy| allows(policy, taken[name], fractional_ranges))
    });
    Ok(is_allowed.then_some(taken))
}

/// What is taken for what is asked for.
fn rounded(
    asked: Option<Quantity>,
    capacity: &DeviceCapacity,
    fractional_ranges: bool,
) -> Result<Quantity, String> {
    let policy = capacity.policy.as_ref();
    let Some(asked) = asked else {
        return Ok(policy.and_then(|policy| policy.default).unwrap_or(capacity.value));
    };
    let Some(policy) = policy else { return Ok(asked) };
    if let Some(RequestRange { least: Some(least), step, .. }) = policy.range {
        return up_to_step(asked, least, step, is_milli(policy.range, fractional_ranges));
    }
    let enough = policy.values.iter().find(|value| !asked.is_more_than(**value));
    Ok(enough.copied().unwrap_or(asked))
}

/// The least amount of a range that is enough.
fn up_to_step(
    asked: Quantity,
    least: Quantity,
    step: Option<Quantity>,
    is_milli: bool,
) -> Result<Quantity, String> {
    if least.is_more_than(asked) {
        return Ok(least);
    }
    let Some(step) = step else { return Ok(asked) };
    let unit = if is_milli { MILLI } else { UNIT };
    let not_represented = |what: String| Err(format!("{NOT_REPRESENTED}: {what}"));
    if is_milli && !is_milli_value(asked) {
        return not_represented(format!("request {asked} is not a representable milli value"));
    }
    if !is_milli && asked.to_billionths() > MOST * UNIT {
        return not_represented(format!("request {asked} exceeds MaxInt64"));
    }
    let (asked_units, least, step_units) =
        (units(asked, unit), units(least, unit), units(step, unit));
    if step_units <= 0 {
        return Ok(asked);
    }
    let steps = (asked_units - least + step_units - 1).div_euclid(step_units);
    let rounded = least + steps * step_units;
    let range = if is_milli { "the milli-value range" } else { "MaxInt64" };
    match rounded <= MOST {
        true => Ok(step.with_billionths(rounded * unit)),
        false => {
            not_represented(format!("rounding request {asked} up to the next step passes {range}"))
        }
    }
}

/// The amount in such units, rounded up as Kubernetes does.
fn units(of: Quantity, unit: i128) -> i128 {
    of.to_billionths().div_euclid(unit) + i128::from(is_part(of, unit))
}

fn is_part(of: Quantity, unit: i128) -> bool {
    of.to_billionths().rem_euclid(unit) != 0
}

/// Whether a range counts in thousandths: the feature is on, and all its amounts are thousandths.
fn is_milli(range: Option<RequestRange>, fractional_ranges: bool) -> bool {
    let Some(RequestRange { least, most, step }) = range.filter(|_| fractional_ranges) else {
        return false;
    };
    let amounts = [least, most, step].into_iter().flatten().all(is_milli_value);
    amounts && step.is_none_or(|step| step.to_billionths() >= MILLI)
}

/// Whether an amount is a number of thousandths that upstream can represent.
fn is_milli_value(of: Quantity) -> bool {
    !is_part(of, MILLI) && of.to_billionths().abs() <= MOST * MILLI
}

/// Whether an amount may be taken.
fn allows(policy: &RequestPolicy, taken: Quantity, fractional_ranges: bool) -> bool {
    let is = |other: Quantity| other.to_billionths() == taken.to_billionths();
    if policy.default.is_some_and(is) {
        return true;
    }
    if let Some(range) = policy.range {
        let unit = if is_milli(policy.range, fractional_ranges) { MILLI } else { UNIT };
        let from = range.least.map_or(0, |least| units(least, unit));
        let is_step = |step: Quantity| {
            let step = units(step, unit);
            step <= 0 || (units(taken, unit) - from).rem_euclid(step) == 0
        };
        return !range.most.is_some_and(|most| taken.is_more_than(most))
            && range.step.is_none_or(is_step);
    }
    policy.values.is_empty() || policy.values.iter().any(|value| is(*value))
}
