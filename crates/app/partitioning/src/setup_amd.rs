//! What lets AMD's GPU Operator read partition profiles of dovetail: the ConfigMap and a patch of
//! each DeviceConfig, for people to apply. dovetail never changes a DeviceConfig itself.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use dovetail_console::clock::now_ms;
use dovetail_model::gpu_model;
use dovetail_model::labels::AMD_PRODUCT;
use dovetail_sharing::names::{AMD_CONFIG_MAP, AMD_TAINT, AMD_TAINT_VALUE, TAINT};
use dovetail_sharing::{AmdDevices, Component, Partition, Side};
use serde_json::{Value, json};

use crate::amd_gpus::side;
use crate::objects::Objects;
use crate::server::Server;
use crate::setup::{tolerates, toleration, tolerations};

const BY: Component = Component::DeviceConfigManager;

/// What the node labeller writes by default, as AMD documents it.
const LABELS: [&str; 7] =
    ["vram", "cu-count", "simd-count", "device-id", "family", "product-name", "driver-version"];
/// The label by which a changed node is known.
const PARTITION_LABEL: &str = "compute-memory-partition";

/// Sees to it that Device Config Manager reads the profiles that it is to be asked for.
pub(crate) fn check(device_configs: &[Value]) -> Result<()> {
    if device_configs.is_empty() {
        bail!(
            "the cluster has no DeviceConfig of AMD's GPU Operator, whose Device Config Manager partitions GPUs: \
             install the operator"
        );
    }
    match device_configs.iter().find_map(missing) {
        Some(missing) => bail!(
            "AMD's GPU Operator does not read dovetail's profiles ({missing}): apply the output of `dovetail partition \
             setup`"
        ),
        None => Ok(()),
    }
}

/// What a DeviceConfig misses, in words; `None` if nothing.
fn missing(config: &Value) -> Option<String> {
    let name = config["metadata"]["name"].as_str().unwrap_or_default();
    let spec = &config["spec"];
    let manager = &spec["configManager"];
    let read = manager["config"]["name"].as_str().unwrap_or("not set");
    let what = if manager["enable"] != true {
        "spec.configManager.enable is not true".to_owned()
    } else if read != AMD_CONFIG_MAP {
        format!("spec.configManager.config.name is {read}, not {AMD_CONFIG_MAP}")
    } else {
        let lists = ["devicePluginTolerations", "nodeLabellerTolerations"];
        let plugin = &spec["devicePlugin"];
        let list = lists.into_iter().find(|list| !tolerates(&plugin[*list], TAINT))?;
        format!("spec.devicePlugin.{list} does not tolerate the taint {TAINT}")
    };
    Some(format!("DeviceConfig {name}: {what}"))
}

/// The patch of a DeviceConfig. The pods of the operator start again while the node is still
/// tainted; only Device Config Manager may stay while the others leave.
fn patch(config: &Value) -> Value {
    let (manager, plugin) = (&config["spec"]["configManager"], &config["spec"]["devicePlugin"]);
    let ours = toleration(TAINT);
    let clearing = json!({"key": AMD_TAINT, "operator": "Equal", "value": AMD_TAINT_VALUE,
        "effect": "NoExecute"});
    let known = plugin["nodeLabellerArguments"].as_array();
    let mut labels = known.cloned().unwrap_or_else(|| LABELS.map(Value::from).to_vec());
    if !labels.contains(&json!(PARTITION_LABEL)) {
        labels.push(json!(PARTITION_LABEL));
    }
    let one = std::slice::from_ref(&ours);
    json!({"spec": {
        "configManager": {
            "enable": true,
            "config": {"name": AMD_CONFIG_MAP},
            "configManagerTolerations":
                tolerations(&manager["configManagerTolerations"], &[clearing, ours.clone()]),
        },
        "devicePlugin": {
            "devicePluginTolerations": tolerations(&plugin["devicePluginTolerations"], one),
            "nodeLabellerTolerations": tolerations(&plugin["nodeLabellerTolerations"], one),
            "nodeLabellerArguments": labels,
        },
    }})
}

/// The patch of one DeviceConfig.
#[derive(Debug)]
pub(crate) struct DevicePatch {
    namespace: String,
    name: String,
    patch: Value,
}

impl DevicePatch {
    fn of(config: &Value) -> Self {
        let text = |key: &str| config["metadata"][key].as_str().unwrap_or_default().to_owned();
        Self { namespace: text("namespace"), name: text("name"), patch: patch(config) }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({"namespace": self.namespace, "name": self.name, "patch": self.patch})
    }

    /// The command that applies it.
    pub(crate) fn command(&self) -> String {
        let Self { namespace, name, patch } = self;
        format!(
            "kubectl patch deviceconfigs.amd.com {name} -n {namespace} --type merge -p '{patch}'"
        )
    }
}

/// The ConfigMap for Device Config Manager, with every profile that the nodes of the cluster can
/// have, and the patches; nothing where AMD's operator is not installed.
pub(crate) async fn parts(
    server: &Server,
    objects: &Objects,
) -> Result<(Vec<Value>, Vec<DevicePatch>)> {
    let configs = server.device_configs().await?;
    if configs.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let read = configs.iter().filter_map(|one| {
        let name = one["spec"]["configManager"]["config"]["name"].as_str()?;
        (name != AMD_CONFIG_MAP).then_some(name)
    });
    let read: BTreeSet<&str> = read.collect();
    if read.len() > 1 {
        let names: Vec<&str> = read.into_iter().collect();
        bail!(
            "the DeviceConfigs of AMD's GPU Operator read several ConfigMaps ({}), and dovetail copies the profiles \
             of one: copy all profiles to one ConfigMap, and let all DeviceConfigs read it",
            names.join(", ")
        );
    }
    let now_ms = now_ms();
    let (mut layouts, is_there) = server.layouts(BY).await?;
    for seen in objects.nodes.values() {
        let Some(model) = seen.node.meta.labels.get(AMD_PRODUCT).and_then(gpu_model) else {
            continue;
        };
        let Some(Ok(Side { layout, amd: Some(amd), .. })) = side(seen) else { continue };
        for partition in Partition::of_model(model) {
            layouts
                .add(&Side::partitioned(layout.0.len(), AmdDevices { partition, ..amd }), now_ms);
        }
    }
    if !is_there {
        layouts.mounted_at_start();
    }
    let map = layouts.object(&server.namespace(BY).await?, now_ms);
    Ok((vec![map], configs.iter().map(DevicePatch::of).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_adds_what_is_missing_and_drops_nothing() {
        let theirs = json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"});
        let mut config = json!({"metadata": {"name": "amd", "namespace": "kube-amd-gpu"},
            "spec": {"configManager": {"enable": true, "config": {"name": "config-manager-config"}},
                "devicePlugin": {"devicePluginTolerations": [theirs],
                    "nodeLabellerArguments": ["vram"]}}});
        let why = |config: &Value| check(std::slice::from_ref(config)).expect_err("it").to_string();
        assert!(why(&config).contains("config.name is config-manager-config, not dovetail-amd"));
        let patch = patch(&config)["spec"].clone();
        let plugin = &patch["devicePlugin"];
        assert_eq!(plugin["nodeLabellerArguments"], json!(["vram", PARTITION_LABEL]));
        assert_eq!(plugin["devicePluginTolerations"][0], theirs);
        assert_eq!(plugin["devicePluginTolerations"][1]["key"], TAINT);
        assert_eq!(patch["configManager"]["configManagerTolerations"][0]["key"], AMD_TAINT);
        config["spec"]["configManager"] = patch["configManager"].clone();
        assert!(why(&config).contains("devicePluginTolerations does not tolerate the taint"));
        config["spec"]["devicePlugin"] = patch["devicePlugin"].clone();
        assert!(check(std::slice::from_ref(&config)).is_ok());
        // It is applied already.
        assert_eq!(super::patch(&config)["spec"], patch);
        assert!(check(&[]).is_err());
    }
}
