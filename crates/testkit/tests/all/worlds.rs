//! Random and documented worlds, judged by kube-scheduler's own plugins.

use dovetail_testkit::world::{Coverage, Oracle, Release, documented, generate};

/// Every filter plugin but the one of resource claims, which random worlds do not have.
const FILTERS: [&str; 13] = [
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
];

#[test]
fn kube_scheduler_says_what_its_documentation_says() {
    let mut oracle = Oracle::start(Release::V1_37).unwrap();
    for shown in documented() {
        let answer = oracle.judge(&shown.world).unwrap();
        assert_eq!(answer.pods[0].feasible(), shown.feasible, "{}", shown.name);
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "the table is worth a look: --nocapture shows it")]
fn random_worlds_reach_every_filter() {
    let mut oracle = Oracle::start(Release::V1_37).unwrap();
    let mut coverage = Coverage::default();
    for seed in 0..1000 {
        let world = generate(seed);
        match oracle.judge(&world) {
            Ok(answer) => coverage.add(&answer),
            Err(error) => panic!("seed {seed}: {error}\n{}", world.to_line()),
        }
    }
    eprintln!("{coverage}");
    assert!(coverage.pods >= 5000, "{coverage}");
    assert!(coverage.worlds_one_sided * 50 <= coverage.worlds, "{coverage}");
    for filter in FILTERS {
        let alone = coverage.plugins.get(filter).map_or(0, |counts| counts.alone);
        assert!(alone >= 200, "{filter} is too rarely the only one to reject\n{coverage}");
        assert!(coverage.accepted_by(filter) >= 200, "{filter} accepts too rarely\n{coverage}");
    }
}
