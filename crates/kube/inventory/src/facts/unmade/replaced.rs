//! Whether the quotas of a namespace let pods be replaced by pods that ask for something else.

use std::collections::BTreeMap;

use dovetail_model::{Quantity, Resources};
use dovetail_objects::Pod;
use serde_json::value::RawValue;

use super::quota::{QuotaRoom, asked, counted};
use super::scopes::ScopedPod;
use crate::facts::limit_range::TemplateAmounts;

/// What a pod takes of quotas.
pub struct Charge {
    pub requests: Resources,
    /// CPU in thousandths, all else in whole units.
    pub limits: BTreeMap<String, i64>,
}

/// Pods of one owner that are replaced by others.
pub struct Replaced {
    /// What each takes before and after.
    charges: [Charge; 2],
    pub pods: usize,
    /// How many are terminated before a new one is created.
    pub released: usize,
    /// How many new ones are created before one is terminated beyond these.
    pub first: usize,
    scoped: ScopedPod,
    /// What the containers of each have after it.
    amounts: TemplateAmounts,
}

/// A quota that rejects a pod of a rolling update.
pub struct Exceeded {
    /// The quota and its resource, with amounts, in words.
    pub words: String,
    /// Whether all pods together ask for more than the quota leaves: the order in which they are
    /// replaced makes no difference.
    pub is_for_good: bool,
}

impl Replaced {
    /// A pod that becomes like this one, which a template with these amounts makes. `None` if the
    /// template cannot be read.
    pub fn by(
        pod: &Pod,
        (template, amounts): (&str, TemplateAmounts),
        charges: [Charge; 2],
    ) -> Option<Self> {
        let template = RawValue::from_string(template.to_owned()).ok()?;
        let scoped = ScopedPod::of(pod, &template).ok()?;
        Some(Self { charges, pods: 1, released: 1, first: 1, scoped, amounts })
    }

    /// A pod that is evicted, and whose owner makes another one with these amounts.
    pub(crate) fn by_its_like(pod: &Pod, amounts: TemplateAmounts) -> Self {
        let charge = || Charge { requests: pod.requests.clone(), limits: amounts.limits() };
        let (charges, scoped) = ([charge(), charge()], ScopedPod::of_running(pod));
        Self { charges, pods: 1, released: 1, first: 1, scoped, amounts }
    }

    /// What of a resource a pod takes before and after.
    fn asked(&self, name: &str) -> [i128; 2] {
        let asked = |charge: &Charge| asked(name, &charge.requests, &charge.limits);
        [&self.charges[0], &self.charges[1]].map(|charge| i128::from(asked(charge)))
    }
}

impl QuotaRoom {
    /// What it requires of a container that the new pods do not set, in words.
    pub fn requires(&self, replaced: &Replaced) -> Option<String> {
        if !self.is_for(&replaced.scoped) {
            return None;
        }
        self.limited.iter().find_map(|resource| {
            let container = replaced.amounts.lacks(resource)?;
            let part = if resource.starts_with("limits.") { "limit" } else { "request" };
            let (name, what) = (&self.name, counted(resource));
            Some(format!("ResourceQuota {name} requires a {what} {part} for container {container}"))
        })
    }

    /// Why it does not let pods be replaced.
    pub fn rejects(&self, replaced: &Replaced) -> Option<Exceeded> {
        if !self.is_for(&replaced.scoped) {
            return None;
        }
        let count = |pods: usize| i128::try_from(pods).unwrap_or(i128::MAX);
        self.left.iter().find_map(|(name, left)| {
            let [old, new] = replaced.asked(name);
            let left = i128::from(*left);
            let grown = (new - old).max(0).saturating_mul(count(replaced.pods));
            let first = new.saturating_mul(count(replaced.first));
            let freed = old.saturating_mul(count(replaced.released));
            let is_for_good = grown > 0 && grown > left;
            if new <= 0 || !is_for_good && first <= left.saturating_add(freed) {
                return None;
            }
            let amount = |of: i128| amount_text(name, of);
            let words = format!(
                "ResourceQuota {} has {} of {name} left, and a new pod needs {}",
                self.name,
                amount(left.max(0)),
                amount(new)
            );
            Some(Exceeded { words, is_for_good })
        })
    }

    /// Takes pods as replaced.
    pub fn replace(&mut self, replaced: &Replaced) {
        if !self.is_for(&replaced.scoped) {
            return;
        }
        let pods = i128::try_from(replaced.pods).unwrap_or(i128::MAX);
        for (name, left) in &mut self.left {
            let [old, new] = replaced.asked(name);
            let after = i128::from(*left).saturating_sub((new - old).saturating_mul(pods));
            *left = i64::try_from(after).unwrap_or(*left);
        }
    }
}

/// An amount of a resource of a quota, as people write it.
fn amount_text(name: &str, amount: i128) -> String {
    let amount = i64::try_from(amount).unwrap_or(i64::MAX);
    match counted(name) {
        "cpu" => Quantity::milli(amount).to_string(),
        "memory" | "ephemeral-storage" => Quantity::bytes(amount).to_string(),
        _ => amount.to_string(),
    }
}
