use dovetail_account::device_time::Span;
use dovetail_cases::cases;
use dovetail_model::Money;
use proptest::prelude::*;

use super::*;

const HOUR_MS: u64 = 3_600_000;

/// A pod of `owner` on one GPU at $2 an hour.
fn pod(owner: &str, name: &str, hours: (u64, u64), end: PodEnd) -> RunPod {
    let held = Span { from_ms: hours.0 * HOUR_MS, to_ms: hours.1 * HOUR_MS };
    let length = hours.1 - hours.0;
    RunPod {
        namespace: "ml".to_owned(),
        name: name.to_owned(),
        owner: RunOwner { kind: "Job".to_owned(), name: owner.to_owned() },
        owner_uid: Some(format!("uid-of-{owner}")),
        held: Some(held),
        end,
        gpu_milli_ms: i128::from(length * HOUR_MS) * 1000,
        cost: Some(Money::micros(length as i64 * 2_000_000)),
        ..RunPod::default()
    }
}

/// Name, join, attempts with their ends, USD, USD lost.
fn told(pods: &[RunPod]) -> Vec<(String, Join, Vec<&'static str>, i64, i64)> {
    let usd = |amount: RunAmount| amount.cost().map_or(-1, |cost| cost.usd_micros / 1_000_000);
    let told = runs(pods).into_iter().map(|run| {
        let ends = run.attempts.iter().map(|attempt| attempt.end.name()).collect();
        (run.name, run.join, ends, usd(run.total), usd(run.lost))
    });
    told.collect()
}

#[test]
fn a_job_with_retries_is_one_run_and_what_failed_is_lost() {
    let pods = [
        pod("train", "train-a", (0, 3), PodEnd::Failed),
        pod("train", "train-b", (3, 4), PodEnd::Unknown),
        pod("train", "train-c", (5, 10), PodEnd::Completed),
    ];
    let ends = vec!["failed", "replaced", "completed"];
    assert_eq!(told(&pods), [("train".to_owned(), Join::Owner, ends.clone(), 18, 8)]);
    // Nobody kept the owner's identity: the same, but inferred; a day later it is another one.
    let blind = |pod: &RunPod| RunPod { owner_uid: None, ..pod.clone() };
    let mut blind: Vec<RunPod> = pods.iter().map(blind).collect();
    assert_eq!(told(&blind), [("train".to_owned(), Join::OwnerName, ends, 18, 8)]);
    blind.push(RunPod { owner_uid: None, ..pod("train", "train-d", (35, 36), PodEnd::Open) });
    let later = ("train".to_owned(), Join::Owner, vec!["running"], 2, 0);
    assert_eq!(told(&blind)[1], later);
}

#[test]
fn members_of_a_gang_are_one_attempt_and_one_that_failed_alone_is_told() {
    let mut pods = vec![pod("gang", "gang-1-a", (0, 2), PodEnd::Failed)];
    pods.extend((0..3).map(|rank| pod("gang", &format!("gang-{rank}"), (0, 9), PodEnd::Completed)));
    pods.push(pod("gang", "gang-1-b", (2, 9), PodEnd::Completed));
    let found = runs(&pods);
    assert_eq!(told(&pods), [("gang".to_owned(), Join::Owner, vec!["completed"], 72, 4)]);
    assert_eq!(found[0].attempts[0].failed_pods, [0]);
    // All of them end with the failure of one: the attempt failed.
    let pods = [
        pod("gang", "gang-0", (0, 2), PodEnd::Failed),
        pod("gang", "gang-1", (0, 2), PodEnd::Unknown),
        pod("gang", "gang-0-b", (2, 3), PodEnd::Open),
        pod("gang", "gang-1-b", (2, 3), PodEnd::Open),
    ];
    assert_eq!(told(&pods), [("gang".to_owned(), Join::Owner, vec!["failed", "running"], 12, 8)]);
    // Pods one after the other that complete are work, not attempts.
    let pods = [
        pod("sweep", "sweep-0", (0, 2), PodEnd::Completed),
        pod("sweep", "sweep-1", (2, 3), PodEnd::Completed),
    ];
    assert_eq!(told(&pods), [("sweep".to_owned(), Join::Owner, vec!["completed"], 6, 0)]);
}

#[test]
fn the_strongest_join_that_applies_is_taken() {
    let labelled = |owner: &str, hours, end, run: Option<&str>, experiment: Option<&str>| RunPod {
        run: run.map(str::to_owned),
        experiment: experiment.map(str::to_owned),
        ..pod(owner, owner, hours, end)
    };
    let pods = [
        // The label, weeks apart, whatever the experiment says; one more has the same names only.
        labelled("llm-x2x9k", (0, 1), PodEnd::Failed, Some("llm"), Some("e1")),
        labelled("other", (500, 501), PodEnd::Completed, Some("llm"), Some("e2")),
        labelled("llm-bcdfg", (2, 3), PodEnd::Completed, None, None),
        // The experiment.
        labelled("one", (0, 1), PodEnd::Failed, None, Some("e1")),
        labelled("two", (300, 301), PodEnd::Completed, None, Some("e1")),
        // Names; what follows success is another run.
        labelled("tune-x2x9k", (10, 11), PodEnd::Failed, None, None),
        labelled("tune-bcdfg", (34, 35), PodEnd::Completed, None, None),
        labelled("tune-zzzzz", (36, 37), PodEnd::Open, None, None),
    ];
    let run = |name: &str, join, ends: &[&'static str], usd, lost| {
        (name.to_owned(), join, ends.to_vec(), usd, lost)
    };
    let wanted = [
        run("e1", Join::Experiment, &["failed", "completed"], 4, 2),
        run("llm", Join::Label, &["failed", "completed"], 4, 2),
        run("llm-bcdfg", Join::Owner, &["completed"], 2, 0),
        run("tune", Join::Name, &["failed", "completed"], 4, 2),
        run("tune-zzzzz", Join::Owner, &["running"], 2, 0),
    ];
    assert_eq!(told(&pods), wanted);
}

#[test]
fn names_join_only_what_followed_one_run_within_a_day() {
    let one = |name: &str, hours| pod(name, name, hours, PodEnd::Failed);
    let count = |pods: &[RunPod]| runs(pods).len();
    assert_eq!(count(&[one("a-x2x9k", (0, 1)), one("a-bcdfg", (25, 26))]), 1);
    assert_eq!(count(&[one("a-x2x9k", (0, 1)), one("a-bcdfg", (26, 27))]), 2);
    // At the same time they are no attempts of each other, and of two nobody knows which was
    // followed.
    assert_eq!(count(&[one("a-x2x9k", (0, 3)), one("a-bcdfg", (1, 4))]), 2);
    let pods = [one("a-x2x9k", (0, 3)), one("a-bcdfg", (1, 4)), one("a-zzzzz", (5, 6))];
    assert_eq!(count(&pods), 3);
    // In other namespaces, of other kinds, and by a timetable neither.
    let mut pods = [one("a-x2x9k", (0, 1)), one("a-bcdfg", (2, 3))];
    pods[1].namespace = "other".to_owned();
    assert_eq!(count(&pods), 2);
    let mut pods = [one("a-29384720", (0, 1)), one("a-29384780", (2, 3))];
    assert_eq!(count(&pods), 1);
    pods.iter_mut().for_each(|pod| pod.is_by_timetable = true);
    assert_eq!(count(&pods), 2);
}

#[test]
fn only_what_was_generated_is_left_out_of_a_name() {
    for (name, wanted) in [
        ("train-x2x9k", "train"),
        ("train-29384720", "train"),
        ("train-4f1c09ab", "train"),
        ("train-1", "train-1"),
        ("llama-70b", "llama-70b"),
        ("train-facade", "train-facade"),
        ("train", "train"),
        ("-x2x9k", "-x2x9k"),
        ("", ""),
    ] {
        assert_eq!(stem(name), wanted, "{name}");
    }
}

/// Few names, so that they meet.
fn any_pod() -> impl Strategy<Value = RunPod> {
    let owner = prop::sample::select(vec!["a", "a-x2x9k", "a-bcdfg", "b", "b-29384720"]);
    let end = [PodEnd::Unknown, PodEnd::Open, PodEnd::Completed, PodEnd::Failed];
    let label = || prop::option::weighted(0.2, prop::sample::select(vec!["r", "s"]));
    let times = prop::option::weighted(0.9, (0u64..60, 1u64..40));
    let numbers = (0i128..1 << 40, prop::option::of(-5i64..1 << 40), 0u8..2, 0u8..3);
    let all = (owner, prop::sample::select(end.to_vec()), label(), label(), times, numbers);
    all.prop_map(|(owner, end, run, experiment, times, (time, cost, space, uid))| RunPod {
        namespace: ["ml", "web"][usize::from(space)].to_owned(),
        name: String::new(),
        owner: RunOwner { kind: "Job".to_owned(), name: owner.to_owned() },
        owner_uid: (uid > 0).then(|| format!("{owner}-{uid}")),
        is_by_timetable: owner == "b-29384720",
        run: run.map(str::to_owned),
        experiment: experiment.map(str::to_owned),
        held: times.map(|(from, length)| Span {
            from_ms: from * HOUR_MS,
            to_ms: (from + length) * HOUR_MS,
        }),
        end,
        gpu_milli_ms: time,
        cost: cost.map(Money::micros),
    })
}

/// A run by its join, and its attempts by their ends and the names of their pods.
type Named<'p> = (Join, Vec<(AttemptEnd, Vec<&'p str>)>);

/// All runs, in an order that is theirs alone.
fn partition(pods: &[RunPod]) -> Vec<Named<'_>> {
    let named = |run: Run| {
        let attempts = run.attempts.into_iter().map(|attempt| {
            let mut names: Vec<&str> = attempt.pods.iter().map(|p| &*pods[*p].name).collect();
            names.sort_unstable();
            (attempt.end, names)
        });
        let mut attempts: Vec<_> = attempts.collect();
        attempts.sort();
        (run.join, attempts)
    };
    let mut runs: Vec<_> = runs(pods).into_iter().map(named).collect();
    runs.sort();
    runs
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases(500) })]

    #[test]
    fn runs_add_up_to_their_pods_and_do_not_depend_on_their_order(
        mut pods in prop::collection::vec(any_pod(), 0..24),
        swaps in prop::collection::vec((0usize..24, 0usize..24), 0..24),
    ) {
        for (number, pod) in pods.iter_mut().enumerate() {
            pod.name = format!("pod-{number}");
        }
        let found = runs(&pods);
        let mut seen: Vec<usize> =
            found.iter().flat_map(|run| &run.attempts).flat_map(|attempt| attempt.pods.clone()).collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..pods.len()).collect::<Vec<_>>());
        let time: i128 = found.iter().map(|run| run.total.gpu_milli_ms).sum();
        prop_assert_eq!(time, pods.iter().map(|pod| pod.gpu_milli_ms).sum::<i128>());
        let money: Money = found.iter().filter_map(|run| run.total.cost()).sum();
        prop_assert_eq!(money, pods.iter().filter_map(|pod| pod.cost).sum::<Money>());
        for run in &found {
            prop_assert!(run.lost.gpu_milli_ms <= run.total.gpu_milli_ms);
            let of_attempts: i128 = run.attempts.iter().map(|one| one.total.gpu_milli_ms).sum();
            prop_assert_eq!(of_attempts, run.total.gpu_milli_ms);
        }
        let before = partition(&pods).into_iter().map(|(join, attempts)| {
            let owned = |(end, names): (AttemptEnd, Vec<&str>)| {
                (end, names.into_iter().map(str::to_owned).collect::<Vec<_>>())
            };
            (join, attempts.into_iter().map(owned).collect::<Vec<_>>())
        });
        let before: Vec<_> = before.collect();
        for (one, other) in swaps {
            if one < pods.len() && other < pods.len() {
                pods.swap(one, other);
            }
        }
        let after = partition(&pods);
        prop_assert_eq!(format!("{before:?}"), format!("{after:?}"));
    }

    /// Whatever chain of labels or of owners leads from one pod to another, they are of one run.
    #[test]
    fn labels_and_owners_join_through_others(pods in prop::collection::vec(any_pod(), 0..24)) {
        let found = runs(&pods);
        let of = |place: usize| {
            found.iter().position(|run| run.attempts.iter().any(|one| one.pods.contains(&place)))
        };
        // An owner whose pods name several runs joins nothing but what it names.
        let labels_of_owner = |pod: &RunPod| {
            let same = pods.iter().filter(|other| {
                (&other.namespace, &other.owner) == (&pod.namespace, &pod.owner)
            });
            same.filter_map(|other| other.run.as_deref()).collect::<std::collections::BTreeSet<_>>()
        };
        for (i, one) in pods.iter().enumerate() {
            for (j, other) in pods.iter().enumerate() {
                let in_one = one.namespace == other.namespace;
                let by_label = in_one && one.run.is_some() && one.run == other.run;
                let by_owner = in_one
                    && one.owner == other.owner
                    && one.owner_uid.is_some()
                    && one.owner_uid == other.owner_uid
                    && labels_of_owner(one).len() <= 1;
                if by_label || by_owner {
                    prop_assert_eq!(of(i), of(j), "{} {}", i, j);
                }
                if let (Some(a), Some(b)) = (&one.run, &other.run)
                    && a != b
                {
                    prop_assert_ne!(of(i), of(j));
                }
            }
        }
    }
}
