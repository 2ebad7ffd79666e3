//! A random world from a seed.

use serde_json::json;

use super::GeneratedCluster;
use super::claim::{add_attachment, add_storage};
use super::node::{Climate, node};
use super::pod::{DEMANDS, PodDemand, PodSetting, existing, pending};
use super::random::Draw;

/// A random world of 4 to 10 nodes, up to 24 existing pods and 6 pending pods.
///
/// The same seed gives the same world on every platform. Objects are as the API server would store
/// them. Each world has a pod that asks for nothing and one that hardly any node suits, so that
/// neither all nor none of its pairs fit; the other pods draw one to four demands.
pub fn generate(seed: u64) -> GeneratedCluster {
    let mut draw = Draw::new(seed);
    let draw = &mut draw;
    let mut world = GeneratedCluster { namespaces: namespaces(), ..GeneratedCluster::default() };
    let climate = Climate::draw(draw);
    let names: Vec<String> =
        (0..4 + draw.below(7)).map(|number| format!("node-{number}")).collect();
    for name in &names {
        let node = node(&climate, name, draw);
        world.nodes.push(node);
    }
    let volumes = draw.chance(60);
    if volumes {
        add_storage(&names, &mut world, draw);
    }
    let setting = PodSetting { volumes, crowded: climate.crowded };
    for number in 0..draw.below(25) {
        let pod = existing(&format!("running-{number}"), &names, &setting, &mut world, draw);
        world.pods.push(pod);
    }
    let modest = pending("modest", &[], &names, &mut world, draw);
    let choice = draw.pick(&[PodDemand::NodeName, PodDemand::NodeSelector]);
    let picky = pending("picky", &[choice], &names, &mut world, draw);
    world.pending.extend([modest, picky]);
    for number in 0..4 {
        let demands = demands(volumes, draw);
        let pod = pending(&format!("waiting-{number}"), &demands, &names, &mut world, draw);
        world.pending.push(pod);
    }
    if volumes {
        for name in &names {
            if draw.chance(25) {
                add_attachment(name, &mut world, draw);
            }
        }
    }
    world
}

/// One demand for most pods, so that single filters decide; several for the rest.
fn demands(volumes: bool, draw: &mut Draw) -> Vec<PodDemand> {
    let count = draw.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 3, 4]);
    let mut demands = Vec::new();
    while demands.len() < count {
        let demand = if draw.chance(3) { PodDemand::Gate } else { draw.pick(&DEMANDS) };
        if !demands.contains(&demand) && (volumes || !needs_storage(demand)) {
            demands.push(demand);
        }
    }
    demands
}

fn needs_storage(demand: PodDemand) -> bool {
    matches!(
        demand,
        PodDemand::OncePodClaim
            | PodDemand::AffineVolume
            | PodDemand::ZonedVolume
            | PodDemand::DelayedVolume
            | PodDemand::SelectedVolume
            | PodDemand::BrokenClaim
            | PodDemand::Attachments
    )
}

fn namespaces() -> Vec<serde_json::Value> {
    vec![
        json!({"metadata": {"name": "default", "labels": {}}}),
        json!({"metadata": {"name": "team-a", "labels": {"team": "a"}}}),
        json!({"metadata": {"name": "team-b", "labels": {"team": "b"}}}),
    ]
}
