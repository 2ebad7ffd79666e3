//! Patches on a real server, with real controllers: each finding that a patch mends is gone,
//! nothing as bad is new, and nothing changed beside the patch.

mod of_dumps;
mod owners;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use dovetail_testkit::ControlPlane;
use dovetail_testkit::binaries::Program;
use dovetail_testkit::cluster::Options;
use serde_json::{Value, json};

use crate::program::Folder;
use world::{CASES, Case, NAMESPACE};

/// Everything that an audit reads.
const KINDS: &str = "nodes,pods,namespaces,replicasets,deployments,statefulsets,daemonsets,jobs,cronjobs,\
                     horizontalpodautoscalers,poddisruptionbudgets,resourcequotas,validatingadmissionpolicies,\
                     nodepools.karpenter.sh,fleets.example.com,verticalpodautoscalers.autoscaling.k8s.io,\
                     notebooks.kubeflow.org";

struct Server {
    control_plane: ControlPlane,
    kubectl: PathBuf,
    folder: Folder,
}

impl Server {
    fn start() -> Self {
        let options =
            Options { scheduler: true, controller_manager: true, kwok: true, ..Options::default() };
        let control_plane = ControlPlane::start(options).expect("a control plane");
        let kubectl =
            control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
        Self { control_plane, kubectl, folder: Folder::new() }
    }

    /// What a command of a shell says; it must succeed.
    fn shell(&self, command: &str, input: &str) -> String {
        let folder = self.kubectl.parent().expect("a folder").display().to_string();
        let mut child = Command::new("sh")
            .args(["-euc", command])
            .env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()))
            .env("KUBECONFIG", self.control_plane.kubeconfig())
            .current_dir(self.folder.path("."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("a pipe that is read");
        drop(stdin);
        let output = child.wait_with_output().expect("an end");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {told}");
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }

    fn create(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.shell("kubectl create -f -", &list.to_string());
    }

    /// Waits until the pods of a Deployment or StatefulSet are there and ready.
    fn rolled_out(&self, kind: &str, name: &str) {
        let wait = format!("kubectl rollout status {kind}/{name} -n {NAMESPACE} --timeout=180s");
        self.shell(&wait, "");
    }

    /// All objects, as they are now.
    fn dump(&self) -> Value {
        let text = self.shell(&format!("kubectl get {KINDS} -A -o json --show-managed-fields"), "");
        serde_json::from_str(&text).expect("JSON")
    }

    /// An audit of these objects, an hour after they were made.
    fn audit(&self, dump: &Value, more: &str) -> Value {
        self.folder.write("dump.json", &world::made_a_day_before(dump).to_string());
        let usage = world::usage(dump);
        self.folder.write("usage.csv", &usage);
        let at = world::at(dump);
        let call = format!(
            "audit --from dump.json --usage usage.csv --at {at} --fail-on never --output json {more}"
        );
        let done = self.folder.call(&call);
        assert_eq!(done.code, Some(0), "{}", done.err);
        serde_json::from_str(&done.out).expect("JSON")
    }
}

/// Check and object.
type Key = (String, String);

fn key(finding: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &finding["object"];
    let object = [&object["kind"], &object["namespace"], &object["name"]].map(text).join("/");
    (text(&finding["id"]), object)
}

fn findings(document: &Value) -> BTreeMap<Key, &Value> {
    let all = document["findings"].as_array().expect("findings").iter();
    all.map(|finding| (key(finding), finding)).collect()
}

/// Objects by kind, namespace and name, as far as they are somebody's will: no status, no count of
/// changes.
fn wills(dump: &Value) -> BTreeMap<String, Value> {
    let items = dump["items"].as_array().expect("items").iter();
    let will = |object: &Value| {
        let mut object = object.clone();
        let metadata = object["metadata"].clone();
        let name = [&object["kind"], &metadata["namespace"], &metadata["name"]]
            .map(|part| part.as_str().unwrap_or_default().to_owned())
            .join("/");
        let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
        // Controllers count revisions there.
        annotations.retain(|key, _| !key.starts_with("deployment.kubernetes.io/"));
        object["metadata"] = json!({"labels": metadata["labels"], "annotations": annotations});
        object.as_object_mut().expect("an object").remove("status");
        (name, object)
    };
    items.map(will).collect()
}

/// Places at which two values differ.
fn differences(
    before: &Value,
    after: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) {
    let (old, new) = (before.as_object(), after.as_object());
    if let (Some(old), Some(new)) = (old, new) {
        for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            path.push(key.clone());
            differences(&before[key], &after[key], path, found);
            path.pop();
        }
        return;
    }
    // Lists of things with names are compared by name.
    let named = |value: &Value| -> Option<BTreeMap<String, Value>> {
        let items = value.as_array().filter(|items| !items.is_empty())?.iter();
        items.map(|item| Some((item["name"].as_str()?.to_owned(), item.clone()))).collect()
    };
    if let (Some(old), Some(new)) = (named(before), named(after)) {
        for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            path.push(key.clone());
            let null = Value::Null;
            let of = |items: &BTreeMap<String, Value>| items.get(key).unwrap_or(&null).clone();
            differences(&of(&old), &of(&new), path, found);
            path.pop();
        }
    } else if before != after {
        found.push(path.clone());
    }
}

/// Whether a patch speaks of a place.
fn speaks_of(fragment: &Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    match fragment {
        Value::Object(fields) => fields.get(first).is_some_and(|next| speaks_of(next, rest)),
        Value::Array(items) => {
            items.iter().any(|item| item["name"].as_str() == Some(first) && speaks_of(item, rest))
        }
        // A value that is written as a whole.
        _ => true,
    }
}

/// The node pools' controller: nodes get what the template of their pool says, empty ones go.
fn play_karpenter(server: &Server, after: &Value) {
    let pools = after["items"].as_array().expect("items").iter();
    for pool in pools.filter(|object| object["kind"] == "NodePool") {
        let name = pool["metadata"]["name"].as_str().expect("a name");
        let taints = &pool["spec"]["template"]["spec"]["taints"];
        let body = json!({"spec": {"taints": taints}});
        let select = format!("-l karpenter.sh/nodepool={name}");
        let nodes = server.shell(&format!("kubectl get nodes {select} -o name"), "");
        for node in nodes.lines() {
            server.shell(&format!("kubectl patch {node} --type=merge -p '{body}'"), "");
        }
        if pool["spec"]["disruption"]["consolidateAfter"] == "5m" {
            server.shell(&format!("kubectl delete nodes {select}"), "");
        }
    }
}

/// Applies every patch of the cases by the command that is printed; answers with fragments by
/// object.
fn apply(server: &Server, document: &Value, cases: &[&Case]) -> BTreeMap<String, Vec<Value>> {
    let all = findings(document);
    let mut fragments: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let patches = |finding: &&Value| finding["patches"].as_array().expect("patches").clone();
    for case in cases {
        let key = (case.check.to_owned(), case.object());
        let finding =
            all.get(&key).unwrap_or_else(|| panic!("{key:?} is not among {:?}", all.keys()));
        let has_body = patches(finding).iter().any(|patch| !patch["body"].is_null());
        // Else the patch of another finding of its object has its change.
        assert!(has_body || finding["patched_with"].is_string(), "{key:?}: {finding:#}");
    }
    let objects: BTreeSet<String> = cases.iter().map(|case| case.object()).collect();
    let of_cases = all.iter().filter(|((_, object), _)| objects.contains(object));
    let mut in_order: Vec<Value> = of_cases.flat_map(|(_, finding)| patches(finding)).collect();
    in_order.sort_by_key(|patch| patch["order"].as_u64());
    for patch in in_order {
        let command = patch["command"].as_str().unwrap_or_else(|| panic!("{patch:#}"));
        server.shell(command, "");
        let object = &patch["object"];
        let name = [&object["kind"], &object["namespace"], &object["name"]]
            .map(|part| part.as_str().expect("text").to_owned())
            .join("/");
        fragments.entry(name).or_default().push(patch["fragment"].clone());
    }
    fragments
}

/// A list that is written whole is not written over what somebody did since.
fn changed_since(server: &Server, document: &Value) {
    let case = Case { check: "SCH-03", kind: "Deployment", name: "changed" };
    let all = findings(document);
    let patch = &all[&(case.check.to_owned(), case.object())]["patches"][0];
    let command = patch["command"].as_str().expect("a command");
    server.shell(&format!("kubectl annotate deployment changed -n {NAMESPACE} who=somebody"), "");
    let told = server.shell(&format!("if {command} 2>&1; then exit 1; fi"), "");
    assert!(told.contains("Conflict") || told.contains("the object has been modified"), "{told}");
}

/// A Deployment of a Helm release that asks for more GPUs than a node has, and its pod.
fn hostile() -> Value {
    let secret = "canary-7c1e";
    let spec = json!({
        "tolerations": [{"key": "it's `x` | $(id) @all <b>\u{202e}", "operator": "Exists"}],
        "containers": [{"name": "main", "args": [secret], "env": [{"name": "KEY", "value": secret}],
            "resources": {"limits": {"nvidia.com/gpu": "16"}}}]
    });
    let release = json!({"meta.helm.sh/release-name": "llm\u{1b}[31m", "note": secret});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "serve", "namespace": "prod", "annotations": release, "resourceVersion": "7"},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"app": "serve"}}, "spec": spec}}});
    let owner = json!([{"kind": "Deployment", "name": "serve", "controller": true}]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": {"name": "serve-0", "namespace": "prod", "ownerReferences": owner},
        "status": {"phase": "Pending"}});
    let offers = json!({"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"});
    let taints = json!([{"key": "nvidia.com/gpu", "effect": "NoSchedule"},
        {"key": "team", "value": "b", "effect": "NoSchedule"}]);
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g1"},
        "spec": {"taints": taints}, "status": {"capacity": offers, "allocatable": offers}});
    json!({"kind": "List", "items": [deployment, pod, node]})
}

#[test]
fn patches_are_files_with_their_commands_and_nothing_in_them_acts() {
    let folder = Folder::new();
    folder.write("dump.json", &hostile().to_string());
    let call = "audit --from dump.json --at 2026-11-20T12:00:00Z --fail-on never";
    for form in ["table", "json", "markdown", "html", "sarif"] {
        let done = folder.call(&format!("{call} --all-findings --output {form} --patches {form}"));
        assert!(done.err.contains("wrote 1 patch: start with"), "{}", done.err);
        let unsafe_letters = |letter: char| letter.is_control() && letter != '\n';
        assert!(!done.out.contains(unsafe_letters) && !done.out.contains('\u{202e}'), "{form}");
        assert!(!done.out.contains("canary"), "{form}: {}", done.out);
        assert!(form != "html" || !done.out.contains("<b>"), "{}", done.out);
        assert!(done.out.contains("Helm release llm"), "{form}: {}", done.out);
        if form == "table" {
            assert!(done.out.lines().all(|line| line.chars().count() <= 100), "{}", done.out);
        }
    }
    let index = folder.read("json/index.md");
    assert!(!index.contains("canary") && !index.contains('\u{1b}'), "{index}");
    assert!(index.contains("not checked against it: "), "{index}");
    // One patch of the object for both findings: one rollout.
    assert!(index.contains("## 1. REQ-03, SCH-04 Deployment prod/serve"), "{index}");
    assert!(
        index.contains("--type=strategic --patch-file 001-REQ-03-Deployment-prod-serve.json"),
        "{index}"
    );
    // The list as it was, with what is new, under the version that was read.
    let body: Value =
        serde_json::from_str(&folder.read("json/001-REQ-03-Deployment-prod-serve.json"))
            .expect("JSON");
    assert_eq!(body["metadata"]["resourceVersion"], "7");
    let list = body["spec"]["template"]["spec"]["tolerations"].as_array().expect("a list");
    let hostile = &hostile()["items"][0]["spec"]["template"]["spec"]["tolerations"][0];
    assert_eq!((list.len(), &list[0]), (3, hostile));
    let yaml = folder.read("json/001-REQ-03-Deployment-prod-serve.yaml");
    assert!(yaml.contains("nvidia.com/gpu: \"8\"\n"), "{yaml}");
    // What a shell makes of the command is the body again.
    let document = folder.json(call);
    let patches = document["findings"].as_array().expect("findings").iter();
    let patches: Vec<&Value> =
        patches.flat_map(|f| f["patches"].as_array().expect("patches")).collect();
    assert_eq!(patches.len(), 1, "{patches:#?}");
    for patch in patches {
        let command =
            patch["command"].as_str().expect("a command").replacen("kubectl", "printf '%s\\n'", 1);
        let output = Command::new("sh").args(["-euc", &command]).output().expect("a shell");
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        let last: Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
        assert_eq!(last, patch["body"], "{command}");
    }
    let again = folder.call(&format!("{call} --patches json"));
    assert_eq!(again.code, Some(2), "{}", again.err);
    assert!(again.err.contains("pass the path of a new or empty folder"), "{}", again.err);
}

#[test]
fn who_writes_an_object_is_read_off_it() {
    let folder = Folder::new();
    let told = |metadata: Value| -> Option<String> {
        let mut dump = hostile();
        let object = &mut dump["items"][0]["metadata"];
        object["annotations"] = Value::Null;
        object
            .as_object_mut()
            .expect("an object")
            .extend(metadata.as_object().cloned().unwrap_or_default());
        folder.write("dump.json", &dump.to_string());
        let call = "audit --from dump.json --at 2026-11-20T12:00:00Z --fail-on never";
        let document = folder.json(call);
        let warnings = &document["findings"][0]["patches"][0]["warnings"];
        let mut warnings = warnings.as_array().expect("warnings").iter().filter_map(Value::as_str);
        warnings.find_map(|text| text.split_once(" manages").map(|(who, _)| who.to_owned()))
    };
    let by = |text: &str| Some(text.to_owned());
    assert_eq!(told(json!({})), None);
    let helm = json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}});
    assert_eq!(told(helm), by("Helm release"));
    let argo = json!({"annotations": {"argocd.argoproj.io/tracking-id": "llm:apps/Deployment:prod/serve"}});
    assert_eq!(told(argo), by("Argo CD application llm"));
    // Flux writes with Helm, too: what comes first undoes.
    let flux = json!({"labels": {"helm.toolkit.fluxcd.io/name": "llm", "app.kubernetes.io/managed-by": "Helm"}});
    assert_eq!(told(flux), by("Flux resource llm"));
    let seen =
        |writer: &str| json!({"managedFields": [{"manager": "kubectl-edit"}, {"manager": writer}]});
    assert_eq!(told(seen("argocd-controller")), by("Argo CD application"));
    assert_eq!(told(seen("kustomize-controller")), by("Flux resource"));
    assert_eq!(told(seen("kube-controller-manager")), None);
}

#[test]
fn a_patch_mends_what_was_found_and_changes_nothing_else() {
    let server = Server::start();
    world::build(&server);
    let before = server.dump();
    let audited = server.audit(&before, "--patches patches");
    assert!(server.folder.read("patches/index.md").contains("kubectl patch Deployment.v1.apps"));
    changed_since(&server, &audited);
    let cases: Vec<&Case> = CASES.iter().collect();
    let fragments = apply(&server, &audited, &cases);
    let patched = server.dump();
    // Nothing but what the patch says.
    let (old, new) = (wills(&before), wills(&patched));
    for (name, fragments) in &fragments {
        let Some(old) = old.get(name) else { continue };
        let mut found = Vec::new();
        differences(old, &new[name], &mut Vec::new(), &mut found);
        assert!(!found.is_empty(), "{name}: nothing changed");
        for path in found {
            assert!(
                fragments.iter().any(|of| speaks_of(of, &path)),
                "{name}: {path:?}: {fragments:?}"
            );
        }
    }
    play_karpenter(&server, &patched);
    world::settle(&server, &before);
    owners::settle(&server);
    let mended = server.audit(&server.dump(), "");
    let (was, is) = (findings(&audited), findings(&mended));
    for case in &cases {
        let key = (case.check.to_owned(), case.object());
        assert!(!is.contains_key(&key), "{key:?} is still there: {:#}", is[&key]);
    }
    // Which nodes have a pod with samples, or free GPUs beside busy ones, is for the scheduler to
    // decide, each time from scratch.
    let is_placed = |(check, _): &(String, String)| ["VIS-01", "CAP-06"].contains(&check.as_str());
    let new: Vec<_> = is.keys().filter(|key| !was.contains_key(*key) && !is_placed(key)).collect();
    assert!(new.is_empty(), "new: {new:?}");
}
