//! Runs the program in a folder with a small world.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Machines of two models.
const NODES: &str = "\
node_name,cpu_milli,memory_bytes,gpu_count,gpu_model
a,64000,274877906944,4,T4
b,64000,274877906944,4,V100M16
c,96000,549755813888,8,A100
d,32000,137438953472,0,
";

/// Pods of an arrivals-only replay, in the openb form.
const PODS: &str = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
p0,4000,8192,1,500,
p1,8000,16384,1,1000,
p2,32000,65536,4,1000,A100|V100M16
p3,2000,4096,0,0,
p4,4000,8192,1,300,T4
p5,6000,12288,2,1000,
";

/// Jobs with times, on 2x4 more than fits at once.
const JOBS: &str = "\
job_id,submit_s,duration_s,num_gpu,model
j0,0,3600,4,bert
j1,60,7200,8,bert
j2,120,600,1,resnet
j3,180,600,2,resnet
j4,4000,1200,4,bert
";

/// Start overheads for these jobs.
const OVERHEADS: &str = "\
num_gpu,model,overhead_s
1,resnet,7
2,resnet,8
4,bert,20
8,bert,30
";

/// What two pods did on three GPUs: one is idle for four minutes, one is busy, one pauses and is
/// lost from sight for a while.
const USAGE: &str = "\
timestamp_s,pod,gpu,activity_percent,memory_bytes,namespace,node
0,notebook-0,0,0,1073741824,research,a
60,notebook-0,0,0,1073741824,research,a
120,notebook-0,0,4.9,1073741824,research,a
180,notebook-0,0,0,1073741824,research,a
0,train-0,0,97.5,,research,b
60,train-0,0,98,,research,b
0,train-0,1,3,,research,b
60,train-0,1,2,,research,b
180,train-0,1,1,,research,b
240,train-0,1,1,,research,b
300,train-0,1,96,,research,b
";

/// Whether `make soak` runs the tests: it tries what takes long and finds little.
pub(crate) fn is_soak() -> bool {
    std::env::var_os("DOVETAIL_SOAK").is_some()
}

/// A folder with `nodes.csv`, `pods.csv`, `jobs.csv`, `overheads.csv` and `usage.csv`.
pub(crate) struct Folder(TempDir);

/// What a call did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    /// The small world.
    pub(crate) fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        let files = [
            ("nodes.csv", NODES),
            ("pods.csv", PODS),
            ("jobs.csv", JOBS),
            ("overheads.csv", OVERHEADS),
            ("usage.csv", USAGE),
        ];
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    /// Where a file is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Adds or replaces a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("a file in a temporary folder");
    }

    /// Adds or replaces a file that is no text.
    pub(crate) fn write_bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).expect("a file in a temporary folder");
    }

    /// Makes a folder in it.
    pub(crate) fn make_folder(&self, name: &str) {
        fs::create_dir(self.0.path().join(name)).expect("a folder in a temporary folder");
    }

    /// Whether something is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Names of all that is there.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a temporary folder");
        entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// The text of a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a file that the program wrote")
    }

    /// A call whose arguments stand in one line.
    pub(crate) fn call(&self, arguments: &str) -> Done {
        let output = self.command(arguments).output().expect("the program starts");
        Done::of(&output)
    }

    /// The same, not started yet.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = command(self.0.path());
        command.args(arguments.split_whitespace());
        command
    }

    /// The JSON of a call that must succeed.
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let done = self.call(&format!("{arguments} --output json"));
        assert_eq!(done.code, Some(0), "{arguments}: {}", done.err);
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {}", done.out))
    }
}

/// The program in a folder, with nothing of the caller's settings.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    let ours = ["OUTPUT", "SEED", "THREADS", "COLOR", "CONFIG", "TRACES"];
    for name in ours {
        command.env_remove(format!("DOVETAIL_{name}"));
    }
    // No cluster but the one that a test names.
    for name in ["NO_COLOR", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"] {
        command.env_remove(name);
    }
    command.env("COLUMNS", "100").env("HOME", folder).current_dir(folder);
    command
}

impl Done {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Both streams and the exit code, for golden files.
    pub(crate) fn whole(&self) -> String {
        let code = self.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        format!("exit code {code}\n--- stdout\n{}--- stderr\n{}", masked(&self.out), self.err)
    }
}

/// A table without what differs from run to run, or from version to version of the log.
fn masked(text: &str) -> String {
    let line = |line: &str| {
        let measured = ["decisions per second", "time of a decision", "event log"];
        match measured.iter().find(|start| line.starts_with(**start)) {
            Some(start) => format!("{start}  (masked)\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// JSON for golden files: keys in their order, measured values masked, long lists shortened.
pub(crate) fn shortened(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let member = |(key, value): (&String, &Value)| {
                let masked = match key.as_str() {
                    "decisions_per_second" | "decision_p50_ns" | "decision_p99_ns" => {
                        assert!(value.is_number(), "{key} is {value}");
                        json!("(measured)")
                    }
                    "event_log_hash" => {
                        assert_eq!(value.as_str().map(str::len), Some(64), "{key} is {value}");
                        json!("(64 digits)")
                    }
                    _ => shortened(value),
                };
                (key.clone(), masked)
            };
            Value::Object(object.iter().map(member).collect::<Map<_, _>>())
        }
        Value::Array(list) if list.len() > 12 => {
            json!({ "length": list.len(), "first": list.first(), "last": list.last() })
        }
        Value::Array(list) => Value::Array(list.iter().map(shortened).collect()),
        other => other.clone(),
    }
}
