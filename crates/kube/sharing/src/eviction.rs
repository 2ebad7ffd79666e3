//! What a pod says about taints that evict pods, and about the devices of its node.

use dovetail_model::{Taint, TaintEffect, Toleration};
use serde::Deserialize;
use serde_json::Value;

/// Devices of AMD's GPUs: the one for compute, and the folder of those for each GPU.
const DEVICES: [&str; 2] = ["/dev/kfd", "/dev/dri"];

/// What a pod says besides what is read of every pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionFacts {
    tolerations: Tolerations,
    /// It mounts the devices of AMD's GPUs from its node.
    pub(crate) has_devices: bool,
}

impl EvictionFacts {
    /// Whether a pod stays on a node with a taint for as long as it likes.
    pub(crate) fn stays(&self, taint: &Taint) -> bool {
        self.tolerations.accept(taint)
    }
}

/// A list of tolerations, each with whether it holds for a time only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerations(Vec<(Toleration, bool)>);

impl Tolerations {
    /// Reads a list of a pod or of its template; what is no toleration tolerates nothing.
    pub fn read(list: &Value) -> Self {
        let each = list.as_array().into_iter().flatten();
        let json =
            each.filter_map(|one| serde_json::from_value::<TolerationJson>(one.clone()).ok());
        Self(json.filter_map(TolerationJson::read).collect())
    }

    /// Whether they accept a taint, and not for a time only.
    pub fn accept(&self, taint: &Taint) -> bool {
        let mut of = self.of(taint).peekable();
        of.peek().is_some() && of.all(|is_limited| !is_limited)
    }

    /// Those that accept a taint: whether they are limited.
    fn of(&self, taint: &Taint) -> impl Iterator<Item = bool> {
        let accepts = |(one, _): &&(Toleration, bool)| one.accepts(taint);
        self.0.iter().filter(accepts).map(|(_, is_limited)| *is_limited)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TolerationJson {
    key: String,
    operator: String,
    value: String,
    effect: String,
    toleration_seconds: Option<i64>,
}

impl TolerationJson {
    fn read(self) -> Option<(Toleration, bool)> {
        let any_value = match &*self.operator {
            "" | "Equal" => false,
            "Exists" => true,
            _ => return None,
        };
        let effect = match &*self.effect {
            "" => None,
            effect => Some(TaintEffect::by_name(effect)?),
        };
        let one = Toleration { key: self.key, any_value, value: self.value, effect };
        Some((one, self.toleration_seconds.is_some()))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    tolerations: Value,
    volumes: Option<Vec<Volume>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume {
    host_path: Option<HostPath>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HostPath {
    path: String,
}

impl<'de> Deserialize<'de> for EvictionFacts {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let Object { spec } = Object::deserialize(input)?;
        let volumes = spec.volumes.unwrap_or_default().into_iter();
        let is_device = |path: String| {
            let path = path.trim_end_matches('/');
            DEVICES.iter().any(|device| {
                path.strip_prefix(device)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let mut paths = volumes.filter_map(|volume| Some(volume.host_path?.path));
        let has_devices = paths.any(is_device);
        Ok(Self { tolerations: Tolerations::read(&spec.tolerations), has_devices })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::component::Component;

    #[test]
    fn a_toleration_holds_for_its_effect_and_for_its_time() {
        let taint = Component::DeviceConfigManager.clearing_taint().expect("a taint");
        let accepts = |list: Value| Tolerations::read(&list).accept(&taint);
        let one = |field: &str, value: Value| {
            let mut one = json!({"key": "amd-dcm", "operator": "Exists"});
            one[field] = value;
            one
        };
        assert!(accepts(json!([one("effect", json!("NoExecute"))])));
        assert!(accepts(json!([{"operator": "Exists"}])));
        assert!(accepts(json!([{"key": "amd-dcm", "value": "up"}])));
        assert!(!accepts(json!([one("effect", json!("NoSchedule"))])));
        assert!(!accepts(json!([{"key": "amd-dcm", "value": "down"}])));
        assert!(!accepts(json!([one("operator", json!("Gt"))])) && !accepts(json!(null)));
        let limited = one("tolerationSeconds", json!(60));
        assert!(!accepts(json!([limited, {"operator": "Exists"}])));
        let pod = json!({"spec": {"tolerations": [limited]}});
        let facts: EvictionFacts = serde_json::from_value(pod).expect("facts");
        assert!(facts.tolerations.of(&taint).next().is_some() && !facts.stays(&taint));
    }

    #[test]
    fn a_pod_that_mounts_the_devices_of_gpus_is_known() {
        for (path, expected) in [
            ("/dev/kfd", true),
            ("/dev/dri/", true),
            ("/dev/dri/renderD128", true),
            ("/dev", false),
            ("/dev/drivers", false),
        ] {
            let pod =
                json!({"spec": {"volumes": [{"emptyDir": {}}, {"hostPath": {"path": path}}]}});
            let facts: EvictionFacts = serde_json::from_value(pod).expect("facts");
            assert_eq!(facts.has_devices, expected, "{path}");
        }
    }
}
