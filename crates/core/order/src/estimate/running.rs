//! Jobs that run, counted in their groups by how long they have run so far.
//!
//! Each version counts all jobs that run. Few of them differ from one version to the next: those
//! that have started or ended since, and those that have run for so long by now that they are in
//! another bucket. Only the groups of these are counted again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Job, JobId, RunTimeGroup};

use super::{buckets, groups, stated};

/// Jobs of one group by bucket.
pub(super) type JobCounts = BTreeMap<u8, u32>;

/// Jobs that every version counts beside the runs that are over.
#[derive(Debug, Default)]
pub(super) struct Running {
    jobs: BTreeMap<JobId, Run>,
    /// When a job is in another bucket, of run times or of parts of the stated one.
    due: BTreeSet<(u64, JobId)>,
    /// Counts of running jobs; a group without any is left out.
    groups: BTreeMap<Arc<RunTimeGroup>, JobCounts>,
    /// Groups of which something else is known than when they were taken last.
    changed: BTreeSet<Arc<RunTimeGroup>>,
}

/// What decides in which groups and buckets a job counts.
#[derive(Debug)]
struct Run {
    start_ms: u64,
    /// What earlier attempts saved.
    saved_ms: u64,
    stated_ms: Option<u64>,
    groups: Vec<Arc<RunTimeGroup>>,
    /// The bucket of its run time so far, and of that as a part of the stated one.
    buckets: [u8; 2],
}

impl Running {
    /// Jobs that run, of these; all of their groups are changed.
    pub(super) fn of<'j>(jobs: impl Iterator<Item = &'j Job>) -> Self {
        let mut all = Self::default();
        jobs.for_each(|job| all.note(job));
        all
    }

    /// A job is described: it runs if it has started, and else it does not.
    pub(super) fn note(&mut self, job: &Job) {
        self.forget(job.id);
        let Some(start_ms) = job.start_ms else { return };
        let stated_ms = job.profile.stated_ms;
        let of_stated = stated_ms.map(|_| groups::of_stated(job)).into_iter().flatten();
        let groups = groups::of(job).into_iter().chain(of_stated);
        let groups: Vec<_> = groups.map(|group| self.shared(group)).collect();
        let saved_ms = job.history.saved_ms;
        let mut run = Run { start_ms, saved_ms, stated_ms, groups, buckets: [0; 2] };
        run.buckets = run.buckets_at(start_ms);
        for group in &run.groups {
            self.enter(group, bucket_in(group, run.buckets));
        }
        self.due.extend(run.due_ms().map(|due_ms| (due_ms, job.id)));
        self.jobs.insert(job.id, run);
    }

    /// A job does not run any more.
    pub(super) fn forget(&mut self, job: JobId) {
        let Some(run) = self.jobs.remove(&job) else { return };
        run.due_ms().map(|due_ms| self.due.remove(&(due_ms, job)));
        for group in &run.groups {
            self.leave(group, bucket_in(group, run.buckets));
        }
    }

    /// Something else is known of a group.
    pub(super) fn note_changed(&mut self, group: RunTimeGroup) {
        self.changed.insert(Arc::new(group));
    }

    /// The groups of which something else is known than when they were taken last; jobs count in
    /// the buckets of this time, which is no earlier than any before.
    pub(super) fn take_changed(&mut self, now_ms: u64) -> BTreeSet<Arc<RunTimeGroup>> {
        let due = self.due.range(..=(now_ms, JobId(u64::MAX)));
        let due: Vec<(u64, JobId)> = due.copied().collect();
        for entry in due {
            self.due.remove(&entry);
            let (_, job) = entry;
            let Some(mut run) = self.jobs.remove(&job) else { continue };
            let before = run.buckets;
            run.buckets = run.buckets_at(now_ms);
            for group in &run.groups {
                let (before, after) = (bucket_in(group, before), bucket_in(group, run.buckets));
                if before != after {
                    self.enter(group, after);
                    self.leave(group, before);
                }
            }
            self.due.extend(run.due_ms().map(|due_ms| (due_ms, job)));
            self.jobs.insert(job, run);
        }
        std::mem::take(&mut self.changed)
    }

    /// Jobs of a group that run, by bucket at the time of which the changed groups were taken last;
    /// `None` if none does.
    pub(super) fn in_group(&self, group: &RunTimeGroup) -> Option<&JobCounts> {
        self.groups.get(group)
    }

    /// The group as other jobs have it.
    fn shared(&self, group: RunTimeGroup) -> Arc<RunTimeGroup> {
        match self.groups.get_key_value(&group) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::new(group),
        }
    }

    fn enter(&mut self, group: &Arc<RunTimeGroup>, bucket: u8) {
        let counts = self.groups.entry(Arc::clone(group)).or_default();
        *counts.entry(bucket).or_default() += 1;
        self.changed.insert(Arc::clone(group));
    }

    fn leave(&mut self, group: &Arc<RunTimeGroup>, bucket: u8) {
        let counts = self.groups.get_mut(group).expect("a job is counted in its groups");
        let jobs = counts.get_mut(&bucket).expect("a job is counted in its bucket");
        *jobs -= 1;
        if *jobs == 0 {
            counts.remove(&bucket);
        }
        if counts.is_empty() {
            self.groups.remove(group);
        }
        self.changed.insert(Arc::clone(group));
    }
}

impl Run {
    fn buckets_at(&self, now_ms: u64) -> [u8; 2] {
        let ran_ms = self.saved_ms.saturating_add(now_ms.saturating_sub(self.start_ms));
        let ratio = self.stated_ms.map_or(0, |stated_ms| stated::ratio(ran_ms, stated_ms));
        [ran_ms, ratio].map(|ms| buckets::of(ms) as u8)
    }

    /// From when on it is in another bucket; `None` if it stays where it is.
    fn due_ms(&self) -> Option<u64> {
        let [by_time, by_ratio] = self.buckets.map(|bucket| buckets::beyond_ms(bucket.into()));
        let by_ratio = self.stated_ms.zip(by_ratio);
        let by_ratio = by_ratio.and_then(|(of_ms, ratio)| stated::reaches_ms(ratio, of_ms));
        let ran_ms = by_time.into_iter().chain(by_ratio).min()?;
        self.start_ms.checked_add(ran_ms.saturating_sub(self.saved_ms))
    }
}

/// Of the buckets of a job the one that a group counts it in.
fn bucket_in(group: &RunTimeGroup, buckets: [u8; 2]) -> u8 {
    buckets[usize::from(group.stated)]
}

#[cfg(test)]
mod tests {
    use dovetail_model::{History, RunProfile};

    use super::super::{EstimatesConfig, RUN_WEIGHT, RunTimes, Table, add, counted};
    use super::*;

    /// Numbers that look random.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % bound
        }

        /// As often short as long.
        fn ms(&mut self) -> u64 {
            let most_ms = 1 << self.below(36);
            self.below(most_ms)
        }
    }

    /// A job of few owners and works, of which some state a run time and some have run before.
    fn job(id: u64, now_ms: u64, numbers: &mut Numbers) -> Job {
        let mut job = Job::single(JobId(id), "job", now_ms, Arc::default());
        let stated_ms = (numbers.below(3) == 0).then(|| numbers.ms());
        let owner = format!("owner-{}", numbers.below(3));
        let image = format!("image-{}", numbers.below(4));
        job.profile = RunProfile { owner, image, stated_ms, ..RunProfile::default() };
        let saved_ms = if numbers.below(4) == 0 { numbers.ms() } else { 0 };
        job.history = History { saved_ms, ..History::default() };
        // Some are waiting, and some will only have started.
        job.start_ms = match numbers.below(8) {
            0 => None,
            1 => Some(now_ms + numbers.ms()),
            _ => Some(now_ms.saturating_sub(numbers.ms())),
        };
        job
    }

    fn ran_ms(job: &Job, now_ms: u64) -> Option<u64> {
        let ran_ms = now_ms.saturating_sub(job.start_ms?);
        Some(job.history.saved_ms.saturating_add(ran_ms))
    }

    /// What is published: every run that is over, and every job in each of its groups.
    fn walked(next: &Table, jobs: &BTreeMap<JobId, Job>, now_ms: u64) -> Table {
        let mut published = next.clone();
        for (job, ran_ms) in jobs.values().filter_map(|job| Some((job, ran_ms(job, now_ms)?))) {
            for (group, ran_ms) in counted(job, ran_ms) {
                add(published.entry(group).or_default(), (ran_ms, RUN_WEIGHT), false);
            }
        }
        published
    }

    #[test]
    fn each_version_counts_every_job_that_runs() {
        let config = EstimatesConfig { learn: true, ..EstimatesConfig::default() };
        let (mut versions, mut most_groups) = (0, 0);
        for seed in 0..8 {
            let mut numbers = Numbers(seed);
            let mut times = RunTimes::new(config, None);
            let mut jobs: BTreeMap<JobId, Job> = BTreeMap::new();
            let mut now_ms = 1 << 34;
            for id in 0..400 {
                now_ms += numbers.ms() >> numbers.below(12);
                match numbers.below(6) {
                    0..=2 => {
                        // Now and then one is described again.
                        let id = if numbers.below(4) == 0 { numbers.below(id + 1) } else { id };
                        let job = job(id, now_ms, &mut numbers);
                        times.note_job(&job);
                        jobs.insert(job.id, job);
                    }
                    3 | 4 => {
                        let at = numbers.below(jobs.len() as u64 + 1) as usize;
                        let Some(job) = jobs.keys().nth(at).copied() else { continue };
                        let job = jobs.remove(&job).expect("it is there");
                        times.forget_job(job.id);
                        if let Some(ran_ms) = ran_ms(&job, now_ms) {
                            times.observe(&job, ran_ms, numbers.below(3) > 0);
                        }
                    }
                    _ => {
                        times.publish(now_ms, jobs.values());
                        assert_eq!(times.published, walked(&times.next, &jobs, now_ms), "{seed}");
                        versions += 1;
                        most_groups = most_groups.max(times.published.len());
                    }
                }
                // Another engine goes on from here.
                if numbers.below(50) == 0 {
                    times = RunTimes::new(config, times.tables().as_ref());
                }
            }
        }
        assert!(versions > 250 && most_groups > 15, "{versions} {most_groups}");
    }

    #[test]
    fn jobs_of_equal_groups_share_them_and_leave_nothing_behind() {
        let mut numbers = Numbers(1);
        let jobs: Vec<Job> = (0..50).map(|id| job(id, 1 << 34, &mut numbers)).collect();
        let mut running = Running::of(jobs.iter());
        // All, one size, three owners, these by size and by four images, and four that state.
        assert!(running.groups.len() <= 1 + 1 + 3 + 3 + 12 + 4, "{:?}", running.groups.keys());
        jobs.iter().for_each(|job| running.forget(job.id));
        assert!(running.jobs.is_empty() && running.due.is_empty() && running.groups.is_empty());
    }
}
