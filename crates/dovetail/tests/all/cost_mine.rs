//! `dovetail cost --mine` on a real API server: whose namespaces they are, the server says.

use std::process::Command;

use dovetail_testkit::binaries::Program;
use dovetail_testkit::{ControlPlane, cluster};
use serde_json::{Value, json};

use crate::cost_digest::fill;
use crate::program::Folder;

fn kubectl(control_plane: &ControlPlane, arguments: &[&str]) {
    let program = control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
    let mut command = Command::new(program);
    command.args(arguments).env("KUBECONFIG", control_plane.kubeconfig());
    assert!(command.status().expect("kubectl").success(), "kubectl {arguments:?}");
}

/// The row of a namespace, as text.
fn row(bill: &Value, namespace: &str) -> String {
    let rows = bill["rows"].as_array().expect("rows");
    let found = rows.iter().find(|row| row["key"]["namespace"] == namespace);
    found.map(Value::to_string).unwrap_or_default()
}

#[test]
fn only_namespaces_whose_pods_one_may_list_are_shown() {
    let folder = Folder::new();
    fill(&folder);
    let users = ["ada", "lin", "eve"].map(cluster::User::named);
    let options = cluster::Options { users: users.into(), ..cluster::Options::default() };
    let control_plane = ControlPlane::fresh_with(options).expect("a control plane");
    for arguments in [
        "create namespace space-0",
        "create namespace space-1",
        "create clusterrole lists-pods --verb=list --resource=pods",
        "create clusterrole lists-namespaces --verb=list --resource=namespaces",
        "create rolebinding ada -n space-0 --clusterrole=lists-pods --user=ada",
        "create rolebinding lin -n space-1 --clusterrole=lists-pods --user=lin",
        "create clusterrolebinding lin --clusterrole=lists-namespaces --user=lin",
    ] {
        kubectl(&control_plane, &arguments.split(' ').collect::<Vec<_>>());
    }
    let ask = "cost --store ledger.db --period 2024-10-01..2024-10-07 --by namespace";
    let all = folder.json(ask);
    let mine = |user: &str, namespace: Option<&str>| {
        let path = control_plane.cluster().kubeconfig_of(user);
        let text = std::fs::read_to_string(path).expect("a kubeconfig");
        let mut config: Value = serde_json::from_str(&text).expect("JSON");
        if let Some(namespace) = namespace {
            config["contexts"][0]["context"]["namespace"] = json!(namespace);
        }
        folder.write("kubeconfig.json", &config.to_string());
        format!("{ask} --mine --kubeconfig kubeconfig.json --prometheus none")
    };
    // Ada may not list namespaces: hers is the one that her kubeconfig names. Lin may.
    for (user, current, own, other) in
        [("ada", Some("space-0"), "space-0", "space-1"), ("lin", None, "space-1", "space-0")]
    {
        let bill = folder.json(&mine(user, current));
        assert_eq!(row(&bill, own), row(&all, own), "{user}");
        assert_eq!(
            (bill["rows"].as_array().map(Vec::len), row(&bill, other)),
            (Some(1), String::new())
        );
        assert_eq!(bill["total"]["cost_usd_micros"], bill["rows"][0]["cost_usd_micros"]);
        let notes = bill["notes"].to_string();
        assert!(notes.contains(&format!("you may list pods: {own};")), "{notes}");
        let shared = folder.json(&format!("{} --unused distributed", mine(user, current)));
        assert_eq!(shared["rows"].as_array().map(Vec::len), Some(1), "{shared:#}");
    }
    let done = folder.call(&mine("eve", None));
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("--mine") && done.err.contains("`default`"), "{}", done.err);
}
