//! Pending pods that the quotas of their queues do not let start: no layout helps them.
//!
//! Each of several pods can fit into the rest of a quota although they do not fit together. The
//! scheduler reports none of them as waiting for quota before others have started. Here, the rest
//! goes to pods in the order of their priority and age, and pods that exceed it are passed over, as
//! by the scheduler. How much queues use is what the scheduler reports in their status.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::queues;
use dovetail_model::{Bounds, Charge, QueueName};
use dovetail_objects::Pod;
use dovetail_order::queues::quota::{Beside, Quota};
use dovetail_settings::scheduler::SCHEDULER_NAME;
use dovetail_translate::Rules;
use dovetail_translate::gang::gang_of;

use crate::eligible::requirement;
use crate::objects::Objects;

/// Namespace and name of a pod.
pub(crate) type PodKey<'p> = (&'p str, &'p str);

/// What queues may use, and use.
pub(crate) struct Quotas<'o> {
    objects: &'o Objects,
    quota: Quota,
    /// With what is below each.
    used: Beside,
}

impl<'o> Quotas<'o> {
    /// The queues of a cluster. One without a status has no limit, because no scheduler enforces
    /// it.
    pub(crate) fn of(objects: &'o Objects) -> Self {
        // The settings of the scheduler decide whether a queue borrows that does not state it. If
        // it borrows and was not planned for, its pods would wait for a layout forever.
        let rules = Rules { queues_borrow: true, ..Rules::default() };
        let (mut quota, mut used) = (Quota::new(None), Beside::new());
        for object in &objects.queues {
            let mut queue = queues::queue(object, &rules);
            if let Some(reported) = queues::reported_use(object, &rules) {
                used.insert(queue.name.clone(), reported);
            } else {
                queue.guaranteed = Bounds::default();
                queue.limit = Bounds::default();
            }
            quota.set(queue);
        }
        Self { objects, quota, used }
    }

    /// Whether a quota can keep a pod pending.
    pub(crate) fn limit(&self, pod: &Pod) -> bool {
        self.queue_of(pod).is_some_and(|queue| self.quota.limits(&queue))
    }

    /// Which of these pods do not fit into the quotas of their queues beside those before them. The
    /// pods of a gang, by its number, fit together or not at all.
    pub(crate) fn beyond<'p>(&self, pods: &[(&'p Pod, Option<usize>)]) -> BTreeSet<PodKey<'p>> {
        let (mut used, mut beyond) = (self.used.clone(), BTreeSet::new());
        for job in in_order(pods) {
            let Some(queue) = job.first().and_then(|pod| self.queue_of(pod)) else { continue };
            let mut charge = Charge::default();
            job.iter().for_each(|pod| charge.add_times(&self.charge(pod), 1));
            if self.quota.blocked_by(&queue, &charge, &used).is_some() {
                beyond.extend(job.into_iter().map(key));
                continue;
            }
            for above in self.quota.way_up(&queue) {
                used.entry(above.name.clone()).or_default().add_times(&charge, 1);
            }
        }
        beyond
    }

    /// The queue of a pod; `None` if it is in none, because another scheduler places it, or if that
    /// is not known.
    fn queue_of(&self, pod: &Pod) -> Option<QueueName> {
        let labels = &pod.meta.labels;
        let gang = gang_of(pod).ok().flatten();
        let group = gang.as_ref().and_then(|gang| self.objects.gangs.labels_of(gang));
        let namespace = self.objects.namespaces.get(&*pod.meta.namespace);
        let named = [Some(labels), group].into_iter().flatten();
        let mut named = named.filter_map(|labels| labels.get(queues::QUEUE_LABEL));
        let is_named = named.any(|name| !name.is_empty());
        let is_known = *pod.scheduler == *SCHEDULER_NAME && (is_named || namespace.is_some());
        is_known.then(|| queues::engine_name(queues::queue_of(labels, group, namespace)))
    }

    /// What a pod counts for its queue.
    fn charge(&self, pod: &Pod) -> Charge {
        requirement(pod, self.objects).map(|needs| Charge::of(&needs)).unwrap_or_default()
    }
}

pub(crate) fn key(pod: &Pod) -> PodKey<'_> {
    (&pod.meta.namespace, &pod.meta.name)
}

/// Pods and gangs by priority, then by age.
fn in_order<'p>(pods: &[(&'p Pod, Option<usize>)]) -> Vec<Vec<&'p Pod>> {
    let mut gangs: BTreeMap<usize, Vec<&'p Pod>> = BTreeMap::new();
    let mut jobs: Vec<Vec<&'p Pod>> = Vec::new();
    for &(pod, gang) in pods {
        match gang {
            Some(gang) => gangs.entry(gang).or_default().push(pod),
            None => jobs.push(vec![pod]),
        }
    }
    jobs.extend(gangs.into_values());
    let order = |pod: &'p Pod| (Reverse(pod.priority), pod.meta.created_ms, key(pod));
    jobs.sort_by_cached_key(|job| job.iter().copied().map(order).min());
    jobs
}
