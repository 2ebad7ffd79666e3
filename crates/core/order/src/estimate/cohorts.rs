//! Run times learnt from jobs that came together.
//!
//! Users submit in bursts: jobs of one size that come one after the other mostly run for about as
//! long. A *cohort* is jobs of one kind, each submitted within an hour of the one before. What is
//! known of a cohort is how long its jobs ran that ended, and how long those have run by now that
//! did not: that alone says that the others are not short. A cohort falls back on its kind, where
//! old ends count less and less, and a kind on all jobs.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::JobId;
use dovetail_model::cohort::{CohortTable, Cohorts as Plain};

use super::chances;
use super::gittins::{BUCKETS, Lengths};

/// A job that comes so long after the one before it of its kind begins a cohort, in ms.
pub(super) const COHORT_GAP_MS: u64 = 3_600_000;
/// One job, in millionths.
const ONE: u64 = 1_000_000;
/// What an end of a kind counts after the next one, in hundredths.
const KEPT_PERCENT: u64 = 98;
/// So many jobs a wider group counts for in a narrower one: all jobs in a kind, a kind in a cohort.
const WEIGHTS: [f64; 2] = [20.0, 2.0];
/// So many jobs count as known of all jobs before any ended.
const PRIOR_JOBS: f64 = 10.0;
/// Of those, the chance to end within a length: half of them go on at four times the time.
const PRIOR_EXPONENT: f64 = 0.5 / 4.0;

/// A cohort is computed again once so many jobs ended or got further in it, as a part of those
/// that ever did: one of thousands of jobs, all of which wait for what is known of it, is not
/// looked at for each of them.
const PART_CHANGED: u32 = 32;

/// The table of all jobs.
const ALL: u32 = 0;

#[derive(Clone, Debug)]
struct CohortCounts {
    parent: Option<u32>,
    /// Jobs that ended, by length, in millionths.
    ended: [u64; BUCKETS],
    /// Jobs that have not ended, by the length that they have reached.
    alive: [u32; BUCKETS],
    inverse_index_ms: [u64; BUCKETS],
    /// Jobs that ended or reached another length since that was computed.
    changes: u32,
    /// Of a cohort, those that have not ended.
    members: BTreeSet<JobId>,
    /// Of a cohort, the oldest and the newest submission of its jobs.
    submitted_ms: Option<(u64, u64)>,
    /// Of a kind, its cohorts.
    cohorts: BTreeSet<u32>,
}

impl CohortCounts {
    fn below(parent: Option<u32>) -> Self {
        Self {
            parent,
            ended: [0; BUCKETS],
            alive: [0; BUCKETS],
            inverse_index_ms: [u64::MAX; BUCKETS],
            changes: 0,
            members: BTreeSet::new(),
            submitted_ms: None,
            cohorts: BTreeSet::new(),
        }
    }

    fn is_to_be_computed(&self) -> bool {
        let ended: u64 = self.ended.iter().sum::<u64>() / ONE;
        let further: u32 = self.alive[1..].iter().sum();
        let known = u32::try_from(ended).unwrap_or(u32::MAX).saturating_add(further);
        let is_new = self.inverse_index_ms[0] == u64::MAX;
        is_new || self.changes > known / PART_CHANGED
    }
}

/// What is known of run times.
#[derive(Clone, Debug)]
pub struct Cohorts {
    pub lengths: Lengths,
    tables: BTreeMap<u32, CohortCounts>,
    kinds: BTreeMap<u32, u32>,
    /// Newest cohort of a kind, and when its newest job came.
    open: BTreeMap<u32, (u32, u64)>,
    /// Cohort of each job that has not ended, and the length that it has reached.
    members: BTreeMap<JobId, (u32, usize)>,
    /// Cohorts of which something changed.
    stale: BTreeSet<u32>,
}

impl Cohorts {
    pub(super) fn new() -> Self {
        Self {
            lengths: Lengths::new(),
            tables: BTreeMap::from([(ALL, CohortCounts::below(None))]),
            kinds: BTreeMap::new(),
            open: BTreeMap::new(),
            members: BTreeMap::new(),
            stale: BTreeSet::new(),
        }
    }

    /// A job came that was submitted then; one that came back stays where it was. The jobs that
    /// another engine knew are in the cohorts in which they were there: by when they were
    /// submitted.
    pub fn submit(&mut self, job: JobId, kind: u32, submit_ms: u64) {
        if self.members.contains_key(&job) {
            return;
        }
        let parent = match self.kinds.get(&kind) {
            Some(table) => *table,
            None => self.add(Some(ALL)),
        };
        self.kinds.insert(kind, parent);
        let known = self.submitted_within(parent, submit_ms);
        let cohort = known.unwrap_or_else(|| self.add(Some(parent)));
        let table = self.table(cohort);
        let (first_ms, last_ms) = table.submitted_ms.unwrap_or((submit_ms, submit_ms));
        let last_ms = last_ms.max(submit_ms);
        table.submitted_ms = Some((first_ms.min(submit_ms), last_ms));
        match self.open.get(&kind).copied() {
            Some((_, open_ms)) if open_ms > last_ms => {}
            before => {
                self.open.insert(kind, (cohort, last_ms));
                before.into_iter().for_each(|(before, _)| self.drop_if_over(before));
            }
        }
        self.members.insert(job, (cohort, 0));
        self.each_up(cohort, |table| table.alive[0] += 1);
        self.table(cohort).members.insert(job);
        self.stale.insert(cohort);
    }

    /// The cohort of a kind whose jobs were submitted within [`COHORT_GAP_MS`] of a time; the
    /// newest one where there are several.
    fn submitted_within(&self, kind: u32, submit_ms: u64) -> Option<u32> {
        let cohorts = self.tables.get(&kind)?.cohorts.iter().copied();
        let spans = cohorts.filter_map(|cohort| Some((self.tables[&cohort].submitted_ms?, cohort)));
        let near = spans.filter(|((first_ms, last_ms), _)| {
            submit_ms < last_ms.saturating_add(COHORT_GAP_MS)
                && *first_ms < submit_ms.saturating_add(COHORT_GAP_MS)
        });
        near.max_by_key(|((_, last_ms), cohort)| (*last_ms, *cohort)).map(|(_, cohort)| cohort)
    }

    /// The jobs of another engine were submitted to this one: what has none of them is over, and
    /// that they run already is no change since the tables were written.
    pub fn settle(&mut self, plain: &Plain) {
        for from in &plain.tables {
            if let Some(table) = self.tables.get_mut(&from.number) {
                table.changes = from.changes;
            }
            if from.parent.is_some_and(|parent| parent != ALL) {
                self.drop_if_over(from.number);
            }
        }
    }

    /// A job that runs has reached a length.
    pub fn reach(&mut self, job: JobId, bucket: usize) {
        let Some((cohort, reached)) = self.members.get_mut(&job) else { return };
        let (cohort, before) = (*cohort, std::mem::replace(reached, bucket));
        if before != bucket {
            self.each_up(cohort, |table| {
                table.alive[before] -= 1;
                table.alive[bucket] += 1;
                table.changes += 1;
            });
            self.stale.insert(cohort);
        }
    }

    /// A job ended after it had run for so long; `None` is one of which nobody knows.
    pub fn end(&mut self, job: JobId, ran_ms: Option<u64>) {
        let Some((cohort, reached)) = self.members.remove(&job) else { return };
        let length = ran_ms.map(|ran_ms| self.lengths.of(ran_ms));
        let mut next = Some(cohort);
        while let Some(number) = next {
            let table = self.table(number);
            next = table.parent;
            table.alive[reached] -= 1;
            table.changes = table.changes.saturating_add(1);
            let Some(length) = length else { continue };
            if number != cohort && number != ALL {
                table.ended.iter_mut().for_each(|ended| *ended = *ended * KEPT_PERCENT / 100);
            }
            table.ended[length] += ONE;
        }
        self.table(cohort).members.remove(&job);
        self.stale.insert(cohort);
        self.drop_if_over(cohort);
    }

    /// The inverse index of a job at a length, in ms.
    pub fn inverse_index_ms(&self, job: JobId, bucket: usize) -> Option<u64> {
        let (cohort, _) = self.members.get(&job)?;
        Some(self.tables[cohort].inverse_index_ms[bucket])
    }

    /// Computes again what is out of date; the jobs that this is about.
    pub fn refresh(&mut self) -> Vec<JobId> {
        let mut about = Vec::new();
        for cohort in std::mem::take(&mut self.stale) {
            let Some(table) = self.tables.get(&cohort) else { continue };
            if !table.is_to_be_computed() {
                self.stale.insert(cohort);
                continue;
            }
            let inverse = self.lengths.inverse_index_ms(&self.hazards(cohort));
            let table = self.table(cohort);
            table.changes = 0;
            if table.inverse_index_ms != inverse {
                table.inverse_index_ms = inverse;
                about.extend(table.members.iter().copied());
            }
        }
        about
    }

    /// The chance that a job which reaches a length ends there.
    fn hazards(&self, number: u32) -> [f64; BUCKETS] {
        let table = &self.tables[&number];
        let (mut hazards, weight) = match table.parent {
            None => ([1.0 - libm::exp2(-PRIOR_EXPONENT); BUCKETS], PRIOR_JOBS),
            Some(ALL) => (self.hazards(ALL), WEIGHTS[0]),
            Some(kind) => (self.hazards(kind), WEIGHTS[1]),
        };
        let jobs = table.ended.iter().zip(&table.alive).rev();
        let jobs = jobs.map(|(ended, alive)| (*ended as f64 / ONE as f64, f64::from(*alive)));
        chances::narrow(&mut hazards, weight, jobs);
        hazards
    }

    fn add(&mut self, parent: Option<u32>) -> u32 {
        let number = self.tables.last_key_value().map_or(ALL, |(last, _)| last + 1);
        self.tables.insert(number, CohortCounts::below(parent));
        self.note_cohort(parent, number);
        number
    }

    fn note_cohort(&mut self, parent: Option<u32>, number: u32) {
        if let Some(kind) = parent.filter(|parent| *parent != ALL) {
            self.table(kind).cohorts.insert(number);
        }
    }

    fn table(&mut self, number: u32) -> &mut CohortCounts {
        self.tables.get_mut(&number).expect("tables of members and their parents are kept")
    }

    fn each_up(&mut self, number: u32, change: impl Fn(&mut CohortCounts)) {
        let mut next = Some(number);
        while let Some(number) = next {
            let table = self.table(number);
            change(table);
            next = table.parent;
        }
    }

    /// A cohort that takes no new jobs and has none left is known by its kind alone.
    fn drop_if_over(&mut self, cohort: u32) {
        let is_open = self.open.values().any(|(open, _)| *open == cohort);
        if !is_open && self.tables.get(&cohort).is_some_and(|table| table.members.is_empty()) {
            let kind = self.tables.remove(&cohort).and_then(|table| table.parent);
            let kind = kind.and_then(|kind| self.tables.get_mut(&kind));
            kind.into_iter().for_each(|kind| _ = kind.cohorts.remove(&cohort));
            self.stale.remove(&cohort);
        }
    }

    /// All that is known, as plain data.
    pub fn plain(&self) -> Plain {
        let table = |(number, table): (&u32, &CohortCounts)| CohortTable {
            number: *number,
            parent: table.parent,
            ended: (0_u8..).zip(table.ended).filter(|(_, ended)| *ended > 0).collect(),
            inverse_index_ms: table.inverse_index_ms.to_vec(),
            changes: table.changes,
            submitted_ms: table.submitted_ms,
        };
        Plain {
            requeue_ms: Vec::new(),
            tables: self.tables.iter().map(table).collect(),
            kinds: self.kinds.iter().map(|(kind, table)| (*kind, *table)).collect(),
            open: self.open.iter().map(|(kind, (table, ms))| (*kind, *table, *ms)).collect(),
            members: self.members.iter().map(|(job, (c, at))| (*job, *c, *at as u8)).collect(),
            running: Vec::new(),
            stale: self.stale.iter().copied().collect(),
        }
    }

    /// What was learned, as plain data for an engine that knows the same jobs by other numbers.
    pub fn learned(&self) -> Plain {
        let mut plain = self.plain();
        plain.members.clear();
        for table in &mut plain.tables {
            table.inverse_index_ms.retain(|index_ms| *index_ms < u64::MAX);
        }
        plain
    }

    /// What plain data says.
    pub fn of(plain: &Plain) -> Self {
        let mut cohorts = Self::new();
        for from in &plain.tables {
            let is_known =
                |parent: u32| parent < from.number && cohorts.tables.contains_key(&parent);
            if from.number != ALL && !from.parent.is_some_and(is_known) {
                continue;
            }
            let mut table = CohortCounts::below(from.parent.filter(|_| from.number != ALL));
            for (bucket, ended) in &from.ended {
                table.ended[usize::from(*bucket).min(BUCKETS - 1)] = *ended;
            }
            table.changes = from.changes;
            table.submitted_ms = from.submitted_ms;
            for (to, from) in table.inverse_index_ms.iter_mut().zip(&from.inverse_index_ms) {
                *to = *from;
            }
            let parent = table.parent;
            cohorts.tables.insert(from.number, table);
            cohorts.note_cohort(parent, from.number);
        }
        let is_there = |table: &u32| cohorts.tables.contains_key(table);
        let kinds = plain.kinds.iter().copied().filter(|(_, table)| is_there(table));
        cohorts.kinds = kinds.collect();
        let open = plain.open.iter().filter(|(_, table, _)| is_there(table));
        cohorts.open = open.map(|(kind, table, ms)| (*kind, (*table, *ms))).collect();
        for (table, ms) in cohorts.open.clone().into_values() {
            cohorts.table(table).submitted_ms.get_or_insert((ms, ms));
        }
        let is_cohort = |table: &&CohortTable| table.parent.is_some_and(|parent| parent != ALL);
        let uncomputed = plain.tables.iter().filter(is_cohort);
        let uncomputed = uncomputed.filter(|table| table.inverse_index_ms.is_empty());
        let stale = plain.stale.iter().copied().chain(uncomputed.map(|table| table.number));
        let is_there = |table: &u32| cohorts.tables.contains_key(table);
        cohorts.stale = stale.filter(is_there).collect();
        for (job, cohort, reached) in &plain.members {
            if cohorts.tables.contains_key(cohort) {
                let reached = usize::from(*reached).min(BUCKETS - 1);
                cohorts.members.insert(*job, (*cohort, reached));
                cohorts.each_up(*cohort, |table| table.alive[reached] += 1);
                cohorts.table(*cohort).members.insert(*job);
            }
        }
        cohorts
    }
}
