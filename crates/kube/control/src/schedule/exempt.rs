//! What a pending job says of pods of lower priority that would make room for it and are exempt.

use std::collections::BTreeSet;

use dovetail_cluster::world::PodKey;
use dovetail_model::{HoldingId, Job, JobId};
use dovetail_objects::Pod;
use dovetail_plan::{Engine, View};
use dovetail_units::time::time;

use super::exemptions::Exemptions;
use super::known::Known;

/// Pods named; of more, the first.
const NAMED: usize = 3;

/// Pods that are exempt from preemption, and what is said of them.
struct Exempt {
    jobs: BTreeSet<JobId>,
    says: String,
}

/// Pods of lower priority that may not be preempted for a pending job.
pub(super) struct ExemptVictims<'s> {
    pub(super) known: &'s mut Known,
    pub(super) exemptions: &'s Exemptions,
}

impl ExemptVictims<'_> {
    /// Without which exempt pods of lower priority a job would start, why they are exempt, and
    /// until when; nothing if it would not start, or may not preempt itself.
    pub(super) fn described(&mut self, job: JobId) -> Option<String> {
        let waiting = self.known.engine()?.job(job)?.clone();
        let is_exempt = self.known.world.preemption().is_preemptor_exempt(job);
        if !self.known.preempts() || (waiting.preemption.never_preempts && !is_exempt) {
            return None;
        }
        let all: Vec<Exempt> =
            [self.refused_victims(&waiting), self.victims_without_right(&waiting)]
                .into_iter()
                .flatten()
                .collect();
        let engine = self.known.engine_mut()?;
        let mut would_start = |exempt: &[&Exempt]| {
            let jobs: BTreeSet<JobId> = exempt.iter().flat_map(|one| &one.jobs).copied().collect();
            !jobs.is_empty() && starts_without(engine, &waiting, &jobs)
        };
        let both: Vec<&Exempt> = all.iter().collect();
        let one = both.iter().find(|one| would_start(&[one])).map(|one| vec![*one]);
        let told = one.or_else(|| would_start(&both).then_some(both));
        let mut says: Vec<String> =
            told.into_iter().flatten().map(|one| one.says.clone()).collect();
        says.extend(self.exemptions.job_until_ms(job).map(|until_ms| {
            format!(
                "The API server refused several evictions for this pod in a row: dovetail waits \
                 until {} before it tries to evict other pods.",
                time(until_ms)
            )
        }));
        (!says.is_empty()).then(|| says.join(" "))
    }

    /// Those whose eviction the server refused.
    fn refused_victims(&self, waiting: &Job) -> Option<Exempt> {
        let all = self.exemptions.victims().filter_map(|(until_ms, key)| {
            let pod = self.known.world.pods().pod(&key.namespace, &key.name)?;
            let runs = *pod.meta.uid == *key.uid && !pod.node.is_empty() && !pod.is_over();
            let is_lower = pod.priority < waiting.priority && !pod.meta.is_deleting();
            (runs && is_lower).then_some((until_ms, key, pod))
        });
        let all: Vec<(u64, &PodKey, &Pod)> = all.collect();
        let until_ms = all.iter().map(|(until_ms, ..)| *until_ms).min()?;
        let jobs = all
            .iter()
            .filter_map(|(_, key, _)| Some(self.known.world.pods().id_of(key)?.job))
            .collect();
        let says = format!(
            "It would start if pods of lower priority were evicted, which the API server refuses: \
             {}; dovetail does not retry them until {}.",
            named(all.iter().map(|(.., pod)| *pod)),
            time(until_ms)
        );
        Some(Exempt { jobs, says })
    }

    /// Those that the scheduler has no right to evict.
    fn victims_without_right(&self, waiting: &Job) -> Option<Exempt> {
        let (mut jobs, mut pods, mut first) = (BTreeSet::new(), Vec::new(), None);
        for (namespace, message) in self.exemptions.namespaces() {
            let running = self.known.world.preemption().running_in(namespace);
            for (job, pod) in running.filter(|(_, pod)| pod.priority < waiting.priority) {
                first.get_or_insert(message);
                jobs.insert(job);
                pods.push(pod);
            }
        }
        let says = format!(
            "It would start if pods of lower priority were evicted, for which the scheduler's \
             service account lacks the permission: {}; {}; grant it (see deploy/rbac.yaml): \
             dovetail retries.",
            named(pods.into_iter()),
            first?
        );
        Some(Exempt { jobs, says })
    }
}

fn starts_without(engine: &mut Engine, waiting: &Job, jobs: &BTreeSet<JobId>) -> bool {
    let held = jobs.iter().flat_map(|job| engine.list().holdings_of(*job));
    let held = held.map(|(_, holding)| holding).collect();
    fits_without(engine, waiting, held)
}

/// Whether a job would fit, its queue aside, if these holdings were gone.
pub(super) fn fits_without(engine: &mut Engine, waiting: &Job, gone: Vec<HoldingId>) -> bool {
    let places = engine.ask().what_if_job(waiting, &View::Without(gone));
    places.is_ok_and(|places| places.is_some())
}

/// The first by name, and how many more.
pub(super) fn named<'p>(pods: impl Iterator<Item = &'p Pod>) -> String {
    let names = pods.map(|pod| format!("{}/{}", pod.meta.namespace, pod.meta.name));
    let names: BTreeSet<String> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    let shown: Vec<String> = names.into_iter().take(NAMED).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}
