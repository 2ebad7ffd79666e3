//! The course of a job: what its ranks do one after the other, written on tapes with labels.

use dovetail_account::device_time::Span;
use dovetail_phases::job_phases::{ContainerRun, Phase, RunEnd};

use crate::nature::Nature;
use crate::random::Random;
use crate::tape::{Levels, Quantity, Tape};

/// A job as it truly ran.
pub(crate) struct Course {
    pub(crate) nature: Nature,
    pub(crate) members: Vec<MemberCourse>,
    pub(crate) checkpoints_ms: Vec<u64>,
    /// Now, from the begin of the job.
    pub(crate) now_ms: u64,
    /// By rank: the member that is it at present.
    live: Vec<usize>,
    last_checkpoint_ms: u64,
    attempts: u32,
}

#[derive(Default)]
pub(crate) struct MemberCourse {
    pub(crate) rank: usize,
    pub(crate) span: Span,
    pub(crate) runs: Vec<ContainerRun>,
    pub(crate) tape: Tape,
}

/// A rank that is slower than the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Straggler {
    pub(crate) rank: usize,
    /// Its time by that of others.
    pub(crate) factor: f64,
    /// It waits for data, and does not compute more slowly.
    pub(crate) by_loading: bool,
}

/// What a failure leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// Containers start again in their pods.
    InPlace,
    /// New pods take over.
    Replaced,
}

/// Waiting of less than this part of an iteration is the rhythm of a balanced job, and no phase of
/// its own.
const RHYTHM: f64 = 0.05;

impl Course {
    /// All ranks get their devices.
    pub(crate) fn new(nature: Nature, random: &mut Random) -> Self {
        let member = |rank| MemberCourse { rank, ..MemberCourse::default() };
        let mut course = Self {
            nature,
            members: (0..nature.ranks).map(member).collect(),
            checkpoints_ms: Vec::new(),
            now_ms: 0,
            live: (0..nature.ranks).collect(),
            last_checkpoint_ms: 0,
            attempts: 0,
        };
        course.start(random, 1.0);
        course
    }

    /// Something that all ranks do alike for some time.
    pub(crate) fn all(&mut self, length_ms: f64, phase: Phase, levels: Levels) {
        self.each(length_ms, |_| (phase, levels));
    }

    /// Something that each rank does for some time.
    pub(crate) fn each(&mut self, length_ms: f64, of: impl Fn(usize) -> (Phase, Levels)) {
        let to_ms = self.now_ms + length_ms as u64;
        for rank in 0..self.nature.ranks {
            let (phase, levels) = of(rank);
            self.write(rank, self.now_ms, to_ms, phase, &levels);
        }
        self.now_ms = to_ms;
    }

    fn write(&mut self, rank: usize, from_ms: u64, to_ms: u64, phase: Phase, levels: &Levels) {
        self.members[self.live[rank]].tape.add(from_ms, to_ms, phase, levels);
    }

    /// Iterations for about some time. `exposed` is what each iteration waits for data, by its
    /// compute.
    pub(crate) fn iterate(
        &mut self,
        random: &mut Random,
        length_ms: f64,
        exposed: f64,
        straggler: Option<Straggler>,
    ) {
        let until_ms = self.now_ms + length_ms as u64;
        while self.now_ms < until_ms {
            self.iteration(random, exposed, straggler);
        }
    }

    fn iteration(&mut self, random: &mut Random, exposed: f64, straggler: Option<Straggler>) {
        let nature = self.nature;
        let from_ms = self.now_ms;
        let of_all = nature.compute_ms * (1.0 + nature.iteration_jitter * random.normal());
        let mut ends_ms = Vec::new();
        for rank in 0..nature.ranks {
            let own = 1.0 + nature.rank_jitter * random.normal();
            let mut compute_ms = of_all.max(100.0) * own.max(0.5);
            let mut load_ms = nature.compute_ms * exposed * (1.0 + 0.1 * random.normal()).max(0.0);
            let mut working = nature.working;
            match straggler.filter(|straggler| straggler.rank == rank) {
                Some(slow) if slow.by_loading => load_ms += compute_ms * (slow.factor - 1.0),
                Some(slow) => {
                    compute_ms *= slow.factor;
                    // A slow clock: memory has less to do in the same time.
                    working.0[Quantity::Dram as usize] /= slow.factor;
                }
                None => {}
            }
            let loaded_ms = from_ms + load_ms as u64;
            let computed_ms = loaded_ms + compute_ms as u64;
            self.write(rank, from_ms, loaded_ms, Phase::DataLoading, &nature.loading);
            self.write(rank, loaded_ms, computed_ms, Phase::Compute, &working);
            ends_ms.push(computed_ms);
        }
        let all_ms = ends_ms.iter().copied().max().unwrap_or(from_ms);
        let transferred_ms = all_ms + (nature.transfer_part * nature.compute_ms) as u64;
        for (rank, end_ms) in ends_ms.into_iter().enumerate() {
            let is_wait = (all_ms - end_ms) as f64 > RHYTHM * (all_ms - from_ms) as f64;
            let phase = if is_wait { Phase::Synchronisation } else { Phase::Compute };
            self.write(rank, end_ms, all_ms, phase, &nature.spinning);
            if nature.ranks > 1 {
                let levels = &nature.transferring;
                self.write(rank, all_ms, transferred_ms, Phase::Compute, levels);
            }
        }
        self.now_ms = if nature.ranks > 1 { transferred_ms } else { all_ms };
    }

    /// One rank does something else and the others wait for it in a collective.
    pub(crate) fn one_of(&mut self, rank: usize, length_ms: f64, phase: Phase, levels: Levels) {
        let spinning = self.nature.spinning;
        self.each(length_ms, |other| match other == rank {
            true => (phase, levels),
            false => (Phase::Synchronisation, spinning),
        });
    }

    /// All wait for a checkpoint to be written.
    pub(crate) fn save(&mut self, random: &mut Random) {
        let nature = self.nature;
        let length_ms = nature.save_ms * random.between(0.8, 1.25);
        self.each(length_ms, |rank| match nature.is_sharded || rank == 0 {
            true => (Phase::CheckpointSave, nature.saving),
            false => (Phase::CheckpointSave, nature.spinning),
        });
        self.last_checkpoint_ms = self.now_ms;
        self.checkpoints_ms.push(self.now_ms);
    }

    /// A rank fails, the others wait for it and are ended; then all start again. `spoilt` says what
    /// of the time since the last checkpoint was lost.
    pub(crate) fn fail(&mut self, random: &mut Random, rank: usize, restart: Restart) {
        let failed_ms = self.now_ms;
        let since_ms = self.last_checkpoint_ms;
        let redone = [Phase::Compute, Phase::Synchronisation, Phase::DataLoading, Phase::ShortGap];
        for member in &mut self.members {
            member.tape.rename(since_ms, failed_ms, &redone, Phase::Repeated);
        }
        let ended_ms = failed_ms + random.between(2e3, 60e3) as u64;
        let spinning = self.nature.spinning;
        for other in 0..self.nature.ranks {
            let end_ms = if other == rank { failed_ms } else { ended_ms };
            self.write(other, failed_ms, end_ms, Phase::GangWait, &spinning);
            let member = &mut self.members[self.live[other]];
            member.runs.last_mut().expect("it ran").span.to_ms = end_ms;
            member.runs.last_mut().expect("it ran").end = RunEnd::Lost;
            if restart == Restart::Replaced {
                member.span.to_ms = end_ms;
                let span = Span { from_ms: ended_ms, to_ms: 0 };
                self.live[other] = self.members.len();
                self.members.push(MemberCourse { rank: other, span, ..MemberCourse::default() });
            } else {
                let quiet = Levels::default();
                self.write(other, end_ms, ended_ms, Phase::ImageAndStart, &quiet);
            }
        }
        self.now_ms = ended_ms;
        let part = if restart == Restart::Replaced { 1.0 } else { 0.2 };
        self.start(random, part);
    }

    /// Images, containers, gang, frameworks, checkpoint. `image_part` is what is left to pull.
    fn start(&mut self, random: &mut Random, image_part: f64) {
        let nature = self.nature;
        let from_ms = self.now_ms;
        let quiet = Levels::default();
        let mut ups_ms = Vec::new();
        for rank in 0..nature.ranks {
            // Some nodes have the image.
            let part = if random.chance(0.3) { 0.05 } else { random.between(0.6, 1.4) };
            let up_ms = from_ms + (nature.image_ms * image_part * part) as u64 + 800;
            self.write(rank, from_ms, up_ms, Phase::ImageAndStart, &quiet);
            ups_ms.push(up_ms);
        }
        let all_ms = ups_ms.iter().copied().max().unwrap_or(from_ms);
        let waiting = quiet.with(Quantity::Cpus, 0.1);
        for (rank, up_ms) in ups_ms.into_iter().enumerate() {
            self.write(rank, up_ms, all_ms, Phase::GangWait, &waiting);
            let span = Span { from_ms: up_ms, to_ms: 0 };
            self.members[self.live[rank]].runs.push(ContainerRun { span, end: RunEnd::Open });
        }
        self.now_ms = all_ms;
        let init_ms = nature.init_ms * random.between(0.8, 1.2);
        self.all(init_ms, Phase::ImageAndStart, nature.starting);
        if self.attempts > 0 && !self.checkpoints_ms.is_empty() {
            let length_ms = nature.restore_ms * random.between(0.8, 1.2);
            self.all(length_ms, Phase::CheckpointRestore, nature.restoring);
        }
        self.attempts += 1;
        self.last_checkpoint_ms = self.now_ms;
    }

    /// Held for some time after the last work, and for a little longer after the containers ended.
    pub(crate) fn finish(&mut self, random: &mut Random, tail_ms: f64, end: RunEnd) {
        let levels = match random.chance(0.5) {
            true => self.nature.away,
            false => self.nature.away.with(Quantity::Cpus, random.between(0.5, 4.0)),
        };
        if tail_ms > 0.0 {
            self.all(tail_ms, Phase::Tail, levels);
        }
        let (ended_ms, gone_ms) = (self.now_ms, self.now_ms + random.between(0.0, 30e3) as u64);
        for rank in 0..self.nature.ranks {
            let is_over = end == RunEnd::Completed;
            let to_ms = if is_over { gone_ms } else { ended_ms };
            self.write(rank, ended_ms, to_ms, Phase::Tail, &Levels::default());
            let member = &mut self.members[self.live[rank]];
            member.span.to_ms = to_ms;
            let run = member.runs.last_mut().expect("it ran");
            (run.span.to_ms, run.end) = (ended_ms, end);
        }
        let board = self.nature.board;
        self.members.iter_mut().for_each(|member| member.tape.draw_power(&board));
    }
}
