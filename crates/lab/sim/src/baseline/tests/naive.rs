//! A plain replay that shares no code with the real one: whole-trace scans, node lists, no memory
//! of what failed, one list of times per job.

use super::*;

/// First start and end of every job in microseconds.
pub(super) fn replay(
    jobs: &[BaselineJob],
    nodes: &[u32],
    order: BaselineOrder,
    overhead_us: &[u64],
) -> Vec<(u64, u64)> {
    let mut world = World {
        jobs,
        left: jobs.iter().map(|job| job.service_us).collect(),
        attained: vec![0; jobs.len()],
        level: vec![0; jobs.len()],
        list: Vec::new(),
        running: Vec::new(),
        first_start: vec![None; jobs.len()],
        end: vec![None; jobs.len()],
    };
    let mut last = 0;
    while let Some(now) = world.next_instant(last, order) {
        let ends_are_due: Vec<usize> =
            world.running.iter().copied().filter(|&job| last + world.left[job] == now).collect();
        for job in (0..jobs.len()).filter(|job| world.running.contains(job)) {
            if ends_are_due.contains(&job) {
                world.end[job] = Some(now);
                world.list.retain(|&other| other != job);
            } else {
                let passed = now - last;
                world.left[job] -= passed.max(overhead_us[job]) - overhead_us[job];
                world.attained[job] += passed;
            }
        }
        world.running.retain(|job| !ends_are_due.contains(job));
        world.demote(order);
        let mut arrived: Vec<usize> = (0..jobs.len()).collect();
        arrived.retain(|&job| {
            jobs[job].submit_us <= now && world.end[job].is_none() && !world.list.contains(&job)
        });
        world.list.extend(arrived);
        world.choose(nodes, order);
        for &job in &world.running {
            world.first_start[job].get_or_insert(now);
        }
        last = now;
    }
    let times = world.first_start.into_iter().zip(world.end);
    times.map(|(start, end)| (start.expect("started"), end.expect("ended"))).collect()
}

struct World<'a> {
    jobs: &'a [BaselineJob],
    left: Vec<u64>,
    attained: Vec<u64>,
    level: Vec<usize>,
    list: Vec<usize>,
    running: Vec<usize>,
    first_start: Vec<Option<u64>>,
    end: Vec<Option<u64>>,
}

impl World<'_> {
    fn next_instant(&self, last: u64, order: BaselineOrder) -> Option<u64> {
        let arrivals = (0..self.jobs.len())
            .filter(|job| self.end[*job].is_none() && !self.list.contains(job))
            .map(|job| self.jobs[job].submit_us);
        let ends = self.running.iter().map(|&job| last + self.left[job]);
        let demotions = self.running.iter().filter_map(|&job| {
            let limit_s = [3250.0, 7200.0, f64::INFINITY][self.level[job]];
            let second = (limit_s / f64::from(self.jobs[job].num_gpu)).ceil();
            let due = order == BaselineOrder::Las && second.is_finite();
            due.then(|| {
                last + (second as u64 * 1_000_000).max(self.attained[job]) - self.attained[job]
            })
        });
        arrivals.chain(ends).chain(demotions).min()
    }

    /// Jobs that leave their queue go to the end of the list, in order of arrival (the input is
    /// sorted); `choose` serves the list level by level.
    fn demote(&mut self, order: BaselineOrder) {
        for job in 0..self.jobs.len() {
            let gpu_us = self.attained[job] * u64::from(self.jobs[job].num_gpu);
            let limit = [3_250_000_000, 7_200_000_000, u64::MAX][self.level[job]];
            if order == BaselineOrder::Las && self.running.contains(&job) && gpu_us >= limit {
                self.level[job] += 1;
                self.list.retain(|&other| other != job);
                self.list.push(job);
            }
        }
    }

    fn choose(&mut self, nodes: &[u32], order: BaselineOrder) {
        let jobs = self.jobs;
        match order {
            BaselineOrder::Srtf => self.list.sort_by_key(|&job| self.left[job]),
            BaselineOrder::Srsf => {
                self.list.sort_by_key(|&job| self.left[job] * u64::from(jobs[job].num_gpu));
            }
            BaselineOrder::Las | BaselineOrder::LasPlaced => {
                self.list.sort_by_key(|&job| self.level[job])
            }
        }
        let pool = [nodes.iter().sum()];
        let nodes = if order == BaselineOrder::Las { &pool } else { nodes };
        let mut free = nodes.to_vec();
        self.running.clear();
        for &job in &self.list {
            if let Some(after) = after_placing(&free, nodes, jobs[job].num_gpu) {
                free = after;
                self.running.push(job);
            }
        }
        if order == BaselineOrder::Las {
            let running = &self.running;
            self.list.sort_by_key(|job| (self.level[*job], !running.contains(job)));
        }
    }
}

fn after_placing(free: &[u32], nodes: &[u32], num_gpu: u32) -> Option<Vec<u32>> {
    let mut after = free.to_vec();
    let mut rest = num_gpu;
    let mut barred = vec![false; nodes.len()];
    if nodes.iter().all(|&size| size < num_gpu) {
        for node in 0..nodes.len() {
            if free[node] == nodes[node] && nodes[node] <= rest {
                rest -= nodes[node];
                after[node] = 0;
                barred[node] = true;
            }
        }
    }
    if rest > 0 {
        let node = (0..nodes.len()).find(|&node| !barred[node] && free[node] >= rest)?;
        after[node] -= rest;
    }
    Some(after)
}
