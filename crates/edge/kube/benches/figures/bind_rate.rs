//! How fast pods that wait are bound, and how fast the events that say so are written.

use crate::contestant::Contestant;
use crate::spread::Spread;
use crate::stage::{Stage, pod};

/// Turns of each; the first of all is not counted.
const TURNS: usize = 5;

/// When a pod counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// A watch shows its node.
    Bound,
    /// A watch shows its `Scheduled` event.
    Told,
}

pub(crate) fn print() {
    compare(1_000, 6_000, Until::Bound);
}

pub(crate) fn print_large() {
    compare(5_000, 20_000, Until::Bound);
}

pub(crate) fn print_told() {
    compare(1_000, 6_000, Until::Told);
}

pub(crate) fn print_told_large() {
    compare(5_000, 20_000, Until::Told);
}

fn compare(nodes: usize, pods: usize, until: Until) {
    let stage = Stage::with_nodes(nodes);
    // Caches of the server, connections.
    rate(Contestant::BareClient, &stage, pods, until);
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..TURNS {
        for (contestant, rates) in Contestant::ALL.into_iter().zip(&mut rates) {
            let rate = rate(contestant, &stage, pods, until);
            eprintln!("{}: {rate:.0} pods/s", contestant.name());
            rates.push(rate);
        }
    }
    let spreads = rates.map(Spread::of);
    let limit = spreads[0].median();
    println!("| who | pods/s: median of {TURNS} (least to most) | of the bare client |");
    println!("|---|---|---|");
    for (contestant, spread) in Contestant::ALL.into_iter().zip(&spreads) {
        println!("| {} | {spread} | {:.2} |", contestant.name(), spread.median() / limit);
    }
    let ratio = spreads[1].median() / limit;
    println!("\ndovetail to the bare client: {ratio:.2} (target 0.80)");
    let peer = spreads[1].median() / spreads[2].median();
    println!("dovetail to kube-scheduler: {peer:.1}");
}

/// Pods per second from the first that a watch shows bound to the last that is done.
fn rate(contestant: Contestant, stage: &Stage, pods: usize, until: Until) -> f64 {
    let names: Vec<String> = (0..pods).map(|at| format!("p{at}")).collect();
    stage.create_pods(names.iter().map(|name| pod(contestant.scheduler_name(), name)));
    let (mut bound, mut told) = stage
        .runtime
        .block_on(async { (stage.watch_bound().await, stage.watch_scheduled_events().await) });
    let binding = contestant.begin(stage, names, until == Until::Told);
    let rate = stage.runtime.block_on(async {
        let (_, first) = bound.next().await;
        let (done, last) = match until {
            Until::Bound => (pods, bound.take(pods - 1).await.last().map(|(_, at)| *at)),
            Until::Told => told.until_silence(pods).await,
        };
        if done < pods {
            println!("{}: only {done} of {pods} events were written", contestant.name());
        }
        done as f64 / (last.expect("something done") - first).as_secs_f64()
    });
    drop(binding);
    stage.remove_pods();
    stage.remove_events();
    rate
}
