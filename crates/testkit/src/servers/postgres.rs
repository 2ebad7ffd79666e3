//! A real PostgreSQL server in a folder of its own, reached through a socket in it.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::becomes_ready;

const READY: &str = "database system is ready to accept connections";
/// `nobody`: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

/// A running server, ended when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl PostgresServer {
    /// Starts one; `None`, and a line that says why, where there is no PostgreSQL.
    #[allow(clippy::print_stderr, reason = "a skipped test must say why")]
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!(
                "skipped: tests against a real PostgreSQL: no `initdb` on the PATH or in /usr/lib/postgresql \
                 (make test fetches it where apt-get can)"
            );
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        if is_root(folder.path()) {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("root may give files away");
        }
        let mut server = Self { programs, folder, child: None };
        let data = server.data();
        let made = server
            .command("initdb")
            .args(["--auth=trust", "--username=dovetail", "--encoding=UTF8", "--locale=C"])
            .args(["--no-sync", "-D", &data])
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb starts").success());
        server.start_again();
        Some(server)
    }

    /// Where a ledger is on it.
    pub fn url(&self) -> String {
        format!("postgres://dovetail@localhost/postgres?host={}", self.folder.path().display())
    }

    /// Starts it where it was stopped, with what was written.
    pub fn start_again(&mut self) {
        let data = self.data();
        let folder = self.folder.path().display().to_string();
        let mut child = self
            .command("postgres")
            .args(["-D", &data, "-k", &folder, "-h", "", "-F"])
            .args(["-c", "shared_buffers=16MB", "-c", "max_connections=20"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("postgres starts");
        assert!(becomes_ready(&mut child, READY), "PostgreSQL does not start");
        self.child = Some(child);
    }

    /// Ends it at once, as a crash would: nothing that is open is finished.
    pub fn crash(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // `pg_ctl -m immediate` ends the children too; a kill would leave them behind.
        let data = self.data();
        let stopped =
            self.command("pg_ctl").args(["stop", "-m", "immediate", "-s", "-D", &data]).status();
        if !stopped.is_ok_and(|status| status.success()) {
            _ = child.kill();
        }
        _ = child.wait();
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if is_root_here() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.crash();
    }
}

/// The folder with the programs: on the PATH, else the newest that Debian has installed.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|folder| folder.join("initdb").is_file());
    on_path.or_else(|| {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        let folders = versions.flatten().filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let folder = entry.path().join("bin");
            folder.join("initdb").is_file().then_some((version, folder))
        });
        folders.max().map(|(_, folder)| folder)
    })
}

/// A file that we made is root's if we are.
fn is_root(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.uid() == 0)
}

fn is_root_here() -> bool {
    is_root(Path::new("/proc/self"))
}
