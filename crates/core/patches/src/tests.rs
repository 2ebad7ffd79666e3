//! Patches of sources by hand, applied by a second reading of the standards.

mod nodes;

use std::collections::BTreeMap;

use dovetail_audit::{Finding, LimitChange, PatchChange, check};
use dovetail_facts::{
    Autoscaler, Budget, BudgetLimit, Container, Facts, ObjectRef, Pod, Workload, WorkloadClass,
};
use dovetail_model::{SelectorTerm, Taint, TaintEffect, Toleration, requirement::Operator};

use super::*;

const GPU: &str = "nvidia.com/gpu";

fn text(text: &str) -> Json {
    text.into()
}

fn list<const N: usize>(items: [Json; N]) -> Json {
    Json::List(items.into())
}

/// A container that asks for four GPUs.
fn container(name: &str) -> Json {
    let limits = Json::object([(GPU, text("4"))]);
    Json::object([("name", text(name)), ("resources", Json::object([("limits", limits)]))])
}

fn template(containers: Json) -> Json {
    let labels = Json::object([("app", text("a"))]);
    let spec = Json::object([("containers", containers)]);
    Json::object([("metadata", Json::object([("labels", labels)])), ("spec", spec)])
}

fn source(kind: &str, api_version: &str, spec: Json) -> SourceObject {
    SourceObject {
        object: ObjectRef::new(kind, "prod", "serve"),
        api_version: api_version.to_owned(),
        resource_version: Some("41".to_owned()),
        manager: None,
        content: Json::object([("spec", spec)]),
    }
}

fn deployment(template: Json) -> SourceObject {
    source("Deployment", "apps/v1", Json::object([("template", template)]))
}

/// Pods whose container `main` holds four GPUs, beside one that was added when they were let in.
fn workload() -> Workload {
    let limits = BTreeMap::from([(GPU.to_owned(), 4)]);
    let main = Container { name: "main".into(), limits, ..Container::default() };
    let added = Container { name: "proxy".into(), ..Container::default() };
    let mut workload = Workload::default();
    workload.template.containers = vec![main, added];
    workload
}

fn finding(changes: Vec<PatchChange>) -> Finding {
    let object = ObjectRef::new("Deployment", "prod", "serve");
    let check = check("REQ-04").expect("a check");
    Finding::new(check, &object)
        .affecting([ObjectRef::new("Pod", "prod", "serve-0")])
        .mended_in(&workload(), changes)
}

fn patched(source: &SourceObject, changes: Vec<PatchChange>) -> Patch {
    let mut finding = finding(changes);
    finding.object = source.object.clone();
    let mut all = patches(&FactsByOwner::of(&Facts::default()), &[&finding], Some(source));
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn two_gpus() -> PatchChange {
    PatchChange::Gpus { container: "main".into(), resource: GPU.into(), count: 2 }
}

#[test]
fn items_are_patched_by_name_where_the_server_knows_names_and_by_place_where_not() {
    let of_deployment = patched(&deployment(template(list([container("main")]))), vec![two_gpus()]);
    assert_eq!(
        of_deployment.command(None).as_deref(),
        Some(
            r#"kubectl patch Deployment.v1.apps serve -n prod --type=strategic -p '{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}}}'"#
        )
    );
    assert_eq!(of_deployment.effect, "its pods (1) restart in a rolling update");
    let paused = [("paused", Json::Bool(true)), ("template", template(list([container("main")])))];
    let paused = source("Deployment", "apps/v1", Json::object(paused));
    let effect = patched(&paused, vec![two_gpus()]).effect;
    assert!(effect.starts_with("none while the Deployment is paused"), "{effect}");
    // The finding is about one pod, and all pods have the template.
    let of_one = finding(vec![two_gpus()]);
    let pods = (0..6).map(|_| Pod::default()).collect();
    let six = Workload { owner: of_one.object.clone(), pods, ..workload() };
    let facts = Facts { workloads: vec![six], ..Facts::default() };
    let made_of = deployment(template(list([container("main")])));
    let of_six = patches(&FactsByOwner::of(&facts), &[&of_one], Some(&made_of));
    assert_eq!(of_six[0].effect, "its pods (6) restart in a rolling update");
    // A custom kind, in which the template stands in a list; one of other pods stays as it is.
    let mut other = container("main");
    other = match other {
        Json::Object(mut fields) => {
            fields.remove("resources");
            Json::Object(fields)
        }
        other => other,
    };
    let helper = Json::object([("name", text("proxy"))]);
    let worker = template(list([helper, container("main")]));
    let group =
        |name: &str, template: Json| Json::object([("name", text(name)), ("template", template)]);
    let spec = Json::object([(
        "groups",
        list([group("head", template(list([other]))), group("workers", worker)]),
    )]);
    let custom = source("Fleet", "example.com/v1", spec);
    let patch = patched(&custom, vec![two_gpus()]);
    assert_eq!(
        patch.body().expect("a body").to_line(),
        [
            r#"[{"op":"test","path":"/spec/groups/1/name","value":"workers"},"#,
            r#"{"op":"test","path":"/spec/groups/1/template/spec/containers/1/name","value":"main"},"#,
            r#"{"op":"add","path":"/spec/groups/1/template/spec/containers/1/resources/limits/nvidia.com~1gpu","value":"2"}]"#,
        ]
        .concat()
    );
    assert!(
        patch
            .command(Some("a b.json"))
            .is_some_and(|command| command.ends_with("--type=json --patch-file 'a b.json'"))
    );
    assert_eq!(
        patch.fragment.expect("a fragment").to_yaml(),
        "spec:\n  groups:\n  - name: workers\n    template:\n      spec:\n        containers:\n        - name: main\n          \
         resources:\n            limits:\n              nvidia.com/gpu: \"2\"\n"
    );
}

/// The template's spec with another field.
fn with(mut template: Json, field: &str, value: Json) -> Json {
    if let Json::Object(fields) = &mut template
        && let Some(Json::Object(spec)) = fields.get_mut("spec")
    {
        spec.insert(field.into(), value);
    }
    template
}

fn mounting(name: &str, mounts: &[(&str, &str)]) -> Json {
    let mount = |(volume, path): &(&str, &str)| {
        Json::object([("name", text(volume)), ("mountPath", text(path))])
    };
    let mounts = Json::List(mounts.iter().map(mount).collect());
    match container(name) {
        Json::Object(mut fields) => {
            fields.insert("volumeMounts".into(), mounts);
            Json::Object(fields)
        }
        other => other,
    }
}

/// A field of the items at a path.
fn listed<'p>(body: &'p Json, path: &[&str], field: &str) -> Vec<&'p str> {
    let items = body.at(path).expect("a list").items();
    items.iter().map(|item| item.get(field).and_then(Json::text).expect("a text")).collect()
}

const SPEC: [&str; 3] = ["spec", "template", "spec"];

#[test]
fn items_that_the_server_merges_are_listed_as_the_template_has_them_and_new_ones_last() {
    let containers = list([mounting("main", &[("shm", "/dev/shm")]), container("proxy")]);
    let empty = Json::object([("sizeLimit", text("64Mi"))]);
    let volumes = list([Json::object([("name", text("shm")), ("emptyDir", empty)])]);
    let source = deployment(with(template(containers), "volumes", volumes));
    let shared =
        |container: &str| PatchChange::SharedMemory { container: container.into(), bytes: 4096 };
    let patch = patched(&source, vec![shared("proxy"), shared("main")]);
    assert_eq!(patch.form_name(), "strategic");
    for body in [patch.body().expect("a body"), patch.fragment.clone().expect("a fragment")] {
        let at = |field| [&SPEC[..], &[field]].concat();
        assert_eq!(listed(&body, &at("volumes"), "name"), ["shm", "shared-memory"]);
    }
    let less = |container: &str, resource| PatchChange::Amount {
        container: container.into(),
        resource,
        request: 1000,
        limit: LimitChange::Stays,
    };
    let patch = patched(&source, vec![less("proxy", "cpu"), less("main", "memory")]);
    for body in [patch.body().expect("a body"), patch.fragment.clone().expect("a fragment")] {
        let containers = [&SPEC[..], &["containers"]].concat();
        assert_eq!(listed(&body, &containers, "name"), ["main", "proxy"]);
    }
}

#[test]
fn shared_memory_takes_no_name_that_the_template_has_for_something_else() {
    let shared =
        |container: &str| PatchChange::SharedMemory { container: container.into(), bytes: 4096 };
    let both = vec![shared("main"), shared("proxy")];
    let disk = Json::object([("path", text("/mnt"))]);
    let volume = Json::object([("name", text("shared-memory")), ("hostPath", disk)]);
    // The second name is that of a claim of a StatefulSet, which no template lists.
    let mounts = [("shared-memory", "/scratch"), ("shared-memory-2", "/data")];
    let containers = || list([mounting("main", &mounts), container("proxy")]);
    let made = with(template(containers()), "volumes", list([volume]));
    for (made, called) in [
        (template(list([container("main"), container("proxy")])), "shared-memory"),
        (made, "shared-memory-3"),
    ] {
        let body = patched(&deployment(made), both.clone()).body().expect("a body");
        let volumes = [&SPEC[..], &["volumes"]].concat();
        // One of its own for both containers, and what was there is not in the patch.
        assert_eq!(listed(&body, &volumes, "name"), [called]);
        let containers = [&SPEC[..], &["containers"]].concat();
        for container in body.at(&containers).expect("containers").items() {
            assert_eq!(listed(container, &["volumeMounts"], "name"), [called]);
            assert_eq!(listed(container, &["volumeMounts"], "mountPath"), ["/dev/shm"]);
        }
    }
}

#[test]
fn a_list_that_is_written_whole_keeps_what_was_in_it_and_needs_the_version_that_was_read() {
    let spot = Json::object([("key", text("spot")), ("operator", text("Exists"))]);
    let made = with(template(list([container("main")])), "tolerations", list([spot]));
    let mut source = deployment(made);
    let taint = |key: &str, value: &str| Taint {
        key: key.into(),
        value: value.into(),
        effect: TaintEffect::NoSchedule,
    };
    // What is accepted already is not added.
    let change =
        PatchChange::Tolerate { taints: vec![taint("team", "it's"), taint("spot", "yes")] };
    let patch = patched(&source, vec![change.clone()]);
    assert_eq!(
        patch.command(None).expect("a command"),
        [
            r#"kubectl patch Deployment.v1.apps serve -n prod --type=merge -p '{"metadata":{"resourceVersion":"41"},"spec":{"template":{"spec":"#,
            r#"{"tolerations":[{"key":"spot","operator":"Exists"},{"effect":"NoSchedule","key":"team","operator":"Equal","value":"it'\''s"}]}}}}'"#,
        ]
        .concat()
    );
    // Two changes of one list are both in it.
    let respect = PatchChange::Respect { taint: taint("spot", "") };
    let patch = patched(&source, vec![change.clone(), respect]);
    let line = patch.body().expect("a body").to_line();
    assert!(line.contains("team") && !line.contains("spot"), "{line}");
    // Without the version nobody can tell whether somebody changed it since.
    source.resource_version = None;
    let patch = patched(&source, vec![change]);
    assert_eq!((patch.form_name(), patch.command(None)), ("source", None));
    assert!(patch.warnings[0].contains("lacks the resourceVersion"), "{:?}", patch.warnings);
    assert!(patch.fragment.is_some());
}

#[test]
fn every_alternative_of_node_affinity_gets_the_term() {
    let key = |key: &str| Json::object([("key", text(key)), ("operator", text("Exists"))]);
    let terms = list([
        Json::object([("matchExpressions", list([key("a")]))]),
        Json::object([("matchFields", list([key("b")]))]),
    ]);
    let required = Json::object([("nodeSelectorTerms", terms)]);
    let affinity = Json::object([(
        "nodeAffinity",
        Json::object([("requiredDuringSchedulingIgnoredDuringExecution", required)]),
    )]);
    let made = with(template(list([container("main")])), "affinity", affinity);
    let term =
        SelectorTerm { key: "gpu".into(), operator: Operator::DoesNotExist, values: Vec::new() };
    let patch = patched(&deployment(made), vec![PatchChange::AskOfNodes { term }]);
    let line = patch.body().expect("a body").to_line();
    let added = r#"{"key":"gpu","operator":"DoesNotExist"}"#;
    let a = format!(r#"[{{"key":"a","operator":"Exists"}},{added}]"#);
    let b = format!(r#"{{"matchExpressions":[{added}],"matchFields":[{{"key":"b""#);
    assert!(line.contains(&a) && line.contains(&b), "{line}");
}

#[test]
fn who_writes_the_object_is_named_and_what_cannot_be_changed_has_no_command() {
    let mut job = source(
        "Job",
        "batch/v1",
        Json::object([("template", template(list([container("main")])))]),
    );
    job.manager = Some(Manager { tool: Tool::Helm, name: Some("llm".into()) });
    let patch = patched(&job, vec![two_gpus()]);
    assert_eq!((patch.form_name(), patch.command(None), patch.body()), ("source", None, None));
    assert!(patch.effect.contains("delete it and create it with the change"), "{}", patch.effect);
    assert!(
        patch.warnings[0].starts_with("Helm release llm manages this object"),
        "{:?}",
        patch.warnings
    );
    // Stopping it needs no template, and the next audit sees that it was stopped.
    let patch = patched(&job, vec![PatchChange::Stop]);
    assert_eq!(
        patch.body().expect("a body").to_line(),
        r#"{"metadata":{"annotations":{"dovetail.dev/stopped":"1970-01-01T00:00:00Z"}},"spec":{"suspend":true}}"#
    );
}

#[test]
fn a_kind_that_can_be_suspended_is_stopped_that_way() {
    let stopped = |kind: &str| {
        let job = source(kind, "example.com/v1", Json::Object(BTreeMap::new()));
        patched(&job, vec![PatchChange::Stop]).body().expect("a body").to_line()
    };
    let mark = r#"{"metadata":{"annotations":{"dovetail.dev/stopped":"1970-01-01T00:00:00Z"}}"#;
    for kind in ["Job", "JobSet", "RayCluster", "RayJob", "TrainJob"] {
        assert_eq!(stopped(kind), format!(r#"{mark},"spec":{{"suspend":true}}}}"#), "{kind}");
    }
    for kind in ["JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob"] {
        let spec = r#"{"runPolicy":{"suspend":true}}"#;
        assert_eq!(stopped(kind), format!(r#"{mark},"spec":{spec}}}"#), "{kind}");
    }
}

#[test]
fn names_that_no_server_takes_get_no_patch() {
    let source = deployment(template(list([container("main")])));
    for name in ["--all", "a b", "a'; rm -rf ~; '", "$(id)", "", "a\nb", "é"] {
        let uncordon = PatchChange::Uncordon { nodes: vec!["g1".into()] };
        let mut finding = finding(vec![two_gpus(), uncordon]);
        finding.object.name = name.to_owned();
        assert_eq!(
            patches(&FactsByOwner::of(&Facts::default()), &[&finding], Some(&source)),
            [],
            "{name:?}"
        );
    }
    let named = ["g1", "$(id)", "-all"];
    let uncordon = PatchChange::Uncordon { nodes: named.map(str::to_owned).into() };
    let mut nodes = finding(Vec::new()).mended_by(uncordon);
    nodes.object = ObjectRef::new("NodePool", "", "gpus");
    nodes.affected = named.map(|name| ObjectRef::new("Node", "", name)).into();
    let found = patches(&FactsByOwner::of(&Facts::default()), &[&nodes], None);
    assert_eq!(found[0].command(None).as_deref(), Some("kubectl uncordon g1"));
}

/// The risks of a change of the pods of a workload.
fn risks(workload: Workload, change: PatchChange) -> Vec<String> {
    let mut finding = finding(vec![change.clone()]);
    finding.object = workload.owner.clone();
    let facts = Facts { workloads: vec![workload], ..Facts::default() };
    risk::of(&FactsByOwner::of(&facts), &finding, &change)
}

fn of_kind(kind: &str, class: Option<WorkloadClass>) -> Workload {
    Workload { owner: ObjectRef::new(kind, "prod", "serve"), class, ..workload() }
}

#[test]
fn pods_that_may_be_evicted_are_at_risk_by_what_they_do() {
    let drop = || PatchChange::DropAnnotation { key: "karpenter.sh/do-not-disrupt".into() };
    for (kind, class, lost) in [
        ("PyTorchJob", Some(WorkloadClass::Training), "training without checkpoints loses"),
        ("Job", Some(WorkloadClass::Batch), "starts again from the beginning"),
        ("Deployment", Some(WorkloadClass::Inference), "requests fail until another replica"),
        ("Deployment", Some(WorkloadClass::Interactive), "the state in memory is lost, and its"),
        ("Notebook", None, "the state in memory is lost, and its files"),
        ("Fleet", None, "work without checkpoints loses its progress"),
        ("Pod", None, "no controller recreates them"),
    ] {
        let risk = risks(of_kind(kind, class), drop()).concat();
        assert!(risk.contains("autoscaler may then evict") && risk.contains(lost), "{risk}");
    }
    let mut saves = of_kind("PyTorchJob", Some(WorkloadClass::Training));
    saves.template.saves_progress = true;
    let risk = risks(saves, drop()).concat();
    assert!(risk.contains("since the last checkpoint"), "{risk}");
}

/// A launcher with more processes than GPUs fails, whatever the workload is.
#[test]
fn a_command_that_counts_processes_is_a_risk_of_fewer_gpus() {
    for kind in ["Deployment", "StatefulSet", "Job", "PyTorchJob"] {
        for class in [None, Some(WorkloadClass::Inference), Some(WorkloadClass::Training)] {
            let mut launched = of_kind(kind, class);
            launched.template.containers[0].processes_by = Some("--tensor-parallel-size");
            let risk = risks(launched, two_gpus()).concat();
            assert!(risk.contains("also change --tensor-parallel-size to fit 2"), "{kind}: {risk}");
        }
    }
    // Of another command nothing is known, and training mostly has one process for each GPU.
    assert_eq!(risks(of_kind("Deployment", None), two_gpus()), [""; 0]);
    let training = risks(of_kind("Job", Some(WorkloadClass::Training)), two_gpus()).concat();
    assert!(training.contains("must start 2"), "{training}");
}

/// The risk of a budget that lets the pods of a workload go one by one.
fn risk_of_letting_go(protected: Workload) -> String {
    let budget = Budget {
        object: ObjectRef::new("PodDisruptionBudget", "prod", "serve"),
        protects: protected.owner.clone(),
        limit: BudgetLimit::MaxUnavailable(0),
    };
    let mut finding = finding(Vec::new()).mended_by(PatchChange::LetOneGo);
    finding.object = budget.object.clone();
    let facts = Facts { workloads: vec![protected], budgets: vec![budget], ..Facts::default() };
    risk::of(&FactsByOwner::of(&facts), &finding, &PatchChange::LetOneGo).concat()
}

#[test]
fn a_budget_that_lets_pods_go_is_a_risk_by_what_it_protects() {
    let risk = |class: Option<WorkloadClass>, replicas: u32| {
        risk_of_letting_go(Workload { replicas, ..of_kind("Deployment", class) })
    };
    for replicas in [1, 4] {
        let training = risk(Some(WorkloadClass::Training), replicas);
        assert!(training.contains("loses its progress"), "{training}");
        assert!(!training.contains("requests"), "{training}");
    }
    assert!(risk(Some(WorkloadClass::Interactive), 1).contains("the state in memory is lost"));
    assert!(risk(Some(WorkloadClass::Batch), 2).contains("starts again"));
    assert!(risk(Some(WorkloadClass::Inference), 1).contains("no requests are served"));
    assert_eq!(risk(Some(WorkloadClass::Inference), 2), "");
}

#[test]
fn an_eviction_without_a_successor_is_a_risk() {
    let mut protected =
        Workload { replicas: 2, ..of_kind("Deployment", Some(WorkloadClass::Inference)) };
    protected.rejected_by =
        Some("ResourceQuota q has 0 of pods left, and a new pod needs 1".into());
    let risk = risk_of_letting_go(protected);
    assert!(risk.contains("so an evicted pod is not replaced: ResourceQuota q has 0"), "{risk}");
}

#[test]
fn taints_of_another_name_than_the_gpus_may_be_there_for_a_reason() {
    let of = |keys: &[&str]| {
        let taint = |key: &&str| Taint {
            key: (*key).into(),
            value: String::new(),
            effect: TaintEffect::NoSchedule,
        };
        risks(
            of_kind("Deployment", None),
            PatchChange::Tolerate { taints: keys.iter().map(taint).collect() },
        )
    };
    assert_eq!(of(&[GPU]), [""; 0]);
    let risk = of(&[GPU, "team-b"]).concat();
    assert!(risk.starts_with("the taint team-b:NoSchedule may reserve these nodes"), "{risk}");
    let risk = of(&["spot", "team-b"]).concat();
    assert!(risk.starts_with("the taints spot:NoSchedule, team-b:NoSchedule may"), "{risk}");
}

/// More pods need nodes, too, and may use fewer.
#[test]
fn pods_that_an_autoscaler_may_add_are_a_risk_of_fewer_nodes() {
    let taint = Taint { key: GPU.into(), value: String::new(), effect: TaintEffect::NoSchedule };
    let term = SelectorTerm {
        key: "nvidia.com/gpu.present".into(),
        operator: Operator::DoesNotExist,
        values: Vec::new(),
    };
    let risks = |most: u32, tolerates: bool, change: &PatchChange| {
        let mut web = Workload { replicas: 2, ..of_kind("Deployment", None) };
        web.template.containers[0].limits.clear();
        web.pods = vec![Pod { node: Some("g1".into()), ..Pod::default() }];
        let tolerated = Toleration { key: GPU.into(), any_value: true, ..Toleration::default() };
        web.template.tolerations.extend(tolerates.then_some(tolerated));
        let autoscaler = Autoscaler {
            object: ObjectRef::new("HorizontalPodAutoscaler", "prod", "serve"),
            scales: web.owner.clone(),
            most_replicas: Some(most),
            ..Autoscaler::default()
        };
        let mut finding = finding(vec![change.clone()]);
        finding.object = match change {
            PatchChange::TaintNodes { .. } => ObjectRef::new("NodePool", "", "gpus"),
            _ => web.owner.clone(),
        };
        finding.affected = vec![ObjectRef::new("Node", "", "g1")];
        let (workloads, autoscalers) = (vec![web], vec![autoscaler]);
        let facts = Facts { workloads, autoscalers, ..Facts::default() };
        risk::of(&FactsByOwner::of(&facts), &finding, change).concat()
    };
    let words = "HorizontalPodAutoscaler prod/serve can scale Deployment serve from 2 to 10 pods";
    for change in [
        PatchChange::AskOfNodes { term },
        PatchChange::Respect { taint: taint.clone() },
        PatchChange::TaintNodes { taint: taint.clone() },
    ] {
        let risk = risks(10, false, &change);
        assert!(risk.contains(words), "{change:?}: {risk}");
        assert_eq!(risks(2, false, &change), "", "{change:?}");
    }
    assert_eq!(risks(10, true, &PatchChange::TaintNodes { taint }), "");
}

#[test]
fn shared_memory_is_memory_of_its_container() {
    let change = || PatchChange::SharedMemory { container: "main".into(), bytes: 16 << 30 };
    let risk = risks(of_kind("Deployment", None), change()).concat();
    assert!(risk.ends_with("raise the memory request by 16Gi, too"), "{risk}");
    let mut limited = of_kind("Deployment", None);
    limited.template.containers[0].limits.insert("memory".into(), 64 << 30);
    let risk = risks(limited, change()).concat();
    assert!(risk.contains("OOM-killed") && risk.contains("limit by 16Gi, too"), "{risk}");
}

#[test]
fn one_patch_takes_away_all_annotations_that_hold_a_pod() {
    let held_by = [
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
        ("karpenter.sh/do-not-disrupt", "true"),
        ("karpenter.sh/do-not-evict", "true"),
    ];
    let annotations = held_by.into_iter().chain([("note", "stays")]);
    let annotations = annotations.map(|(key, value)| (key.to_owned(), text(value))).collect();
    let metadata = Json::object([("annotations", Json::Object(annotations))]);
    let spec = Json::object([("containers", list([container("main")]))]);
    let made = Json::object([("metadata", metadata), ("spec", spec)]);
    let drop = |(key, _): (&str, &str)| PatchChange::DropAnnotation { key: key.to_owned() };
    let patch = patched(&deployment(made), held_by.map(drop).into());
    assert_eq!(
        patch.body().expect("a body").to_line(),
        [
            r#"{"spec":{"template":{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":null,"#,
            r#""karpenter.sh/do-not-disrupt":null,"karpenter.sh/do-not-evict":null}}}}}"#,
        ]
        .concat()
    );
}
