//! Values at and beyond the limits, in every field of every TOML file of `dovetail sim`: a file is
//! refused with its line, or taken; and what is taken never panics in a simulation.

use std::path::Path;

use dovetail_model::{Booking, Queue, QueueUsage};
use dovetail_order::ModelWeights;
use dovetail_plan::{EngineConfig, Order, PolicySpec, PreemptionConfig};
use dovetail_replays::input::cluster::{NodesFlag, cluster_of};
use dovetail_replays::input::queues_file::{read_history, read_queues};
use dovetail_replays::input::reservations_file;
use dovetail_replays::input::scenario::ScenarioFile;
use dovetail_settings::toml_file::TomlFile;
use dovetail_settings::weights::Weights;
use dovetail_sim::timed::{Simulation, TimedConfig, TimedError, TimedWorld};
use dovetail_trace::{TraceJob, TraceNode};

/// Values as TOML writes them.
const EXTREMES: [&str; 44] = [
    "0",
    "-1",
    "1",
    "1e0",
    "0.5",
    "-0.0",
    "1e-320",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "-inf",
    "1024",
    "1025",
    "10000",
    "10001",
    "65535",
    "65536",
    "1000000",
    "1000001",
    "1e12",
    "1e13",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "340282366920938463463374607431768211456",
    "\"\"",
    "\"0s\"",
    "\"1ms\"",
    "\"36600d\"",
    "\"36601d\"",
    "\"18446744073709551615ms\"",
    "\"18446744073709551616d\"",
    "\"\\u0000\"",
    "\"1x1025\"",
    "true",
    "[]",
    "{}",
    "1979-05-27",
];

const SCENARIO: &str = "\
[world]
nodes = \"2x8\"
[stream]
load = 0.5
length = \"6h\"
[[stream.jobs]]
weight = 2
gpus = [1]
run_time = \"1h\"
priority = 1
queue = \"a\"
[[stream.jobs]]
weight = 1
gpus = [2, 8]
run_time = [\"10m\", \"2h\"]
priority = 0
queue = \"b\"
[[overlays]]
share = 0.7
checkpoint_interval = \"10m\"
checkpoint_cost = \"5s\"
restart_cost = [\"30s\", \"60s\"]
save_on_notice = \"30s\"
";

const QUEUES: &str = "\
[queues.top]
weight = 1
[queues.a]
quota = 8
limit = 16
weight = 2
parent = \"top\"
halfLife = \"7d\"
priority = 3
[queues.a.limitByModel]
T4 = 2
[queues.b]
quota = 4
weight = 1
";

const HISTORY: &str = "[gpuHours]\na = 10\nb = 3\n";

const WEIGHTS: &str = "\
preset = \"fair\"
size = 2
runTime = 1
age = 0.05
preempts = true
advantage = 2.5
queues = \"fair-tree\"
halfLife = \"1d\"
reclaimWithin = \"2m\"
respite = \"8h\"
protectGuarantees = true
[weightByModel]
T4 = 2
";

const RESERVATIONS: &str = "\
[reservations.night]
queue = \"a\"
gpus = 2
gpuModels = [\"T4\"]
cpu = 1
count = 2
from = \"2h\"
to = \"4h\"
asked = \"1h\"
[reservations.repair]
job = \"job-000001\"
gpus = 1
count = 1
from = \"5h\"
to = \"6h\"
";

/// More jobs than this take too long to simulate here.
const MOST_JOBS: usize = 300;
/// No simulation here goes on for longer: eight hours, two more than jobs are submitted for.
const UNTIL_MS: u64 = 8 * 3_600_000;

/// What is read, by file.
const FILES: [&str; 5] = [SCENARIO, QUEUES, HISTORY, WEIGHTS, RESERVATIONS];

/// A file with each value replaced by each extreme, as it is and in a list, with the line.
fn changed(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let with = move |at: usize, value: &str| {
        let mut lines = lines.clone();
        let (key, _) = lines[at].split_once(" = ").expect("a field");
        let line = format!("{key} = {value}");
        lines[at] = &line;
        (at + 1, lines.join("\n") + "\n")
    };
    let fields = text.lines().enumerate().filter_map(|(at, line)| {
        let (_, value) = line.split_once(" = ")?;
        Some((at, value))
    });
    fields.flat_map(move |(at, value)| {
        let with = with.clone();
        EXTREMES.into_iter().flat_map(move |extreme| {
            let in_list = match value {
                _ if value.starts_with("[\"") => format!("[{extreme}, \"2h\"]"),
                _ if value.starts_with('[') => format!("[1, {extreme}]"),
                _ => format!("[{extreme}]"),
            };
            [with(at, extreme), with(at, &in_list)]
        })
    })
}

/// What a file says, or nothing if it is refused with a line that it has.
fn taken<T, E: std::fmt::Display>(result: Result<T, E>, text: &str) -> Option<T> {
    let told = match result {
        Ok(value) => return Some(value),
        Err(error) => error.to_string(),
    };
    let rest = told.strip_prefix("f.toml:").unwrap_or_else(|| panic!("{told}\n{text}"));
    let line = rest.split(':').next().and_then(|line| line.parse::<usize>().ok()).unwrap_or(0);
    assert!((1..=text.lines().count()).contains(&line), "{told}\n{text}");
    None
}

/// Machines and jobs of a scenario.
type Work = (Vec<TraceNode>, Vec<TraceJob>);

fn scenario(text: &str) -> Option<Work> {
    let file = TomlFile::of("f.toml", text);
    let scenario = taken(ScenarioFile::of(Path::new("f.toml"), file), text)?;
    // Any other text is the name of a file.
    let NodesFlag::Sizes(sizes) = taken(scenario.nodes(), text)? else { return None };
    let cluster = cluster_of(&sizes);
    let trace = taken(scenario.trace(1, cluster.total_gpus()), text)?;
    Some((cluster.nodes, trace.jobs))
}

fn queues(text: &str) -> Option<Vec<Queue>> {
    taken(read_queues(&TomlFile::of("f.toml", text)), text)
}

fn history(text: &str, queues: &[Queue]) -> Option<Vec<QueueUsage>> {
    taken(read_history(&TomlFile::of("f.toml", text), queues, 16), text)
}

fn weights(text: &str) -> Option<Weights> {
    taken(TomlFile::of("f.toml", text).parse("weights"), text)
}

fn reservations(text: &str) -> Option<Vec<(u64, Booking)>> {
    taken(reservations_file::read(&TomlFile::of("f.toml", text)), text)
}

/// Reads all files and simulates what they say; whether there was anything to simulate.
fn use_all(texts: [&str; 5]) -> bool {
    let [of_scenario, of_queues, of_history, of_weights, of_reservations] = texts;
    let read = || {
        let (nodes, jobs) = scenario(of_scenario)?;
        let queues = queues(of_queues)?;
        let usage = history(of_history, &queues)?;
        let bookings = reservations(of_reservations)?;
        let world = TimedWorld { nodes, jobs, queues, usage, bookings, ..TimedWorld::default() };
        Some((world, weights(of_weights)?))
    };
    let Some((world, weights)) = read().filter(|(world, _)| world.jobs.len() <= MOST_JOBS) else {
        return false;
    };
    let turns = weights.turns(None);
    let model_weights: ModelWeights = weights.model_weights();
    for order in [Order::Dovetail, Order::DominantShare] {
        let preemption = PreemptionConfig { enabled: true, ..PreemptionConfig::default() };
        let engine = EngineConfig {
            policy: PolicySpec::named("dovetail"),
            order,
            preemption,
            turns,
            model_weights: model_weights.clone(),
            ..EngineConfig::default()
        };
        let config = TimedConfig { engine, ..TimedConfig::default() };
        let mut simulation = Simulation::new(world.clone(), config).expect("a world that was read");
        match simulation.run(Some(UNTIL_MS), &mut ()) {
            Ok(_) => {
                simulation.metrics();
            }
            Err(TimedError::TooLate { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    true
}

#[test]
fn every_extreme_in_every_field_is_taken_or_refused_with_its_line() {
    assert!(use_all(FILES), "the files are good as they are");
    for (at, text) in FILES.into_iter().enumerate() {
        let (mut simulated, mut refused) = (0, 0);
        for (line, changed) in changed(text) {
            let mut texts = FILES;
            texts[at] = &changed;
            let used = std::panic::catch_unwind(|| use_all(texts));
            let used = used.unwrap_or_else(|_| panic!("file {at}, line {line}:\n{changed}"));
            *(if used { &mut simulated } else { &mut refused }) += 1;
        }
        assert!(simulated > 0 && refused > 0, "file {at}: {simulated} {refused}");
    }
}
