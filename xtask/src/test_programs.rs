//! `cargo xtask test`: every test program of the workspace, two at a time.
//!
//! `cargo test` runs one after the other. The tests of a program use all cores, but many of them
//! wait for servers that they start, and meanwhile those of another program can run.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message};

/// Programs that run at the same time.
const AT_ONCE: usize = 2;

/// Crates whose tests take longest, the longest first: they start first, so that none of them runs
/// alone at the end. The others follow in the order of their names.
const LONGEST: [&str; 9] = [
    "dovetail",
    "dovetail-plan",
    "dovetail-rehearsal",
    "dovetail-sim",
    "dovetail-scheduler",
    "dovetail-store",
    "dovetail-testkit",
    "dovetail-inventory",
    "dovetail-exact",
];

/// A program with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TestProgram {
    /// Its crate.
    krate: String,
    /// Its main source file.
    source: PathBuf,
    executable: PathBuf,
    /// Where it runs.
    folder: PathBuf,
}

impl TestProgram {
    /// A program that cargo has built; `None` if it has no tests.
    fn of(artifact: Artifact) -> Option<Self> {
        let executable = artifact.executable.filter(|_| artifact.profile.test)?;
        let folder: PathBuf = artifact.manifest_path.parent()?.into();
        let manifest = std::fs::read_to_string(artifact.manifest_path).ok()?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(Self {
            krate: name.trim_matches('"').to_owned(),
            source: artifact.target.src_path.into(),
            executable: executable.into(),
            folder,
        })
    }

    fn place(&self) -> (usize, &str, &Path) {
        let longest = LONGEST.iter().position(|krate| *krate == self.krate);
        (longest.unwrap_or(LONGEST.len()), &self.krate, &self.source)
    }

    /// Runs it; its output, and whether all of its tests passed.
    fn run(&self) -> Result<(String, bool)> {
        let output = self.executable.with_extension("output");
        let file = File::create(&output).with_context(|| output.display().to_string())?;
        let errors = file.try_clone().context("the file for the output")?;
        let status = Command::new(&self.executable)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .status()
            .with_context(|| format!("start {}", self.executable.display()))?;
        let text = String::from_utf8_lossy(&std::fs::read(&output)?).into_owned();
        let _ = std::fs::remove_file(&output);
        Ok((text, status.success()))
    }
}

/// Builds all test programs and runs them.
///
/// # Errors
/// What cannot be built or started.
pub(crate) fn run() -> Result<ExitCode> {
    let mut programs = build()?;
    programs.sort_by(|one, other| one.place().cmp(&other.place()));
    let waiting = Mutex::new(programs.into_iter());
    let wrong: Mutex<Vec<String>> = Mutex::default();
    let next = || waiting.lock().ok()?.next();
    let work = || {
        while let Some(program) = next() {
            let (text, is_good) =
                program.run().unwrap_or_else(|problem| (format!("error: {problem:#}\n"), false));
            if !is_good && let Ok(mut wrong) = wrong.lock() {
                wrong.push(program.krate.clone());
            }
            let (source, executable) = (program.source.display(), program.executable.display());
            // As `cargo test` announces a program.
            let _ = write!(std::io::stdout(), "     Running {source} ({executable})\n{text}");
        }
    };
    thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().unwrap_or_default();
    if wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!("tests failed in {}", wrong.join(", "))
}

fn build() -> Result<Vec<TestProgram>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut child = Command::new(cargo)
        .args(["test", "--workspace", "--locked", "--tests", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .context("start cargo to build the tests")?;
    let output = child.stdout.take().context("the output of cargo")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(output)) {
        if let Message::CompilerArtifact(artifact) = message.context("the output of cargo")? {
            programs.extend(TestProgram::of(artifact));
        }
    }
    if !child.wait().context("wait for cargo")?.success() {
        bail!("the tests do not build");
    }
    Ok(programs)
}
