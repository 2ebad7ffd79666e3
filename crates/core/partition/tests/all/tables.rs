//! The tables against the published profiles and NVIDIA's default configurations.

use std::collections::BTreeMap;

use dovetail_model::MigTable;
use serde_json::Value;

/// Published: profiles of a GPU as name, compute slices, memory slices, starts.
fn published(gpu: &Value) -> BTreeMap<String, (u64, u64, Vec<u64>)> {
    let profiles = gpu["profiles"].as_array().unwrap().iter().map(|profile| {
        let starts = profile["placements"].as_array().unwrap().iter();
        let starts = starts.map(|place| place["start"].as_u64().unwrap()).collect();
        let number = |key: &str| profile[key].as_u64().unwrap();
        let name = profile["name"].as_str().unwrap().to_owned();
        (name, (number("compute_slices"), number("memory_slices"), starts))
    });
    profiles.collect()
}

fn own(table: &MigTable) -> BTreeMap<String, (u64, u64, Vec<u64>)> {
    let profiles = table.profiles.iter().map(|profile| {
        let starts = profile.starts.iter().map(|start| u64::from(*start)).collect();
        let (compute, memory) = (profile.compute_slices, profile.memory_slices);
        (profile.name.clone(), (u64::from(compute), u64::from(memory), starts))
    });
    profiles.collect()
}

#[test]
fn every_published_gpu_has_its_table_and_every_default_configuration_is_legal() {
    let test = "every_published_gpu_has_its_table_and_every_default_configuration_is_legal";
    let Some(profiles) = crate::data(test, "gpu/mig_profiles.json") else { return };
    let profiles: Value = serde_json::from_str(&profiles).unwrap();
    let configs = crate::data(test, "sharing/mig_default_configs.json").unwrap();
    let configs: Vec<Value> = serde_json::from_str(&configs).unwrap();
    let tables: Vec<MigTable> = MigTable::all().collect();
    let mut pairs = 0;
    for gpu in profiles["gpus"].as_array().unwrap() {
        let name = gpu["gpu"].as_str().unwrap();
        let known = published(gpu);
        let table = tables.iter().find(|table| own(table) == known);
        let table = table.unwrap_or_else(|| panic!("no table is that of {name}"));
        let ids: Vec<&str> = texts(&gpu["pci_device_ids"]);
        for config in &configs {
            let of_config = texts(&config["device_ids"]);
            let is_meant = of_config.is_empty() || of_config.iter().any(|id| ids.contains(id));
            let Some(instances) = config["mig_devices"].as_object() else { continue };
            let has_all = instances.keys().all(|profile| known.contains_key(profile));
            if instances.is_empty() || !has_all || !is_meant {
                continue;
            }
            pairs += 1;
            let mut layout = vec![0; table.profiles.len()];
            for (profile, count) in instances {
                layout[table.profile(profile).unwrap()] += count.as_u64().unwrap() as u16;
            }
            assert!(table.is_legal(&layout), "{name} {}", config["config"]);
        }
    }
    assert_eq!(pairs, 106);
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().map_or(Vec::new(), |list| list.iter().filter_map(Value::as_str).collect())
}
