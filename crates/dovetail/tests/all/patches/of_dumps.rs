//! The patches of the test dumps on a real server: it accepts every command in the order of the
//! index, and after each of them every pod template still has a node that it could use. A judge of
//! its own says so, from the objects of the server alone.

mod completed;
mod judge;

use std::collections::BTreeSet;

use dovetail_testkit::ControlPlane;
use dovetail_testkit::binaries::Program;
use dovetail_testkit::cluster::Options;
use serde_json::{Value, json};

use super::Server;
use crate::dumps::{Dump, all};
use crate::program::Folder;
use completed::{completed, definitions, restored};

impl Server {
    /// A server on which nothing acts but the commands: no controllers, no scheduler; KWOK ends the
    /// pods that are evicted.
    fn without_controllers() -> Self {
        let options = Options { kwok: true, ..Options::default() };
        let control_plane = ControlPlane::start(options).expect("a control plane");
        let kubectl =
            control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
        Self { control_plane, kubectl, folder: Folder::new() }
    }

    /// All objects of these kinds, as the server has them.
    fn objects(&self, kinds: &BTreeSet<String>) -> Vec<Value> {
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let text = self.shell(&format!("kubectl get {} -A -o json", kinds.join(",")), "");
        let list: Value = serde_json::from_str(&text).expect("JSON");
        list["items"].as_array().expect("items").clone()
    }
}

/// Kinds as kubectl takes them, with their group.
fn kinds(objects: &[Value]) -> BTreeSet<String> {
    let kind = |object: &Value| {
        let (kind, api) = (object["kind"].as_str()?, object["apiVersion"].as_str()?);
        Some(match api.split_once('/') {
            Some((group, version)) => format!("{kind}.{version}.{group}"),
            None => kind.to_owned(),
        })
    };
    objects.iter().filter_map(kind).collect()
}

/// The commands of an index, in its order.
fn commands(index: &str) -> Vec<String> {
    let blocks = index.split("```").skip(1).step_by(2);
    blocks.map(|block| block.trim().to_owned()).collect()
}

/// Applies the patches of one dump; answers with how many commands the server took.
fn apply(server: &Server, dump: &Dump, number: usize) -> usize {
    let wanted = completed(&dump.objects);
    let kinds = kinds(&wanted);
    // Namespaces and definitions of other dumps stay.
    let (namespaces, others): (Vec<Value>, Vec<Value>) =
        wanted.iter().cloned().partition(|object| object["kind"] == "Namespace");
    let of_all = definitions(&wanted).into_iter().chain(namespaces).collect::<Vec<_>>();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": of_all});
    server.shell("kubectl apply --server-side --force-conflicts -f -", &list.to_string());
    if of_all.iter().any(|object| object["kind"] == "CustomResourceDefinition") {
        server.shell("kubectl wait --for=condition=Established crd --all --timeout=120s", "");
    }
    let without_status = |mut object: Value| {
        if object["kind"] != "Node" {
            object.as_object_mut().expect("an object").remove("status");
        }
        object
    };
    server.create(&others.into_iter().map(without_status).collect::<Vec<_>>());
    let made = server.objects(&kinds);
    // The audit writes nothing: what it reads is what the commands find.
    let usable = judge::usable(&made);
    let mut on_server = restored(made, &wanted);
    // The server has no other pods.
    on_server.push(json!({"apiVersion": "dovetail.dev/v1", "kind": "Collection",
        "metadata": {"name": "collection"}, "complete": ["Pod"]}));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": on_server});
    server.folder.write("dump.json", &list.to_string());
    let usage = dump.usage.as_ref().map_or("", |usage| {
        server.folder.write("usage.csv", usage);
        "--usage usage.csv"
    });
    let folder = format!("patches-{number}");
    let call = format!(
        "audit --from dump.json --at {} --patches {folder} {usage} {}",
        dump.at, dump.flags
    );
    let done = server.folder.call(&call);
    assert_eq!(done.code, Some(0), "{}: {}", dump.name, done.err);
    let index = server.folder.read(&format!("{folder}/index.md"));
    let mut taken = 0;
    for command in commands(&index) {
        // Commands of a cloud have words to replace, and no server here takes them.
        if !command.starts_with("kubectl ") {
            continue;
        }
        server.shell(&format!("cd {folder} && {command}"), "");
        let now = judge::usable(&server.objects(&kinds));
        let lost: Vec<_> = usable.iter().filter(|name| judge::has_lost(&now, name)).collect();
        assert!(lost.is_empty(), "{}: {command}: {lost:?} have no node left", dump.name);
        taken += 1;
    }
    remove(server, &wanted);
    taken
}

/// Removes all objects but namespaces, which no controller would end; also the class that a patch
/// makes.
fn remove(server: &Server, objects: &[Value]) {
    let others = objects.iter().filter(|object| object["kind"] != "Namespace");
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "gpu-inference"}});
    let items: Vec<&Value> = others.chain([&class]).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let flags = "--ignore-not-found --force --grace-period=0 --timeout=60s";
    server.shell(&format!("kubectl delete {flags} -f -"), &list.to_string());
}

#[test]
#[allow(clippy::print_stdout, reason = "`--nocapture` shows the table")]
fn the_server_takes_all_patches_of_the_dumps_in_order_and_no_template_loses_its_last_node() {
    let server = Server::without_controllers();
    let dumps = all();
    assert_eq!(dumps.len(), 11);
    let mut sum = 0;
    for (number, dump) in dumps.iter().enumerate() {
        let taken = apply(&server, dump, number);
        println!("{:14}{taken:>4} commands", dump.name);
        sum += taken;
    }
    assert!(sum >= 12, "only {sum} commands");
}
