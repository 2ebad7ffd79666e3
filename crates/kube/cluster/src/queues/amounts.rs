//! Amounts by resource: in the engine's units, and as people write them.

use std::collections::BTreeMap;

use dovetail_model::{Axis, Bounds, Charge, Quantity};

use dovetail_translate::Rules;

/// Amounts as a queue names them, in the engine's units.
pub(super) fn bounds(amounts: &BTreeMap<Box<str>, Quantity>, rules: &Rules) -> Bounds {
    let mut bounds = Bounds::default();
    for (resource, amount) in amounts {
        let (axis, amount) = in_units(resource, *amount, rules);
        bounds.set(&axis, amount);
    }
    bounds
}

/// GPUs by model, in the engine's units.
pub(super) fn by_model(amounts: &BTreeMap<Box<str>, Quantity>) -> BTreeMap<String, i64> {
    amounts.iter().map(|(model, gpus)| (model.to_string(), gpus.to_milli())).collect()
}

/// Amounts by resource, as their owner wrote them.
pub fn as_written(amounts: &BTreeMap<Box<str>, Quantity>) -> BTreeMap<String, String> {
    let each = amounts.iter();
    each.map(|(name, amount)| (plain(name).to_owned(), amount.to_string())).collect()
}

/// What is said of one thing among these amounts.
pub(super) fn amount_of(
    axis: &Axis,
    amounts: &BTreeMap<Box<str>, Quantity>,
    rules: &Rules,
) -> Option<Quantity> {
    let name = resource(axis, rules);
    let mut said = amounts.iter().filter(|(resource, _)| plain(resource) == name);
    said.next().map(|(_, amount)| *amount)
}

/// The prefix that ResourceQuotas write before what pods request.
const REQUESTS: &str = "requests.";

/// A resource without that prefix: `requests.nvidia.com/gpu` is `nvidia.com/gpu`.
pub(super) fn plain(resource: &str) -> &str {
    resource.strip_prefix(REQUESTS).unwrap_or(resource)
}

/// Whether a queue can bound the resource: what nobody charges to queues it could only seem to
/// bound.
pub(super) fn can_be_bounded(resource: &str, rules: &Rules) -> bool {
    let name = plain(resource);
    let is_counted = |prefix: &str| name.starts_with(prefix);
    let is_extended = name.contains('/')
        && !["count/", "limits.", REQUESTS].into_iter().any(is_counted)
        && !name.contains(".storageclass.storage.k8s.io/");
    matches!(name, "cpu" | "memory") || *name == *rules.device_resource || is_extended
}

/// One amount in the engine's units.
pub(super) fn in_units(resource: &str, amount: Quantity, rules: &Rules) -> (Axis, i64) {
    match plain(resource) {
        "cpu" => (Axis::Cpu, amount.to_milli()),
        "memory" => (Axis::Memory, amount.to_units()),
        name if *name == *rules.device_resource => (Axis::Gpu, amount.to_milli()),
        name => (Axis::Extended(name.to_owned()), amount.to_units()),
    }
}

/// The name of a resource as people know it.
pub fn resource<'a>(axis: &'a Axis, rules: &'a Rules) -> &'a str {
    match axis {
        Axis::Gpu => &rules.device_resource,
        Axis::Cpu => "cpu",
        Axis::Memory => "memory",
        Axis::Extended(name) | Axis::GpuModel(name) => name,
    }
}

/// An amount as people write it.
pub fn written(axis: &Axis, amount: i64) -> String {
    match axis {
        Axis::Gpu | Axis::Cpu | Axis::GpuModel(_) => Quantity::milli(amount).to_string(),
        Axis::Memory => Quantity::bytes(amount).to_string(),
        Axis::Extended(_) => amount.to_string(),
    }
}

/// What is held, by resource.
pub fn held(charge: &Charge, rules: &Rules) -> BTreeMap<String, String> {
    let all = charge.iter().filter(|(axis, _)| !matches!(axis, Axis::GpuModel(_)));
    all.map(|(axis, held)| (resource(&axis, rules).to_owned(), written(&axis, held))).collect()
}

/// Parts of a billion as a percentage with one digit behind the point.
pub fn percent(billionths: u64) -> String {
    let tenths = (u128::from(billionths) * 1_000 + 500_000_000) / 1_000_000_000;
    format!("{}.{}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_they_are_read() {
        let rules = Rules::default();
        for (resource_name, text) in
            [("cpu", "1500m"), ("memory", "64Gi"), ("nvidia.com/gpu", "8"), ("rdma/hca", "3")]
        {
            let amount: Quantity = text.parse().unwrap();
            let (axis, amount) = in_units(resource_name, amount, &rules);
            assert_eq!((resource(&axis, &rules), &*written(&axis, amount)), (resource_name, text));
        }
        assert_eq!(in_units("nvidia.com/gpu", "8".parse().unwrap(), &rules), (Axis::Gpu, 8_000));
        // More than the engine counts in thousandths is shown as it stands there.
        let queue = [("requests.nvidia.com/gpu", "9E"), ("cpu", "1500m"), ("memory", "9E")];
        let queue = queue.map(|(name, text)| (Box::from(name), text.parse().unwrap()));
        let shown = as_written(&BTreeMap::from(queue));
        let shown: Vec<(&str, &str)> =
            shown.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(shown, [("cpu", "1500m"), ("memory", "9E"), ("nvidia.com/gpu", "9E")]);
        assert_eq!([percent(125_000_000), percent(333_333_333)], ["12.5%", "33.3%"]);
    }
}
