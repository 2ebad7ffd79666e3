//! Examples of the documents that need a cluster work: `sh cluster` blocks run on a real API server
//! with its controllers and kube-scheduler, beside a GPU Operator that is played. Each page has an
//! empty home directory with a kubeconfig and `deploy` as in a clone. The pages share the cluster,
//! whose objects are in documented/world.yaml.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dovetail_testkit::binaries::Program;
use dovetail_testkit::gpu_operator::{GpuOperator, MigNode};
use dovetail_testkit::{ControlPlane, FreshControlPlane, MachineShape, cluster};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::documented::{agrees, blocks, outcome, pages, root, shell};
use crate::serve_rights::kubectl;

/// No example takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Calls that go on until Ctrl-C, and what each logs when it works.
const UNTIL_CTRL_C: [(&str, &str); 2] = [
    ("dovetail scheduler", "all objects are listed: scheduling starts"),
    ("dovetail serve", "recorded the cluster in the ledger"),
];

/// Where `serve` listens, as pages have it. In the test it takes a free port.
const SERVES: &str = "127.0.0.1:9003";

/// Pages that show what a scheduler writes. They come last, because it also binds pods that other
/// pages ask about.
const OF_A_SCHEDULER: [&str; 2] = ["docs/queues-and-quotas.md", "docs/reserve-capacity.md"];

/// The program, with free ports and without the minutes that real kubelets need.
const PROGRAM: &str = r#"#!/bin/sh
case "$1 $2" in
  "partition apply") set -- "$@" --settle 0s --config-delay 2s --pending-for 0s ;;
  "partition rollback") set -- "$@" --settle 0s --config-delay 2s ;;
  "scheduler "* | "serve "*) set -- "$@" --listen 127.0.0.1:0 ;;
esac
exec "PROGRAM" "$@"
"#;

/// What "Share GPUs" asks for before the first change: the patch is printed as a comment.
const SET_UP_SHARING: &str = "
dovetail partition setup > setup.yaml
kubectl apply -f setup.yaml
sed -n 's/^# kubectl/kubectl/p' setup.yaml | sh
";

/// The cluster, and the programs that pages call.
struct World {
    // First: it asks the server until it is dropped.
    _operator: GpuOperator,
    _runtime: Runtime,
    control_plane: FreshControlPlane,
    tools: TempDir,
}

impl World {
    fn new() -> Self {
        let options =
            cluster::Options { scheduler: true, controller_manager: true, ..Default::default() };
        let control_plane = ControlPlane::fresh_with(options).expect("a control plane");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let client = runtime.block_on(control_plane.client()).expect("a client");
        runtime.block_on(GpuOperator::install(&client)).expect("the operator");
        create_objects(&control_plane);
        let slices = || vec![("1g.10gb", 7)];
        let mut gpus = MigNode::new(&[slices(), slices()], Some("all-1g.10gb"));
        gpus.delay_ms = 100;
        let gpus = BTreeMap::from([("gpu-node-7".to_owned(), gpus)]);
        let mount = Duration::from_millis(500);
        let operator = runtime.block_on(async { GpuOperator::start(client, gpus, mount) });
        let tools = tools(&control_plane);
        let world = Self { _operator: operator, _runtime: runtime, control_plane, tools };
        let kubectl = |arguments: &[&str]| {
            kubectl(&world.control_plane, &[&["wait", "--timeout=120s"], arguments].concat());
        };
        kubectl(&["deployments", "--all", "-A", "--for=condition=Available"]);
        kubectl(&["job/train", "-n", "vision", "--for=jsonpath={.status.active}=4"]);
        let home = world.home();
        let (code, out, err) = world.run(home.path(), SET_UP_SHARING);
        assert_eq!(code, 0, "{out}{err}");
        world
    }

    /// A home directory in which a page begins.
    fn home(&self) -> TempDir {
        let home = TempDir::new().expect("a temporary folder");
        let text = fs::read_to_string(self.control_plane.kubeconfig()).expect("a kubeconfig");
        let mut config: Value = serde_json::from_str(&text).expect("JSON");
        let mut context = config["contexts"][0].clone();
        context["name"] = json!("prod");
        config["contexts"].as_array_mut().expect("contexts").push(context);
        fs::create_dir(home.path().join(".kube")).expect("a folder");
        fs::write(home.path().join(".kube/config"), config.to_string()).expect("a file");
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(root().join("deploy")).arg(home.path());
        assert!(copy.status().expect("cp starts").success());
        home
    }

    fn shell(&self, home: &Path, script: &str) -> Command {
        shell(home, self.tools.path(), script)
    }

    fn run(&self, home: &Path, script: &str) -> (i32, String, String) {
        outcome(self.shell(home, script))
    }

    /// Runs the examples of a page that need this cluster and nothing else; says what is wrong, and
    /// how many there are.
    fn check(&self, page: &str, wrong: &mut String) -> usize {
        let home = self.home();
        let mut session = Session { world: self, home: home.path(), goes_on: Vec::new() };
        let mut count = 0;
        let mut asked: Option<(String, String)> = None;
        for block in blocks(page) {
            let place = format!("{page}:{}", block.line);
            let last = asked.take();
            if block.is("sh") && block.needs_only("cluster") {
                count += 1;
                let (code, out, err) = session.paste(&block.text);
                if code != block.exit_code() {
                    writeln!(wrong, "{place}: exit code {code}\n{out}{err}").expect("a string");
                }
                asked = Some((block.text, out));
            } else if block.is("text")
                && let Some((script, printed)) = last
                && let Err(printed) = self.comes_to(&home, &script, printed, &block.text)
            {
                writeln!(wrong, "{place}: prints\n{printed}").expect("a string takes all");
            }
        }
        for (command, one) in std::mem::take(&mut session.goes_on) {
            let code = one.interrupt();
            if code != Some(0) {
                writeln!(wrong, "{page}: {command}: {code:?} after Ctrl-C").expect("a string");
            }
        }
        count
    }

    /// Whether a question is answered as a page shows it, sooner or later: controllers take a while
    /// to write a status. Else the last answer.
    fn comes_to(
        &self,
        home: &TempDir,
        script: &str,
        mut printed: String,
        shown: &str,
    ) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let shown = without_ages(shown);
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        loop {
            let lines = without_ages(&printed);
            if agrees(&shown, &lines.iter().map(String::as_str).collect::<Vec<_>>()) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(printed);
            }
            printed = self.run(home.path(), script).1;
        }
    }
}

/// The terminals in which a reader of a page types.
struct Session<'w> {
    world: &'w World,
    home: &'w Path,
    /// Calls that go on while the reader continues, by command.
    goes_on: Vec<(String, Running)>,
}

impl Session<'_> {
    /// Types a block; the exit code and both streams of what ended last. A call that goes on until
    /// Ctrl-C does so until the page ends if it is the last of its block, else until it works.
    fn paste(&mut self, block: &str) -> (i32, String, String) {
        let block = match self.address() {
            Some(address) => block.replace(SERVES, &address),
            None => block.to_owned(),
        };
        if block.lines().all(|line| works(line).is_none()) {
            return self.world.run(self.home, &block);
        }
        let mut done = (0, String::new(), String::new());
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(mark) = works(line) else {
                done = self.world.run(self.home, line);
                if done.0 != 0 {
                    break;
                }
                continue;
            };
            let running =
                Running::start(self.world.shell(self.home, &format!("exec {line}")), mark);
            if lines.peek().is_none() {
                self.goes_on.push((line.to_owned(), running));
            } else {
                let code = running.interrupt();
                assert_eq!(code, Some(0), "{line}: after Ctrl-C");
            }
        }
        done
    }

    /// Where a server of this page listens.
    fn address(&self) -> Option<String> {
        let mut logs = self.goes_on.iter().flat_map(|(_, running)| &running.log);
        let address = logs.find_map(|line| line.split_once("listening on http://"));
        address.map(|(_, address)| address.trim().to_owned())
    }
}

/// What a call logs when it works, if it is one that goes on until Ctrl-C.
fn works(line: &str) -> Option<&'static str> {
    UNTIL_CTRL_C.iter().find_map(|(call, mark)| line.starts_with(call).then_some(*mark))
}

/// A call that goes on, killed with the test.
struct Running {
    child: Child,
    /// What it logged until it worked.
    log: Vec<String>,
}

impl Running {
    /// Starts a call and waits until it logs that it works.
    fn start(mut shell: Command, mark: &str) -> Self {
        shell.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = shell.spawn().expect("sh starts");
        let lines = BufReader::new(child.stderr.take().expect("a stream")).lines();
        let (send, told) = mpsc::channel();
        // Who does not read blocks who writes.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // Once it works, nobody listens.
                _ = send.send(line);
            }
        });
        let mut running = Self { child, log: Vec::new() };
        while !running.log.last().is_some_and(|line| line.contains(mark)) {
            let Ok(line) = told.recv_timeout(PATIENCE) else {
                panic!("no `{mark}`: {:#?}", running.log)
            };
            running.log.push(line);
        }
        running
    }

    /// Presses Ctrl-C; the exit code.
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("kill");
        assert!(sent.success());
        self.child.wait().expect("an end").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended before.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A folder with the programs that examples call besides those of the system.
fn tools(control_plane: &ControlPlane) -> TempDir {
    let tools = TempDir::new().expect("a temporary folder");
    let program = tools.path().join("dovetail");
    fs::write(&program, PROGRAM.replace("PROGRAM", env!("CARGO_BIN_EXE_dovetail")))
        .expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
    let kubectl = control_plane.cluster().program(Program::Kubectl).expect("kubectl").to_owned();
    symlink(kubectl, tools.path().join("kubectl")).expect("a link");
    tools
}

fn create_objects(control_plane: &ControlPlane) {
    let apply = |file: &str| {
        let file = root().join(file).display().to_string();
        kubectl(control_plane, &["apply", "--validate=strict", "-f", &file]);
    };
    apply("deploy/sharing/policy-definition.yaml");
    let established = ["wait", "--for=condition=Established", "crd/sharingpolicies.dovetail.dev"];
    kubectl(control_plane, &[&established[..], &["--timeout=120s"]].concat());
    let numbers = (1..=6).chain(8..=13);
    let names: Vec<String> = numbers.map(|number| format!("gpu-node-{number}")).collect();
    let shape = "8xH100".parse::<MachineShape>().expect("a shape");
    for name in &names {
        let mut node = shape.node(name);
        let labels = &mut node["metadata"]["labels"];
        labels["node.kubernetes.io/instance-type"] = json!("p5.48xlarge");
        labels["topology.kubernetes.io/region"] = json!("us-east-1");
        control_plane.create(&node).expect("a new node");
    }
    apply("crates/dovetail/tests/all/documented/world.yaml");
    for name in &names {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("detect-on-{name}"), "namespace": "ml-vision"},
            "spec": {"schedulerName": "dovetail", "nodeName": name, "containers": [
                {"name": "detect", "image": "registry.example.com/detect",
                    "resources": {"limits": {"nvidia.com/gpu": "4"}}}]}});
        control_plane.create(&pod).expect("a new pod");
    }
}

/// Lines in which every age is the same, however wide its column is.
fn without_ages(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let words = line.split_whitespace();
        let words = words.map(|word| if is_age(word) { "AGE" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect()
}

/// Whether a word is an age as kubectl prints it, such as `5m` or `3h12m`.
fn is_age(word: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_digit() || "smhdy".contains(letter);
    word.starts_with(|letter: char| letter.is_ascii_digit())
        && word.ends_with(|letter: char| letter.is_ascii_lowercase())
        && word.chars().all(is_part)
}

#[test]
fn examples_that_need_a_cluster_run_and_print_what_they_show() {
    let world = World::new();
    let mut wrong = String::new();
    let (last, first): (Vec<String>, Vec<String>) =
        pages().into_iter().partition(|page| OF_A_SCHEDULER.contains(&page.as_str()));
    let mut count: usize = first.iter().map(|page| world.check(page, &mut wrong)).sum();
    let home = world.home();
    let mut session = Session { world: &world, home: home.path(), goes_on: Vec::new() };
    session.paste("dovetail scheduler");
    count += last.iter().map(|page| world.check(page, &mut wrong)).sum::<usize>();
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 20, "only {count} examples were found");
}

#[test]
fn ages_are_the_same_whatever_they_are() {
    let lines = without_ages("NAME   READY   AGE\nq1     True    3h12m\n");
    assert_eq!(lines, ["NAME READY AGE", "q1 True AGE"]);
    assert_eq!(without_ages("q1     True    5s\n"), ["q1 True AGE"]);
    assert_eq!(without_ages("12 dd 5 5% 2x m5"), ["12 dd 5 5% 2x m5"]);
}
