//! What `dovetail scheduler --record` writes: the form of `dovetail sim run --record`, for
//! `dovetail sim replay`.

use std::fs::File;
use std::io::LineWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use dovetail_control::schedule::Record;
use dovetail_model::{Event, Plan};
use dovetail_plan::{Engine, EngineConfig};
use dovetail_settings::errors::UsageError;
use dovetail_sim::record::Recorder;
use tracing::{error, info};

/// One file per engine: the first has the name that was given, later ones a number behind it.
pub struct LiveRecording {
    path: PathBuf,
    /// The version of this program, as recordings name it.
    build: &'static str,
    files: u32,
    /// Each line is written as it ends, so that a process that is killed leaves what it decided.
    open: Option<(PathBuf, Recorder<LineWriter<File>>)>,
    /// What the engine was told at one time since it last decided, and what it answered at once.
    told: Option<(u64, Vec<Event>, Plan)>,
    problem: Problem,
}

/// Which file lacks something first, and why; unset: none does.
pub type Problem = Arc<OnceLock<String>>;

impl LiveRecording {
    /// A recording into this file.
    ///
    /// # Errors
    /// When the file is there already, or its folder is not.
    pub fn into(path: &Path, build: &'static str) -> Result<Self> {
        if path.exists() {
            let text = format!("--record {}: this file is there already", path.display());
            return Err(UsageError(text).into());
        }
        // Whether it can be written is known now, not when the scheduler has become the leader.
        File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self::beginning(path, build))
    }

    fn beginning(path: &Path, build: &'static str) -> Self {
        let problem = Problem::default();
        Self { path: path.to_owned(), build, files: 0, open: None, told: None, problem }
    }

    /// Where it stands what is missing, also when this is in other hands.
    pub fn problem(&self) -> Problem {
        self.problem.clone()
    }

    fn next_file(&mut self) -> (PathBuf, std::io::Result<File>) {
        self.files += 1;
        if self.files == 1 {
            return (self.path.clone(), File::create(&self.path));
        }
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}", self.files));
        let path = PathBuf::from(name);
        let file = File::create_new(&path);
        (path, file)
    }

    /// Writes down what was told before the engine decides, or is told something at another time.
    fn flush(&mut self) {
        let told = self.told.take();
        if let (Some((now_ms, events, plan)), Some((_, recorder))) = (told, &mut self.open) {
            recorder.told(now_ms, events, plan.actions);
        }
    }

    /// Tells when a line could not be written, and writes no more into that file.
    fn look(&mut self) {
        let Some((path, recorder)) = &self.open else { return };
        let Some(problem) = recorder.problem() else { return };
        let problem = format!("{}: {problem}", path.display());
        self.open = None;
        self.is_missing(problem);
    }

    fn is_missing(&self, problem: String) {
        error!(
            "the recording is not whole: {problem}: later decisions are missing; free disk space, then restart with another --record"
        );
        // The first one is told again at the end.
        _ = self.problem.set(problem);
    }
}

impl Record for LiveRecording {
    fn begin(&mut self, config: &EngineConfig, engine: &Engine) {
        self.end();
        let (path, file) = self.next_file();
        match file {
            Ok(file) => {
                let (name, output) = (path.display().to_string(), LineWriter::new(file));
                info!(file = name, "recording every decision");
                self.open =
                    Some((path, Recorder::start(&name, output, self.build, config, engine)));
                self.look();
            }
            Err(problem) => self.is_missing(format!("{}: {problem}", path.display())),
        }
    }

    fn told(&mut self, now_ms: u64, event: &Event, plan: &Plan) {
        if self.told.as_ref().is_some_and(|(at_ms, ..)| *at_ms != now_ms) {
            self.flush();
            self.look();
        }
        let (_, events, answers) =
            self.told.get_or_insert_with(|| (now_ms, Vec::new(), Plan::default()));
        events.push(event.clone());
        answers.actions.extend(plan.actions.iter().cloned());
    }

    fn decided(&mut self, now_ms: u64, plan: &Plan) {
        let (mut events, mut answers) = (Vec::new(), Plan::default());
        match self.told.take() {
            Some((at_ms, told, at_once)) if at_ms == now_ms => {
                (events, answers) = (told, at_once);
            }
            earlier => {
                self.told = earlier;
                self.flush();
            }
        }
        answers.actions.extend(plan.actions.iter().cloned());
        if let Some((_, recorder)) = &mut self.open {
            recorder.step(now_ms, &events, &answers);
        }
        self.look();
    }

    fn end(&mut self) {
        self.flush();
        let Some((_, recorder)) = self.open.take() else { return };
        if let Err(problem) = recorder.finish() {
            self.is_missing(problem.to_string());
        }
    }

    fn is_broken(&self) -> bool {
        self.problem.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use dovetail_model::Snapshot;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_known_when_it_happens() {
        let mut recording = LiveRecording::beginning(Path::new("/dev/full"), "0");
        let problem = recording.problem();
        let config = EngineConfig::default();
        let engine = Engine::new(config.clone(), &Snapshot::default()).expect("an empty world");
        recording.begin(&config, &engine);
        assert!(recording.is_broken());
        let told = problem.get().map(String::as_str).unwrap_or_default();
        assert!(told.starts_with("/dev/full: No space left on device"), "{told}");
        // What is decided then is only not written.
        recording.decided(1, &Plan::default());
        recording.end();
    }

    #[test]
    fn what_was_decided_is_in_the_file_before_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording");
        let mut recording = LiveRecording::into(&path, "0").expect("a new file");
        let config = EngineConfig::default();
        let engine = Engine::new(config.clone(), &Snapshot::default()).expect("an empty world");
        recording.begin(&config, &engine);
        recording.decided(1, &Plan::default());
        let written = std::fs::read_to_string(&path).expect("a file");
        assert!(written.ends_with('\n'), "{written}");
        assert_eq!(written.lines().count(), 2, "where it begins, and one decision");
    }
}
