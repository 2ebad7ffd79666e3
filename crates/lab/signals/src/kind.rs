//! Kinds of jobs: what happens in their course.

use dovetail_phases::job_phases::{Phase, RunEnd};

use crate::course::{Course, Restart, Straggler};
use crate::nature::Nature;
use crate::random::Random;

/// What a job suffers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobBehavior {
    /// Nothing: it trains and saves.
    Balanced,
    /// A rank that is always slower.
    Straggler,
    /// A rank that is slower for some time.
    Episodes,
    /// Too few hands for its data, in every iteration.
    Starved,
    /// Data between epochs, by all or by one rank for which the others wait.
    Epochs,
    Failing,
    /// A collective that never ends, until somebody restarts it.
    Hanging,
    /// A person at a notebook.
    Notebook,
    /// One device, with gaps for evaluations.
    Single,
    /// Devices that are kept after the end.
    Lingering,
}

impl JobBehavior {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Balanced,
        Self::Straggler,
        Self::Episodes,
        Self::Starved,
        Self::Epochs,
        Self::Failing,
        Self::Hanging,
        Self::Notebook,
        Self::Single,
        Self::Lingering,
    ];
}

const MINUTE_MS: f64 = 60e3;

pub(crate) fn course(kind: JobBehavior, random: &mut Random) -> Course {
    let ranks = match kind {
        JobBehavior::Notebook | JobBehavior::Single => 1,
        _ => random.below(2, 10),
    };
    let mut nature = Nature::draw(random, ranks);
    if random.chance(0.5) && kind != JobBehavior::Starved {
        nature = nature.in_memory(random);
    }
    let mut course = Course::new(nature, random);
    match kind {
        JobBehavior::Notebook => return notebook(course, random),
        JobBehavior::Hanging => hanging(&mut course, random),
        JobBehavior::Failing => failing(&mut course, random),
        _ => training(kind, &mut course, random, 2.5 * 60.0 * MINUTE_MS),
    }
    let tail_ms = match kind {
        JobBehavior::Lingering => random.between(12.0, 50.0) * MINUTE_MS,
        _ if random.chance(0.3) => random.between(0.5, 6.0) * MINUTE_MS,
        _ => 0.0,
    };
    course.finish(random, tail_ms, RunEnd::Completed);
    course
}

/// Between checkpoints, until some time has passed; ends with a checkpoint.
fn training(kind: JobBehavior, course: &mut Course, random: &mut Random, length_ms: f64) {
    let until_ms = course.now_ms + length_ms as u64;
    let slow = straggler(course, random);
    let exposed = match kind {
        JobBehavior::Starved => random.between(0.15, 1.2),
        _ => 0.0,
    };
    while course.now_ms < until_ms {
        let until_save_ms = course.now_ms + course.nature.checkpoint_every_ms as u64;
        while course.now_ms < until_save_ms {
            block(kind, course, random, exposed, slow);
        }
        course.save(random);
    }
}

/// Some minutes of training, with what the kind suffers from.
fn block(
    kind: JobBehavior,
    course: &mut Course,
    random: &mut Random,
    exposed: f64,
    slow: Straggler,
) {
    let minutes = |random: &mut Random, low: f64, high: f64| random.between(low, high) * MINUTE_MS;
    let nature = course.nature;
    match kind {
        JobBehavior::Straggler => {
            let length_ms = minutes(random, 4.0, 10.0);
            course.iterate(random, length_ms, exposed, Some(slow));
        }
        JobBehavior::Episodes => {
            let (well_ms, ill_ms) = (minutes(random, 5.0, 12.0), minutes(random, 3.0, 10.0));
            course.iterate(random, well_ms, exposed, None);
            let slow = straggler(course, random);
            course.iterate(random, ill_ms, exposed, Some(slow));
        }
        JobBehavior::Epochs => {
            let (length_ms, load_ms) = (minutes(random, 4.0, 9.0), minutes(random, 0.7, 4.0));
            course.iterate(random, length_ms, exposed, None);
            match random.chance(0.5) {
                true => course.all(load_ms, Phase::DataLoading, nature.loading),
                false => course.one_of(slow.rank, load_ms, Phase::DataLoading, nature.loading),
            }
        }
        JobBehavior::Single => {
            let (length_ms, gap_ms) = (minutes(random, 4.0, 12.0), minutes(random, 0.5, 5.0));
            course.iterate(random, length_ms, exposed, None);
            course.all(gap_ms, Phase::ShortGap, nature.resting);
        }
        _ => {
            let length_ms = minutes(random, 5.0, 15.0);
            course.iterate(random, length_ms, exposed, None);
            if random.chance(0.3) {
                let gap_ms = minutes(random, 0.2, 2.0);
                course.all(gap_ms, Phase::ShortGap, nature.resting);
            }
        }
    }
}

fn straggler(course: &Course, random: &mut Random) -> Straggler {
    Straggler {
        rank: random.below(0, course.nature.ranks),
        factor: random.between(1.15, 2.6),
        by_loading: random.chance(0.5),
    }
}

fn failing(course: &mut Course, random: &mut Random) {
    for _ in 0..random.below(1, 4) {
        let length_ms = random.between(20.0, 70.0) * MINUTE_MS;
        training(JobBehavior::Balanced, course, random, length_ms);
        let lost_ms = random.between(0.1, 0.9) * course.nature.checkpoint_every_ms;
        course.iterate(random, lost_ms, 0.0, None);
        let rank = random.below(0, course.nature.ranks);
        let restart = if random.chance(0.5) { Restart::InPlace } else { Restart::Replaced };
        course.fail(random, rank, restart);
    }
    training(JobBehavior::Balanced, course, random, 40.0 * MINUTE_MS);
}

fn hanging(course: &mut Course, random: &mut Random) {
    let length_ms = random_minutes(random, 20.0, 60.0);
    training(JobBehavior::Balanced, course, random, length_ms);
    let before_ms = random_minutes(random, 2.0, 15.0);
    course.iterate(random, before_ms, 0.0, None);
    let nature = course.nature;
    let stuck = random.below(0, 2 * nature.ranks);
    // One of them may have stopped outside the collective.
    let hang_ms = random_minutes(random, 14.0, 60.0);
    course.each(hang_ms, |rank| match rank == stuck {
        true => (Phase::Hang, nature.away),
        false => (Phase::Hang, nature.spinning),
    });
    course.fail(random, stuck % nature.ranks, Restart::InPlace);
    training(JobBehavior::Balanced, course, random, 40.0 * MINUTE_MS);
}

fn random_minutes(random: &mut Random, low: f64, high: f64) -> f64 {
    random.between(low, high) * MINUTE_MS
}

fn notebook(mut course: Course, random: &mut Random) -> Course {
    let nature = course.nature;
    for _ in 0..random.below(4, 9) {
        for _ in 0..random.below(1, 6) {
            let (length_ms, gap_ms) =
                (random_minutes(random, 1.5, 8.0), random_minutes(random, 0.5, 9.0));
            course.iterate(random, length_ms, 0.0, None);
            course.all(gap_ms, Phase::ShortGap, nature.resting);
        }
        let length_ms = random_minutes(random, 2.0, 6.0);
        course.iterate(random, length_ms, 0.0, None);
        let pause_ms = random_minutes(random, 18.0, 100.0);
        course.all(pause_ms, Phase::LongPause, nature.away);
    }
    course.finish(random, 0.0, RunEnd::Open);
    course
}
