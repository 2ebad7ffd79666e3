//! Ends every process of a control plane, also when the process that started it is killed.
//!
//! All programs join one process group. A watchdog reads from a pipe whose only writer is this
//! process: however this process ends, the pipe closes, and the watchdog kills the group. A program
//! joins the group before it runs its first instruction, so none can be missed.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::StartError;

/// What the watchdog does. Any line it reads means that the folder is kept.
const WATCH: &str = r#"
keep=
while read -r line; do keep=yes; done
kill -s KILL -- "-$1"
[ -n "$keep" ] || rm -rf -- "$2" || { sleep 1; rm -rf -- "$2"; }
"#;

#[derive(Debug)]
pub(super) struct ProcessGuard {
    folder: PathBuf,
    keep: bool,
    /// Leads the process group: as long as it is not reaped, no other group gets its number.
    leader: Child,
    watchdog: Child,
    /// Closing it wakes the watchdog.
    alive: Option<ChildStdin>,
}

impl ProcessGuard {
    /// Starts the watchdog of a folder and an empty process group.
    pub(super) fn start(folder: &Path) -> Result<Self, StartError> {
        let shell = |script: &str, arguments: &[&std::ffi::OsStr]| {
            Command::new("sh")
                .args(["-c", script, "sh"])
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()
                .map_err(StartError::file(Path::new("sh")))
        };
        let leader = shell("read -r line", &[])?;
        let group = leader.id().to_string();
        let mut watchdog = shell(WATCH, &[group.as_ref(), folder.as_os_str()])?;
        let alive = watchdog.stdin.take();
        Ok(Self { folder: folder.to_owned(), keep: false, leader, watchdog, alive })
    }

    /// The number of the process group that programs join.
    pub(super) fn group(&self) -> i32 {
        // Process numbers are positive and far below 2^31 on every system.
        i32::try_from(self.leader.id()).unwrap_or(0)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps the folder when the programs end.
    pub(super) fn keep(&mut self) {
        self.keep = true;
        if let Some(pipe) = &mut self.alive {
            // A watchdog that is gone removes nothing.
            let _ = pipe.write_all(b"keep\n").and_then(|()| pipe.flush());
        }
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        drop(self.alive.take());
        // Best effort: what cannot be waited for or removed is left to the system.
        let _ = self.watchdog.wait();
        let _ = self.leader.wait();
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
