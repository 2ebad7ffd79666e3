//! A real control plane on loopback: etcd and kube-apiserver, and on request kube-scheduler,
//! kube-controller-manager and KWOK.
//!
//! Every [`Cluster`] has free ports, a folder and certificates of its own. It ends with the value,
//! and also when the process that holds it is killed. `cargo xtask cluster up` and the tests start
//! the same thing; this module needs no Kubernetes client.

mod access;
mod certificates;
mod error;
mod etcd;
mod guard;
mod http;
mod options;
mod ports;
mod process;
mod programs;
mod stages;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use error::StartError;
pub use etcd::Stored;
pub use options::{NodesLookedAt, Options, User};

use crate::binaries::{Program, Release};
use access::Access;
use certificates::Authority;
use etcd::Etcd;
use guard::ProcessGuard;
use http::LoopbackClient;
use process::Process;
use programs::Programs;

/// How long the API server may take until it is ready. It takes seconds; a busy machine takes more.
const READY_WITHIN: Duration = Duration::from_secs(180);

/// How often the start is tried where another process takes a port first.
const PORT_ATTEMPTS: u32 = 5;

/// API groups of kinds that people add to their servers, of which the servers of tests have none.
pub const ABSENT_GROUPS: [&str; 10] = [
    "scheduling.x-k8s.io",
    "scheduling.volcano.sh",
    "scheduling.run.ai",
    "jobset.x-k8s.io",
    "leaderworkerset.x-k8s.io",
    "kubeflow.org",
    "ray.io",
    "kueue.x-k8s.io",
    "kai.scheduler",
    "topology.volcano.sh",
];

/// A running control plane. Dropping it stops every process and removes its folder.
#[derive(Debug)]
pub struct Cluster {
    started: Started,
    options: Options,
    // Last: it kills what did not end before.
    guard: ProcessGuard,
}

/// What runs inside a guard.
#[derive(Debug)]
struct Started {
    api_server: Process,
    etcd: Process,
    others: Vec<Process>,
    access: Access,
    client: LoopbackClient,
    programs: Programs,
}

impl Cluster {
    /// Starts a control plane and waits until its API server is ready. Programs that are missing
    /// are built first, which takes minutes once; `progress` gets a line now and then.
    ///
    /// # Errors
    /// When a program cannot be built or started, or ends before it is ready; the error names the
    /// log and quotes its end.
    pub fn start(options: Options, progress: &mut dyn FnMut(&str)) -> Result<Self, StartError> {
        let programs = Programs::locate(&options, progress)?;
        let mut attempts = 1;
        loop {
            match Self::attempt(&options, &programs) {
                Err(error) if error.is_port_taken() && attempts < PORT_ATTEMPTS => attempts += 1,
                result => return result,
            }
        }
    }

    fn attempt(options: &Options, programs: &Programs) -> Result<Self, StartError> {
        let mut guard = ProcessGuard::start(&options.make_folder()?)?;
        let started = Started::launch(options, programs, &guard);
        if let Err(error) = &started
            && !error.is_port_taken()
        {
            guard.keep();
        }
        Ok(Self { started: started?, options: options.clone(), guard })
    }

    /// The kubeconfig of the administrator, who may do everything.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.started.access.kubeconfig_of(access::ADMIN)
    }

    /// The kubeconfig of one of [`Options::users`], by name; it is not there for other names.
    #[must_use]
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.started.access.kubeconfig_of(user)
    }

    /// Where the API server listens, such as `https://127.0.0.1:23456`.
    #[must_use]
    pub fn server(&self) -> &str {
        self.started.access.server()
    }

    /// The folder with certificates, kubeconfigs, etcd's data and one log per program.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.guard.folder()
    }

    /// The path of a program of this control plane, such as kubectl.
    #[must_use]
    pub fn program(&self, program: Program) -> Option<&Path> {
        self.started.programs.path(program)
    }

    /// What it consists of.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The requests of [`Options::noted_users`] by now, one event of the audit log per line.
    #[must_use]
    pub fn noted(&self) -> String {
        // There is no file before the first request.
        std::fs::read_to_string(self.guard.folder().join(programs::NOTED)).unwrap_or_default()
    }

    /// The release of Kubernetes that runs.
    #[must_use]
    pub fn release(&self) -> Release {
        self.started.programs.release()
    }

    /// Kills the API server without warning, as a crash does. Its store lives on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill_api_server(&mut self) -> Result<(), StartError> {
        self.started.api_server.kill()
    }

    /// Starts the API server again on its old port and store, and waits until it is ready.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start_api_server(&mut self) -> Result<(), StartError> {
        self.started.api_server.kill()?;
        let folder = self.guard.folder();
        let Started { api_server, client, programs, .. } = &mut self.started;
        *api_server = Process::spawn(programs.api_server(&self.options), folder, &self.guard)?;
        wait_until_ready(api_server, client)
    }

    /// Starts kube-scheduler, which was not among [`Options`] or was stopped.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_scheduler(&mut self, looks_at: NodesLookedAt) -> Result<(), StartError> {
        self.stop_scheduler();
        let invocation = self.started.programs.scheduler(looks_at)?;
        let process = Process::spawn(invocation, self.guard.folder(), &self.guard)?;
        self.started.others.push(process);
        Ok(())
    }

    /// Stops kube-scheduler; everything else runs on.
    pub fn stop_scheduler(&mut self) {
        let name = Program::KubeScheduler.name();
        self.started.others.retain(|process| process.program() != name);
    }

    /// The first program that ended by itself, as an error that quotes its log.
    ///
    /// # Errors
    /// That is the answer.
    pub fn check_alive(&mut self) -> Result<(), StartError> {
        let Started { api_server, etcd, others, .. } = &mut self.started;
        [etcd, api_server].into_iter().chain(others).try_for_each(|process| process.check_alive())
    }

    /// Creates an object with a plain POST, and answers with the status code. For callers without a
    /// Kubernetes client.
    ///
    /// # Errors
    /// When the API server cannot be reached or does not answer 201.
    pub fn create(&self, path: &str, object: &str) -> Result<(), StartError> {
        self.started.client.create(path, object)
    }

    /// What it holds before anybody has created anything. Waits until the API server has made all
    /// that it makes by itself.
    ///
    /// # Errors
    /// When its store does not answer, or the API server ended.
    pub fn stored(&mut self) -> Result<Stored, StartError> {
        let Started { api_server, programs, .. } = &mut self.started;
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Some(stored) = (Etcd { port: programs.etcd_port() }).stored()? {
                return Ok(stored);
            }
            api_server.wait_for_news(deadline)?;
        }
    }

    /// Removes all that was created since, behind the API server: nothing holds it up. What was
    /// there and is changed or deleted stays so. Waits until the server serves no kind any more
    /// whose definition is gone.
    ///
    /// # Errors
    /// When its store does not answer, or the API server ended.
    pub fn restore(&mut self, stored: &Stored) -> Result<(), StartError> {
        let Started { api_server, client, programs, .. } = &mut self.started;
        let gone = Etcd { port: programs.etcd_port() }.restore(stored)?;
        let deadline = Instant::now() + READY_WITHIN;
        for version in gone {
            while client.status_of(&version) != Some(404) {
                api_server.wait_for_news(deadline)?;
            }
        }
        // A whole list waits for what the store has written by now.
        for kind in ["/api/v1/nodes", "/api/v1/pods"] {
            client.status_of(kind);
        }
        Ok(())
    }

    /// What is at a path of the API server, such as `/api/v1/nodes/n0`; `None` if there is nothing.
    #[must_use]
    pub fn object(&self, path: &str) -> Option<serde_json::Value> {
        self.started.client.object(path)
    }

    /// Keeps the folder when the control plane ends, and answers with its path.
    pub fn keep_folder(&mut self) -> &Path {
        self.guard.keep();
        self.guard.folder()
    }
}

impl Started {
    fn launch(
        options: &Options,
        programs: &Programs,
        guard: &ProcessGuard,
    ) -> Result<Self, StartError> {
        let folder = guard.folder();
        let ports = ports::free_ports()?;
        let authority = Authority::create(folder)?;
        let access = Access::write(folder, ports.api_server, &authority, options)?;
        let client = LoopbackClient::new(ports.api_server, &authority, access.admin_token())?;
        let programs = programs.clone().with(folder, ports);
        programs.write_settings(options)?;

        let mut etcd = Process::spawn(programs.etcd(), folder, guard)?;
        etcd.wait_for_mark(Instant::now() + READY_WITHIN)?;
        let mut api_server = Process::spawn(programs.api_server(options), folder, guard)?;
        wait_until_ready(&mut api_server, &client)?;
        let others = programs.others(options)?.into_iter();
        let others = others.map(|other| Process::spawn(other, folder, guard));
        let others = others.collect::<Result<_, _>>()?;
        Ok(Self { api_server, etcd, others, access, client, programs })
    }
}

/// Asks whenever the server has logged something new, and now and then.
fn wait_until_ready(server: &mut Process, client: &LoopbackClient) -> Result<(), StartError> {
    let deadline = Instant::now() + READY_WITHIN;
    server.wait_for_mark(deadline)?;
    while !client.is_ready() {
        server.wait_for_news(deadline)?;
    }
    Ok(())
}
