//! How each program is called.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::access::{self, kubeconfig_in};
use super::ports::Ports;
use super::stages::stages;
use super::{NodesLookedAt, Options, StartError, certificates};
use crate::binaries::{self, BuildError, Program, Release};

/// Large worlds need more than etcd's default of 2 GiB.
const ETCD_QUOTA_BYTES: u64 = 8 << 30;

/// Whose requests the API server notes, and where.
const NOTING: &str = "audit-policy.json";
pub(super) const NOTED: &str = "audit.log";

/// Limits of the peers' clients, in requests per second: high enough never to be met.
const CLIENT_QPS: u32 = 5000;

/// One program with its arguments.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) program: &'static str,
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<String>,
    /// Part of the line by which the program says that it listens.
    pub(super) mark: Option<&'static str>,
}

/// Where the programs are, and the control plane they belong to.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    release: Release,
    paths: BTreeMap<Program, PathBuf>,
    folder: PathBuf,
    ports: Ports,
}

impl Programs {
    /// Finds the programs that the options need, and builds what is missing.
    pub(super) fn locate(
        options: &Options,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, StartError> {
        let mut wanted = vec![
            Program::Etcd,
            Program::KubeApiserver,
            Program::KubeScheduler,
            Program::KubeControllerManager,
            Program::Kubectl,
        ];
        wanted.extend(options.kwok.then_some(Program::Kwok));
        let release = options.release.map_or_else(Release::chosen, Ok).map_err(BuildError::from)?;
        let mut paths = BTreeMap::new();
        for program in wanted {
            paths.insert(program, binaries::program(program, release, progress)?);
        }
        let ports = Ports { api_server: 0, etcd_clients: 0, etcd_peers: 0 };
        Ok(Self { release, paths, folder: PathBuf::new(), ports })
    }

    /// The same programs for a control plane with this folder and these ports.
    pub(super) fn with(mut self, folder: &Path, ports: Ports) -> Self {
        self.folder = folder.to_owned();
        self.ports = ports;
        self
    }

    pub(super) fn release(&self) -> Release {
        self.release
    }

    /// Where etcd listens for clients.
    pub(super) fn etcd_port(&self) -> u16 {
        self.ports.etcd_clients
    }

    pub(super) fn path(&self, program: Program) -> Option<&Path> {
        self.paths.get(&program).map(PathBuf::as_path)
    }

    pub(super) fn etcd(&self) -> Invocation {
        let clients = format!("http://127.0.0.1:{}", self.ports.etcd_clients);
        let peers = format!("http://127.0.0.1:{}", self.ports.etcd_peers);
        let arguments = vec![
            format!("--data-dir={}", self.file("etcd")),
            // Nothing here outlives the machine.
            "--unsafe-no-fsync".to_owned(),
            format!("--quota-backend-bytes={ETCD_QUOTA_BYTES}"),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
        ];
        self.invocation(Program::Etcd, arguments, Some("ready to serve client requests"))
    }

    pub(super) fn api_server(&self, options: &Options) -> Invocation {
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd_clients),
            format!("--secure-port={}", self.ports.api_server),
            "--bind-address=127.0.0.1".to_owned(),
            // A loopback address is advertised only where nobody reconciles endpoints.
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--cert-dir={}", self.file("certificates")),
            format!("--tls-cert-file={}", self.file(certificates::SERVER_CERTIFICATE)),
            format!("--tls-private-key-file={}", self.file(certificates::SERVER_KEY)),
            format!(
                "--service-account-key-file={}",
                self.file(certificates::SERVICE_ACCOUNT_PUBLIC)
            ),
            format!(
                "--service-account-signing-key-file={}",
                self.file(certificates::SERVICE_ACCOUNT_KEY)
            ),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--token-auth-file={}", self.file(access::TOKENS)),
            "--authorization-mode=RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            // ServiceAccount waits for a controller that may not run. TaintNodesByCondition taints
            // each new node as not ready, and nobody here would take the taint away.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
        ];
        arguments.extend(self.gates(GANGS_IN_DOMAINS));
        if self.release.has_gangs() {
            arguments.push("--runtime-config=scheduling.k8s.io/v1beta1=true".to_owned());
        }
        if !options.noted_users.is_empty() {
            arguments.extend([
                format!("--audit-policy-file={}", self.file(NOTING)),
                format!("--audit-log-path={}", self.file(NOTED)),
                "--audit-log-mode=blocking".to_owned(),
            ]);
        }
        arguments.extend(options.api_server_arguments.iter().cloned());
        self.invocation(Program::KubeApiserver, arguments, Some("Serving securely on"))
    }

    /// Writes what the API server reads when it starts.
    pub(super) fn write_settings(&self, options: &Options) -> Result<(), StartError> {
        let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": options.noted_users}, {"level": "None"}]});
        let path = self.folder.join(NOTING);
        std::fs::write(&path, policy.to_string()).map_err(StartError::file(&path))
    }

    /// The programs beside etcd and the API server.
    pub(super) fn others(&self, options: &Options) -> Result<Vec<Invocation>, StartError> {
        let mut others = Vec::new();
        if options.controller_manager {
            others.push(self.controller_manager());
        }
        if options.scheduler {
            others.push(self.scheduler(NodesLookedAt::All)?);
        }
        if options.kwok {
            others.push(self.kwok()?);
        }
        Ok(others)
    }

    pub(super) fn scheduler(&self, looks_at: NodesLookedAt) -> Result<Invocation, StartError> {
        let (percent, gates) = match looks_at {
            NodesLookedAt::All => (100, GANGS_IN_DOMAINS),
            // Its own choice by the size of the cluster; gangs as they are by default, without what
            // is alpha.
            NodesLookedAt::Some => (0, GANGS),
        };
        let configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": kubeconfig_in(&self.folder, access::SCHEDULER),
                "qps": CLIENT_QPS,
                "burst": CLIENT_QPS,
            },
            "leaderElection": { "leaderElect": false },
            "percentageOfNodesToScore": percent,
        });
        let path = self.folder.join("kube-scheduler.yaml");
        std::fs::write(&path, configuration.to_string()).map_err(StartError::file(&path))?;
        let mut arguments =
            vec![format!("--config={}", path.display()), "--secure-port=0".to_owned()];
        arguments.extend(self.gates(gates));
        Ok(self.invocation(Program::KubeScheduler, arguments, None))
    }

    fn controller_manager(&self) -> Invocation {
        let kubeconfig = kubeconfig_in(&self.folder, access::CONTROLLER_MANAGER);
        let mut arguments = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
            // Kubernetes gives each controller its rights under a name of its own.
            "--use-service-account-credentials=true".to_owned(),
            "--controllers=*,-node-lifecycle-controller".to_owned(),
            format!("--kube-api-qps={CLIENT_QPS}"),
            format!("--kube-api-burst={CLIENT_QPS}"),
            format!("--root-ca-file={}", self.file(certificates::CA)),
            format!(
                "--service-account-private-key-file={}",
                self.file(certificates::SERVICE_ACCOUNT_KEY)
            ),
        ];
        arguments.extend(self.gates(GANGS_IN_DOMAINS));
        self.invocation(Program::KubeControllerManager, arguments, None)
    }

    fn kwok(&self) -> Result<Invocation, StartError> {
        let kubeconfig = kubeconfig_in(&self.folder, access::ADMIN);
        let path = self.folder.join("kwok.yaml");
        std::fs::write(&path, stages()).map_err(StartError::file(&path))?;
        let arguments = vec![
            format!("--config={}", path.display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--manage-all-nodes=true".to_owned(),
        ];
        Ok(self.invocation(Program::Kwok, arguments, None))
    }

    fn invocation(
        &self,
        program: Program,
        arguments: Vec<String>,
        mark: Option<&'static str>,
    ) -> Invocation {
        let path = self.paths.get(&program).cloned().unwrap_or_else(|| program.name().into());
        Invocation { program: program.name(), path, arguments, mark }
    }

    /// The argument that opens gates of gangs, where the release has them.
    fn gates(&self, gates: &str) -> Option<String> {
        self.release.has_gangs().then(|| format!("--feature-gates={gates}"))
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

/// Gangs as Kubernetes itself defines them: PodGroup of scheduling.k8s.io.
const GANGS: &str = "GenericWorkload=true";
/// The same with the topology levels that they must not leave, which is alpha in 1.37: without the
/// gate the API server drops `spec.schedulingConstraints` without a word.
const GANGS_IN_DOMAINS: &str = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true";
