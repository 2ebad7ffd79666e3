//! Workloads whose replicas an autoscaler sets.

use super::*;

/// One of two replicas is idle. Where an autoscaler sets their number, it would add the replica
/// again; it may scale an object that the owner of the pods has made.
#[test]
fn the_fix_of_idle_replicas_is_in_their_autoscaler() {
    let fix = |kind: &str, scales: &str| {
        let mut facts = healthy();
        still(&mut facts, WorkloadClass::Inference, 1, HOUR_MS + 1);
        let made_by = ObjectRef::new("Deployment", "prod", "serve-predictor");
        facts.workloads[SERVE].made_by.insert(made_by);
        facts.autoscalers[0].object.kind = kind.into();
        facts.autoscalers[0].scales.name = scales.into();
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "IDL-09").expect("one");
        finding.fix_example()
    };
    let horizontal = "HorizontalPodAutoscaler";
    for scales in ["serve", "serve-predictor"] {
        let example = fix(horizontal, scales);
        // One of the two is busy.
        let start = "minReplicas: 1  # of HorizontalPodAutoscaler prod/serve, ";
        assert!(example.starts_with(start), "{example}");
        assert!(fix("ScaledObject", scales).starts_with("minReplicaCount: 1  # of ScaledObject "));
    }
    assert!(fix(horizontal, "web").starts_with("spec: {replicas: 1}"));
}

/// By hand: two of six are idle, so four stay. Pods of another revision are replicas, too.
#[test]
fn an_example_leaves_as_many_replicas_as_are_busy() {
    let fix = |has_autoscaler: bool| {
        let mut facts = healthy();
        still(&mut facts, WorkloadClass::Inference, 2, HOUR_MS + 1);
        let mut other = facts.workloads[SERVE].clone();
        other.pods = (0..4)
            .map(|at| Pod { name: format!("new-{at}"), node: Some("g1".into()), ..Pod::default() })
            .collect();
        other.template.saves_progress = true;
        let busy = facts.workloads[SERVE].pods[1].clone();
        facts.workloads[SERVE].pods.push(Pod { name: "busy".into(), uses: Vec::new(), ..busy });
        facts.workloads.push(other);
        if !has_autoscaler {
            facts.autoscalers.clear();
        }
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "IDL-09").expect("one");
        finding.fix_example()
    };
    // Two idle, one that nobody measured, four of the other revision.
    assert!(fix(true).starts_with("minReplicas: 5  # of"), "{}", fix(true));
    assert!(fix(false).starts_with("spec: {replicas: 5}"), "{}", fix(false));
}

/// `kubectl scale` knows no other kinds.
#[test]
fn a_workload_without_use_is_ended_by_what_its_kind_has() {
    let fix = |kind: &str| {
        let mut facts = healthy();
        used(&mut facts, TRAIN, &[0; 4]);
        facts.workloads[TRAIN].owner.kind = kind.into();
        let found = audit(&facts);
        let finding = found.iter().find(|finding| finding.check.id == "REQ-05").expect("one");
        finding.fix_example()
    };
    let scaled = "kubectl scale --replicas=0 statefulset/train -n research  # ";
    assert!(fix("StatefulSet").starts_with(scaled), "{}", fix("StatefulSet"));
    for kind in ["Job", "RayCluster", "TrainJob"] {
        assert!(fix(kind).starts_with("spec: {suspend: true}  # its pods end"), "{}", fix(kind));
    }
    assert!(fix("PyTorchJob").starts_with("spec: {runPolicy: {suspend: true}}"));
    for kind in ["DaemonSet", "MyModel", "Pod", "Job", "CronJob"] {
        assert!(!fix(kind).contains("kubectl scale"), "{kind}: {}", fix(kind));
    }
}

/// By hand: an autoscaler of the part without GPUs of the same owner says nothing of the GPUs.
#[test]
fn an_autoscaler_by_cpu_is_found_at_any_owner_of_pods_with_gpus() {
    let finds = |scales: &str| {
        let mut facts = healthy();
        let made_by = ObjectRef::new("Deployment", "prod", "serve-predictor");
        facts.workloads[SERVE].made_by.insert(made_by);
        facts.autoscalers[0].scales.name = scales.into();
        facts.autoscalers[0].metrics = BTreeSet::from(["cpu".to_owned()]);
        ids(&facts) == ["IDL-03"]
    };
    assert!(finds("serve") && finds("serve-predictor"));
    assert!(!finds("serve-transformer"));
}

/// KEDA starts the pods of a workload at zero replicas again; a HorizontalPodAutoscaler does not.
#[test]
fn a_workload_that_keda_scales_is_stopped_in_its_scaled_object() {
    let found = |kind: &str| {
        let mut facts = healthy();
        used(&mut facts, TRAIN, &[0; 4]);
        facts.autoscalers[0].object.kind = kind.into();
        facts.autoscalers[0].scales = facts.workloads[TRAIN].owner.clone();
        let mut found = audit(&facts).into_iter();
        found.find(|finding| finding.check.id == "REQ-05").expect("it is found")
    };
    let keda = found("ScaledObject");
    assert_eq!((keda.remedies.len(), keda.is_undone), (0, true));
    let fix = keda.fix_example();
    assert!(fix.contains("{autoscaling.keda.sh/paused-replicas: \"0\"}"), "{fix}");
    assert!(fix.contains(" of ScaledObject prod/serve,"), "{fix}");
    let horizontal = found("HorizontalPodAutoscaler");
    assert_eq!((horizontal.remedies.len(), horizontal.is_undone), (1, false));
}

/// Four replicas of a StatefulSet, of which those at these places are idle, once it is changed.
fn four_replicas(idle: &[usize], change: &dyn Fn(&mut Workload)) -> Facts {
    let mut facts = healthy();
    let serve = &mut facts.workloads[SERVE];
    (serve.owner.kind, serve.replicas) = ("StatefulSet".into(), 4);
    let pod = serve.pods[0].clone();
    // The order of their names is another one.
    let names = ["serve-9", "serve-10", "serve-11", "serve-12"];
    serve.pods = names.map(|name| Pod { name: name.into(), ..pod.clone() }).into();
    change(serve);
    still(&mut facts, WorkloadClass::Inference, 0, 0);
    let end_ms = facts.period.to_ms;
    for (number, pod) in facts.workloads[SERVE].pods.iter_mut().enumerate() {
        let device = u32::try_from(number).unwrap();
        pod.devices = vec![vec![(device, 1000)]];
        if idle.contains(&number) {
            pod.uses[0].idle_since_ms = Some(end_ms - HOUR_MS - 1);
        }
    }
    facts
}

/// Two groups of two pods.
fn make_groups(of: &mut Workload) {
    of.owner.kind = "LeaderWorkerSet".into();
    for (pod, name) in of.pods.iter_mut().zip(["serve-0", "serve-0-1", "serve-1", "serve-1-1"]) {
        pod.name = name.into();
    }
}

fn of_idle_replicas(facts: &Facts) -> Finding {
    let found = audit(facts);
    found.into_iter().find(|finding| finding.check.id == "IDL-09").expect("one")
}

fn claimed(finding: &Finding) -> Vec<u32> {
    finding.claims.iter().map(|claim| claim.device).collect()
}

/// By hand: of four replicas, fewer are those without the highest ordinals.
#[test]
fn of_a_stateful_set_only_idle_replicas_at_its_end_count() {
    let found = |idle: &[usize], change: &dyn Fn(&mut Workload)| {
        of_idle_replicas(&four_replicas(idle, change))
    };
    let at_the_end = found(&[0, 2, 3], &|_| {});
    assert_eq!(claimed(&at_the_end), [2, 3]);
    let affected: Vec<&str> = at_the_end.affected.iter().map(|pod| &*pod.name).collect();
    assert_eq!(affected, ["serve-11", "serve-12"]);
    let fix = at_the_end.fix_example();
    assert!(fix.starts_with("spec: {replicas: 2}  # without the idle ones"), "{fix}");
    // A busy one is between them and the end.
    let between = found(&[0, 2], &|_| {});
    assert_eq!(claimed(&between), [0; 0]);
    assert!(between.fix_example().contains("would remove a busy one"), "{between:?}");
    // Nobody asks a Deployment for an order.
    let any = found(&[0, 2], &|of| of.owner.kind = "Deployment".into());
    assert_eq!(claimed(&any), [0, 2]);
    let lost = |deletes: bool, has_volume: bool| {
        let found = found(&[3], &|of| {
            of.scale_down_deletes_volumes = deletes;
            of.template.has_lasting_volume = has_volume;
        });
        found.evidence.iter().any(|of| of.what == "volumes of the removed replicas")
    };
    assert_eq!([lost(true, true), lost(true, false), lost(false, true)], [true, false, false]);
}

/// By hand: both pods of the last group are idle, and one of the group before. An object above may
/// have made the groups; a worker alone is no replica.
#[test]
fn of_a_leader_worker_set_only_idle_groups_at_its_end_count() {
    let made = |kind: &'static str| {
        four_replicas(&[1, 2, 3], &|of| {
            make_groups(of);
            if !kind.is_empty() {
                let groups = std::mem::replace(&mut of.owner, ObjectRef::new(kind, "prod", "llm"));
                of.made_by.extend([groups, ObjectRef::new("StatefulSet", "prod", "serve-0")]);
            }
        })
    };
    for kind in ["", "LLMInferenceService"] {
        let found = of_idle_replicas(&made(kind));
        assert_eq!(claimed(&found), [2, 3], "{kind}");
        assert!(found.fix_example().contains("2 of 4 pods stay"), "{found:?}");
    }
    // Its autoscaler counts groups.
    let mut facts = made("");
    facts.autoscalers[0].scales = facts.workloads[SERVE].owner.clone();
    let fix = of_idle_replicas(&facts).fix_example();
    let start = "a lower minReplicas of HorizontalPodAutoscaler prod/serve, which sets";
    assert!(fix.starts_with(start) && fix.contains("2 of 4 pods stay"), "{fix}");
}

/// By hand: one of the four replicas of a set that an autoscaler scales is idle. Those of another
/// set of the same owner are no matter of that autoscaler.
#[test]
fn an_autoscaler_of_one_set_keeps_the_busy_replicas_of_that_set() {
    let of_set = |name: &str| ObjectRef::new("StatefulSet", "prod", name);
    let mut facts = four_replicas(&[3], &|of| {
        of.made_by.insert(of_set("serve"));
        of.owner = ObjectRef::new("Milvus", "prod", "both");
    });
    let mut other = facts.workloads[SERVE].clone();
    other.made_by = BTreeSet::from([of_set("other")]);
    let idle = other.pods[3].uses.clone();
    for (number, pod) in other.pods.iter_mut().enumerate() {
        pod.name = format!("other-{number}");
        if number > 0 {
            pod.uses = idle.clone();
        }
    }
    facts.workloads.push(other);
    facts.autoscalers[0].scales = of_set("serve");
    let fix = of_idle_replicas(&facts).fix_example();
    assert!(fix.contains("minReplicas: 3  # of HorizontalPodAutoscaler prod/serve"), "{fix}");
}
