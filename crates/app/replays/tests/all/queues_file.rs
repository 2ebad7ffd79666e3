//! Files of queues and of what they have used.

use std::collections::BTreeMap;

use dovetail_model::Queue;
use dovetail_replays::input::queues_file::{MOST_LEVELS, read_history, read_queues, unused};
use dovetail_settings::toml_file::TomlFile;
use dovetail_trace::TraceJob;

fn queues(text: &str) -> Result<Vec<Queue>, String> {
    read_queues(&TomlFile::of("q.toml", text)).map_err(|error| error.to_string())
}

#[test]
fn queues_are_read_and_refused_with_line_and_field() {
    let text = "[queues.all]\n[queues.research]\nquota = 4\nlimit = 8.5\nweight = 2\n\
                parent = \"all\"\nhalfLife = \"7d\"\nlimitByModel = { H100 = 2 }\npriority = 7\n";
    let read = queues(text).expect("as documented");
    let research = &read[1];
    assert_eq!(
        (research.guaranteed.gpu_milli, research.limit.gpu_milli),
        (Some(4_000), Some(8_500))
    );
    assert_eq!(research.limit.by_model, BTreeMap::from([("H100".to_owned(), 2_000)]));
    assert_eq!((research.weight, research.half_life_ms), (2, Some(604_800_000)));
    assert_eq!((research.priority, read[0].priority), (7, 0));
    assert_eq!(research.parent.as_deref(), Some("all"));
    for (from, to, told) in [
        (
            "weight = 2",
            "weight = 0",
            "q.toml:5: queues.research.weight: 0: a weight must be at least 1",
        ),
        ("quota = 4", "quota = -4", "q.toml:3: queues.research.quota: `-4`: expected GPUs"),
        (
            "quota = 4",
            "quota = 1e300",
            "q.toml:3: queues.research.quota: `1e300`: expected GPUs \
          from 0 to 1000000",
        ),
        ("H100 = 2", "H100 = -1", "q.toml:8: queues.research.limitByModel.H100: `-1`: expected"),
        ("H100 = 2", "H100 = 'x'", "q.toml:8: queues.research.limitByModel.H100: the text \"x\""),
        ("\"all\"", "\"none\"", "q.toml:6: queues.research.parent: queue `none` is not defined"),
        ("\"all\"", "\"research\"", "q.toml:6: queues.research.parent: the queue would be"),
        ("\"7d\"", "\"7 days\"", "q.toml:7: queues.research.halfLife: `7 days` is not a"),
        ("halfLife", "half_life", "q.toml:7: queues.research.half_life: unknown field"),
        (
            "weight = 2",
            "weight = -1",
            "q.toml:5: queues.research.weight: `-1`: expected a whole number from 0",
        ),
        ("8.5", "\"x\"", "q.toml:4: queues.research.limit: the text \"x\": expected a number"),
    ] {
        let error = queues(&text.replace(from, to)).expect_err(told);
        assert!(error.starts_with(told), "{error}");
    }
}

#[test]
fn queues_that_nobody_uses_are_told_and_long_chains_refused() {
    let text = "[queues.top]\n[queues.a]\nparent = \"top\"\n[queues.reserch]\n";
    let job = TraceJob { queue: Some("a".to_owned()), ..TraceJob::default() };
    assert_eq!(unused(&queues(text).expect("queues"), &[job]), ["reserch"]);
    let chain = |depth: usize| {
        let below = (1..depth).map(|at| format!("[queues.q{at}]\nparent = \"q{}\"\n", at - 1));
        format!("[queues.q0]\n{}", below.collect::<String>())
    };
    assert_eq!(queues(&chain(MOST_LEVELS)).map(|queues| queues.len()), Ok(MOST_LEVELS));
    let error = queues(&chain(MOST_LEVELS + 1)).expect_err("too long");
    assert!(error.contains("parent: the queue hierarchy has more than 64 levels"), "{error}");
}

#[test]
fn child_queues_have_no_more_quota_than_their_parent() {
    let below = |first: &str, second: &str| {
        let child = |name: &str, quota: &str| {
            format!("[queues.{name}]\nparent = \"top\"\nquota = {quota}\n")
        };
        let (a, b) = (child("a", first), child("b", second));
        queues(&format!("[queues.top]\nweight = 2\nquota = 4\n{a}{b}[queues.other]\nquota = 9\n"))
    };
    assert_eq!(below("1.5", "2.5").map(|queues| queues.len()), Ok(4));
    let error = below("1.5", "2.6").expect_err("more than its parent has");
    let told = "q.toml:3: queues.top.quota: its child queues have quotas of 4.1 GPUs in total, but \
                the queue itself only 4: raise its quota or lower theirs";
    assert_eq!(error, told);
    // A parent without a quota bounds nothing.
    let free = "[queues.top]\n[queues.a]\nparent = \"top\"\nquota = 9\n";
    assert_eq!(queues(free).map(|queues| queues.len()), Ok(2));
}

#[test]
fn history_is_of_queues_that_exist() {
    let read = |text: &str| {
        let queues = [Queue::named("a")];
        read_history(&TomlFile::of("h.toml", text), &queues, 10).map_err(|e| e.to_string())
    };
    // Ten GPUs for an hour are the cluster for 3,600 seconds.
    assert_eq!(read("[gpuHours]\na = 10\n").map(|all| all[0].used), Ok(3_600_000_000_000));
    let error = read("[gpuHours]\nb = 1\n").expect_err("no such queue");
    assert!(error.starts_with("h.toml:2: gpuHours.b: the queue is neither"), "{error}");
}
