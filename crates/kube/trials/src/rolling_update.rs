//! The rolling update of a patched object, in the numbers that its controller computes.

use dovetail_patches::{Json, Patch};

/// How pods are replaced.
pub(super) struct RollingUpdate {
    pub(super) replicas: usize,
    /// How many of them may be unavailable.
    pub(super) unavailable: usize,
    /// Whether all new pods have to run before the first old one is terminated.
    pub(super) needs_all_at_once: bool,
    /// Whether a Deployment starts pods before it terminates others.
    pub(super) surges: bool,
}

impl RollingUpdate {
    /// That of a patched object; `None` for kinds without one, where all pods go first, and where a
    /// person deletes them.
    pub(super) fn of(patch: &Patch) -> Option<Self> {
        let spec = patch.edited.as_ref()?.after.get("spec")?;
        let replicas = match spec.get("replicas") {
            Some(Json::Integer(count)) => usize::try_from(*count).unwrap_or(0),
            _ => 1,
        };
        let is_type =
            |field: &str, name: &str| spec.at(&[field, "type"]).and_then(Json::text) == Some(name);
        let of =
            |unavailable| Self { replicas, unavailable, needs_all_at_once: false, surges: false };
        match patch.object.kind.as_str() {
            "Deployment" if !is_type("strategy", "Recreate") => {
                let (unavailable, surge) =
                    amounts(spec.at(&["strategy", "rollingUpdate"]), replicas);
                Some(Self { surges: surge > 0, ..of(unavailable) })
            }
            "StatefulSet" if !is_type("updateStrategy", "OnDelete") => {
                let most = spec.at(&["updateStrategy", "rollingUpdate", "maxUnavailable"]);
                // Rounded up; the default is 1. It starts no extra pod.
                let most = hundredths(most, replicas).unwrap_or(100);
                Some(of(most.div_ceil(100).max(1)))
            }
            // Argo Rollouts. With a traffic router the old pods of a canary stay until the end.
            "Rollout" => {
                let is_given = |path: &[&str]| spec.at(path).is_some_and(|of| *of != Json::Null);
                let needs_all_at_once = is_given(&["strategy", "blueGreen"])
                    || is_given(&["strategy", "canary", "trafficRouting"]);
                let (unavailable, _) = amounts(spec.at(&["strategy", "canary"]), replicas);
                Some(Self { needs_all_at_once, ..of(unavailable) })
            }
            _ => None,
        }
    }
}

/// An amount of pods in hundredths of them, as percentages of replicas are.
fn hundredths(amount: Option<&Json>, replicas: usize) -> Option<usize> {
    match amount? {
        Json::Integer(count) => Some(usize::try_from(*count).unwrap_or(0).saturating_mul(100)),
        Json::Text(text) => {
            let percent: usize = text.trim_end_matches('%').parse().unwrap_or(0);
            Some(percent.saturating_mul(replicas))
        }
        _ => None,
    }
}

/// How many replicas may be unavailable under a strategy with `maxUnavailable` and `maxSurge`, each
/// 25% by default, and the hundredths of pods that may be started before: a part of one is rounded
/// up.
fn amounts(strategy: Option<&Json>, replicas: usize) -> (usize, usize) {
    let amount = |field: &str| {
        let amount = strategy.and_then(|strategy| strategy.get(field));
        hundredths(amount, replicas).unwrap_or(replicas.saturating_mul(25))
    };
    match (amount("maxUnavailable") / 100, amount("maxSurge")) {
        // The controllers do not let both be zero.
        (0, 0) => (1, 0),
        amounts => amounts,
    }
}
