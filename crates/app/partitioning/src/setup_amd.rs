//! What lets AMD's GPU Operator read partition profiles of dovetail: the ConfigMap and a patch of
//! each DeviceConfig, for people to apply. dovetail never changes a DeviceConfig itself.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_model::labels::AMD_PRODUCT;
use dovetail_model::{Taint, gpu_model};
use dovetail_sharing::names::{AMD_CONFIG_MAP, TAINT};
use dovetail_sharing::{AmdDevices, Component, Partition, Side};
use serde_json::{Value, json};

use crate::amd_gpus::side;
use crate::objects::{Objects, SeenNode};
use crate::server::Server;
use crate::setup::{kept, repartition, tolerates, tolerations};

const BY: Component = Component::DeviceConfigManager;

/// What the node labeller writes by default, as AMD documents it.
const LABELS: [&str; 7] =
    ["vram", "cu-count", "simd-count", "device-id", "family", "product-name", "driver-version"];
/// Label of a node on which feature discovery has found AMD's GPUs.
const FOUND: &str = "feature.node.kubernetes.io/amd-gpu";
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
        let list = lists.into_iter().find(|list| !tolerates(&plugin[*list], &repartition()))?;
        format!("spec.devicePlugin.{list} does not tolerate the taint {TAINT}")
    };
    Some(format!("DeviceConfig {name}: {what}"))
}

/// The patch of a DeviceConfig. The pods of the operator start again while the node is still
/// tainted; only Device Config Manager may stay while the others leave.
fn patch(config: &Value) -> Value {
    let (manager, plugin) = (&config["spec"]["configManager"], &config["spec"]["devicePlugin"]);
    let ours = repartition();
    let of_manager: Vec<Taint> = BY.clearing_taint().into_iter().chain([ours.clone()]).collect();
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
                tolerations(&manager["configManagerTolerations"], &of_manager),
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

/// # Errors
/// DeviceConfigs that select the same node, or that do not read one ConfigMap.
fn apart(configs: &[Value], objects: &Objects) -> Result<()> {
    for (node, seen) in objects.nodes.iter().filter(|(_, seen)| is_amd(seen)) {
        let both: Vec<&Value> = configs.iter().filter(|one| selects(one, seen)).collect();
        if both.len() > 1 {
            let names: Vec<String> = both.into_iter().map(name).collect();
            bail!(
                "DeviceConfigs {} all select node {node}, so several Device Config Managers would change its GPUs: \
                 change spec.selector until one DeviceConfig selects each node",
                names.join(", ")
            );
        }
    }
    let namespaces = configs.iter().filter_map(|one| one["metadata"]["namespace"].as_str());
    let read = configs.iter().filter_map(|one| {
        let name = one["spec"]["configManager"]["config"]["name"].as_str()?;
        (name != AMD_CONFIG_MAP).then_some(name)
    });
    let (namespaces, read): (BTreeSet<&str>, BTreeSet<&str>) =
        (namespaces.collect(), read.collect());
    let names: Vec<String> = configs.iter().map(name).collect();
    if namespaces.len() > 1 {
        bail!(
            "DeviceConfigs {} are in several namespaces, and dovetail writes profiles to one: move them to one \
             namespace",
            names.join(", ")
        );
    }
    if read.len() > 1 {
        let maps: Vec<&str> = read.into_iter().collect();
        bail!(
            "DeviceConfigs {} read several ConfigMaps ({}), and dovetail copies the profiles of one: copy all \
             profiles to one ConfigMap, and let all DeviceConfigs read it",
            names.join(", "),
            maps.join(", ")
        );
    }
    Ok(())
}

/// Namespace and name of a DeviceConfig.
fn name(config: &Value) -> String {
    let text = |key: &str| config["metadata"][key].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// Whether a node has AMD's GPUs, be they offered or only found.
fn is_amd(seen: &SeenNode) -> bool {
    let labels = &seen.node.meta.labels;
    let is_found = labels.get(FOUND) == Some("true") || labels.get(AMD_PRODUCT).is_some();
    is_found || side(seen).is_some()
}

/// Whether a DeviceConfig puts its Device Config Manager on a node.
fn selects(config: &Value, seen: &SeenNode) -> bool {
    let spec = &config["spec"];
    let selectors = [&spec["configManager"]["selector"], &spec["selector"]];
    let selector = selectors.into_iter().find_map(Value::as_object);
    let labels = &seen.node.meta.labels;
    selector.is_none_or(|all| all.iter().all(|(key, value)| labels.get(key) == value.as_str()))
}

/// The ConfigMap for Device Config Manager, with every profile that the nodes of the cluster can
/// have, and the patches; nothing where AMD's operator is not installed.
pub(crate) async fn parts(
    app: &App,
    server: &Server,
    objects: &Objects,
) -> Result<(Vec<Value>, Vec<DevicePatch>)> {
    let configs = server.device_configs().await?;
    if configs.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    apart(configs, objects)?;
    let now_ms = now_ms();
    let names =
        || configs.iter().filter_map(|one| one["spec"]["configManager"]["config"]["name"].as_str());
    let theirs = names().find(|name| *name != BY.config_map());
    let reads_ours = names().any(|name| name == BY.config_map());
    let (mut layouts, is_there) = kept(app, server, BY, (theirs, reads_ours)).await?;
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
    if !is_there || !reads_ours {
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
        let of_manager = json!([
            {"key": "amd-dcm", "operator": "Equal", "value": "up", "effect": "NoExecute"},
            {"key": TAINT, "operator": "Exists", "effect": "NoSchedule"},
        ]);
        assert_eq!(patch["configManager"]["configManagerTolerations"], of_manager);
        config["spec"]["configManager"] = patch["configManager"].clone();
        assert!(why(&config).contains("devicePluginTolerations does not tolerate the taint"));
        config["spec"]["devicePlugin"] = patch["devicePlugin"].clone();
        assert!(check(std::slice::from_ref(&config)).is_ok());
        // A toleration of another effect is none.
        let mut other = config.clone();
        let list = &mut other["spec"]["devicePlugin"]["nodeLabellerTolerations"];
        *list = json!([{"key": TAINT, "operator": "Exists", "effect": "NoExecute"}]);
        assert!(why(&other).contains("nodeLabellerTolerations does not tolerate the taint"));
        let added = super::patch(&other)["spec"]["devicePlugin"]["nodeLabellerTolerations"].clone();
        assert_eq!(added.as_array().map(Vec::len), Some(2), "{added}");
        // It is applied already.
        assert_eq!(super::patch(&config)["spec"], patch);
        assert!(check(&[]).is_err());
    }

    #[test]
    fn no_node_has_several_device_configs() {
        let config = |name: &str, namespace: &str, selector: Value| {
            json!({"metadata": {"name": name, "namespace": namespace},
                "spec": {"selector": selector, "configManager": {"config": {"name": "profiles"}}}})
        };
        let node = |name: &str, pool: &str| {
            let labels = [json!({"pool": pool, AMD_PRODUCT: "AMD_Instinct_MI300X_OAM"})];
            (name.to_owned(), SeenNode::example(name, &labels, &json!({"amd.com/gpu": "8"})))
        };
        let plain = SeenNode::example("n2", &[], &json!({"cpu": "8"}));
        let nodes = [node("n0", "a"), node("n1", "b"), ("n2".to_owned(), plain)];
        let objects = Objects { nodes: nodes.into_iter().collect(), ..Objects::default() };
        let of = |configs: &[Value]| apart(configs, &objects).map_err(|error| error.to_string());
        let a = config("a", "amd", json!({"pool": "a"}));
        let b = config("b", "amd", json!({"pool": "b"}));
        assert_eq!(of(&[a.clone(), b.clone()]), Ok(()));
        assert_eq!(of(std::slice::from_ref(&a)), Ok(()));
        let all = config("all", "amd", Value::Null);
        let why = of(&[a.clone(), b, all]).expect_err("they overlap");
        assert!(why.starts_with("DeviceConfigs amd/a, amd/all all select node n0"), "{why}");
        let elsewhere = config("b", "other", json!({"pool": "b"}));
        let why = of(&[a.clone(), elsewhere]).expect_err("two namespaces");
        assert!(why.starts_with("DeviceConfigs amd/a, other/b are in several namespaces"), "{why}");
        let mut other = config("b", "amd", json!({"pool": "b"}));
        other["spec"]["configManager"]["config"]["name"] = json!("more");
        let why = of(&[a, other]).expect_err("two ConfigMaps");
        assert!(why.contains("amd/a, amd/b read several ConfigMaps (more, profiles)"), "{why}");
    }
}
