//! What goes wrong in the first hour, against a server that misbehaves: each message names what
//! happened, the object, and what to do.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use dovetail_testkit::fake_api::{ApiFault, FaultRule, On};
use serde_json::json;

use crate::live::{cluster, connected, kubeconfig, pod, until, with};
use crate::program::Folder;

/// Where the rights are that an audit needs.
const ROLE: &str = "deploy/serve/rbac.yaml";

fn refusing(plural: &str, code: u16) -> FaultRule {
    FaultRule::some(On::new(&[], plural), 1_000_000, ApiFault::ServerError { code })
}

#[test]
fn a_plain_audit_reads_the_cluster_of_the_current_context() {
    let api = cluster(&[with(pod("runs", 3), "nodeName", json!("n0"))]);
    let runs = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    api.merge("pods", "team", "runs", "status", &runs).expect("a pod that runs");
    let folder = connected(&api);
    folder.make_folder(".kube");
    folder.write(".kube/config", &folder.read("kubeconfig"));
    let plain = folder.call("audit -o json --gpu-price *=2");
    assert_eq!(plain.code, Some(0), "{}", plain.err);
    let found: serde_json::Value = serde_json::from_str(&plain.out).expect("JSON");
    assert_eq!(found["headline"]["installed_gpus"], 16.0);
    assert_eq!(found["sources"], json!(["the default kubeconfig"]));
    let path = folder.path("kubeconfig").display().to_string();
    for variable in [path.clone(), format!("/nowhere:{path}"), format!("{path}:/nowhere")] {
        let done = folder.command("audit -o json").env("KUBECONFIG", &variable).output();
        let done = done.expect("the program starts");
        assert!(done.status.success(), "{variable}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let none = folder.command("audit").env("KUBECONFIG", "/nowhere:/elsewhere").output();
    let none = none.expect("the program starts");
    let told = String::from_utf8_lossy(&none.stderr).replace("\n    ", " ");
    let names_both = told.contains("$KUBECONFIG names /nowhere, /elsewhere, which do not exist");
    assert!(none.status.code() == Some(1) && names_both, "{told}");
    // Without measurements nothing is called waste that is not free.
    let text = folder.call("audit --gpu-price *=2").out;
    assert!(text.contains("was not measured") && !text.contains("is wasted"), "{text}");
    assert!(text.lines().count() <= 25, "{text}");
}

#[test]
fn credentials_that_expired_are_named_and_so_are_rights_that_are_missing() {
    let api = cluster(&[pod("p", 1)]);
    let folder = connected(&api);
    let audit = || folder.call("audit --kubeconfig kubeconfig");
    api.set_faults(1, vec![refusing("nodes", 401), refusing("pods", 401)]);
    let done = audit();
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("rejected your credentials (401)"), "{}", done.err);
    assert!(done.err.contains("log in again"), "{}", done.err);
    // Without pods every GPU would look free.
    api.set_faults(1, vec![refusing("pods", 403)]);
    let done = audit();
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{}", done.err);
    assert!(done.err.contains("not allowed to list pods in all namespaces"), "{}", done.err);
    assert!(done.err.contains(ROLE), "{}", done.err);
    // Without quotas there is a report, and it names what it lacks and the right that would help.
    api.set_faults(1, vec![refusing("resourcequotas", 403)]);
    let done = audit();
    assert_eq!(done.code, Some(0), "{}", done.err);
    let notes = done.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let names_all = notes.contains("not allowed to list resourcequotas") && notes.contains(ROLE);
    assert!(names_all, "{}", done.err);
    assert!(done.out.contains("Missing data: "), "{}", done.out);
    let all = folder.call("audit --kubeconfig kubeconfig --all-findings").out;
    assert!(all.contains("\n  quotas: hides namespaces"), "{all}");
}

#[test]
fn a_login_command_that_is_missing_is_named() {
    let api = cluster(&[]);
    let folder = connected(&api);
    let mut config: serde_json::Value =
        serde_json::from_str(&folder.read("kubeconfig")).expect("JSON");
    config["users"][0]["user"] = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never", "command": "no-such-login", "args": [],
        "installHint": "Install it:\n  krew install no-such-login\n"}});
    folder.write("kubeconfig", &config.to_string());
    let done = folder.call("audit --kubeconfig kubeconfig");
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("`no-such-login`"), "{}", done.err);
    let hint = "install hint of the kubeconfig: Install it: krew install no-such-login";
    assert!(done.err.replace("\n    ", " ").contains(hint), "{}", done.err);
}

#[test]
fn a_legacy_auth_provider_is_named_with_what_replaces_it() {
    let api = cluster(&[]);
    let folder = connected(&api);
    let mut config: serde_json::Value =
        serde_json::from_str(&folder.read("kubeconfig")).expect("JSON");
    let provider = json!({"name": "oidc", "config": {"refresh-token": "canary-7c1e"}});
    config["users"][0]["user"] = json!({"auth-provider": provider});
    folder.write("kubeconfig", &config.to_string());
    let done = folder.call("audit --kubeconfig kubeconfig");
    assert_eq!(done.code, Some(1), "{}", done.err);
    let told = done.err.replace("\n    ", " ");
    assert!(told.contains("auth-provider `oidc` is a legacy method"), "{told}");
    assert!(told.contains("`kubectl oidc-login`") && !told.contains("canary"), "{told}");
}

#[test]
fn a_broken_kubeconfig_is_named_and_nothing_of_it_is_shown() {
    let folder = Folder::new();
    folder.write("kubeconfig", "users:\n- name: me\n  user: {token: canary-7c1e\ncontexts: []\n");
    let done = folder.call("audit --kubeconfig kubeconfig");
    assert_eq!(done.code, Some(1), "{}", done.err);
    let told = "error: cannot read kubeconfig kubeconfig: check that it is valid YAML";
    assert!(done.err.starts_with(told), "{}", done.err);
    assert!(!done.err.contains("canary"), "{}", done.err);
}

#[test]
fn a_dump_in_yaml_is_called_that() {
    let folder = Folder::new();
    folder.write("dump.json", "apiVersion: v1\nitems: []\nkind: List\n");
    let done = folder.call("audit --from dump.json");
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("the text is YAML, but dumps must be JSON"), "{}", done.err);
}

#[test]
fn files_that_are_not_read_and_objects_in_several_versions_are_told() {
    let folder = Folder::new();
    folder.make_folder("dumps");
    let node = |version: &str, gpus: &str| {
        let amounts = json!({"nvidia.com/gpu": gpus});
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "g1", "resourceVersion": version},
            "status": {"capacity": amounts, "allocatable": amounts}})
    };
    folder.write("dumps/a.json", &node("10", "4").to_string());
    folder.write("dumps/b.json", &node("9", "8").to_string());
    folder.write("dumps/c.yaml", "kind: Node\n");
    folder.write("dumps/d.yml", "kind: Node\n");
    let call = "audit --from dumps --at 2026-11-20T12:00:00Z -o json";
    let done = folder.call(call);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let found: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(found["headline"]["installed_gpus"], 4.0);
    let told = done.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("several versions of 1 object, such as Node g1"), "{told}");
    assert!(told.contains("dumps: 2 YAML files ignored: dumps must be JSON"), "{told}");
    // The same object twice is nothing to tell.
    folder.write("dumps/b.json", &node("10", "4").to_string());
    let told = folder.call(call).err;
    assert!(!told.contains("several versions"), "{told}");
}

/// Ctrl-C while objects are read leaves no part of a file behind.
#[test]
fn an_interrupted_collection_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.make_folder("out");
    let mut command =
        folder.command("collect --from - --at 2026-11-20T12:00:00Z --to out/all.json");
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    let files = || std::fs::read_dir(folder.path("out")).expect("a folder").count();
    // It waits for more objects as long as the pipe is open.
    let pipe = child.stdin.take();
    until(|| files() > 0);
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().expect("kill");
    assert!(killed.success());
    assert_eq!(child.wait().expect("an end").code(), Some(130));
    assert_eq!(files(), 0, "the draft stays");
    drop(pipe);
}

/// A command that does not ignore Ctrl-C, as what a shell starts in the background does.
fn interruptible(command: &Command) -> Command {
    let mut outer = Command::new("env");
    outer.arg("--default-signal=INT").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer.current_dir(command.get_current_dir().expect("a folder"));
    outer
}

/// A server that accepts connections and never answers.
fn silent_server() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

/// Ctrl-C while the API server does not answer: the same exit code and no part of a file, whichever
/// command reads.
#[test]
fn an_interrupted_listing_leaves_nothing_behind() {
    for call in ["collect --to out/all.json", "audit", "audit --patches out/patches"] {
        let server = silent_server();
        let folder = Folder::new();
        folder.make_folder("out");
        let url = format!("http://{}", server.local_addr().expect("an address"));
        folder.write("kubeconfig", &kubeconfig(&url));
        let call = format!("{call} --kubeconfig kubeconfig");
        let mut command = interruptible(&folder.command(&call));
        let mut child = command.spawn().expect("the program starts");
        // The request is sent, and nothing comes back.
        let (mut request, _) = server.accept().expect("a connection");
        request.read_exact(&mut [0; 16]).expect("a request");
        let pid = child.id().to_string();
        let killed = Command::new("kill").args(["-INT", &pid]).status().expect("kill");
        assert!(killed.success());
        let end = child.wait().expect("an end");
        // Shells give 130 to a program that the signal itself ended.
        let is_interrupted = end.code() == Some(130) || end.signal() == Some(2);
        assert!(is_interrupted, "{call}: {end}");
        let files = std::fs::read_dir(folder.path("out")).expect("a folder").count();
        assert_eq!(files, 0, "{call}");
    }
}

#[test]
fn nodes_without_pods_are_not_called_free() {
    let folder = Folder::new();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "g1"},
        "status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}});
    folder.write("dump.json", &node.to_string());
    let done = folder.call("audit --from dump.json --at 2026-11-20T12:00:00Z");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let told = "The input has no pods, so which GPUs are allocated is unknown.";
    let head = done.out.replace("\n    ", " ");
    assert!(head.contains(told) && !head.contains("is wasted"), "{}", done.out);
}

#[test]
fn a_cluster_without_gpus_is_one_sentence() {
    let folder = Folder::new();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c1"},
        "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}});
    folder.write("dump.json", &node.to_string());
    let done = folder.call("audit --from dump.json --at 2026-11-20T12:00:00Z");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let sentence = "No node has allocatable GPUs: nothing to audit; if nodes have GPUs, check that \
                    their device plugin\n    or DRA driver runs.\n";
    assert_eq!(done.out, sentence);
}
