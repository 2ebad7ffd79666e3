//! Machines by numbers of GPUs.

use dovetail_replays::input::cluster::{NodesFlag, cluster_of};

#[test]
fn sizes_become_machines_in_the_order_given() {
    let NodesFlag::Sizes(sizes) = "2x8,1x4".parse().unwrap() else { panic!("sizes") };
    let gpus: Vec<u32> = cluster_of(&sizes).nodes.iter().map(|node| node.gpu_count).collect();
    assert_eq!(gpus, [8, 8, 4]);
}

#[test]
fn what_looks_like_a_size_but_is_none_is_refused() {
    for text in
        ["", "8x", "x8", "8*8", "8x8,", "8x8,3", "0x8", "8x5000", "1000x1001", "4294967296x1"]
    {
        assert!(text.parse::<NodesFlag>().is_err(), "{text}");
    }
    let told = |text: &str| text.parse::<NodesFlag>().expect_err("refused");
    assert_eq!(told("2x99999999999"), "more than 1024 GPUs per node");
    assert!(told("99999999999x8").starts_with("more than "), "{}", told("99999999999x8"));
    assert!(told("").starts_with("expected a CSV file with nodes, or COUNTxGPUS"), "{}", told(""));
    assert_eq!("nodes.csv".parse(), Ok(NodesFlag::File("nodes.csv".into())));
}
