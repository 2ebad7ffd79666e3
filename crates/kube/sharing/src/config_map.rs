//! The ConfigMaps that components read: layouts by name. mig-manager has them in one key, in the
//! form of mig-parted; the device plugin has a key for each; AMD's Device Config Manager has them
//! in one key beside settings of its own.
//!
//! Every name that was there stays. A layout of dovetail's has a name that follows from what it is,
//! so a name is written once and never changes its meaning. Kubelets show a changed ConfigMap to
//! its reader only after a while, so the time of each new name is kept beside it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::component::Component;
use crate::config_text::{Named, data, read};
use crate::named_layout::makes;
use crate::names::{NO_MIG, WRITTEN};
use crate::side::Side;

/// Kubelets have shown a ConfigMap to every pod by then.
const OLD_MS: u64 = 3_600_000;

/// The layouts of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layouts {
    of: Component,
    named: Named,
    /// What a component has beside them.
    others: Named,
    /// When the newest names were written.
    written: BTreeMap<String, u64>,
    resource_version: Option<String>,
}

impl Layouts {
    /// What a component needs in any case, for clusters without a ConfigMap for it.
    pub fn least(of: Component) -> Self {
        let whole = Side::whole(1, None);
        let name = match of {
            Component::MigManager => NO_MIG,
            Component::DevicePlugin => &whole.config,
            // A profile is for a number of GPUs.
            Component::DeviceConfigManager => return Self { of, ..Self::default() },
        };
        let mut named = Named::new();
        named.insert(name.to_owned(), whole.content(of));
        Self { of, named, ..Self::default() }
    }

    /// Reads a ConfigMap.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(of: Component, config_map: &Value) -> Result<Self, String> {
        let (named, others) = read(of, &config_map["data"])?;
        let metadata = &config_map["metadata"];
        let written = metadata["annotations"][WRITTEN].as_str().unwrap_or("{}");
        Ok(Self {
            of,
            named,
            others,
            written: serde_json::from_str(written).unwrap_or_default(),
            resource_version: metadata["resourceVersion"].as_str().map(str::to_owned),
        })
    }

    /// Whether a layout of this name is there.
    pub fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    /// Whether its component makes the layout of a side where this name is asked for; `None` if
    /// that depends on the PCI device IDs of the GPUs.
    pub fn makes(&self, name: &str, side: &Side) -> Option<bool> {
        match self.named.get(name) {
            Some(content) => makes(self.of, content, side),
            None => Some(false),
        }
    }

    /// Adds what the component reads now from another ConfigMap: each name means here what it means
    /// there. Answers with the names that meant something else here.
    pub fn take_over(&mut self, read_now: Self) -> Vec<String> {
        let mut changed = Vec::new();
        for (name, content) in read_now.named {
            if self.named.get(&name).is_some_and(|known| *known != content) {
                changed.push(name.clone());
            }
            self.named.insert(name, content);
        }
        self.others.extend(read_now.others);
        changed
    }

    /// Adds a layout under its two names, and under the name that a node has for it, which somebody
    /// may have removed since: a change could not go back to it. Whether any was new.
    pub fn add(&mut self, side: &Side, now_ms: u64) -> bool {
        let mut is_new = false;
        let (own, second) = (side.own_name(self.of), side.second_name(self.of));
        for name in [own, second, side.config.clone()] {
            if !self.has(&name) {
                self.named.insert(name.clone(), side.content(self.of));
                self.written.insert(name, now_ms);
                is_new = true;
            }
        }
        is_new
    }

    /// Adds what a change of a node may ask for; whether any was new.
    pub fn add_both(&mut self, [from, to]: [&Side; 2], now_ms: u64) -> bool {
        let is_new = self.add(from, now_ms);
        self.add(to, now_ms) || is_new
    }

    /// From when on the component sees every name that a change may ask for; `None` if one is
    /// missing. `mount_ms`: how long a kubelet may take.
    pub fn ready_ms(&self, sides: [&Side; 2], mount_ms: u64) -> Option<u64> {
        let names = sides.into_iter().flat_map(|side| {
            [side.config.clone(), side.own_name(self.of), side.second_name(self.of)]
        });
        let names: Vec<String> = names.collect();
        let is_there = names.iter().all(|name| self.has(name));
        let times = names.iter().filter_map(|name| self.written.get(name));
        is_there.then(|| times.map(|at| at + mount_ms).max().unwrap_or(0))
    }

    /// The ConfigMap. A server refuses it if another one was written since this one was read.
    pub fn object(&self, namespace: &str, now_ms: u64) -> Value {
        let data = data(self.of, &self.named, &self.others);
        let mut written = self.written.clone();
        written.retain(|_, at| now_ms < *at + OLD_MS);
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.of.config_map(), "namespace": namespace,
                "annotations": {WRITTEN: json!(written).to_string()},
            },
            "data": data,
        });
        if let Some(version) = &self.resource_version {
            object["metadata"]["resourceVersion"] = json!(version);
        }
        object
    }

    /// The component is started anew when it is to read this ConfigMap, and so sees all of it.
    pub fn mounted_at_start(&mut self) {
        self.written.clear();
    }

    /// The same layouts for a ConfigMap that is not there yet.
    #[must_use]
    pub fn for_new(self) -> Self {
        Self { resource_version: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amd::Partition;
    use crate::layout::NodeLayout;
    use crate::names::{AMD_CONFIG_KEY, CONFIG_KEY};
    use crate::record::Record;
    use crate::replicas::{Method, Replicas};
    use crate::side::AmdDevices;

    const SHIPPED: &str = "version: v1\nmig-configs:\n  all-disabled:\n    - devices: all\n      \
                           mig-enabled: false\n  all-1g.10gb:\n    # H100-80GB\n    - \
                           device-filter: [\"0x233010DE\", \"0x20B210DE\"]\n      devices: all\n      \
                           mig-enabled: true\n      mig-devices:\n        \"1g.10gb\": 7\n";

    #[test]
    fn standard_names_stay_and_a_new_layout_is_ready_when_it_is_mounted() {
        let shipped = json!({"metadata": {"resourceVersion": "7"}, "data": {CONFIG_KEY: SHIPPED}});
        let mut layouts = Layouts::read(Component::MigManager, &shipped).expect("layouts");
        let cut = |profile: &str, count: u32| Some(BTreeMap::from([(profile.to_owned(), count)]));
        let to = NodeLayout(vec![cut("3g.40gb", 2), cut("1g.10gb", 7)]);
        let from = NodeLayout(vec![None, None]);
        let from = Side { config: NO_MIG.to_owned(), ..Side::of(from) };
        let mut record = Record::begun(Component::MigManager, from, Side::of(to), 0);
        assert_eq!(layouts.ready_ms(record.sides(), 120_000), None);
        assert!(
            layouts.add_both(record.sides(), 5_000) && !layouts.add_both(record.sides(), 6_000)
        );
        assert_eq!(layouts.ready_ms(record.sides(), 120_000), Some(125_000));
        let object = layouts.object("gpu-operator", 5_000);
        let again = Layouts::read(Component::MigManager, &object).expect("layouts");
        assert_eq!(again, layouts);
        assert_eq!(again.named["all-1g.10gb"][0]["device-filter"][1], "0x20B210DE");
        assert_eq!(again.named["all-1g.10gb"][0]["mig-devices"]["1g.10gb"], 7);
        assert_eq!(again.named[&record.to.config], record.to.layout.entries());
        // Old names need no time of their own any more.
        let later =
            Layouts::read(Component::MigManager, &layouts.object("gpu-operator", 5_000 + OLD_MS))
                .unwrap();
        assert_eq!(later.ready_ms(record.sides(), 120_000), Some(0));
        record.from.config = "custom".to_owned();
        assert_eq!(layouts.ready_ms(record.sides(), 120_000), None);
        // Somebody has removed the name, and the change can go back to it all the same.
        assert!(layouts.add_both(record.sides(), 7_000));
        assert_eq!(layouts.ready_ms(record.sides(), 120_000), Some(127_000));
        assert_eq!(layouts.named["custom"], record.from.layout.entries());
        let wrong = json!({"data": {CONFIG_KEY: "version: v1\n"}});
        assert!(
            Layouts::read(Component::MigManager, &wrong)
                .unwrap_err()
                .contains("no mapping `mig-configs`")
        );
    }

    /// So many instances on each GPU.
    fn all(count: u32) -> Value {
        json!([{"devices": "all", "mig-enabled": true, "mig-devices": {"1g.10gb": count}}])
    }

    /// mig-manager reads `custom`, and its names keep their meaning.
    #[test]
    fn what_a_component_reads_now_is_taken_over_whatever_its_names_meant_before() {
        let of = Component::MigManager;
        let map = |configs: Value| {
            let config = json!({"version": "v1", "mig-configs": configs});
            json!({"metadata": {"resourceVersion": "7"}, "data": {CONFIG_KEY: config.to_string()}})
        };
        let shipped = map(json!({"all-1g.10gb": all(7), "all-balanced": all(2)}));
        let custom = map(json!({"all-1g.10gb": all(4), "team-layout": all(1)}));
        let mut layouts = Layouts::read(of, &shipped).expect("layouts").for_new();
        let changed = layouts.take_over(Layouts::read(of, &custom).expect("layouts"));
        assert_eq!(changed, ["all-1g.10gb"]);
        assert!(layouts.has("team-layout") && layouts.has("all-balanced"));
        assert_eq!(layouts.named["all-1g.10gb"], all(4));
        // It is of another object.
        assert_eq!(layouts.object("gpu-operator", 0)["metadata"].get("resourceVersion"), None);
        let again = layouts.take_over(Layouts::read(of, &custom).expect("layouts"));
        assert!(again.is_empty(), "{again:?}");
    }

    #[test]
    fn settings_of_the_device_plugin_are_keys_beside_those_of_others() {
        let of = Component::DevicePlugin;
        let theirs = json!({"metadata": {}, "data": {"any": "version: v1\n"}});
        let mut layouts = Layouts::read(of, &theirs).expect("layouts");
        let replicas = Replicas { method: Method::Mps, count: 8 };
        assert!(layouts.add(&Side::whole(4, Some(replicas)), 5_000));
        let object = layouts.object("gpu-operator", 5_000);
        assert_eq!(object["metadata"]["name"], "dovetail-sharing");
        let keys: Vec<&String> = object["data"].as_object().expect("data").keys().collect();
        assert_eq!(keys, ["any", "dovetail-mps-8", "dovetail-mps-8-again"]);
        assert_eq!(object["data"]["any"], "version: v1\n");
        assert_eq!(Layouts::read(of, &object), Ok(layouts));
        assert!(Layouts::least(of).has("dovetail-whole"));
    }

    #[test]
    fn profiles_of_others_and_settings_of_device_config_manager_stay() {
        let of = Component::DeviceConfigManager;
        let shipped = json!({
            "gpu-config-profiles": {"cpx-profile": {"profiles": [{"computePartition": "CPX",
                "memoryPartition": "NPS4", "numGPUsAssigned": 8}]}},
            "gpuClientSystemdServices": {"names": ["gpuagent"]},
        });
        let map = |config: &Value| json!({"data": {AMD_CONFIG_KEY: config.to_string()}});
        let mut layouts = Layouts::read(of, &map(&shipped)).expect("profiles");
        let partition = Partition::named("cpx_nps4").expect("a partition");
        let side = Side::partitioned(4, AmdDevices { partition, is_named: true });
        assert!(layouts.add(&side, 5_000) && layouts.has("cpx-profile"));
        let object = layouts.object("kube-amd-gpu", 5_000);
        assert_eq!(object["metadata"]["name"], "dovetail-amd");
        assert_eq!(Layouts::read(of, &object), Ok(layouts));
        let text = object["data"][AMD_CONFIG_KEY].as_str().expect("a text");
        let config: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(config["gpuClientSystemdServices"], shipped["gpuClientSystemdServices"]);
        let profiles = &config["gpu-config-profiles"];
        assert_eq!(profiles["cpx-profile"], shipped["gpu-config-profiles"]["cpx-profile"]);
        for name in ["dovetail-cpx-nps4-4", "dovetail-cpx-nps4-4-again"] {
            assert_eq!(profiles[name]["profiles"][0]["numGPUsAssigned"], 4, "{config}");
        }
        let wrong = Layouts::read(of, &map(&json!({}))).expect_err("no profiles");
        assert!(wrong.contains("no object `gpu-config-profiles`"), "{wrong}");
        let none = Layouts::least(of).object("kube-amd-gpu", 0);
        assert!(Layouts::read(of, &none).is_ok());
    }
}
