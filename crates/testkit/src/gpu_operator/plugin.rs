//! NVIDIA's device plugin of a node, with the sidecar that gives it the settings a label names, and
//! feature discovery.
//!
//! By their published behavior: the sidecar reacts to a changed label alone, and tries again while
//! the ConfigMap as it is mounted lacks the name. The plugin starts again with the new settings;
//! until then nothing is allocatable. No pod is drained: one that has a device keeps it, but
//! clients of an MPS server end with it.

use std::collections::VecDeque;

use serde_json::Value;

use super::Fault;

/// How the whole GPUs of a node are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// As feature discovery spells it: `none`, `time-slicing` or `mps`.
    pub strategy: &'static str,
    pub replicas: u32,
    pub is_renamed: bool,
}

/// GPUs that are not shared.
pub const WHOLE: Offer = Offer { strategy: "none", replicas: 1, is_renamed: false };

impl Offer {
    pub(super) fn resource(self) -> &'static str {
        if self.is_renamed { "nvidia.com/gpu.shared" } else { "nvidia.com/gpu" }
    }

    /// Reads settings, as the plugin does.
    fn of(settings: &str) -> Option<Self> {
        let settings: Value = serde_saphyr::from_str(settings).ok()?;
        let sharing = &settings["sharing"];
        let known = [("timeSlicing", "time-slicing"), ("mps", "mps")];
        let named = known.into_iter().find(|(key, _)| sharing[*key].is_object());
        let Some((key, strategy)) = named else { return Some(WHOLE) };
        let replicas = sharing[key]["resources"][0]["replicas"].as_u64()?;
        let is_renamed = sharing[key]["renameByDefault"] == true;
        Some(Self { strategy, replicas: u32::try_from(replicas).ok()?, is_renamed })
    }
}

/// The plugin of a node.
#[derive(Debug)]
pub(super) struct Plugin {
    pub(super) offer: Offer,
    label: Option<String>,
    /// When it starts again, and with which name.
    starts: Option<(u64, String)>,
    fault: Option<Fault>,
}

/// What a plugin does to its node now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Nothing,
    /// It is down, so that nothing can be asked for.
    Stopped,
    /// It offers what it did not before.
    Started(Offer),
}

impl Plugin {
    pub(super) fn new(offer: Offer, label: Option<&str>) -> Self {
        Self { offer, label: label.map(str::to_owned), starts: None, fault: None }
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.starts.is_none()
    }

    /// Time passes: `label` is `nvidia.com/device-plugin.config` as it is now, `settings` the data
    /// of the mounted ConfigMap.
    pub(super) fn tick(
        &mut self,
        now_ms: u64,
        delay_ms: u64,
        label: Option<&str>,
        settings: &Value,
        faults: &mut VecDeque<Option<Fault>>,
    ) -> Turn {
        let changed = label.filter(|label| self.label.as_deref() != Some(*label));
        if let Some(label) = changed.filter(|_| self.starts.is_none()) {
            self.label = Some(label.to_owned());
            self.fault = faults.pop_front().flatten();
            if self.fault == Some(Fault::Ignores) {
                return Turn::Nothing;
            }
            self.starts = Some((now_ms + delay_ms, label.to_owned()));
            return Turn::Stopped;
        }
        let Some((at_ms, name)) = self.starts.clone() else { return Turn::Nothing };
        if at_ms > now_ms {
            return Turn::Nothing;
        }
        let Some(offer) = settings[&name].as_str().and_then(Offer::of) else {
            self.starts = Some((now_ms + delay_ms.max(1), name));
            return Turn::Nothing;
        };
        self.starts = None;
        match self.fault {
            Some(Fault::HidesInstances) => Turn::Nothing,
            // It keeps what it had.
            Some(Fault::Fails) => Turn::Started(self.offer),
            Some(Fault::Reboots) => {
                self.fault = None;
                self.starts = Some((now_ms + delay_ms, name));
                Turn::Nothing
            }
            _ => {
                self.offer = offer;
                Turn::Started(offer)
            }
        }
    }
}
