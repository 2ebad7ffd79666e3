//! What NVIDIA's driver publishes with dynamic MIG: its device classes, and for each node a slice
//! with the counters of all GPUs and one slice of devices for each GPU.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::gpu::{AMOUNTS, DraGpu, Offered};

/// The name of the driver.
pub(super) const DRIVER: &str = "gpu.nvidia.com";
const API: &str = "resource.k8s.io/v1";

/// The classes that the driver's chart installs for its GPUs.
pub(super) fn classes() -> [Value; 2] {
    let class = |name: &str, kind: &str| {
        let expression = format!(
            "device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
        );
        let selectors = json!([{"cel": {"expression": expression}}]);
        json!({"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name},
            "spec": {"selectors": selectors}})
    };
    let mut whole = class(DRIVER, "gpu");
    whole["spec"]["extendedResourceName"] = json!("nvidia.com/gpu");
    [whole, class("mig.nvidia.com", "mig")]
}

/// The slices of a node, which are one pool of its name.
pub(super) fn slices(node: &str, gpus: &[DraGpu]) -> Vec<Value> {
    let slice = |part: &str, field: &str, content: Value| {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1 + gpus.len()});
        let mut spec = json!({"driver": DRIVER, "nodeName": node, "pool": pool});
        spec[field] = content;
        json!({"apiVersion": API, "kind": "ResourceSlice",
            "metadata": {"name": format!("{node}-{DRIVER}-{part}")}, "spec": spec})
    };
    let sets = gpus
        .iter()
        .enumerate()
        .map(|(number, gpu)| json!({"name": set(number), "counters": quantities(gpu.counters())}));
    let mut slices = vec![slice("counters", "sharedCounters", sets.collect())];
    for (number, gpu) in gpus.iter().enumerate() {
        let uuid = format!("GPU-{node}-{number}");
        let devices = gpu.devices(number);
        let devices = devices.iter().map(|offered| device(gpu, number, &uuid, offered));
        slices.push(slice(&format!("gpu-{number}"), "devices", devices.collect()));
    }
    slices
}

fn set(gpu: usize) -> String {
    format!("gpu-{gpu}-counter-set")
}

fn device(gpu: &DraGpu, number: usize, uuid: &str, offered: &Offered) -> Value {
    let text = |text: &str| json!({"string": text});
    let mut attributes = json!({
        "productName": text(gpu.product),
        "brand": text("Nvidia"),
        "architecture": text(gpu.architecture),
        "cudaComputeCapability": {"version": gpu.compute_capability},
        "driverVersion": {"version": "580.159.0"},
        "cudaDriverVersion": {"version": "13.0.0"},
    });
    match offered.profile {
        Some(profile) => {
            attributes["type"] = text("mig");
            attributes["profile"] = text(profile);
            attributes["parentUUID"] = text(uuid);
        }
        None => {
            attributes["type"] = text("gpu");
            attributes["uuid"] = text(uuid);
        }
    }
    let amounts = AMOUNTS.iter().zip(offered.amounts);
    let capacity: BTreeMap<&str, Value> =
        amounts.map(|((name, _), amount)| (*name, json!({"value": amount.to_string()}))).collect();
    let draws = json!([{"counterSet": set(number), "counters": quantities(offered.draws())}]);
    json!({"name": offered.name, "attributes": attributes, "capacity": capacity,
        "consumesCounters": draws})
}

fn quantities(counters: BTreeMap<String, u64>) -> Value {
    let quantity = |(name, amount): (String, u64)| (name, json!({"value": amount.to_string()}));
    Value::Object(counters.into_iter().map(quantity).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_one_pool_of_counters_and_devices() {
        let slices = slices("n0", &[DraGpu::H100, DraGpu::A100_40GB]);
        assert_eq!(slices.len(), 3);
        let counters = &slices[0]["spec"]["sharedCounters"];
        assert_eq!(counters[1]["name"], "gpu-1-counter-set");
        assert_eq!(counters[1]["counters"]["multiprocessors"]["value"], "98");
        assert_eq!(counters[1]["counters"]["memory-slice-7"]["value"], "1");
        for slice in &slices {
            assert_eq!(slice["spec"]["pool"]["resourceSliceCount"], 3);
        }
        let whole = &slices[1]["spec"]["devices"][0];
        assert_eq!(whole["attributes"]["type"]["string"], "gpu");
        assert_eq!(
            whole["consumesCounters"][0]["counters"],
            slices[0]["spec"]["sharedCounters"][0]["counters"]
        );
        let part = &slices[2]["spec"]["devices"][0];
        assert_eq!(part["name"], "gpu-1-mig-1g10gb-15-0");
        assert_eq!(part["attributes"]["profile"]["string"], "1g.10gb");
        assert_eq!(part["consumesCounters"][0]["counters"]["memory-slice-1"]["value"], "1");
        assert!(part["consumesCounters"][0]["counters"]["memory-slice-2"].is_null());
    }
}
