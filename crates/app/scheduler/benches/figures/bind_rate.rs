//! How fast pods that wait are bound, and how fast the events that say so are written.

use std::time::Instant;

use crate::contestant::Contestant;
use crate::seen::Seen;
use crate::spread::Spread;
use crate::stage::{Stage, pod};

/// Turns of each; the first of all is not counted.
const TURNS: usize = 5;

pub(crate) fn print() {
    compare(1_000, 6_000);
}

pub(crate) fn print_large() {
    compare(5_000, 20_000);
}

/// Pods per second of one turn, from the first that a watch shows bound.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// To the last that a watch shows bound.
    bound: f64,
    /// To the last `Scheduled` event that a watch shows, of whoever writes them.
    told: Option<f64>,
}

/// All take turns. The bare client takes two: one binds alone, and is the limit of binding; the
/// other writes the event of each pod behind its bind, as the schedulers always do, and is the
/// limit of both.
fn compare(nodes: usize, pods: usize) {
    let stage = Stage::with_nodes(nodes);
    // Caches of the server, connections.
    measure(Contestant::BareClient, &stage, pods, false);
    let mut bound: [Vec<f64>; 3] = Default::default();
    let mut told: [Vec<f64>; 3] = Default::default();
    for _ in 0..TURNS {
        bound[0].push(measure(Contestant::BareClient, &stage, pods, false).bound);
        for (at, contestant) in Contestant::ALL.into_iter().enumerate() {
            let rates = measure(contestant, &stage, pods, true);
            told[at].extend(rates.told);
            if contestant != Contestant::BareClient {
                bound[at].push(rates.bound);
            }
        }
    }
    print_table("bound", bound.map(Spread::of));
    print_table("with event written", told.map(Spread::of));
}

fn print_table(what: &str, spreads: [Spread; 3]) {
    let limit = spreads[0].median();
    println!("| client | pods/s {what}: median of {TURNS} (range) | of the bare client |");
    println!("|---|---|---|");
    for (contestant, spread) in Contestant::ALL.into_iter().zip(&spreads) {
        println!("| {} | {spread} | {:.2} |", contestant.name(), spread.median() / limit);
    }
    let ratio = spreads[1].median() / limit;
    println!("\ndovetail to the bare client: {ratio:.2} (target 0.80)");
    let peer = spreads[1].median() / spreads[2].median();
    println!("dovetail to kube-scheduler: {peer:.1}\n");
}

fn measure(contestant: Contestant, stage: &Stage, pods: usize, tells: bool) -> Rates {
    let names: Vec<String> = (0..pods).map(|at| format!("p{at}")).collect();
    stage.create_pods(names.iter().map(|name| pod(contestant.scheduler_name(), name)));
    let watches = async {
        let told = if tells { Some(stage.watch_scheduled_events().await) } else { None };
        (stage.watch_bound().await, told)
    };
    let (bound, told) = stage.runtime.block_on(watches);
    let binding = contestant.begin(stage, names, tells);
    let (bound, told) = stage
        .runtime
        .block_on(async { tokio::join!(all_bound(bound, pods), all_told(told, pods)) });
    drop(binding);
    let (first, last) = bound;
    let rate = |done: usize, last: Instant| done as f64 / (last - first).as_secs_f64();
    let rates = Rates {
        bound: rate(pods, last),
        told: told.map(|(done, last)| {
            if done < pods {
                println!("{}: only {done} of {pods} events were written", contestant.name());
            }
            rate(done, last)
        }),
    };
    eprintln!("{}: {rates:.0?} pods/s", contestant.name());
    stage.remove_pods();
    stage.remove_events();
    rates
}

/// The moments at which a watch shows the first and the last of so many.
async fn all_bound(mut seen: Seen, pods: usize) -> (Instant, Instant) {
    let all = seen.take(pods).await;
    (all[0].1, all[pods - 1].1)
}

/// How many events a watch shows, and the moment of the last.
async fn all_told(seen: Option<Seen>, pods: usize) -> Option<(usize, Instant)> {
    let mut seen = seen?;
    let (_, first) = seen.next().await;
    let (others, last) = seen.until_silence(pods - 1).await;
    Some((1 + others, last.unwrap_or(first)))
}
