//! Whether what a ConfigMap has under a name is the layout that a node has: a label can name a
//! layout that was never made, or whose meaning has changed since.

use std::collections::BTreeMap;

use dovetail_model::labels::NVIDIA_GPU;
use serde_json::Value;

use crate::component::Component;
use crate::layout::GpuLayout;
use crate::replicas::{Method, Replicas, shared_resource};
use crate::side::Side;

/// Whether a component that reads this content makes the layout of a side; `None` if that depends
/// on the PCI device IDs of its GPUs, which no label states.
pub(crate) fn makes(of: Component, content: &Value, side: &Side) -> Option<bool> {
    match of {
        Component::MigManager => cuts(content.as_array()?, side),
        Component::DevicePlugin => Some(shares(content.as_str()?) == Some(side.replicas)),
        Component::DeviceConfigManager => Some(partitions(content, side)),
    }
}

fn cuts(entries: &[Value], side: &Side) -> Option<bool> {
    let gpus = side.layout.0.iter().enumerate();
    let each: Vec<Option<bool>> =
        gpus.map(|(number, gpu)| cuts_gpu(entries, number, gpu)).collect();
    match each.contains(&Some(false)) {
        true => Some(false),
        false => each.into_iter().try_fold(true, |all, one| Some(all && one?)),
    }
}

/// mig-parted applies the entries in their order, those with a filter only to GPUs with one of its
/// device IDs. A GPU without an entry keeps the layout that it has then.
fn cuts_gpu(entries: &[Value], number: usize, gpu: &GpuLayout) -> Option<bool> {
    let mut possible = vec![false];
    for entry in entries {
        let is_of_gpu = match &entry["devices"] {
            Value::Array(numbers) => numbers.iter().any(|one| one.as_u64() == Some(number as u64)),
            all => all == "all",
        };
        if !is_of_gpu {
            continue;
        }
        if entry["device-filter"].is_null() {
            possible.clear();
        }
        possible.push(instances(entry) == *gpu);
    }
    let is_always = possible.iter().all(|makes| *makes);
    let is_never = !possible.contains(&true);
    (is_always || is_never).then_some(is_always)
}

/// What an entry of mig-parted makes of a GPU.
fn instances(entry: &Value) -> GpuLayout {
    if entry["mig-enabled"] != true {
        return None;
    }
    let named = entry["mig-devices"].as_object().into_iter().flatten();
    let counted = named.filter_map(|(profile, count)| {
        let count = u32::try_from(count.as_u64()?).ok().filter(|count| *count > 0)?;
        Some((profile.clone(), count))
    });
    Some(counted.collect::<BTreeMap<String, u32>>())
}

/// How settings of the device plugin share whole GPUs, if at all; `None` if they cannot be read, or
/// share GPUs otherwise than dovetail does.
fn shares(text: &str) -> Option<Option<Replicas>> {
    let settings: Value = serde_saphyr::from_str(text).ok()?;
    let methods = [("timeSlicing", Method::TimeSlicing), ("mps", Method::Mps)];
    let mut found = None;
    for (key, method) in methods {
        let shared = &settings["sharing"][key];
        for one in shared["resources"].as_array().into_iter().flatten() {
            let count = u32::try_from(one["replicas"].as_u64()?).ok()?;
            if one["name"] != NVIDIA_GPU || count < 2 {
                continue;
            }
            let is_renamed =
                shared["renameByDefault"] == true || one["rename"] == *shared_resource();
            if !is_renamed || found.is_some() {
                return None;
            }
            found = Some(Replicas { method, count });
        }
    }
    Some(found)
}

/// Whether a profile of Device Config Manager partitions as many GPUs as a side has, all as it
/// says.
fn partitions(content: &Value, side: &Side) -> bool {
    let Some(devices) = side.amd else { return false };
    let wanted = devices.partition.profile(side.layout.0.len());
    let wanted = &wanted["profiles"][0];
    let mut gpus = 0;
    for one in content["profiles"].as_array().into_iter().flatten() {
        let is_same = ["computePartition", "memoryPartition"].iter().all(|key| {
            let word = |value: &Value| value.as_str().unwrap_or_default().to_uppercase();
            word(&one[*key]) == word(&wanted[*key])
        });
        if !is_same {
            return false;
        }
        gpus += one["numGPUsAssigned"].as_u64().unwrap_or(0);
    }
    gpus == side.layout.0.len() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::amd::Partition;
    use crate::layout::NodeLayout;
    use crate::side::AmdDevices;

    #[test]
    fn a_name_is_that_of_a_layout_only_if_each_gpu_gets_what_it_has() {
        let cut = |profile: &str, count: u32| Some(BTreeMap::from([(profile.to_owned(), count)]));
        let is = |entries: &Value, gpus: Vec<GpuLayout>| {
            makes(Component::MigManager, entries, &Side::of(NodeLayout(gpus)))
        };
        let small = || cut("1g.10gb", 7);
        let entry = |devices: Value, count: u32| json!({"devices": devices, "mig-enabled": true, "mig-devices": {"1g.10gb": count}});
        let all = json!([entry(json!("all"), 7)]);
        assert_eq!(is(&all, vec![small(), small()]), Some(true));
        // The label names it, and the node has whole GPUs.
        assert_eq!(is(&all, vec![None, None]), Some(false));
        assert_eq!(is(&all, vec![small(), cut("1g.10gb", 4)]), Some(false));
        let first = json!([entry(json!([0]), 7)]);
        assert_eq!(is(&first, vec![small()]), Some(true));
        assert_eq!(is(&first, vec![small(), small()]), Some(false));
        // A later entry replaces an earlier one.
        let twice = json!([entry(json!("all"), 7), {"devices": [1], "mig-enabled": false}]);
        assert_eq!(is(&twice, vec![small(), None]), Some(true));
        assert_eq!(is(&twice, vec![small(), small()]), Some(false));
        let none = json!([{"devices": "all", "mig-enabled": true, "mig-devices": {}}]);
        assert_eq!(is(&none, vec![Some(BTreeMap::new())]), Some(true));
        // It depends on the device: it may be the other entry.
        let mut filtered = json!([entry(json!("all"), 7), entry(json!("all"), 4)]);
        filtered[0]["device-filter"] = json!(["0x20B210DE"]);
        filtered[1]["device-filter"] = json!(["0x20B010DE"]);
        assert_eq!(is(&filtered, vec![small()]), None);
        assert_eq!(is(&filtered, vec![None]), Some(false));
        assert_eq!(is(&filtered, vec![small(), None]), Some(false));
        assert_eq!(is(&json!([]), vec![small()]), Some(false));
    }

    #[test]
    fn settings_of_others_are_named_where_they_share_gpus_alike() {
        let is = |text: &str, replicas: Option<Replicas>| {
            makes(Component::DevicePlugin, &json!(text), &Side::whole(2, replicas))
        };
        let sliced = |count: u32| Some(Replicas { method: Method::TimeSlicing, count });
        assert_eq!(is("version: v1\n", None), Some(true));
        assert_eq!(is("version: v1\n", sliced(4)), Some(false));
        let own = |name: &str| {
            let rename = format!("{{name: nvidia.com/gpu, replicas: 4{name}}}");
            format!("version: v1\nsharing: {{timeSlicing: {{resources: [{rename}]}}}}\n")
        };
        assert_eq!(is(&own(", rename: nvidia.com/gpu.shared"), sliced(4)), Some(true));
        assert_eq!(is(&own(", rename: nvidia.com/gpu.shared"), sliced(8)), Some(false));
        assert_eq!(is(&own(""), sliced(4)), Some(false));
        assert_eq!(is(&own(""), None), Some(false));
        let ours = Side::whole(2, sliced(4)).content(Component::DevicePlugin);
        assert_eq!(is(ours.as_str().expect("a text"), sliced(4)), Some(true));
    }

    #[test]
    fn a_profile_of_others_is_that_of_a_node_if_it_is_for_as_many_gpus() {
        let partition = Partition::named("cpx_nps4").expect("a partition");
        let devices = AmdDevices { partition, is_named: false };
        let is = |content: &Value, gpus: usize| {
            makes(Component::DeviceConfigManager, content, &Side::partitioned(gpus, devices))
        };
        let part = |compute: &str| json!({"computePartition": compute, "memoryPartition": "NPS4", "numGPUsAssigned": 4});
        let both = json!({"profiles": [part("CPX"), part("CPX")]});
        assert_eq!((is(&both, 8), is(&both, 4)), (Some(true), Some(false)));
        assert_eq!(is(&json!({"profiles": [part("CPX"), part("SPX")]}), 8), Some(false));
        assert_eq!(is(&partition.profile(8), 8), Some(true));
    }
}
