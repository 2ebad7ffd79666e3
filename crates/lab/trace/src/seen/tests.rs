use std::collections::BTreeMap;

use dovetail_cases::cases;
use proptest::prelude::*;

use super::*;

fn part(from_ms: u64, to_ms: u64, gpu_milli: i64, pod: Option<u32>) -> SeenPart {
    SeenPart { from_ms, to_ms, gpu_milli, pod }
}

fn pod(number: u32) -> SeenPod {
    let gang = (number >= 10).then(|| "JobSet a/b".to_owned());
    SeenPod { name: format!("a/pod-{number}"), gang, ..SeenPod::default() }
}

fn lines(trace: &Trace) -> Vec<String> {
    let line = |job: &TraceJob| {
        let TraceJob { id, submit_ms, pod_count, gpu_count, gpu_milli, cut, .. } = job;
        let TraceJob { cpu_milli, duration_ms, .. } = job;
        let duration_ms = duration_ms.unwrap_or(0);
        format!(
            "{id} {submit_ms}+{duration_ms} {pod_count}x{gpu_count}x{gpu_milli} cpu {cpu_milli} cut \
             `{}`",
            cut.name()
        )
    };
    trace.jobs.iter().map(line).collect()
}

#[test]
fn a_job_is_a_pod_with_the_same_gpus_and_what_nobody_saw_is_marked() {
    let mut seen = ObservedAllocations::default();
    // Pod 1 computes on one GPU, gets another, and gives both back at once. Nobody saw GPU 2
    // before.
    seen.add(1, &[part(100, 150, 1000, None), part(150, 200, 1000, Some(1))]);
    seen.add(2, &[part(180, 200, 1000, Some(1))]);
    seen.add(1, &[part(200, 240, 1000, Some(1)), part(240, 300, 1000, None)]);
    seen.add(2, &[part(200, 240, 1000, Some(1)), part(240, 300, 1000, None)]);
    // Parts of one device in two states are one part; two pods share it.
    seen.add(
        3,
        &[
            part(100, 300, 200, Some(2)),
            part(100, 300, 100, Some(2)),
            part(100, 300, 400, Some(3)),
            part(100, 300, 300, None),
        ],
    );
    // Two pods of one gang, on devices that are seen before and after; one goes a moment later.
    for device in [4, 5] {
        let pod = Some(device + 6);
        seen.add(device, &[part(100, 110, 1000, None), part(110, 200, 1000, pod)]);
        let until = if device == 4 { 200 } else { 210 };
        seen.add(device, &[part(200, until, 1000, pod), part(until, 300, 1000, None)]);
    }
    seen.add(
        6,
        &[part(0, 110, 1000, None), part(110, 200, 1000, Some(12)), part(200, 220, 1000, None)],
    );
    seen.add_kept(1, (100, 200), 50 * 8_000, 0);
    seen.add_kept(1, (200, 300), 40 * 9_000, 0);
    assert_eq!(
        lines(&seen.jobs(100, pod, String::new())),
        [
            "a/pod-2 0+200 1x1x300 cpu 0 cut `both`",
            "a/pod-3 0+200 1x1x400 cpu 0 cut `both`",
            "JobSet a/b 10+90 2x1x1000 cpu 0 cut ``",
            "a/pod-11 10+100 1x1x1000 cpu 0 cut ``",
            "a/pod-1 50+30 1x1x1000 cpu 8000 cut ``",
            "a/pod-1#2 80+60 1x2x1000 cpu 8000 cut `begin`",
        ]
    );
}

/// How much of a device each pod has.
type Parts = Vec<(i64, Option<u32>)>;

type Film = Vec<(u32, u32, Parts)>;

/// What each of three devices is, step by step; a step without an entry was not seen.
fn some_film() -> impl Strategy<Value = Film> {
    let pod = || prop::option::of(0u32..13);
    let parts = prop_oneof![
        pod().prop_map(|pod| vec![(1000, pod)]),
        (pod(), pod(), 1i64..999)
            .prop_map(|(one, other, milli)| vec![(milli, one), (1000 - milli, other)]),
    ];
    prop::collection::vec(((0u32..3), (0u32..20), parts), 0..40)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn gpu_time_is_what_was_seen_whatever_was_seen(film in some_film(), cut in 0u32..20) {
        let film: BTreeMap<(u32, u32), Parts> =
            film.into_iter().map(|(device, step, parts)| ((device, step), parts)).collect();
        let mut seen = ObservedAllocations::default();
        let mut expected = 0i128;
        // Handed in in two halves, as hours are.
        for half in [0..cut, cut..20] {
            for device in 0..3 {
                let steps = half.clone().filter_map(|step| Some((step, film.get(&(device, step))?)));
                let parts: Vec<SeenPart> = steps.flat_map(|(step, parts)| {
                    let at_ms = u64::from(step) * 10;
                    parts.iter().map(move |(milli, pod)| part(at_ms, at_ms + 10, *milli, *pod))
                }).collect();
                let held = parts.iter().filter(|part| part.pod.is_some());
                expected += held.map(|part| 10 * i128::from(part.gpu_milli)).sum::<i128>();
                seen.add(device, &parts);
            }
        }
        let trace = seen.jobs(0, pod, String::new());
        let found: u128 = trace.jobs.iter().filter_map(TraceJob::gpu_milli_ms).sum();
        prop_assert_eq!(found as i128, expected);
        let mut bytes = Vec::new();
        crate::write_trace(&trace, &mut bytes).expect("every job keeps the rules");
        let names: BTreeSet<&str> = trace.jobs.iter().map(|job| job.id.as_str()).collect();
        prop_assert_eq!(names.len(), trace.jobs.len());
        // A job is cut exactly where one of its devices was not seen.
        let seen_at = |device: u32, step: i64| u32::try_from(step)
            .is_ok_and(|step| film.contains_key(&(device, step)));
        for job in trace.jobs.iter().filter(|job| job.cut == UnseenEnds::Nowhere) {
            let (from, to) = (job.submit_ms, job.submit_ms + job.duration_ms.unwrap_or(0));
            let is_seen = (0..3).any(|device| {
                seen_at(device, from as i64 / 10 - 1) && seen_at(device, to as i64 / 10)
            }) || (0..3).any(|device| seen_at(device, from as i64 / 10 - 1));
            prop_assert!(is_seen);
        }
    }
}
