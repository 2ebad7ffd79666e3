//! One program of a control plane: its process, its log and what it said last.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::StartError;
use super::guard::ProcessGuard;
use super::programs::Invocation;

/// How many of the last lines of a log an error quotes.
const QUOTED_LINES: usize = 15;

/// The longest wait for news: a server that logs nothing may still have changed.
const NEWS_WITHIN: Duration = Duration::from_millis(100);

/// A process whose output goes to a log and is looked at on the way.
#[derive(Debug)]
pub(super) struct Process {
    program: &'static str,
    child: Child,
    log: PathBuf,
    output: Arc<ProcessOutput>,
}

/// What a process said, shared with the thread that reads it.
#[derive(Debug, Default)]
struct ProcessOutput {
    said: Mutex<ProcessLines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ProcessLines {
    last_lines: VecDeque<String>,
    lines: u64,
    /// Whether the line that the caller waits for was among them.
    marked: bool,
    /// No more will come: the process ended.
    ended: bool,
}

impl Process {
    /// Starts a program in the guard's process group. Its log is appended to, so that the log of a
    /// restarted program tells the whole story.
    pub(super) fn spawn(
        invocation: Invocation,
        folder: &Path,
        guard: &ProcessGuard,
    ) -> Result<Self, StartError> {
        let Invocation { program, path, arguments, mark } = invocation;
        let log = folder.join(format!("{program}.log"));
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(StartError::file(&log))?;
        let failed = |error| StartError::file(&path)(error);
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let child = Command::new(&path)
            .args(&arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(failed)?)
            .stderr(writer)
            .process_group(guard.group())
            .spawn()
            .map_err(failed)?;
        let output = Arc::new(ProcessOutput::default());
        let shared = Arc::clone(&output);
        std::thread::spawn(move || shared.read(reader, file, mark));
        Ok(Self { program, child, log, output })
    }

    pub(super) fn program(&self) -> &'static str {
        self.program
    }

    /// Waits for the line by which the program says that it listens.
    pub(super) fn wait_for_mark(&mut self, deadline: Instant) -> Result<(), StartError> {
        while !self.output.said().marked {
            self.wait_for_news(deadline)?;
        }
        Ok(())
    }

    /// Waits until the program logs a line, at most a moment.
    pub(super) fn wait_for_news(&mut self, deadline: Instant) -> Result<(), StartError> {
        let said = self.output.said();
        let lines = said.lines;
        let waited = self
            .output
            .changed
            .wait_timeout_while(said, NEWS_WITHIN, |said| said.lines == lines && !said.ended);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.check_alive()?;
        if Instant::now() < deadline {
            return Ok(());
        }
        let (program, log, tail) = (self.program, self.log.clone(), self.output.tail());
        Err(StartError::NotReady { program, log, tail })
    }

    /// An error that quotes the log, where the process has ended.
    pub(super) fn check_alive(&mut self) -> Result<(), StartError> {
        if !self.output.said().ended {
            return Ok(());
        }
        let (program, log, tail) = (self.program, self.log.clone(), self.output.tail());
        Err(StartError::Ended { program, log, tail })
    }

    /// Kills the process and waits for its end; nothing happens where it ended before.
    pub(super) fn kill(&mut self) -> Result<(), StartError> {
        let failed = StartError::file(&self.log);
        self.child.kill().and_then(|()| self.child.wait()).map_err(failed)?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Best effort: the guard kills the whole group after this.
        let _ = self.kill();
    }
}

impl ProcessOutput {
    fn read(&self, reader: PipeReader, mut log: File, mark: Option<&str>) {
        for line in BufReader::new(reader).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            // A full disk must not stop the control plane.
            let _ = writeln!(log, "{line}");
            let mut said = self.said();
            said.marked |= mark.is_none_or(|mark| line.contains(mark));
            said.lines += 1;
            said.last_lines.push_back(line);
            if said.last_lines.len() > QUOTED_LINES {
                said.last_lines.pop_front();
            }
            self.changed.notify_all();
        }
        self.said().ended = true;
        self.changed.notify_all();
    }

    fn said(&self) -> MutexGuard<'_, ProcessLines> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tail(&self) -> String {
        Vec::from(self.said().last_lines.clone()).join("\n")
    }
}
