//! Dumps in every form that people hand over, and what is no dump.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;

use dovetail_inventory::dump::{DumpError, RawObject, Sink, Skipped, read_objects, read_paths};
use dovetail_inventory::facts::{Gathered, Inventory};
use serde_json::{Value, json};

use crate::facts::{node, pod};

#[derive(Default)]
struct Names {
    taken: Vec<String>,
    skipped: Vec<Skipped>,
    empty: Vec<String>,
}

impl Sink for Names {
    fn object(&mut self, raw: &RawObject<'_>) {
        let read: serde_json::Value = serde_json::from_str(raw.json).expect("a whole object");
        assert_eq!(read["metadata"]["name"], raw.name);
        self.taken.push(format!("{} {} {}/{}", raw.api_version, raw.kind, raw.namespace, raw.name));
    }

    fn skipped(&mut self, skipped: Skipped) {
        self.skipped.push(skipped);
    }

    fn empty_list(&mut self, kind: &str) {
        self.empty.push(kind.to_owned());
    }
}

fn names(text: &str) -> Result<Names, DumpError> {
    let mut names = Names::default();
    read_objects(text.as_bytes(), "dump.json", &mut names).map(|_| names)
}

const PODS: [&str; 2] = ["v1 Pod a/p", "v1 Pod b/q"];

#[test]
fn objects_lists_and_lines_say_the_same() {
    let pod = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}});
    let mut bare = [pod("a", "p"), pod("b", "q")];
    let list = json!({"apiVersion": "v1", "items": bare, "kind": "List", "metadata": {}});
    let lines = format!("{}\n{}\n", bare[0], bare[1]);
    let lists = format!(
        "{}{}",
        json!({"kind": "List", "items": [bare[0]]}),
        json!({"kind": "List", "items": [bare[1]]})
    );
    for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap(), lines, lists] {
        assert_eq!(names(&text).unwrap().taken, PODS, "{text}");
    }
    // The server's own lists name the kind once.
    for pod in &mut bare {
        pod.as_object_mut().unwrap().retain(|key, _| key == "metadata");
    }
    let typed = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","items":{}}}"#,
        serde_json::to_string(&bare).unwrap()
    );
    assert_eq!(names(&typed).unwrap().taken, PODS);
    assert!(names("").unwrap().taken.is_empty());
    assert!(names(r#"{"kind":"PodList","items":null}"#).unwrap().taken.is_empty());
}

/// Programs that join dumps put lists into a list.
#[test]
fn objects_of_lists_inside_of_lists_are_read() {
    let pod = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}});
    let untyped = json!({"metadata": {"namespace": "b", "name": "q"}});
    let pods = json!({"apiVersion": "v1", "kind": "PodList", "items": [untyped]});
    let nodes = json!({"kind": "NodeList", "items": []});
    let inner = json!({"apiVersion": "v1", "kind": "List", "items": [pods, nodes]});
    let list = json!({"kind": "List", "items": [pod("a", "p"), inner]});
    let array = json!([pod("a", "p"), [inner]]);
    for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap(), array.to_string()]
    {
        let found = names(&text).unwrap();
        assert_eq!(found.taken, PODS, "{text}");
        assert_eq!(found.empty, ["Node"], "{text}");
        assert_eq!(found.skipped, [], "{text}");
    }
    let broken = json!({"kind": "List", "items": [{"kind": "List", "items": 3}, pod("a", "p")]});
    let found = names(&broken.to_string()).unwrap();
    assert_eq!((&found.taken[..], found.skipped.len()), (&[PODS[0].to_owned()][..], 1));
    // No depth ends the program.
    let (begin, end) = (r#"{"kind":"List","items":["#.repeat(2_000), "]}".repeat(2_000));
    let deep = names(&format!("{begin}{end}")).unwrap();
    assert_eq!(deep.skipped.len(), 1);
    assert!(deep.skipped[0].to_string().contains("nested too deeply"), "{}", deep.skipped[0]);
}

/// An empty list is an answer of a cluster; other texts without objects are none.
#[test]
fn a_list_without_objects_is_told_with_its_kind() {
    let empty = |text: &str| names(text).unwrap().empty;
    assert_eq!(empty(r#"{"apiVersion": "v1", "items": [], "kind": "List"}"#), [""]);
    assert_eq!(empty(r#"{"kind":"NodeList","items":null}"#), ["Node"]);
    let pod = r#"{"kind": "Pod", "metadata": {"name": "p"}}"#;
    let lists = format!(r#"{{"kind":"List","items":[{pod}]}}{{"kind":"PodList","items":[]}}"#);
    assert_eq!(empty(&lists), ["Pod"]);
    assert_eq!(empty("[]"), [""]);
    for none in ["", pod, r#"{"items":[]}"#, r#"{"kind":"Pod","items":[]}"#] {
        assert!(empty(none).is_empty(), "{none}");
    }
}

#[test]
fn folders_and_gzip_are_read_like_files() {
    let folder = std::env::temp_dir().join(format!("dovetail-dump-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let pod = |namespace: &str, name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}})
            .to_string()
    };
    let gz = fs::File::create(folder.join("b.json.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(gz, flate2::Compression::fast());
    gz.write_all(pod("b", "q").as_bytes()).unwrap();
    gz.finish().unwrap();
    fs::write(folder.join("a.json"), pod("a", "p")).unwrap();
    fs::write(folder.join("notes.txt"), "no dump").unwrap();
    let mut found = Names::default();
    read_paths(std::slice::from_ref(&folder), &mut found).unwrap();
    assert_eq!(found.taken, PODS);
    let empty = folder.join("empty");
    fs::create_dir(&empty).unwrap();
    let error = read_paths(&[empty], &mut found).unwrap_err();
    assert!(matches!(error, DumpError::NothingThere { .. }), "{error}");
    let error = read_paths(&[PathBuf::from("no such file")], &mut found).unwrap_err();
    assert!(error.to_string().contains("no such file"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}

/// Files overlap, and so do lists.
#[test]
fn an_object_that_is_there_several_times_is_read_once_in_its_newest_version() {
    let folder = std::env::temp_dir().join(format!("dovetail-once-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let versioned = |mut object: Value, version: Option<&str>, phase: &str| {
        object["status"]["phase"] = json!(phase);
        if let Some(version) = version {
            object["metadata"]["resourceVersion"] = json!(version);
        }
        object
    };
    let running = |name: &str, version| versioned(pod(name, "", 1, "g1"), version, "Running");
    let ended = |name: &str, version| versioned(pod(name, "", 1, "g1"), version, "Succeeded");
    let read = |files: [&[Value]; 2]| {
        for (name, objects) in ["a.json", "b.json"].into_iter().zip(files) {
            let list = json!({"kind": "List", "items": objects});
            fs::write(folder.join(name), list.to_string()).unwrap();
        }
        let mut inventory = Inventory::new(1_795_176_000_000);
        let read = read_paths(std::slice::from_ref(&folder), &mut inventory).unwrap();
        let found = inventory.facts(["team".to_owned()].into());
        let mut held: Vec<String> = found.moment.held.into_iter().map(|of| of.pod).collect();
        held.sort_unstable();
        let several = read.several.map(|of| (of.objects, of.example));
        (held, several)
    };
    let told = |objects: usize, example: &str| Some((objects, example.to_owned()));
    let g1 = node("g1", 8);
    // Equal, in one list and in two files.
    let same = [g1.clone(), running("p", Some("5")), running("p", Some("5")), running("q", None)];
    assert_eq!(read([&same, &same]), (vec!["p".to_owned(), "q".to_owned()], None));
    // The number decides, wherever the version stands.
    let old = [g1.clone(), running("p", Some("9")), ended("q", Some("9"))];
    let new = [ended("p", Some("10")), running("q", Some("10"))];
    let expected = (vec!["q".to_owned()], told(2, "Pod research/p"));
    assert_eq!(read([&old, &new]), expected);
    assert_eq!(read([&new, &old]), expected);
    // Without a number, the last.
    let expected = (Vec::new(), told(1, "Pod research/p"));
    assert_eq!(read([&[g1.clone(), running("p", None)], &[ended("p", None)]]), expected);
    // Of one name, in another namespace.
    let mut other = running("p", Some("7"));
    other["metadata"]["namespace"] = json!("other");
    let held = vec!["p".to_owned(); 2];
    assert_eq!(read([&[g1, running("p", Some("9"))], &[other]]), (held, None));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn yaml_files_of_a_folder_are_counted() {
    let folder = std::env::temp_dir().join(format!("dovetail-yaml-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in [("a.json", "{}"), ("b.yaml", ""), ("c.YML", ""), ("d.yaml.gz", "")] {
        fs::write(folder.join(name), text).unwrap();
    }
    let read = read_paths(std::slice::from_ref(&folder), &mut Names::default()).unwrap();
    assert_eq!(read.yaml, [(folder.clone(), 3)]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_no_json_is_told_with_its_place_and_the_rest_by_name() {
    let error = names("{\"kind\": \"List\",\n \"items\": [{\"kind\": }]}").err().unwrap();
    assert!(
        error.to_string().starts_with("dump.json:2:21: invalid JSON (expected value)"),
        "{error}"
    );
    // Lines before it count, also where each was an object of its own.
    let pod = r#"{"kind": "Pod", "metadata": {"name": "p"}}"#;
    let error = names(&format!("{pod}\n\n{pod}\n{{\"kind\": }}")).err().unwrap();
    assert!(
        error.to_string().starts_with("dump.json:4:10: invalid JSON (expected value)"),
        "{error}"
    );
    let after = names(&format!(
        "{pod}\n{{\n\"kind\": \"Pod\",\"metadata\": {{\"name\": \"q\"}}}} {pod}\n{pod}"
    ));
    assert_eq!(after.unwrap().taken, [" Pod /p", " Pod /q", " Pod /p", " Pod /p"]);
    for text in ["7", "\"x\"", "nul", "{", "{\"items\": 3}", "{\"items\": {}}", "\u{1}"] {
        assert!(matches!(names(text), Err(DumpError::Json { .. })), "{text}");
    }
    let mixed = r#"{"items": [3, null, [], "x", {}, {"kind": 4}, {"kind": "Pod", "metadata": 5},
        {"kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "apiVersion": "v1"}]}"#;
    let found = names(mixed).unwrap();
    assert_eq!(found.taken, PODS[..1]);
    let told: Vec<String> = found.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 7, "{told:?}");
    assert!(told[0].starts_with("dump.json: object 1: field `.`: it is not an object"), "{told:?}");
    assert_eq!(told[4], "dump.json: object 5: field `kind`: it is missing");
}

#[test]
fn an_object_without_end_is_refused_before_it_fills_the_memory() {
    let begin = br#"{"items": [{"kind": "Pod", "metadata": {"name": ""#;
    let endless = begin.chain(std::io::repeat(b'x'));
    let mut found = Names::default();
    let input = std::io::BufReader::new(endless);
    let error = read_objects(input, "big.json", &mut found).unwrap_err();
    assert!(matches!(error, DumpError::TooLarge { number: 1, .. }), "{error}");
    assert!(error.to_string().starts_with("big.json: object 1 is larger than 64 MiB"), "{error}");
}

/// Pods of about 9 kB; one in a hundred has no kind, one a field of the wrong shape.
fn many_pods() -> Vec<Value> {
    let pod = |number: usize| {
        let node =
            if number.is_multiple_of(9) { json!(null) } else { json!(format!("n{}", number % 50)) };
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "namespace": format!("team-{}", number % 7), "name": format!("p{number}"),
                "labels": {"app": format!("a{}", number % 40), "long": "x".repeat(9_000)},
                "ownerReferences": [{"kind": "ReplicaSet", "name": format!("a{}", number % 40), "controller": true}]
            },
            "spec": {
                "nodeName": node,
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": number % 3}}}]
            }
        });
        match number % 100 {
            17 => drop(pod.as_object_mut().unwrap().remove("kind")),
            18 => pod["spec"]["priority"] = json!("high"),
            _ => {}
        }
        pod
    };
    (0..1_000).map(pod).collect()
}

#[test]
fn lines_that_are_read_side_by_side_say_what_a_list_read_one_by_one_says() {
    let pods = many_pods();
    let lines: Vec<String> = pods.iter().map(Value::to_string).collect();
    // Blank lines are nothing, and what stands on several lines may follow.
    let (first, last) = (lines[..999].join("\n\n"), &pods[999]);
    let lines = format!("{first}\n{}\n", serde_json::to_string_pretty(last).unwrap());
    assert!(lines.len() > 9_000_000, "{}: these lines are taken at once", lines.len());
    let list = json!({"kind": "List", "items": pods}).to_string();
    let gathered = |text: &str| -> Gathered {
        let mut inventory = Inventory::new(1_795_176_000_000);
        assert_eq!(read_objects(text.as_bytes(), "dump.json", &mut inventory).unwrap(), 1_000);
        inventory.facts(["team".to_owned()].into())
    };
    let (of_lines, of_list) = (gathered(&lines), gathered(&list));
    assert_eq!(of_lines.facts, of_list.facts);
    assert_eq!(of_lines.facts.workloads.iter().map(|of| of.pods.len()).sum::<usize>(), 980);
    assert_eq!(of_lines.skipped, of_list.skipped);
    let told: Vec<&str> = of_lines.skipped.iter().map(|skipped| &*skipped.field).collect();
    assert_eq!(told, ["kind", "spec.priority"].repeat(10));
}
