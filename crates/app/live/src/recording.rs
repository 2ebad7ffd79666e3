//! What `dovetail scheduler --record` writes, for `dovetail sim replay`.

use std::fs::File;
use std::io::LineWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use dovetail_control::control::Settings;
use dovetail_control::record::{EngineEntry, Record, RecordEntry};
use dovetail_recording::LiveRecorder;
use dovetail_settings::errors::UsageError;
use tracing::{error, info};

/// One file per leadership: the first has the name that was given, later ones a number behind it.
pub struct LiveRecording {
    path: PathBuf,
    /// The version of this program, as recordings name it.
    build: &'static str,
    files: u32,
    /// Each line is written as it ends, so that a process that is killed leaves what it decided.
    open: Option<(PathBuf, LiveRecorder<LineWriter<File>>)>,
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
            let text = format!("--record {}: the file already exists", path.display());
            return Err(UsageError(text).into());
        }
        // Whether it can be written is known now, not when the scheduler has become the leader.
        File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self::beginning(path, build))
    }

    fn beginning(path: &Path, build: &'static str) -> Self {
        let problem = Problem::default();
        Self { path: path.to_owned(), build, files: 0, open: None, problem }
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
            "the recording is incomplete: {problem}: later decisions are missing; free disk space, \
             then restart with another --record file"
        );
        // The first one is told again at the end.
        _ = self.problem.set(problem);
    }
}

impl Record for LiveRecording {
    fn begin(&mut self, settings: &Settings) {
        self.end();
        let (path, file) = self.next_file();
        match file {
            Ok(file) => {
                let (name, output) = (path.display().to_string(), LineWriter::new(file));
                info!(file = name, "recording every step");
                let recorder = LiveRecorder::start(&name, output, self.build, settings);
                self.open = Some((path, recorder));
                self.look();
            }
            Err(problem) => self.is_missing(format!("{}: {problem}", path.display())),
        }
    }

    fn step(&mut self, entry: RecordEntry, engines: Vec<EngineEntry>) {
        if let Some((_, recorder)) = &mut self.open {
            recorder.step(&entry, &engines);
        }
        self.look();
    }

    fn end(&mut self) {
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
    use dovetail_control::control::{Credits, Input};
    use dovetail_control::request::Now;
    use dovetail_control::{Control, record::Recording};

    use super::*;

    /// A leadership of which nothing is listed yet.
    fn lead(recording: LiveRecording) -> Control {
        let recording = Some(Recording::new(recording));
        let mut control = Control::new(Settings { recording, ..Settings::default() });
        control.step(vec![Input::Won { epoch: 1 }], Credits::default(), Now::default());
        control
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_known_when_it_happens() {
        let recording = LiveRecording::beginning(Path::new("/dev/full"), "0");
        let problem = recording.problem();
        let mut control = lead(recording);
        let reported = problem.get().map(String::as_str).unwrap_or_default();
        assert!(reported.starts_with("/dev/full: No space left on device"), "{reported}");
        // What is decided then is only not written.
        control.step(vec![Input::End], Credits::default(), Now::default());
    }

    #[test]
    fn what_was_decided_is_in_the_file_before_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording");
        let recording = LiveRecording::into(&path, "0").expect("a new file");
        let control = lead(recording);
        let written = std::fs::read_to_string(&path).expect("a file");
        assert!(written.ends_with('\n'), "{written}");
        assert_eq!(written.lines().count(), 2, "where it begins, and one step");
        drop(control);
    }
}
