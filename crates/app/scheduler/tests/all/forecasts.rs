//! Starts of jobs beside what had been forecast of them.

use dovetail_control::schedule::{ForecastEnd, News};
use dovetail_objects::{Kind, WorkloadKind};
use serde_json::{Value, json};

use crate::gangs::{Cluster, pod};

const MINUTE_MS: u64 = 60_000;

/// A pod of eight GPUs whose user says how long it runs.
fn running_for(time: &str) -> Value {
    let mut pod = pod(8);
    pod["metadata"]["annotations"]["dovetail.dev/runtime"] = json!(time);
    pod
}

fn ended(cluster: &mut Cluster) -> Vec<ForecastEnd> {
    let news = cluster.scheduler.news().into_iter();
    let ended = news.filter_map(|news| match news {
        News::ForecastEnded(forecast) => Some(forecast),
        News::Inconsistent(error) => panic!("{error}"),
        _ => None,
    });
    ended.collect()
}

/// Forecasts begin ten minutes after the ones before, and are made a second later.
fn ten_minutes_pass(cluster: &mut Cluster) {
    cluster.pass(10 * MINUTE_MS);
    assert!(cluster.run().is_empty());
    cluster.pass(1_000);
    assert!(cluster.run().is_empty());
}

/// The only node is taken for an hour, then for longer than was said, then for nobody knows how
/// long.
#[test]
fn starts_are_counted_beside_their_first_forecast() {
    let mut cluster = Cluster::of(1);
    cluster.create("a", running_for("1h"));
    assert_eq!(cluster.run(), ["a"]);
    cluster.create("b", running_for("1h"));
    assert!(cluster.run().is_empty());
    // Ten minutes after the first decision forecasts are made; later ones do not replace them.
    let made = |cluster: &mut Cluster| {
        let news = cluster.scheduler.news().into_iter();
        let made = news.filter_map(|news| match news {
            News::ForecastMade(job) => cluster.scheduler.ask().announced(job),
            _ => None,
        });
        made.map(|said| said.message).collect::<Vec<_>>()
    };
    ten_minutes_pass(&mut cluster);
    let said = made(&mut cluster);
    assert_eq!(said.len(), 1, "{said:?}");
    let start = "; expected start: by 2030-03-17T18:46:40Z; forecast at 2030-03-17T17:56:40Z";
    assert!(said[0].ends_with(start), "{said:?}");
    ten_minutes_pass(&mut cluster);
    assert_eq!(made(&mut cluster), Vec::<String>::new());
    cluster.pass(40 * MINUTE_MS - 2_000);
    cluster.end("a", "Succeeded");
    assert_eq!(cluster.run(), ["b"]);
    // Run times that are said are exact: so are both forecasts.
    let expected_ms = Some(50 * MINUTE_MS);
    let expected = ForecastEnd { p50_ms: expected_ms, p90_ms: expected_ms, actual_ms: 0 };
    let as_expected = ForecastEnd { actual_ms: 50 * MINUTE_MS, ..expected };
    assert_eq!(ended(&mut cluster), [as_expected]);

    cluster.create("c", pod(8));
    cluster.run();
    ten_minutes_pass(&mut cluster);
    // It waited less than it takes until the next forecasts: nothing was said of it.
    cluster.create("d", pod(8));
    cluster.run();
    cluster.pass(80 * MINUTE_MS - 1_000);
    cluster.end("b", "Succeeded");
    assert_eq!(cluster.run(), ["c"]);
    let later = ForecastEnd { actual_ms: 80 * MINUTE_MS, ..expected };
    assert_eq!(ended(&mut cluster), [later]);

    // How long the third one runs nobody has said.
    ten_minutes_pass(&mut cluster);
    cluster.create("e", pod(8));
    cluster.run();
    ten_minutes_pass(&mut cluster);
    cluster.pass(5 * MINUTE_MS);
    cluster.end("c", "Succeeded");
    assert_eq!(cluster.run(), ["d"]);
    let unknown = ended(&mut cluster);
    assert_eq!(unknown.len(), 1);
    assert_eq!((unknown[0].p50_ms, unknown[0].p90_ms), (None, None), "{unknown:?}");
}

/// After how long a job is ended says, where nothing better is known, how long it runs: whoever
/// says it, and the shortest limit of several.
#[test]
fn a_time_limit_is_waited_for_where_no_run_time_is_known() {
    let job = || {
        let mut pod = pod(8);
        pod["metadata"]["labels"] = json!({"batch.kubernetes.io/job-name": "train"});
        pod
    };
    let kueue = "kueue.x-k8s.io/max-exec-time-seconds";
    let by_itself = |limit: fn(&mut Value)| {
        let mut pod = job();
        limit(&mut pod);
        (pod, json!({}))
    };
    let by_job =
        |metadata: Value, spec: Value| (job(), json!({"metadata": metadata, "spec": spec}));
    for (limited, train) in [
        by_itself(|pod| pod["spec"]["activeDeadlineSeconds"] = json!(3_600)),
        by_itself(|pod| {
            pod["metadata"]["annotations"] = json!({"slurmjob.slinky.slurm.net/timelimit": "60"});
        }),
        by_job(json!({"labels": {kueue: "7200"}}), json!({"activeDeadlineSeconds": 3_600})),
        by_job(json!({"labels": {kueue: "3600"}}), json!({"activeDeadlineSeconds": 7_200})),
    ] {
        let mut cluster = Cluster::of(1);
        cluster.create("a", limited.clone());
        cluster.server.apply(Kind::Workload(WorkloadKind::Job), "blue", "train", train);
        assert_eq!(cluster.run(), ["a"]);
        cluster.create("b", pod(8));
        assert!(cluster.run().is_empty());
        ten_minutes_pass(&mut cluster);
        cluster.pass(50 * MINUTE_MS - 1_000);
        cluster.end("a", "Succeeded");
        assert_eq!(cluster.run(), ["b"]);
        let expected_ms = Some(50 * MINUTE_MS);
        let exact =
            ForecastEnd { p50_ms: expected_ms, p90_ms: expected_ms, actual_ms: 50 * MINUTE_MS };
        assert_eq!(ended(&mut cluster), [exact], "{limited}");
    }
}
