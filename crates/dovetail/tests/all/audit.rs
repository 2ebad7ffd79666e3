//! `dovetail audit` on a small cluster: each form of output, what it must not say, and what it ends
//! with.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::program::{Done, Folder};

const GPU: &str = "nvidia.com/gpu";
/// Stands in every environment value and argument, and must stand nowhere else.
const CANARY: &str = "canary-5e1f";

fn node(name: &str, gpus: u32) -> Value {
    let labels = json!({
        "kubernetes.io/hostname": name, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "eks.amazonaws.com/nodegroup": "h100", "topology.kubernetes.io/region": "us-east-1",
        "node.kubernetes.io/instance-type": "p5.48xlarge"
    });
    let offers = json!({"cpu": "190", "memory": "2000Gi", "pods": "110", GPU: gpus.to_string()});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-11-01T00:00:00Z"},
        "spec": {"providerID": "aws:///us-east-1a/i-0"},
        "status": {"capacity": offers, "allocatable": offers,
            "conditions": [{"type": "Ready", "status": "True"}]}
    })
}

fn pod(name: &str, gpus: u32, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "prod", "creationTimestamp": "2026-11-20T11:00:00Z",
            "annotations": {"secret": CANARY},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "serve-1", "controller": true}]},
        "spec": {"nodeName": node, "containers": [{
            "name": "main", "image": "vllm", "args": [CANARY], "command": [CANARY],
            "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "KEY", "value": CANARY}],
            "resources": {"requests": {GPU: gpus, "cpu": "4", "memory": "16Gi"}, "limits": {GPU: gpus}}
        }]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    })
}

fn list(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// A node cordoned for ten hours with three of eight GPUs held, one with all held, a pod that asks
/// for more than any node has, and a node without GPUs.
fn folder() -> Folder {
    let folder = Folder::new();
    let mut cordoned = node("g1", 8);
    cordoned["spec"]["unschedulable"] = json!(true);
    cordoned["spec"]["taints"] =
        json!([{"key": "node.kubernetes.io/unschedulable", "timeAdded": "2026-11-20T02:00:00Z"}]);
    let mut plain = node("c1", 0);
    plain["metadata"]["labels"] = json!({});
    let mut large = pod("too-large", 16, "");
    large["status"]["phase"] = json!("Pending");
    large["metadata"]["ownerReferences"] = json!([]);
    // A cluster has pods of its own.
    let mut system = pod("kube-proxy", 0, "g1");
    system["metadata"]["namespace"] = json!("kube-system");
    let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "kube-proxy",
        "uid": "k", "controller": true});
    system["metadata"]["ownerReferences"] = json!([owner]);
    system["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    let objects = [
        cordoned,
        node("g2", 8),
        plain,
        system,
        pod("serve-1-a", 3, "g1"),
        pod("serve-1-b", 8, "g2"),
        large,
    ];
    folder.write("dump.json", &list(&objects));
    folder
}

const CALL: &str = "audit --from dump.json --at 2026-11-20T12:00:00Z";

fn audit(folder: &Folder, flags: &str) -> Done {
    let done = folder.call(&format!("{CALL} {flags}"));
    assert!(!done.out.contains(CANARY) && !done.err.contains(CANARY), "{}", done.out);
    done
}

fn parsed(done: &Done) -> Value {
    serde_json::from_str(&done.out)
        .unwrap_or_else(|error| panic!("{error}: {}{}", done.out, done.err))
}

#[test]
fn every_form_says_the_same() {
    let folder = folder();
    let forms = ["table", "table --all-findings", "json", "markdown", "html", "sarif"];
    for form in forms {
        let done = audit(&folder, &format!("--output {form}"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        if form.starts_with("table") {
            assert!(done.out.lines().all(|line| line.chars().count() <= 100), "{}", done.out);
        }
        let form = form.replace("table --all-findings", "all_findings");
        let text = match &*form {
            "json" | "sarif" => serde_json::to_string_pretty(&parsed(&done)).unwrap(),
            _ => done.out,
        };
        if form == "html" {
            let begin = text.find("<main>").expect("a page");
            insta::assert_snapshot!("audit_html", &text[begin..]);
            assert!(!text.contains("http:") && !text.contains("https:"), "it asks for nothing");
        } else if form == "sarif" {
            let results = text.find("\"results\"").expect("results");
            insta::assert_snapshot!("audit_sarif", &text[results..]);
        } else {
            insta::assert_snapshot!(format!("audit_{form}"), text);
        }
    }
}

/// Filters of the page are rules of its style: what they leave of a check has a total of its own,
/// and what excludes each other leaves no check.
#[test]
fn totals_of_the_page_follow_its_filters() {
    let page = Folder::new().call("audit --example --output html").out;
    assert!(page.contains("% of the bill") && !page.contains("<script"), "{page}");
    // Two servers: one of namespace search, whose team is search, one of research, without a team.
    let (_, head) = page.split_once("<strong>IDL-02</strong>").expect("idle servers");
    let (head, _) = head.split_once("</summary>").expect("their head");
    let told = |classes: &str, money: &str, what: &str| {
        let money = format!(", <span class=\"money\">{money} a month</span>");
        let text =
            format!("<span class=\"total {classes}\">{money}<br><small>{what}</small></span>");
        assert!(head.contains(&text), "{text}: {head}");
    };
    let (search, research) =
        ("Deployment search/serve-ranker-1", "Deployment research/serve-ranker-3");
    told("team-all namespace-all", "$49,500", &format!("{search} and 1 more"));
    let one = format!("{search}; 1 of 2 findings shown");
    told("team-4 namespace-all", "$39,600", &one);
    told("team-all team-4 namespace-5", "$39,600", &one);
    told("team-all namespace-3", "$9,910", &format!("{research}; 1 of 2 findings shown"));
    let other = "option:checked:not([value=\"all\"], [value=\"5\"])) .check { display: none; }";
    let rule = format!("body:has(#team option[value=\"4\"]:checked):has(#namespace {other}");
    assert!(page.contains(&rule), "{page}");
}

/// The answer of one screen, on clusters of every kind.
#[test]
fn the_default_answer_fits_one_screen() {
    let folder = folder();
    folder.write("empty.json", &list(&[node("c1", 0)]));
    let mut many: Vec<Value> = (0..60).map(|n| node(&format!("g{n}"), 8)).collect();
    many.iter_mut().step_by(3).for_each(|node| node["spec"]["unschedulable"] = json!(true));
    many.extend((0..40).map(|n| pod(&format!("serve-{n}-a"), 3, &format!("g{n}"))));
    many.extend((0..30).map(|n| json!({"kind": "Pod", "metadata": {"name": n}})));
    folder.write("many.json", &list(&many));
    for file in ["dump.json", "empty.json", "many.json"] {
        let done = folder.call(&format!("audit --from {file} --at 2026-11-20T12:00:00Z"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(done.out.lines().count() <= 25, "{file}: {}", done.out);
        assert!(done.err.lines().count() <= 5, "{file}: {}", done.err);
        let all = done.out.lines().chain(done.err.lines());
        assert!(all.clone().all(|line| line.chars().count() <= 100), "{file}: {}", done.out);
        let last = done.out.lines().last().unwrap_or_default();
        assert!(file == "empty.json" || last.starts_with("In CI: --fail-on error"), "{last}");
    }
    let done = folder.call("audit --example");
    assert!(done.out.lines().count() <= 25 && done.err.lines().count() <= 5, "{}", done.out);
    // Its open states are those of pods that start, however old they are.
    assert!(done.out.contains("4.9% too recent or temporary."), "{}", done.out);
    // Some findings of the dump are errors, and only who asks for it fails.
    assert_eq!(audit(&folder, "--fail-on error").code, Some(5));
    assert_eq!(audit(&folder, "--fail-on error -n kube-system").code, Some(0));
}

#[test]
fn findings_of_one_namespace_leave_the_capacity_of_the_whole_cluster() {
    let folder = folder();
    let all = parsed(&audit(&folder, "-o json"));
    let of_prod = parsed(&audit(&folder, "-o json -n prod"));
    assert_eq!((&of_prod["headline"], &of_prod["states"]), (&all["headline"], &all["states"]));
    let findings = of_prod["findings"].as_array().unwrap();
    let in_prod = |finding: &Value| {
        let affected = finding["affected"].as_array().unwrap().iter();
        let moved = finding["moves"].as_array().unwrap().iter().map(|moved| &moved["pod"]);
        let mut objects = affected.chain([&finding["object"]]).chain(moved);
        objects.any(|object| object["namespace"] == "prod")
    };
    assert!(!findings.is_empty() && findings.iter().all(in_prod), "{findings:#?}");
    assert!(findings.len() < all["findings"].as_array().unwrap().len());
    let both = audit(&folder, "-A -o json");
    assert_eq!(parsed(&both), all);
    let text = |flags: &str| {
        let out = audit(&folder, flags).out;
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let scope = |name: &str| {
        format!(
            "These figures and the GPUs by state cover the whole cluster; the findings are those \
             of namespace {name}."
        )
    };
    let of_prod = text("-n prod");
    assert!(of_prod.contains(&scope("prod")), "{of_prod}");
    assert!(of_prod.contains("Fixes in namespace prod"), "{of_prod}");
    let of_none = text("-n nowhere");
    assert!(of_none.contains(&scope("nowhere")), "{of_none}");
    let none = "No findings in namespace nowhere: no check found anything to fix in its objects.";
    assert!(of_none.contains(none), "{of_none}");
    assert!(text("-n nowhere --all-findings").contains("Findings in namespace nowhere: 0"));
    assert!(!text("").contains("cover the whole cluster"));
}

/// kubectl pipes, Windows' mark before a text, and arrays that jq writes.
#[test]
fn a_dump_is_read_from_standard_input_in_any_of_its_shapes() {
    use std::io::Write;
    use std::process::Stdio;

    let folder = folder();
    let dump = folder.read("dump.json");
    let items = serde_json::from_str::<Value>(&dump).unwrap()["items"].to_string();
    let wanted = parsed(&audit(&folder, "-o json"));
    for text in [dump.clone(), format!("\u{feff}{dump}"), items.clone(), format!("[{items}]")] {
        let mut command = folder.command("audit --from - --at 2026-11-20T12:00:00Z -o json");
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the program starts");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it is read");
        let output = child.wait_with_output().expect("an end");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(found["findings"], wanted["findings"]);
        assert_eq!(found["sources"], json!(["standard input"]));
    }
    folder.write_bytes("utf-16.json", b"\xff\xfe{\0}\0");
    let done = folder.call("audit --from utf-16.json");
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("utf-16.json:1: invalid JSON (the text is UTF-16"), "{}", done.err);
}

#[test]
fn yaml_has_what_json_has() {
    let folder = folder();
    let done = audit(&folder, "-o yaml");
    assert!(done.out.contains("\nschema: dovetail-audit/1\n"), "{}", done.out);
    let waste = 5 * 6_880_000_i64 * 720;
    assert!(done.out.contains(&format!("waste_usd_micros_per_month: {waste}\n")), "{}", done.out);
}

/// Who gets a file does not see what was said beside it. By hand: 2026-07-20 is 123 days before
/// 2026-11-20.
#[test]
fn what_prices_and_ignored_findings_leave_open_is_in_every_form() {
    let folder = folder();
    folder.write(
        "ignore.toml",
        "[[ignore]]\ncheck = \"AUT-06\"\nreason = \"agreed\"\n[[ignore]]\ncheck = \"CAP-01\"\nobject = \"Node \
         gone\"\nreason = \"agreed\"\n",
    );
    let old = "prices of H100 date from 2026-07-20, 123 days ago";
    let nothing =
        "ignore.toml, entry 2: no finding CAP-01 of Node gone exists, so this entry has no effect";
    for form in ["table --all-findings", "json", "markdown", "html", "sarif"] {
        let done = audit(&folder, &format!("--ignore-file ignore.toml --output {form}"));
        let plain = done.out.replace(['\\', '\n'], "").replace("&#58;", ":");
        for told in [old, nothing] {
            let words = |text: &str| text.split_whitespace().collect::<String>();
            assert!(words(&plain).contains(&words(told)), "{form}: {}", done.out);
        }
        assert!(!plain.contains("no finding AUT-06"), "{form}: {}", done.out);
    }
}

#[test]
fn the_figures_are_those_worked_by_hand() {
    let document = parsed(&audit(&folder(), "--output json"));
    let head = &document["headline"];
    // Five of sixteen GPUs at $6.88 for 720 hours.
    assert_eq!(head["waste_usd_micros_per_month"], 5 * 6_880_000_i64 * 720);
    assert_eq!(head["bill_usd_micros_per_month"], 16 * 6_880_000_i64 * 720);
    assert_eq!(head["waste_share"], json!(5.0 / 16.0));
    assert_eq!(head["blind_share"], json!(11.0 / 16.0));
    let first = &document["findings"][0];
    assert_eq!((&first["id"], &first["object"]["name"]), (&json!("AUT-06"), &json!("h100")));
    assert_eq!(first["usd_micros_per_month"], head["waste_usd_micros_per_month"]);
    assert_eq!(document["prices"][0]["as_of"], "2026-07-20");
}

/// The rules of SARIF 2.1.0 that a reader depends on, read off the standard.
fn check_sarif(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().contains("sarif-schema-2.1.0"));
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "dovetail");
    let rules = driver["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), rules.len(), "rule ids are unique");
    let levels = ["none", "note", "warning", "error"].map(Value::from);
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            check_message(rule[text]["text"].as_str().unwrap());
        }
        assert!(levels.contains(&rule["defaultConfiguration"]["level"]));
    }
    let mut seen = BTreeSet::new();
    for result in run["results"].as_array().unwrap() {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(levels.contains(&result["level"]));
        check_message(result["message"]["text"].as_str().unwrap());
        let location = &result["locations"][0]["logicalLocations"][0];
        assert!(!location["fullyQualifiedName"].as_str().unwrap().is_empty());
        for print in result["partialFingerprints"].as_object().unwrap().values() {
            assert!(
                seen.insert(print.as_str().unwrap().to_owned()),
                "a fingerprint is of one result"
            );
        }
        for suppression in result["suppressions"].as_array().into_iter().flatten() {
            assert!(["inSource", "external"].map(Value::from).contains(&suppression["kind"]));
        }
        if let Some(state) = result.get("baselineState") {
            assert!(["new", "unchanged", "updated", "absent"].map(Value::from).contains(state));
        }
    }
}

/// No place for an argument that is not given, and no link.
fn check_message(text: &str) {
    assert!(!text.is_empty());
    let bare = text.replace("{{", "").replace("}}", "").replace("\\[", "").replace("\\]", "");
    assert!(!bare.contains(['{', '}', '[', ']']), "{text}");
}

#[test]
fn sarif_holds_the_rules_of_its_standard_also_for_hostile_names() {
    let folder = folder();
    check_sarif(&parsed(&audit(&folder, "--output sarif")));
    let mut hostile = pod("<script>{0}[a](b)\u{1b}]0;\u{7}\u{202e}", 16, "");
    hostile["metadata"]["ownerReferences"] = json!([]);
    hostile["metadata"]["namespace"] = json!("=cmd|' /C calc'!A0@all`x`");
    let mut bad = node("g1|`x`@all", 8);
    bad["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = json!("\"><img src=x onerror=y>");
    folder.write("dump.json", &list(&[bad, hostile]));
    check_sarif(&parsed(&audit(&folder, "--output sarif")));
    for form in ["table", "json", "markdown", "html", "sarif"] {
        let done = audit(&folder, &format!("--output {form}"));
        let unsafe_letters = |letter: char| letter.is_control() && letter != '\n';
        assert!(!done.out.contains(unsafe_letters) && !done.out.contains('\u{202e}'), "{form}");
        if ["html", "markdown"].contains(&form) {
            assert!(
                !done.out.contains("<script") && !done.out.contains("<img"),
                "{form}: {}",
                done.out
            );
        }
    }
    let markdown = audit(&folder, "--output markdown").out;
    for acts in ["@all", "[a](b)"] {
        assert!(!markdown.contains(acts), "{markdown}");
    }
    assert!(markdown.contains(r"\`x\`") && markdown.contains(r"\[a\](b)"), "{markdown}");
}

#[test]
fn who_ignores_a_finding_leaves_it_in_the_total() {
    let folder = folder();
    folder.write(
        "ignore.toml",
        "[[ignore]]\ncheck = \"AUT-06\"\nobject = \"EKSNodegroup h100\"\nreason = \"repair until May\"\n\
         [[ignore]]\ncheck = \"REQ-03\"\nreason = \"known\"\n",
    );
    let done = audit(&folder, "--ignore-file ignore.toml --output json");
    let (with, without) = (parsed(&done), parsed(&audit(&folder, "--output json")));
    assert_eq!(with["headline"], without["headline"]);
    assert_eq!(with["ladder"], without["ladder"]);
    let ignored = &with["findings"][0]["suppressed"];
    assert_eq!(ignored["why"], "repair until May");
    // Of the errors one is ignored; nodes without a taint still are one.
    let errors = |document: &Value| -> usize {
        let findings = document["findings"].as_array().unwrap().iter();
        findings.filter(|f| f["severity"] == "error" && f["suppressed"].is_null()).count()
    };
    assert_eq!(errors(&without) - errors(&with), 1);
}

#[test]
fn a_baseline_tells_what_is_new_and_what_is_fixed() {
    let folder = folder();
    folder.write("old.json", &audit(&folder, "--output json").out);
    // Nothing is new: nothing fails.
    let done = audit(&folder, "--baseline old.json --output json");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(parsed(&done)["fixed"], json!([]));
    assert_eq!(parsed(&done)["unconfirmed_because"], Value::Null);
    folder.write("dump.json", &list(&[node("g1", 8), pod("serve-1-a", 8, "g1")]));
    let done = audit(&folder, "--baseline old.json --output json --fail-on info");
    let document = parsed(&done);
    let fixed: Vec<&Value> =
        document["fixed"].as_array().unwrap().iter().map(|f| &f["id"]).collect();
    assert!(fixed.contains(&&json!("AUT-06")) && fixed.contains(&&json!("REQ-03")), "{fixed:?}");
    assert!(document["findings"].as_array().unwrap().iter().all(|f| f["is_new"].is_boolean()));
    // The dollars are those of the earlier audit, and every form says so.
    let why = document["unconfirmed_because"].as_str().expect("a reason");
    assert!(why.contains("may have saved nothing") && why.contains("--store"), "{why}");
    for form in ["table --all-findings", "markdown", "html", "sarif"] {
        let told = audit(&folder, &format!("--baseline old.json --output {form}")).out;
        assert!(told.contains("may have saved nothing"), "{form}: {told}");
    }
    folder.write("old.json", "{}");
    let done = audit(&folder, "--baseline old.json");
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("old.json:1:2: not an audit report"), "{}", done.err);
}

/// Every finding outside its namespace would be new.
#[test]
fn a_baseline_of_one_namespace_is_compared_with_that_namespace_alone() {
    let folder = folder();
    folder.write("all.json", &audit(&folder, "--output json").out);
    folder.write("prod.json", &audit(&folder, "-n prod --output json").out);
    for scope in ["", "-n other"] {
        let done = audit(&folder, &format!("{scope} --baseline prod.json --fail-on info"));
        assert_eq!(done.code, Some(2), "{scope}: {}", done.err);
        let told = "--baseline prod.json: the file has only the findings of namespace prod";
        assert!(done.err.contains(told) && done.err.contains("-n prod"), "{}", done.err);
    }
    for baseline in ["prod.json", "all.json"] {
        let call = format!("-n prod --baseline {baseline} --output json --fail-on info");
        let done = audit(&folder, &call);
        assert_eq!(done.code, Some(0), "{baseline}: {}", done.err);
        assert_eq!(parsed(&done)["namespace"], "prod");
        assert_eq!(parsed(&done)["fixed"], json!([]), "{baseline}");
    }
}

#[test]
fn what_the_kubelet_does_is_read_in_both_versions_of_its_object() {
    let folder = Folder::new();
    let found = |policy: Value| -> bool {
        let mut topology = json!({"apiVersion": "topology.node.k8s.io/v1alpha2",
            "kind": "NodeResourceTopology", "metadata": {"name": "g1"}});
        topology.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
        folder.write("dump.json", &list(&[node("g1", 8), pod("serve-1-a", 4, "g1"), topology]));
        let document = parsed(&audit(&folder, "--output json"));
        document["findings"].as_array().unwrap().iter().any(|finding| finding["id"] == "SCH-12")
    };
    let attribute = |value: &str| {
        json!({"attributes": [{"name": "topologyManagerScope", "value": "pod"},
        {"name": "topologyManagerPolicy", "value": value}]})
    };
    assert!(found(attribute("none")) && found(json!({"topologyPolicies": ["None"]})));
    assert!(!found(attribute("single-numa-node")) && !found(json!({})));
    assert!(!found(json!({"topologyPolicies": ["SingleNUMANodePodLevel"]})));
}

/// A pod that uses no GPUs of the node that it runs on.
fn without_gpus(name: &str) -> Value {
    let mut pod = pod(name, 0, "g1");
    pod["spec"]["containers"][0]["env"] = json!([]);
    pod
}

/// A node with eight GPUs and pods of two namespaces that use none of them.
fn unused(change: impl FnOnce(&mut Value)) -> Folder {
    let folder = Folder::new();
    let mut changed = node("g1", 8);
    change(&mut changed);
    let mut system = without_gpus("proxy");
    system["metadata"]["namespace"] = json!("kube-system");
    folder.write("dump.json", &list(&[changed, without_gpus("web"), system]));
    folder
}

/// A cordoned node is too recent for a month in its first hours.
#[test]
fn waste_so_far_stands_beside_no_amount_of_nothing() {
    let folder = unused(|node| {
        node["spec"]["unschedulable"] = json!(true);
        node["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unschedulable",
            "effect": "NoSchedule", "timeAdded": "2026-11-20T10:00:00Z"}]);
    });
    let told = audit(&folder, "").out;
    assert!(told.contains("No waste can be extrapolated to a month;"), "{told}");
    assert!(told.contains("have wasted $110 so far") && !told.contains("$0.00"), "{told}");
}

/// A taint that was edited by hand lacks its time, and a cordon does not end by itself.
#[test]
fn a_cordon_of_unknown_start_is_extrapolated_to_a_month() {
    let told = |created: &str| {
        let folder = unused(|node| {
            node["metadata"]["creationTimestamp"] = json!(created);
            node["spec"]["unschedulable"] = json!(true);
            node["spec"]["taints"] =
                json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
        });
        let told = audit(&folder, "").out;
        let line = told.lines().find(|line| line.contains("draining or cordoned"));
        (line.expect("a line of its GPUs").to_owned(), told.contains("  AUT-06"))
    };
    let (line, is_found) = told("2026-11-01T00:00:00Z");
    assert!(line.ends_with("$39,600") && is_found, "{line}");
    // It joined an hour ago, so the cordon is no older.
    let (line, is_found) = told("2026-11-20T11:00:00Z");
    assert!(line.ends_with("$55.00 so far") && !is_found, "{line}");
}

/// Every amount rests on how many GPUs there are.
#[test]
fn who_counts_other_gpus_is_told_in_the_short_answer() {
    let folder = unused(|node| node["metadata"]["labels"]["nvidia.com/gpu.count"] = json!("4"));
    let told = audit(&folder, "").out;
    let line = "GPU counts disagree: node g1: 4 according to nvidia.com/gpu.count, not 8";
    assert!(told.lines().any(|told| told.starts_with(line)), "{told}");
    let folder = unused(|_| ());
    assert!(!audit(&folder, "").out.contains("GPU counts disagree"));
}

/// Many models without a price, and a pod on a node that was not read: the sentence about amounts
/// gives way, because the first one says it too.
#[test]
fn a_long_headline_is_shortened_by_whole_sentences() {
    let folder = Folder::new();
    let mut system = without_gpus("proxy");
    system["metadata"]["namespace"] = json!("kube-system");
    let mut objects = vec![node("g1", 8), system, pod("ghost", 4, "gone")];
    let models = [
        "RTX-5000-Ada-Generation",
        "RTX-6000-Ada-Generation",
        "RTX-PRO-4500-Blackwell",
        "RTX-PRO-6000-Blackwell-Server-Edition",
    ];
    for (place, model) in models.into_iter().enumerate() {
        let name = format!("x{place}");
        let mut unpriced = node(&name, 8);
        unpriced["metadata"]["labels"] = json!({
            "kubernetes.io/hostname": name, "nvidia.com/gpu.product": format!("NVIDIA-{model}")});
        unpriced["spec"] = json!({});
        objects.push(unpriced);
    }
    folder.write("dump.json", &list(&objects));
    let told = audit(&folder, "").out;
    let text = told.replace("\n    ", " ");
    let unread =
        "4 GPUs more are not included in any figure because their nodes or pods were not read, or";
    assert!(text.contains(unread) && !text.contains("Amounts leave out"), "{told}");
    assert!(told.lines().count() <= 25, "{told}");
}

/// Ages at such a moment mean nothing.
#[test]
fn a_time_before_the_objects_is_told() {
    let folder = folder();
    let told = |at: &str| folder.call(&format!("audit --from dump.json --at {at}")).err;
    let early = told("2026-11-19T10:00:00Z").replace("\n    ", " ");
    for part in [
        "--at 2026-11-19T10:00:00Z is before objects in the input were created: Pod",
        "(2026-11-20T11:00:00Z) and 3 others",
    ] {
        assert!(early.contains(part), "{early}");
    }
    // A dump takes a while, and clocks differ.
    assert!(!told("2026-11-19T12:00:00Z").contains("is before objects"));
}

/// What kubectl writes of a cluster without nodes.
#[test]
fn an_empty_list_is_a_cluster_without_gpus() {
    let folder = Folder::new();
    folder.write("array.json", "[]");
    folder.write("empty.json", r#"{"apiVersion": "v1", "items": [], "kind": "List"}"#);
    let array = folder.call("audit --from array.json");
    let is_told = array.err.contains("array.json: the list contains no objects");
    assert!(is_told && array.code == Some(0), "{}", array.err);
    for call in ["audit", "cost", "cost questions", "partition plan"] {
        let done = folder.call(&format!("{call} --from empty.json"));
        assert_eq!(done.code, Some(0), "{call}: {}", done.err);
        assert!(done.err.contains("empty.json: the list contains no objects"), "{}", done.err);
    }
    // A list of pods says nothing of nodes.
    folder.write("pods.json", r#"{"kind": "PodList", "items": []}"#);
    assert_eq!(folder.call("audit --from pods.json").code, Some(3));
    let audit = folder.call("audit --from empty.json");
    assert!(audit.out.starts_with("No node has allocatable GPUs: nothing to"), "{}", audit.out);
}

#[test]
fn what_cannot_be_audited_is_told() {
    let folder = folder();
    let told = |call: &str, code: i32, text: &str| {
        let done = folder.call(call);
        assert_eq!(done.code, Some(code), "{call}: {}", done.err);
        assert!(done.err.contains(text) && done.out.is_empty(), "{call}: {}", done.err);
    };
    told("audit", 1, "no kubeconfig: $KUBECONFIG is not set, and the default is ");
    let without = folder.call("audit").err;
    let missing = "/.kube/config, which does not exist; pass --kubeconfig FILE";
    assert!(without.contains(missing), "{without}");
    // Only commands that have the flag offer it.
    let offer = "or pass --example";
    for call in ["audit", "cost", "cost job train", "cost questions", "collect --to kept.json"] {
        let done = folder.call(call);
        assert!(done.code == Some(1) && done.err.contains(offer), "{call}: {}", done.err);
    }
    for call in ["top", "why x", "queue", "scheduler --dry-run"] {
        let done = folder.call(call);
        let is_told = done.err.contains(missing) && !done.err.contains(offer);
        assert!(is_told && done.code == Some(1), "{call}: {}", done.err);
    }
    told("audit --kubeconfig nowhere", 1, "cannot read kubeconfig nowhere: No such file");
    told("audit --example --at yesterday", 2, "expected an RFC 3339 time such as");
    folder.write("kubeconfig", "contexts: [{name: dev, context: {cluster: c}}]\n");
    told(
        "audit --kubeconfig kubeconfig --context prod",
        2,
        "context \"prod\" does not exist; pass --context NAME (available: dev)",
    );
    told("audit --from nothing.json", 1, "nothing.json: cannot read the file: check the path");
    folder.write("cut.json", &folder.read("dump.json")[..500]);
    told("audit --from cut.json", 3, "cut.json:1:500: invalid JSON (EOF while parsing");
    folder.write("empty.json", "");
    told("audit --from empty.json", 3, "--from: the files contain no Kubernetes objects");
    folder.write("spoilt.json", r#"{"kind": "List", "items": [{"kind": "Node", "metadata": {}}]}"#);
    let spoilt = folder.call("audit --from spoilt.json");
    let why = "no Kubernetes object could be read, 1 object ignored: ";
    assert!(spoilt.code == Some(3) && spoilt.err.contains(why), "{}", spoilt.err);
    folder.write("nothing.json", "{}");
    assert!(folder.call("audit --from nothing.json").err.contains(why));
    told("audit --explain REQ-99", 2, "unknown check");
    told("audit --explain=", 2, "a value is required for '--explain <ID>'");
    told("audit --example --team-label=", 2, "a value is required for '--team-label <LABEL>'");
    let form = "expected MODEL=USD_PER_HOUR, such as H100=2.50";
    told("audit --from dump.json --gpu-price H100", 2, form);
    told(
        "audit --from dump.json --output csv",
        2,
        "`dovetail audit` does not support -o csv; use table",
    );
    for form in ["json", "yaml", "html", "sarif", "markdown"] {
        for id in ["all", "REQ-03", "REQ-03 --from dump.json"] {
            let text = format!("--explain does not support -o {form}: use -o table");
            told(&format!("audit --explain {id} -o {form}"), 2, &text);
        }
    }
    let explained = folder.call("audit --explain req-03");
    assert!(explained.out.starts_with("REQ-03: pod requests more than any"), "{}", explained.out);
    assert!(explained.out.contains("\neffect    reduces risk"), "{}", explained.out);
    // A default is not a flag: what has no such form is a table.
    folder.write("dovetail.toml", "output = \"json\"\n");
    assert_eq!(folder.call("audit --explain req-03").out, explained.out);
    folder.write("dovetail.toml", "output = \"sarif\"\n");
    let version = folder.call("version");
    assert!(version.code == Some(0) && version.out.starts_with("dovetail "), "{}", version.err);
}

#[test]
fn what_confirms_a_fix_is_explained() {
    let folder = folder();
    let confirms = |id: &str, less: &str| {
        let explained = folder.call(&format!("audit --explain {id}")).out;
        assert!(explained.contains(&format!("ledger    {less}\n")), "{explained}");
    };
    confirms("IDL-02", "confirms the fix if less GPU time of its pods is in state idle");
    confirms(
        "AUT-06",
        "confirms the fix if less GPU time on its nodes is in state free draining or cordoned",
    );
    confirms(
        "VIS-01",
        "cannot confirm the fix: it does not reduce a specific state of wasted GPU time",
    );
    // With a cluster, its findings follow.
    let found = audit(&folder, "--explain aut-06").out;
    let exact = "3,600.0 GPU-hours a month × $6.88 per GPU-hour";
    assert!(found.starts_with("AUT-06: ") && found.contains(exact), "{found}");
    let all = folder.call("audit --explain all").out;
    assert!(all.contains("AUT-06") && all.lines().all(|line| line.chars().count() <= 100));
}
