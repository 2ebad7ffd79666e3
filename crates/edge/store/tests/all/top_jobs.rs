//! The jobs that cost most are those that the hours say, whatever the period, and nothing is lost
//! beside them.

use std::collections::BTreeMap;

use dovetail_account::split::SplitMethod;
use dovetail_store::{Detail, Reading, Store, SumQuery, SumRow, TopJobs};

use crate::databases::{Databases, open, run};
use crate::world::{START_HOUR, World};

const BY_NODE: Detail = Detail { workload: true, group: false, pod: false, node: true };

/// Cost under a method, with a price or without, and GPU-time.
type Amounts = (i64, i128, u64);

fn amounts<'r>(rows: impl IntoIterator<Item = &'r SumRow>, place: usize) -> Amounts {
    let mut sum = (0, 0, 0);
    for row in rows {
        sum.0 += row.costs[place].unwrap_or_default().usd_micros;
        sum.1 += row.gpu_milli_ms;
        sum.2 += row.charges;
    }
    sum
}

/// Rows by cluster and job; nobody's are left out.
fn by_job(rows: &[SumRow]) -> BTreeMap<(&str, &str), Vec<&SumRow>> {
    let mut jobs: BTreeMap<(&str, &str), Vec<&SumRow>> = BTreeMap::new();
    for row in rows {
        let Some(workload) = &row.workload else { continue };
        jobs.entry((&*row.cluster, &*workload.job)).or_default().push(row);
    }
    jobs
}

/// What a source says, with names that are hard to tell apart.
fn reading(world: &World, names: [&str; 5]) -> Reading {
    let mut reading = world.reading(world.period());
    for (pod, name) in reading.pods.iter_mut().zip(names) {
        pod.job = name.to_owned();
    }
    reading
}

async fn is_right(store: &mut Store, question: &SumQuery, most: u32, method: SplitMethod) {
    let what = format!("{most} {method:?} {question:?}");
    let place = SplitMethod::ALL.iter().position(|known| *known == method).unwrap();
    let of_hours = SumQuery { detail: BY_NODE, ..question.clone() };
    let hours = store.sums(&of_hours).await.unwrap();
    let jobs = by_job(&hours);
    let mut expected: Vec<Amounts> = jobs
        .iter()
        .filter(|((_, name), _)| !name.is_empty())
        .map(|(_, rows)| amounts(rows.iter().copied(), place))
        .collect();
    expected.sort_by(|one, other| other.cmp(one));

    let found = TopJobs::of(store, question, most, Some(method)).await.unwrap();
    let top = by_job(&found.rows);
    assert_eq!(top.len() as u64 + found.other_jobs, jobs.len() as u64, "{what}");
    let mut shown = Vec::new();
    for (job, rows) in &top {
        let sum = amounts(rows.iter().copied(), place);
        assert_eq!(sum, amounts(jobs[job].iter().copied(), place), "{what}: {job:?}");
        if !job.1.is_empty() {
            shown.push(sum);
        }
    }
    shown.sort_by(|one, other| other.cmp(one));
    let most = expected.len().min(most as usize);
    assert!(shown.len() >= most, "{what}");
    assert_eq!(shown[..most], expected[..most], "{what}");
    // Who reads a name knows whether another cluster has it.
    for (cluster, name) in jobs.keys() {
        let is_told = top.keys().any(|(_, told)| told == name) || name.is_empty();
        assert_eq!(top.contains_key(&(*cluster, *name)), is_told, "{what}: {cluster} {name}");
    }
    // Nothing is lost, under any method, of anybody, for anything.
    let parts = |rows: Vec<&SumRow>| {
        let mut parts: BTreeMap<String, (i128, u64, Vec<Option<i64>>)> = BTreeMap::new();
        for row in rows {
            let known = row.costs.map(|cost| cost.is_some());
            let key = format!("{} {:?} {:?} {known:?}", row.cluster, row.party, row.paid);
            let part = parts.entry(key).or_insert_with(|| (0, 0, vec![None; row.costs.len()]));
            part.0 += row.gpu_milli_ms;
            part.1 += row.charges;
            for (sum, cost) in part.2.iter_mut().zip(row.costs) {
                let cost = cost.map(|cost| cost.usd_micros + sum.unwrap_or(0));
                *sum = cost.or(*sum);
            }
        }
        parts
    };
    let all = parts(found.rows.iter().chain(&found.others).collect());
    assert_eq!(all, parts(hours.iter().collect()), "{what}");
    assert!(found.others.iter().all(|row| row.party.is_some() && row.workload.is_none()), "{what}");
}

#[test]
fn the_top_jobs_are_those_of_the_hours_and_the_others_are_the_rest() {
    let odd = [
        r#"Job a/"x","queue":null,"model":"#,
        "",
        r"Job a/ends in \",
        "Job a/é \u{0}",
        r#"Job a/"x","queue":null,"model":"#,
    ];
    let plain = ["Job a/train", "Job b/train", r"Job a/ends in \", "Job c/train", "Job d/train"];
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            for (name, seed, names) in [("odd", 5, odd), ("plain", 6, plain)] {
                let world = World { hours: 72, ..World::new(name, seed) };
                store.keep(&reading(&world, names), world.period().to_ms).await.unwrap();
            }
            // Whole days, parts of one and of several, and hours that nobody has read.
            let periods =
                [(0, 72), (0, 48), (1, 71), (14, 62), (5, 20), (7, 9), (30, 100), (80, 90)];
            for (from, to) in periods {
                for cluster in [Some("odd".to_owned()), Some("plain".to_owned()), None] {
                    let question = SumQuery {
                        cluster,
                        from_hour: START_HOUR + from,
                        to_hour: START_HOUR + to,
                        detail: Detail::default(),
                    };
                    for (most, method) in [
                        (1, SplitMethod::AllIn),
                        (2, SplitMethod::Residual),
                        (9, SplitMethod::AllIn),
                    ] {
                        is_right(&mut store, &question, most, method).await;
                    }
                }
            }
            store.close().await;
        });
    }
}

#[test]
fn every_period_of_days_is_the_sum_of_its_hours() {
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            // The last day runs still.
            let world = World { hours: 60, ..World::new("one", 8) };
            let now_ms = world.period().to_ms;
            store.keep(&world.reading(world.period()), now_ms).await.unwrap();
            for (from, to) in
                (0..72).step_by(5).flat_map(|from| (from..=72).step_by(7).map(move |to| (from, to)))
            {
                let asked = |detail| SumQuery {
                    cluster: None,
                    from_hour: START_HOUR + from,
                    to_hour: START_HOUR + to,
                    detail,
                };
                let hours = store.sums(&asked(BY_NODE)).await.unwrap();
                for (workload, group) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let detail = Detail { workload, group, ..Detail::default() };
                    let days = store.sums(&asked(detail)).await.unwrap();
                    for place in 0..SplitMethod::ALL.len() {
                        let what = format!("{from} to {to}: {detail:?}");
                        assert_eq!(amounts(&days, place), amounts(&hours, place), "{what}");
                    }
                    let is_something = |row: &SumRow| row.charges > 0;
                    assert!(days.iter().all(is_something), "{from} to {to}: {detail:?}");
                }
            }
            store.close().await;
        });
    }
}
