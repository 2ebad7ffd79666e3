//! Records by hand, whose phases can be read off, and random ones, whose time must add up.

use dovetail_account::device_time::Span;
use dovetail_cases::cases;
use proptest::prelude::*;

use super::*;

const STEP_MS: u64 = 30_000;
const MINUTE_MS: u64 = 60_000;

/// Percent to millionths of a percent.
fn percent(share: u32) -> Option<u32> {
    Some(share * 1_000_000)
}

/// A host that does nothing.
fn quiet(sample: DeviceSample) -> DeviceSample {
    DeviceSample {
        cpu_milli: Some(300),
        read_bytes_per_s: Some(0),
        written_bytes_per_s: Some(0),
        ..sample
    }
}

fn works() -> DeviceSample {
    quiet(DeviceSample {
        engine_micro_percent: percent(99),
        tensor_micro_percent: percent(40),
        dram_micro_percent: percent(50),
        power_milliwatts: Some(600_000),
        ..DeviceSample::default()
    })
}

fn spins() -> DeviceSample {
    quiet(DeviceSample {
        engine_micro_percent: percent(100),
        tensor_micro_percent: percent(0),
        dram_micro_percent: percent(1),
        power_milliwatts: Some(150_000),
        ..DeviceSample::default()
    })
}

fn idles() -> DeviceSample {
    quiet(DeviceSample {
        engine_micro_percent: percent(0),
        tensor_micro_percent: percent(0),
        dram_micro_percent: percent(0),
        power_milliwatts: Some(80_000),
        ..DeviceSample::default()
    })
}

fn loads() -> DeviceSample {
    DeviceSample { cpu_milli: Some(8000), read_bytes_per_s: Some(300_000_000), ..idles() }
}

fn saves() -> DeviceSample {
    DeviceSample { written_bytes_per_s: Some(900_000_000), ..idles() }
}

/// A job whose members ran all the time, from samples by number and minutes by sample.
fn job(members: &[&[(u64, DeviceSample)]], end: RunEnd) -> JobRecord {
    let member = |(rank, course): (usize, &&[(u64, DeviceSample)])| {
        let samples: Vec<DeviceSample> = course
            .iter()
            .flat_map(|(minutes, sample)| vec![*sample; (minutes * MINUTE_MS / STEP_MS) as usize])
            .collect();
        let span = Span { from_ms: 0, to_ms: samples.len() as u64 * STEP_MS };
        Member {
            name: format!("gpu {rank}"),
            rank: rank as u32,
            gpu_milli: 1000,
            held: span,
            runs: vec![ContainerRun { span, end }],
            samples,
            ran_before: false,
        }
    };
    JobRecord {
        step_ms: STEP_MS,
        ranks: members.len() as u32,
        members: members.iter().enumerate().map(member).collect(),
        ..JobRecord::default()
    }
}

/// Minutes by phase of each member.
fn minutes(record: &JobRecord) -> Vec<Vec<(Phase, u64)>> {
    let found = job_phases(record, &PhaseRule::default()).expect("it can be split");
    let of = |member: &MemberPhases| {
        let phases = member.by_phase().into_iter();
        phases.map(|(phase, ms)| (phase, ms / MINUTE_MS)).collect()
    };
    found.members.iter().map(of).collect()
}

#[test]
fn of_activity_alone_nothing_is_synchronisation_however_little_it_is() {
    let at =
        |share| DeviceSample { engine_micro_percent: percent(share), ..DeviceSample::default() };
    let courses = [[(60, at(100)), (300, at(1))], [(60, at(1)), (300, at(1))]];
    for course in courses {
        let found = minutes(&job(&[&course, &[(360, at(100))]], RunEnd::Open));
        let phases: Vec<Phase> = found.iter().flatten().map(|(phase, _)| *phase).collect();
        assert!(!phases.contains(&Phase::Synchronisation), "{found:?}");
    }
}

#[test]
fn a_rank_that_spins_while_another_loads_synchronises_and_the_other_loads() {
    let waits = [(20, works()), (4, spins()), (20, works())];
    let slow = [(20, works()), (4, loads()), (20, works())];
    let found = minutes(&job(&[&waits, &slow, &waits], RunEnd::Open));
    let wait = vec![(Phase::Synchronisation, 4), (Phase::Compute, 40)];
    let load = vec![(Phase::DataLoading, 4), (Phase::Compute, 40)];
    assert_eq!(found, [wait.clone(), load, wait]);
}

/// Small pieces from a disk make a low rate; the disk is busy all the same. One that is busy with
/// what is written is not.
#[test]
fn a_busy_disk_is_loading_at_any_rate() {
    let pieces = DeviceSample {
        read_bytes_per_s: Some(3_000_000),
        disk_busy_micro_percent: percent(90),
        ..idles()
    };
    let of = |sample: DeviceSample| {
        minutes(&job(&[&[(20, works()), (4, sample), (20, works())]], RunEnd::Open))
    };
    assert_eq!(of(pieces), [vec![(Phase::DataLoading, 4), (Phase::Compute, 40)]]);
    let calm = DeviceSample { disk_busy_micro_percent: percent(40), ..pieces };
    assert_eq!(of(calm), [vec![(Phase::ShortGap, 4), (Phase::Compute, 40)]]);
    let saves = DeviceSample { disk_busy_micro_percent: percent(100), ..saves() };
    assert_eq!(of(saves), [vec![(Phase::CheckpointSave, 4), (Phase::Compute, 40)]]);
}

/// Idle before the first work is the start of a job whose start was seen, and a pause of one that
/// ran before.
#[test]
fn what_ran_before_it_was_seen_does_not_start() {
    let mut job = job(&[&[(30, idles()), (60, works())]], RunEnd::Open);
    let unseen = vec![vec![(Phase::LongPause, 30), (Phase::Compute, 60)]];
    let seen = Member { ran_before: true, ..job.members[0].clone() };
    let starts = |record: &JobRecord| {
        let starts = [Phase::ImageAndStart, Phase::LongPause];
        minutes(record)[0].iter().any(|(phase, _)| starts[..1].contains(phase))
    };
    // Half an hour of nothing at all is a pause either way; loading is what tells.
    job.members[0].samples[..60].fill(loads());
    assert!(starts(&job));
    job.members[0] = seen;
    assert_eq!(minutes(&job), unseen);
    job.members[0].samples[..60].fill(loads());
    assert!(!starts(&job));
}

#[test]
fn without_signals_that_separate_busy_time_is_not_separable() {
    let blind = |sample: DeviceSample| DeviceSample {
        tensor_micro_percent: None,
        dram_micro_percent: None,
        power_milliwatts: None,
        ..sample
    };
    let course = [(20, blind(works())), (4, blind(spins())), (20, blind(works()))];
    let found = minutes(&job(&[&course, &course], RunEnd::Open));
    assert_eq!(found[0], [(Phase::BusyNotSeparable, 44)]);
    // A host that nobody reads leaves open what an idle device waits for, unless it waits very
    // long.
    let alone = |sample: DeviceSample| DeviceSample {
        cpu_milli: None,
        read_bytes_per_s: None,
        written_bytes_per_s: None,
        ..sample
    };
    let course = [(10, works()), (9, alone(idles())), (10, works()), (30, alone(idles()))];
    let found = minutes(&job(&[&course], RunEnd::Open));
    // Two samples are taken from the one before them, as far as the host goes.
    let expected =
        [(Phase::ShortGap, 1), (Phase::LongPause, 30), (Phase::Compute, 20), (Phase::Unknown, 8)];
    assert_eq!(found[0], expected);
}

#[test]
fn spinning_of_all_is_a_hang_after_ten_minutes() {
    for (length, phase) in [(9, Phase::Synchronisation), (11, Phase::Hang)] {
        let course = [(20, works()), (length, spins()), (20, works())];
        let found = minutes(&job(&[&course, &course], RunEnd::Open));
        assert!(found[0].contains(&(phase, length)), "{length}: {found:?}");
    }
    // One that reads is waited for, however long.
    let (waits, reads) = ([(20, works()), (30, spins())], [(20, works()), (30, loads())]);
    let found = minutes(&job(&[&waits, &reads], RunEnd::Open));
    assert_eq!(found[0], [(Phase::Synchronisation, 30), (Phase::Compute, 20)]);
}

#[test]
fn what_follows_the_last_checkpoint_of_a_lost_attempt_is_repeated() {
    let writes = [(20, works()), (2, saves()), (10, works())];
    let waits = [(20, works()), (2, spins()), (10, works())];
    let mut record = job(&[&writes, &waits], RunEnd::Lost);
    let seen = vec![(Phase::CheckpointSave, 2), (Phase::Repeated, 10), (Phase::Compute, 20)];
    assert_eq!(minutes(&record), [seen.clone(), seen]);
    record.checkpoints_ms = vec![30 * MINUTE_MS];
    assert!(minutes(&record)[0].contains(&(Phase::Repeated, 2)));
}

#[test]
fn events_bound_start_gang_wait_and_tail_to_the_millisecond() {
    let course = [(20, works()), (10, idles())];
    let mut record = job(&[&course, &course], RunEnd::Completed);
    for (member, from_ms) in record.members.iter_mut().zip([61_234, 90_007]) {
        member.runs[0].span.from_ms = from_ms;
        member.samples[..4].fill(idles());
    }
    record.members[0].held.to_ms += 777;
    let found = job_phases(&record, &PhaseRule::default()).unwrap();
    let of = |member: usize, phase: Phase| found.members[member].by_phase()[&phase];
    assert_eq!(of(0, Phase::GangWait), 90_007 - 61_234);
    assert_eq!(of(0, Phase::Tail), 10 * MINUTE_MS + 777);
    assert_eq!(of(1, Phase::ImageAndStart), 120_000);
    let first = &found.members[0].stretches[0];
    assert_eq!(first.span, Span { from_ms: 0, to_ms: 61_234 });
    assert_eq!((first.parts[0].confidence, first.parts[0].is_place), (Confidence::High, true));
}

#[test]
fn records_that_contradict_themselves_are_refused_by_name() {
    let record = job(&[&[(10, works())]], RunEnd::Open);
    let refused = |change: fn(&mut JobRecord)| {
        let mut record = record.clone();
        change(&mut record);
        job_phases(&record, &PhaseRule::default()).unwrap_err().to_string()
    };
    assert!(refused(|record| record.step_ms = 0).contains("sample interval is zero"));
    assert!(refused(|record| record.ranks = 0).contains("gpu 0: is rank 0 of a job of 0"));
    assert!(refused(|record| record.members[0].held.from_ms = u64::MAX).contains("its holding"));
    assert!(refused(|record| record.members[0].runs[0].span.to_ms += 1).contains("a run"));
    assert!(refused(|record| record.members[0].held.to_ms = u64::MAX).contains("steps long"));
}

fn some_sample() -> impl Strategy<Value = DeviceSample> {
    let plain = prop_oneof![
        Just(works()),
        Just(spins()),
        Just(idles()),
        Just(loads()),
        Just(saves()),
        Just(DeviceSample::default())
    ];
    (plain, any::<u32>(), 0..4u8).prop_map(|(sample, number, what)| match what {
        0 => DeviceSample { engine_micro_percent: Some(number), ..sample },
        1 => {
            DeviceSample { util_micro_percent: Some(number), engine_micro_percent: None, ..sample }
        }
        2 => DeviceSample { written_bytes_per_s: Some(u64::MAX), power_milliwatts: None, ..sample },
        _ => sample,
    })
}

prop_compose! {
    fn some_member()(
        rank in 0..3u32,
        held_ms in 0..2_000_000u64,
        length_ms in 0..4_000_000u64,
        runs in prop::collection::vec((0..900_000u64, 0..1_500_000u64, 0..3u8), 0..4),
        samples in prop::collection::vec((some_sample(), 1..20usize), 0..12),
    ) -> Member {
        let held = Span { from_ms: held_ms, to_ms: held_ms + length_ms };
        let mut at_ms = held_ms;
        let run = |(pause_ms, run_ms, end): (u64, u64, u8)| {
            let from_ms = (at_ms + pause_ms).min(held.to_ms);
            at_ms = (from_ms + run_ms).min(held.to_ms);
            let ends = [RunEnd::Completed, RunEnd::Lost, RunEnd::Open];
            ContainerRun { span: Span { from_ms, to_ms: at_ms }, end: ends[usize::from(end)] }
        };
        let runs = runs.into_iter().map(run).collect();
        let samples = samples.into_iter().flat_map(|(sample, times)| vec![sample; times]);
        Member { name: "m".into(), rank, gpu_milli: 500, held, runs, samples: samples.collect(), ran_before: false }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn all_parts_together_are_the_time_that_was_held(
        members in prop::collection::vec(some_member(), 0..6),
        step_ms in prop_oneof![Just(15_000u64), Just(60_000), 1_000..100_000u64],
        checkpoints_ms in prop::collection::vec(0..4_000_000u64, 0..3),
    ) {
        let ranks = members.iter().map(|member| member.rank + 1).max().unwrap_or(0);
        let record = JobRecord { from_ms: 0, step_ms, ranks, members, checkpoints_ms };
        let found = job_phases(&record, &PhaseRule::default()).unwrap();
        let mut held = 0;
        for (member, found) in record.members.iter().zip(&found.members) {
            let mut at_ms = member.held.from_ms;
            for stretch in &found.stretches {
                prop_assert_eq!(stretch.span.from_ms, at_ms);
                let parts: u64 = stretch.parts.iter().map(|part| part.length_ms).sum();
                prop_assert_eq!(parts, stretch.span.to_ms - stretch.span.from_ms);
                at_ms = stretch.span.to_ms;
            }
            prop_assert_eq!(at_ms, member.held.to_ms);
            held += i128::from(member.held.to_ms - member.held.from_ms) * 500;
        }
        prop_assert_eq!(found.by_phase().values().sum::<i128>(), held);
    }
}
