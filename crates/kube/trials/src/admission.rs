//! Whether the API server lets the new pods of a changed template in: LimitRanges and quotas of the
//! namespace. A pod that it rejects is gone once the old one is terminated.

use dovetail_facts::ObjectRef;
use dovetail_inventory::facts::{
    Charge, Exceeded, LimitRange, QuotaRoom, Replaced, TemplateAmounts,
};
use dovetail_inventory::reach::PatchReach;
use dovetail_patches::Patch;

use super::candidate::PatchCandidate;
use super::rolling_update::RollingUpdate;
use super::template::TemplateChange;
use super::trial::Trial;

/// What to do first where the API server would reject new pods; with no pods, since all pods of the
/// object have the template.
pub(super) fn rejected(
    trial: &Trial<'_>,
    candidate: &PatchCandidate,
) -> Option<(String, Vec<ObjectRef>)> {
    let ObjectRef { kind, namespace, name } = &candidate.patch.object;
    let owner = format!("{kind} {namespace}/{name}");
    let order = beyond_limits(trial.nodes.reach, candidate, &owner).or_else(|| {
        let quotas = trial.quotas.get(namespace)?;
        let replaced = trial.replaced(candidate);
        without_required(quotas, replaced, &owner)
            .or_else(|| beyond_quota((quotas, kind), replaced, &owner))
    });
    Some((order?, Vec::new()))
}

/// What to do before a template changes whose pods a LimitRange rejects.
fn beyond_limits(reach: &PatchReach, candidate: &PatchCandidate, owner: &str) -> Option<String> {
    let ranges = limit_ranges(reach, &candidate.patch);
    if ranges.is_empty() {
        return None;
    }
    let problem = candidate.templates.iter().find_map(|change| {
        let template = TemplateAmounts::read(&change.texts[1], ranges)?;
        ranges.iter().find_map(|range| range.rejects(&template))
    })?;
    Some(format!(
        "{problem}, so the API server would reject the new pods of {owner}. 1. change the LimitRange, or change the \
         manifest manually within its limits; 2. run the audit again"
    ))
}

/// What to do before a template changes whose pods lack a value that a quota requires.
fn without_required(quotas: &[QuotaRoom], replaced: &[Replaced], owner: &str) -> Option<String> {
    let problem =
        replaced.iter().find_map(|of| quotas.iter().find_map(|quota| quota.requires(of)))?;
    Some(format!(
        "{problem}, so the API server would reject the new pods of {owner}. 1. set it in the manifest, or create a \
         LimitRange with a default; 2. run the audit again to get the patch"
    ))
}

/// What to do before a rolling update that a quota would block.
fn beyond_quota(
    (quotas, kind): (&[QuotaRoom], &str),
    replaced: &[Replaced],
    owner: &str,
) -> Option<String> {
    let mut exceeded = replaced.iter().filter_map(|replaced| {
        let exceeded = quotas.iter().find_map(|quota| quota.rejects(replaced))?;
        Some((exceeded, replaced.released == 0))
    });
    let (Exceeded { words, is_for_good }, is_blocked_by_order) = exceeded.next()?;
    let step = match is_blocked_by_order && !is_for_good && kind == "Deployment" {
        true => format!(
            "set spec.strategy.rollingUpdate of {owner} to maxSurge 0 and maxUnavailable 1, or raise the quota"
        ),
        false => "raise the quota".to_owned(),
    };
    Some(format!(
        "{words}, so the rolling update of {owner} would not finish. 1. {step}; 2. run the audit again to get the patch"
    ))
}

fn limit_ranges<'r>(reach: &'r PatchReach, patch: &Patch) -> &'r [LimitRange] {
    reach.limit_ranges.get(&patch.object.namespace).map(Vec::as_slice).unwrap_or_default()
}

impl Trial<'_> {
    /// Takes what a patch changes of what pods take of quotas.
    pub(super) fn charge(&mut self, candidate: &PatchCandidate) {
        let namespace = &candidate.patch.object.namespace;
        let replaced = match self.quotas.contains_key(namespace) {
            true => self.replaced(candidate),
            false => return,
        };
        for quota in self.quotas.get_mut(namespace).into_iter().flatten() {
            replaced.iter().for_each(|replaced| quota.replace(replaced));
        }
    }

    /// The pods that a patch replaces.
    fn replaced<'c>(&self, candidate: &'c PatchCandidate) -> &'c [Replaced] {
        let replaced = || {
            let changes = candidate.changes().filter(|(_, change)| change.replaces_pods);
            let of_group = |(group, change)| self.replaced_in(group, change, &candidate.patch);
            changes.filter_map(of_group).collect()
        };
        candidate.replaced.get_or_init(replaced)
    }

    /// The pods of a group that a patch replaces, one after the other unless its strategy says
    /// something else.
    fn replaced_in(
        &self,
        group: usize,
        change: &TemplateChange,
        patch: &Patch,
    ) -> Option<Replaced> {
        let reach = self.nodes.reach;
        let of = &reach.groups[group];
        let new = change.applied(&of.pod);
        let amounts = |text: &str| {
            TemplateAmounts::read(text, limit_ranges(reach, patch)).unwrap_or_default()
        };
        let [old_amounts, new_amounts] = [0, 1].map(|side| amounts(&change.texts[side]));
        let charges = [
            Charge { requests: of.pod.requests.clone(), limits: old_amounts.limits() },
            Charge { requests: new.requests.clone(), limits: new_amounts.limits() },
        ];
        let template = (change.texts[1].as_str(), new_amounts);
        let mut replaced = Replaced::by(&new, template, charges)?;
        let pods = of.pods.len();
        replaced.pods = pods;
        match RollingUpdate::of(patch) {
            Some(update) if update.needs_all_at_once => {
                (replaced.released, replaced.first) = (0, pods);
            }
            Some(update) => replaced.released = update.unavailable.min(pods),
            None => {}
        }
        Some(replaced)
    }
}
