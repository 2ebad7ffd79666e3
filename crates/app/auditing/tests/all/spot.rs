//! Nodes that their provider may take back.

use dovetail_auditing::spot::mark;
use dovetail_inventory::dump::read_objects;
use dovetail_inventory::facts::Inventory;

#[test]
fn a_node_is_spot_on_demand_or_unknown() {
    let node = |name: &str, id: &str, label: &str| {
        format!(
            r#"{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "{name}",
            "labels": {{"karpenter.sh/capacity-type": "{label}"}}}}, "spec": {{"providerID": "{id}"}}}}"#
        )
    };
    let nodes = [
        node("a", "aws:///us-east-1a/i-0", "spot"),
        node("b", "aws:///us-east-1a/i-1", "on-demand"),
        node("c", "", "on-demand"),
    ];
    let mut inventory = Inventory::new(0);
    read_objects(nodes.concat().as_bytes(), "dump", &mut inventory).expect("it is JSON");
    let mut gathered = inventory.facts(Default::default());
    mark(&mut gathered);
    let told: Vec<_> = gathered.facts.nodes.iter().map(|node| node.is_spot).collect();
    assert_eq!(told, [Some(true), Some(false), None]);
}
