//! kube-scheduler's own filter plugins, and NVIDIA's own libraries, in processes of their own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;

use super::GeneratedCluster;
use crate::binaries::{BuildError, Program, Release, program};

/// A running oracle: it reads worlds and answers them one by one, until it is dropped.
#[derive(Debug)]
pub struct Oracle(Process);

impl Oracle {
    /// Starts the oracle of a release, and builds it first where the cache does not hold it:
    /// minutes.
    ///
    /// # Errors
    /// When it cannot be built or started.
    pub fn start(release: Release) -> Result<Self, OracleError> {
        Process::of(Program::Oracle, release, &[]).map(Self)
    }

    /// What kube-scheduler says about the pending pods of a world.
    ///
    /// # Errors
    /// When the oracle ended, or refuses the world: then it holds something that the API does not
    /// know, or that kube-scheduler does not read.
    pub fn judge(&mut self, world: &GeneratedCluster) -> Result<OracleAnswer, OracleError> {
        let answer: OracleAnswer = self.0.ask(world.to_line())?;
        if answer.error.is_empty() { Ok(answer) } else { Err(OracleError::World(answer.error)) }
    }
}

/// A running oracle that is asked which devices meet a selector.
#[derive(Debug)]
pub struct SelectorOracle(Process);

impl SelectorOracle {
    /// As [`Oracle::start`].
    ///
    /// # Errors
    /// When it cannot be built or started.
    pub fn start(release: Release) -> Result<Self, OracleError> {
        Process::of(Program::Oracle, release, &["-selectors"]).map(Self)
    }

    /// What Kubernetes makes of each selector on each device, which is JSON with its `driver` and
    /// its `device`.
    ///
    /// # Errors
    /// When the oracle ended, or a device is none of the API.
    pub fn judge(
        &mut self,
        selectors: &[String],
        devices: &[Value],
    ) -> Result<Vec<SelectorAnswer>, OracleError> {
        let question = json!({"selectors": selectors, "devices": devices});
        let answers: SelectorAnswers = self.0.ask(question.to_string())?;
        match answers.error.is_empty() {
            true => Ok(answers.selectors),
            false => Err(OracleError::World(answers.error)),
        }
    }
}

/// A running judge of MIG profiles: the GPUs that go-nvml plays, and the names that go-nvlib reads.
#[derive(Debug)]
pub struct ProfileOracle(Process);

impl ProfileOracle {
    /// As [`Oracle::start`]; a C compiler is needed to build it.
    ///
    /// # Errors
    /// When it cannot be built or started.
    pub fn start() -> Result<Self, OracleError> {
        Process::of(Program::MigOracle, Release::default(), &[]).map(Self)
    }

    /// The profiles of a GPU, and what each name means there.
    ///
    /// # Errors
    /// When the oracle ended, or does not play the GPU: it plays `A100-40GB`, `A100-80GB` and
    /// `A30`.
    pub fn judge(&mut self, gpu: &str, names: &[String]) -> Result<ProfileAnswers, OracleError> {
        let question = json!({"gpu": gpu, "names": names});
        let answers: ProfileAnswers = self.0.ask(question.to_string())?;
        match answers.error.is_empty() {
            true => Ok(answers),
            false => Err(OracleError::World(answers.error)),
        }
    }
}

#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn of(judge: Program, release: Release, arguments: &[&str]) -> Result<Self, OracleError> {
        #[allow(clippy::print_stderr, reason = "a build takes minutes: say what is going on")]
        let path = program(judge, release, &mut |line| eprintln!("{line}"))?;
        Self::start(&path, arguments)
    }

    fn start(path: &Path, arguments: &[&str]) -> Result<Self, OracleError> {
        let mut command = Command::new(path);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| OracleError::Start { path: path.display().to_string(), source })?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new).ok_or(OracleError::Ended)?;
        Ok(Self { child, input, output })
    }

    /// One line there and one back.
    fn ask<T: DeserializeOwned>(&mut self, mut line: String) -> Result<T, OracleError> {
        let input = self.input.as_mut().ok_or(OracleError::Ended)?;
        line.push('\n');
        input.write_all(line.as_bytes()).and_then(|()| input.flush()).map_err(OracleError::Talk)?;
        let mut reply = String::new();
        if self.output.read_line(&mut reply).map_err(OracleError::Talk)? == 0 {
            return Err(OracleError::Ended);
        }
        serde_json::from_str(&reply).map_err(OracleError::Reply)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.input = None;
        let _ = self.child.wait();
    }
}

#[derive(Deserialize)]
struct SelectorAnswers {
    #[serde(default)]
    error: String,
    selectors: Vec<SelectorAnswer>,
}

/// What Kubernetes makes of one selector.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SelectorAnswer {
    /// Why the API server would not store it; empty: it would.
    #[serde(default)]
    pub refused: String,
    /// One entry per device.
    #[serde(default)]
    pub devices: Vec<DeviceAnswer>,
}

/// Whether a device meets a selector.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DeviceAnswer {
    pub meets: bool,
    /// Why that cannot be said; empty: it can.
    #[serde(default)]
    pub error: String,
}

/// What NVIDIA's libraries say about the MIG profiles of a GPU.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ProfileAnswers {
    #[serde(default)]
    error: String,
    pub profiles: Vec<ProfileAnswer>,
    /// One entry per name, in the order of the question.
    pub names: Vec<NameAnswer>,
}

/// A kind of instance that a GPU can have.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileAnswer {
    pub name: String,
    pub compute_slices: u8,
    pub memory_slices: u8,
    /// The most instances of it on one GPU.
    pub most_instances: u16,
    /// Memory slices at which an instance may start.
    pub starts: Vec<u8>,
}

/// What a name means.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameAnswer {
    /// The profile of the GPU that has the name; empty: none has.
    pub profile: String,
    /// Whether a profile of some GPU could have it.
    pub is_well_formed: bool,
}

/// What kube-scheduler says about one world.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OracleAnswer {
    #[serde(default)]
    error: String,
    /// One entry per pending pod, in the world's order.
    pub pods: Vec<PodAnswer>,
}

/// What kube-scheduler says about one pending pod.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAnswer {
    /// `namespace/name`.
    pub pod: String,
    /// Why it would not even be queued; empty: it would.
    #[serde(default)]
    pub gated: Vec<String>,
    /// The rejection that ends the search before any node is looked at.
    pub pre_filter: Option<Rejection>,
    /// The text of the event, where no node fits.
    #[serde(default)]
    pub message: String,
    /// One entry per node, by name.
    pub nodes: Vec<NodeAnswer>,
}

impl PodAnswer {
    /// The nodes on which the pod fits, by name.
    pub fn feasible(&self) -> Vec<&str> {
        let fitting = self.nodes.iter().filter(|node| node.rejects.is_empty());
        fitting.map(|node| node.node.as_str()).collect()
    }
}

/// Which plugins reject a pod on a node, each asked as if it were the only one, in kube-scheduler's
/// order; none: it fits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NodeAnswer {
    pub node: String,
    /// The node's pods hold more of something than it has.
    #[serde(default)]
    pub overcommitted: bool,
    /// The rejections; kube-scheduler reports the first.
    #[serde(default)]
    pub rejects: Vec<Rejection>,
}

/// One plugin's no.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    pub plugin: String,
    /// `Unschedulable`, `UnschedulableAndUnresolvable` or `Error`.
    pub code: String,
    /// What the event would say of this node.
    pub reasons: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum OracleError {
    /// It could not be built.
    #[error("the oracle could not be built")]
    Build(#[from] BuildError),
    /// It could not be started.
    #[error("{path}: the oracle did not start: {source}")]
    Start {
        /// The program.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It could not be written to or read from.
    #[error("the oracle cannot be reached: {0}")]
    Talk(std::io::Error),
    /// It ended before it answered.
    #[error("the oracle ended before it answered: its last words are above")]
    Ended,
    /// It answered something else than an answer.
    #[error("the oracle's answer is not understood: {0}")]
    Reply(serde_json::Error),
    /// It refuses the world.
    #[error("the oracle refuses the world: {0}")]
    World(String),
}
