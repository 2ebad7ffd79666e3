//! A program killed at any moment leaves whole hours, and the next one goes on from there.
//! `DOVETAIL_KILL_POINTS` sets how many moments (20).

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dovetail_account::rollup::hours;
use dovetail_store::Address;

use crate::databases::{Databases, open, run};
use crate::world::{World, everything, mixed};

const ADDRESS: &str = "DOVETAIL_TEST_LEDGER";
const SEED: &str = "DOVETAIL_TEST_SEED";
const HOURS: &str = "DOVETAIL_TEST_HOURS";
/// SIGKILL.
const KILL: i32 = 9;

fn world(seed: u64) -> World {
    World { gpus_per_node: 24, ..World::new(&format!("killed {seed}"), seed) }
}

/// Not a test: the program that is killed. It writes a line before each hour, and never ends by
/// itself while somebody holds its input.
#[test]
#[ignore = "run by the test that kills it"]
#[allow(clippy::print_stdout, reason = "the parent listens")]
fn child() {
    let set = |name| std::env::var(name).ok();
    let (Some(address), Some(seed), Some(count)) = (set(ADDRESS), set(SEED), set(HOURS)) else {
        return;
    };
    let world = world(seed.parse().unwrap());
    run(async {
        let mut store = open(&address.parse::<Address>().unwrap()).await;
        for hour in hours(world.period()).take(count.parse().unwrap()) {
            println!("\nhour");
            store.keep(&world.reading(hour), world.period().to_ms).await.unwrap();
        }
    });
    std::io::stdin().lines().for_each(drop);
}

/// Starts the child and kills it in an hour, somewhere, or in the next one; it has more to read in
/// any case.
fn kill_at(address: &str, seed: u64, point: u64) {
    let program = std::env::current_exe().unwrap();
    let hour = mixed(seed, point, 1) % 28;
    let mut child = Command::new(program)
        .args(["--exact", "killed::child", "--ignored", "--nocapture"])
        .env(ADDRESS, address)
        .env(SEED, seed.to_string())
        .env(HOURS, (hour + 2).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut begun = lines.filter(|line| line == "hour").map(|_| Instant::now());
    let begins: Vec<Instant> = begun.by_ref().take(hour as usize + 1).collect();
    assert_eq!(begins.len() as u64, hour + 1, "it reached hour {hour}");
    // Somewhere in the hour, as long as the one before was.
    let before = begins.windows(2).last().map(|two| two[1] - two[0]);
    let length = before.unwrap_or(Duration::from_millis(5));
    let part = length.mul_f64((mixed(seed, point, 2) % 1000) as f64 / 1e3);
    while begins[hour as usize].elapsed() < part {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(KILL), "nothing else ended it");
    // Until here: a program whose lines nobody reads would end by itself.
    drop(begun);
}

#[test]
fn a_kill_at_any_moment_neither_loses_nor_doubles_a_second() {
    let points = std::env::var("DOVETAIL_KILL_POINTS").ok().and_then(|text| text.parse().ok());
    let points: u64 = points.unwrap_or(20);
    let databases = Databases::start();
    let folder = tempfile::tempdir().unwrap();
    for (place, server) in databases.addresses.iter().enumerate() {
        // Most points on the one that has no server to clean up behind it.
        let points = if place == 0 { points } else { points.div_ceil(5) };
        for point in 0..points {
            let mut world = world(point);
            let file = Address::File(folder.path().join(format!("{place}-{point}.db")));
            let address = if place == 0 { &file } else { server };
            let text = match address {
                Address::File(path) => path.display().to_string(),
                Address::Server(url) => url.clone(),
            };
            kill_at(&text, point, point);
            run(async {
                let mut store = open(address).await;
                let source = world.reading(world.period()).source;
                let period = world.period();
                let missing = store.missing(&world.cluster, Some(&source), period).await.unwrap();
                assert!(
                    !missing.is_empty(),
                    "point {point}: it was killed while it had more to read"
                );
                let now_ms = period.to_ms;
                for span in missing {
                    assert_eq!(span.from_ms % dovetail_account::rollup::HOUR_MS, 0);
                    store.keep(&world.reading(span), now_ms).await.unwrap();
                }
                let found = everything(&mut store, &world).await;
                let killed = world.cluster.clone();
                world.cluster = format!("undisturbed {point}");
                store.keep(&world.reading(period), now_ms).await.unwrap();
                let expected = everything(&mut store, &world).await;
                let named = |row: &String| row.replace(&world.cluster, &killed);
                let expected = expected.iter().map(named).collect::<Vec<_>>();
                let mut different = found.iter().zip(&expected).filter(|(one, other)| one != other);
                assert_eq!(different.next(), None, "point {point}");
                assert_eq!(found.len(), expected.len(), "point {point}");
                store.close().await;
            });
        }
    }
}
