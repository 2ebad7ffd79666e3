//! What lets NVIDIA's GPU Operator read layouts of dovetail, and AMD's (`setup_amd`): the ConfigMap
//! and a patch of the ClusterPolicy, for people to apply. dovetail never changes the ClusterPolicy
//! itself.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::plain::plain;
use dovetail_model::labels::NVIDIA_GPU;
use dovetail_model::{MigTable, Taint, TaintEffect};
use dovetail_sharing::config_map::Layouts;
use dovetail_sharing::names::{DEFAULT_CONFIG_MAP, MIG_CONFIG_MAP, SHARING_CONFIG_MAP, TAINT};
use dovetail_sharing::{Component, GpuLayout, NodeLayout, PolicySpec, Side, Tolerations};
use dovetail_sources::kubeconfig::ConnectionFlags;
use serde_json::{Value, json};

use crate::cluster::{Age, fleet};
use crate::fleet::Fleet;
use crate::objects::Objects;
use crate::server::Server;
use crate::setup_amd::{self, DevicePatch};
use crate::waiting::YOUNG_MS;

/// What a component misses in a ClusterPolicy, in words; `None` if nothing.
pub(crate) fn missing(cluster_policy: &Value, by: Component) -> Option<String> {
    let spec = &cluster_policy["spec"];
    let name = by.config_map();
    let wants = match by {
        Component::MigManager => vec![
            ("migManager.config.name", &spec["migManager"]["config"]["name"], name),
            ("mig.strategy", &spec["mig"]["strategy"], "mixed"),
        ],
        Component::DevicePlugin => {
            vec![("devicePlugin.config.name", &spec["devicePlugin"]["config"]["name"], name)]
        }
        // It is AMD's.
        Component::DeviceConfigManager => Vec::new(),
    };
    let is_wrong = |(_, value, wanted): &(&str, &Value, &str)| value.as_str() != Some(*wanted);
    let (field, value, wanted) = wants.into_iter().find(is_wrong)?;
    let value = value.as_str().unwrap_or("not set");
    Some(format!("spec.{field} is {value}, not {wanted}"))
}

/// What keeps the pods of the operator from coming back during a change, in words. A change that
/// has begun goes on all the same.
pub(crate) fn kept_away(cluster_policy: &Value, by: Component) -> Option<String> {
    let list = &cluster_policy["spec"]["daemonsets"]["tolerations"];
    let is_kept_away = by == Component::MigManager && !tolerates(list, &repartition());
    is_kept_away.then(|| format!("spec.daemonsets.tolerations does not tolerate the taint {TAINT}"))
}

/// Whether a list of tolerations accepts a taint.
pub(crate) fn tolerates(list: &Value, taint: &Taint) -> bool {
    Tolerations::read(list).accept(taint)
}

/// A list with the tolerations that it lacks.
pub(crate) fn tolerations(list: &Value, taints: &[Taint]) -> Value {
    let mut all = list.as_array().cloned().unwrap_or_default();
    all.extend(taints.iter().filter(|taint| !tolerates(list, taint)).map(toleration));
    json!(all)
}

/// The toleration of a taint; of any value, where it has none.
fn toleration(taint: &Taint) -> Value {
    let mut one = json!({"key": taint.key, "operator": "Exists", "effect": taint.effect.name()});
    if !taint.value.is_empty() {
        (one["operator"], one["value"]) = ("Equal".into(), (&*taint.value).into());
    }
    one
}

/// The taint of a node whose layout changes.
pub(crate) fn repartition() -> Taint {
    no_schedule(TAINT)
}

fn no_schedule(key: &str) -> Taint {
    Taint { key: key.to_owned(), value: String::new(), effect: TaintEffect::NoSchedule }
}

/// The patch of the ClusterPolicy. `default`: the settings of nodes without a label. mig-manager
/// removes the pods of the device plugin, which must come back while the node is still tainted; a
/// list in the ClusterPolicy replaces the one toleration that the DaemonSets have without it.
pub(crate) fn patch(default: &str, cluster_policy: Option<&Value>) -> Value {
    let known = cluster_policy.map(|policy| policy["spec"]["daemonsets"]["tolerations"].clone());
    let known = known.filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
    let known = known.unwrap_or_else(|| json!([toleration(&no_schedule(NVIDIA_GPU))]));
    json!({"spec": {
        "daemonsets": {"tolerations": tolerations(&known, &[repartition()])},
        "mig": {"strategy": "mixed"},
        "migManager": {"config": {"name": MIG_CONFIG_MAP}},
        "devicePlugin": {"config": {"name": SHARING_CONFIG_MAP, "default": default}},
    }})
}

/// The layouts of dovetail's ConfigMap for a component, with those of the ConfigMap that it reads
/// now (`read_now`), and whether dovetail's ConfigMap exists. Nodes are labelled with the names
/// that the component reads now, so each of them means the same afterwards. `reads_ours`: on some
/// nodes the component reads dovetail's ConfigMap already.
///
/// # Errors
/// A server that does not answer, or a ConfigMap that cannot be read; and as [`differing`].
pub(crate) async fn kept(
    app: &App,
    server: &Server,
    by: Component,
    (read_now, reads_ours): (Option<&str>, bool),
) -> Result<(Layouts, bool)> {
    let (mut layouts, is_there) = server.layouts(by).await?;
    let ours = by.config_map();
    let Some(theirs) = read_now.filter(|name| !name.is_empty() && *name != ours) else {
        return Ok((layouts, is_there));
    };
    if let Some(read_now) = server.layouts_in(by, theirs).await? {
        let changed = layouts.take_over(read_now);
        if is_there && !changed.is_empty() {
            app.note(&differing(by, theirs, &changed, reads_ours)?);
        }
    }
    Ok((layouts, is_there))
}

/// What to know of names that ConfigMap `theirs` and dovetail's define differently.
///
/// # Errors
/// If nodes are labelled with the names of both: on some of them, a name would change its meaning.
fn differing(by: Component, theirs: &str, names: &[String], reads_ours: bool) -> Result<String> {
    let (ours, component) = (by.config_map(), by.words());
    let names = plain(&names.join(", "));
    if reads_ours {
        bail!(
            "{component} reads ConfigMap {theirs} on some nodes and {ours} on others, and they define {names} \
             differently: rename these definitions in {theirs} and in the labels of its nodes while no pods use the GPUs \
             of these nodes"
        );
    }
    Ok(format!(
        "ConfigMaps {theirs}, which {component} reads now, and {ours} define {names} differently: \
         the output contains the definitions of {theirs}"
    ))
}

/// The ConfigMap that mig-manager reads by a ClusterPolicy.
fn read_by_mig_manager(cluster_policy: &Value) -> &str {
    let name = cluster_policy["spec"]["migManager"]["config"]["name"].as_str();
    name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_CONFIG_MAP)
}

/// Settings of the device plugin, those that it reads now among them, and the name of those for
/// nodes without a label: nothing changes by the patch alone.
async fn settings(
    app: &App,
    server: &Server,
    cluster_policy: Option<&Value>,
) -> Result<(Layouts, String)> {
    let by = Component::DevicePlugin;
    let config = cluster_policy.map(|policy| &policy["spec"]["devicePlugin"]["config"]);
    let text = |key: &str| config.and_then(|config| config[key].as_str()).unwrap_or_default();
    let (mut layouts, is_there) = kept(app, server, by, (Some(text("name")), false)).await?;
    let whole = Side::whole(1, None);
    layouts.add(&whole, now_ms());
    // The plugin is started anew when it is to read another ConfigMap.
    if !is_there || config.is_some() && text("name") != by.config_map() {
        layouts.mounted_at_start();
    }
    let default = Some(text("default")).filter(|name| layouts.has(name));
    let default = default.map_or(whole.config, str::to_owned);
    Ok((layouts, default))
}

/// The layouts of nodes whose GPUs are all cut alike, for the GPUs of a fleet: a change to one of
/// them does not have to wait until a kubelet has shown a new ConfigMap to mig-manager.
fn add_alike(layouts: &mut Layouts, fleet: &Fleet, now_ms: u64) {
    let mut tables: BTreeMap<&str, &MigTable> = BTreeMap::new();
    for number in 0..fleet.world.gpus.len() {
        let table = fleet.layout_table(number);
        tables.insert(&table.name, table);
    }
    for table in tables.values() {
        for (place, profile) in table.profiles.iter().enumerate() {
            let mut layout = vec![0u16; table.profiles.len()];
            let fits = |count: &u16| {
                layout[place] = *count;
                table.is_legal(&layout)
            };
            let most = (1..=u16::from(table.compute_slices)).take_while(fits).last();
            let gpu: GpuLayout =
                most.map(|count| BTreeMap::from([(profile.name.clone(), u32::from(count))]));
            layouts.add(&Side::of(NodeLayout(vec![gpu])), now_ms);
        }
    }
    layouts.add(&Side::of(NodeLayout(vec![None])), now_ms);
}

/// The objects to apply, and the patch.
///
/// # Errors
/// A server that does not answer, or a ConfigMap that cannot be read.
pub async fn document(
    app: &App,
    connection: &ConnectionFlags,
    operator_namespace: &str,
    tables: &[MigTable],
) -> Result<Document> {
    let server = Server::connect(connection, operator_namespace).await?;
    let objects = Objects::of(app, connection, &[]).await?;
    let now_ms = now_ms();
    let fleet = fleet(&objects, &PolicySpec::default(), tables, Age { now_ms, young_ms: YOUNG_MS });
    let cluster_policy = server.cluster_policy().await?;
    let by = Component::MigManager;
    let read_now = cluster_policy.as_ref().map(read_by_mig_manager);
    let (mut layouts, is_there) = kept(app, &server, by, (read_now, false)).await?;
    add_alike(&mut layouts, &fleet, now_ms);
    if !is_there || read_now.is_some_and(|name| name != by.config_map()) {
        layouts.mounted_at_start();
    }
    let namespace = &server.operator_namespace;
    let (settings, default) = settings(app, &server, cluster_policy.as_ref()).await?;
    let (amd_maps, device_patches) = setup_amd::parts(app, &server, &objects).await?;
    let name = cluster_policy.as_ref().and_then(|policy| policy["metadata"]["name"].as_str());
    // A cluster whose only operator is AMD's needs nothing for NVIDIA's.
    let is_amd_alone = cluster_policy.is_none() && !device_patches.is_empty();
    let mut config_maps = match is_amd_alone {
        true => Vec::new(),
        false => vec![layouts.object(namespace, now_ms), settings.object(namespace, now_ms)],
    };
    config_maps.extend(amd_maps);
    Ok(Document {
        config_maps,
        name: name.map(str::to_owned),
        patch: (!is_amd_alone).then(|| patch(&default, cluster_policy.as_ref())),
        device_patches,
    })
}

/// What `dovetail partition setup` prints.
#[derive(Debug)]
pub struct Document {
    config_maps: Vec<Value>,
    /// Name of the ClusterPolicy.
    name: Option<String>,
    patch: Option<Value>,
    /// Those of AMD's DeviceConfigs.
    device_patches: Vec<DevicePatch>,
}

impl Document {
    /// For programs.
    pub fn json(&self) -> Value {
        let devices = self.device_patches.iter().map(DevicePatch::json);
        json!({
            "objects": self.config_maps, "cluster_policy": self.name, "patch": self.patch,
            "device_configs": devices.collect::<Vec<_>>(),
        })
    }

    /// For `kubectl apply -f -`, with the patch as a comment at the end.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for object in &self.config_maps {
            let mut object = object.clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            text += "---\n";
            text += &dovetail_objects::yaml(&object);
        }
        if let Some(patch) = &self.patch {
            let name = self.name.as_deref().unwrap_or("cluster-policy");
            text += &format!(
                "# After you apply the objects above, run this command so that the GPU Operator \
                 reads them. This\n# restarts the pods of its DaemonSets. If the operator installs \
                 the driver and upgrades it\n# automatically \
                 (spec.driver.upgradePolicy.autoUpgrade), new tolerations can start such an\n\
                 # upgrade, which deletes GPU pods: set \
                 autoUpgrade to false first, or run the command in a\n# maintenance window.\n\
                 # kubectl patch clusterpolicies.nvidia.com {name} --type merge -p \
                 '{patch}'\n"
            );
        }
        for one in &self.device_patches {
            text += &format!(
                "# After you apply the objects above, run this command so that AMD's GPU Operator \
                 reads them. This\n# restarts its Device Config Manager, device plugins and node \
                 labellers; pods keep their GPUs.\n# {}\n",
                one.command()
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_changes_its_meaning_on_nodes_that_use_it() {
        let names = ["a".to_owned(), "b".to_owned()];
        let of =
            |reads_ours| differing(Component::DeviceConfigManager, "profiles", &names, reads_ours);
        let note = of(false).expect("a note");
        assert!(note.contains("dovetail-amd define a, b differently: the output"), "{note}");
        let refused = of(true).expect_err("nodes read both").to_string();
        assert!(refused.contains("rename these definitions in profiles"), "{refused}");
    }
}
