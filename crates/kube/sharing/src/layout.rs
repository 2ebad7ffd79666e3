//! The layout of a node: what each of its GPUs is cut into.

use std::collections::BTreeMap;

use dovetail_model::labels::{NVIDIA_GPU, NVIDIA_MIG};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The instances of one GPU, by profile; `None`: the GPU is not in MIG mode.
pub type GpuLayout = Option<BTreeMap<String, u32>>;

/// The GPUs of a node, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeLayout(pub Vec<GpuLayout>);

impl NodeLayout {
    /// As mig-parted reads it: a list of groups of GPUs.
    pub fn entries(&self) -> Value {
        let mut groups: Vec<(&GpuLayout, Vec<usize>)> = Vec::new();
        for (number, gpu) in self.0.iter().enumerate() {
            match groups.iter_mut().find(|(layout, _)| *layout == gpu) {
                Some((_, numbers)) => numbers.push(number),
                None => groups.push((gpu, vec![number])),
            }
        }
        let is_alike = groups.len() == 1;
        let entry = |(layout, numbers): (&GpuLayout, Vec<usize>)| {
            let devices = if is_alike { json!("all") } else { json!(numbers) };
            match layout {
                None => json!({"devices": devices, "mig-enabled": false}),
                Some(instances) => json!({
                    "devices": devices, "mig-enabled": true, "mig-devices": instances,
                }),
            }
        };
        groups.into_iter().map(entry).collect()
    }

    /// A name that follows from the layout alone.
    pub fn name(&self) -> String {
        let digest = Sha256::digest(self.entries().to_string().as_bytes());
        let letters: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        format!("dovetail-{letters}")
    }

    /// What device plugins offer once it is there, by resource.
    pub fn offers(&self) -> BTreeMap<String, i64> {
        let mut offers: BTreeMap<String, i64> = BTreeMap::new();
        for gpu in &self.0 {
            match gpu {
                None => *offers.entry(NVIDIA_GPU.to_owned()).or_default() += 1,
                Some(instances) => {
                    for (profile, count) in instances {
                        *offers.entry(resource(profile)).or_default() += i64::from(*count);
                    }
                }
            }
        }
        offers
    }

    /// The layout in words, equal GPUs together: `2 × [3g.40gb][3g.40gb], 6 × whole`.
    pub fn words(&self) -> String {
        let mut groups: Vec<(String, usize)> = Vec::new();
        for gpu in &self.0 {
            let words = match gpu {
                None => "whole".to_owned(),
                Some(instances) if instances.is_empty() => "-".to_owned(),
                Some(instances) => instances
                    .iter()
                    .rev()
                    .map(|(profile, count)| format!("[{profile}]").repeat(*count as usize))
                    .collect(),
            };
            match groups.iter_mut().find(|(known, _)| *known == words) {
                Some((_, count)) => *count += 1,
                None => groups.push((words, 1)),
            }
        }
        let groups: Vec<String> =
            groups.into_iter().map(|(words, count)| format!("{count} × {words}")).collect();
        groups.join(", ")
    }
}

/// The resource of a profile's instances. A name of a resource has no `+`.
pub(crate) fn resource(profile: &str) -> String {
    format!("{NVIDIA_MIG}{}", profile.replace('+', "."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(instances: &[(&str, u32)]) -> GpuLayout {
        Some(instances.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
    }

    #[test]
    fn equal_gpus_are_one_entry_and_a_name_follows_from_the_layout() {
        let alike = NodeLayout(vec![cut(&[("1g.10gb", 7)]); 2]);
        let expected =
            json!([{"devices": "all", "mig-enabled": true, "mig-devices": {"1g.10gb": 7}}]);
        assert_eq!(alike.entries(), expected);
        let mixed = NodeLayout(vec![cut(&[("3g.40gb", 2)]), None, cut(&[("3g.40gb", 2)])]);
        let expected = json!([
            {"devices": [0, 2], "mig-enabled": true, "mig-devices": {"3g.40gb": 2}},
            {"devices": [1], "mig-enabled": false},
        ]);
        assert_eq!(mixed.entries(), expected);
        assert_ne!(alike.name(), mixed.name());
        assert_eq!(alike.name(), NodeLayout(alike.0.clone()).name());
        let offers = [(NVIDIA_GPU.to_owned(), 1), (resource("3g.40gb"), 4)];
        assert_eq!(mixed.offers(), BTreeMap::from(offers));
        assert_eq!(mixed.words(), "2 × [3g.40gb][3g.40gb], 1 × whole");
        // A name of a resource has no plus sign.
        let media = NodeLayout(vec![cut(&[("1g.10gb+me", 1)])]);
        assert!(media.offers().contains_key("nvidia.com/mig-1g.10gb.me"));
    }
}
