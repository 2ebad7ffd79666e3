//! Jobs that wait for one thing while others take another that they need as well.

use dovetail_model::{DeviceRequest, Node, Requirement, Resources, Snapshot};
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::{Order, PolicySpec};

use crate::by_hand::{World, started, whole};

/// A node with 1,000 milli-CPU, 1,000 bytes and a GPU.
fn one_of_each() -> World {
    let policy = PolicySpec::named("best-fit");
    let config = EngineConfig { policy, order: Order::FifoSkip, ..EngineConfig::default() };
    let nodes = vec![Node::plain("n", 1_000, 1_000, 1, "h100")];
    World::under(config, &Snapshot { nodes, ..Snapshot::default() })
}

/// Submits a job that asks for so much; whom that starts.
fn submit(
    world: &mut World,
    priority: i32,
    (cpu_milli, memory_bytes): (i64, i64),
    device: DeviceRequest,
) -> Vec<u64> {
    let resources = Resources::pod(cpu_milli, memory_bytes);
    let requirement = Requirement { resources, device, ..Requirement::default() };
    started(&world.submit(|job| job.priority = priority, requirement))
}

#[test]
fn what_was_freed_is_not_enough_and_what_else_is_lacking_is_freed_later() {
    let mut world = one_of_each();
    assert_eq!(submit(&mut world, 0, (1_000, 0), DeviceRequest::None), [1]);
    // It lacks CPU alone, until another job takes the GPU.
    assert_eq!(submit(&mut world, 0, (1_000, 0), whole(1)), [] as [u64; 0]);
    assert_eq!(submit(&mut world, 0, (0, 0), whole(1)), [3]);
    assert_eq!(started(&world.end(1)), [] as [u64; 0]);
    assert_eq!(started(&world.end(3)), [2]);
}

#[test]
fn who_was_woken_for_room_that_another_took_waits_for_what_that_one_holds() {
    let mut world = one_of_each();
    assert_eq!(submit(&mut world, 0, (1_000, 1_000), DeviceRequest::None), [1]);
    // They lack CPU and memory, and both ask for the GPU.
    assert_eq!(submit(&mut world, 0, (1_000, 0), whole(1)), [] as [u64; 0]);
    assert_eq!(submit(&mut world, 10, (0, 1_000), whole(1)), [] as [u64; 0]);
    assert_eq!(started(&world.end(1)), [3]);
    assert_eq!(started(&world.end(3)), [2]);
}
