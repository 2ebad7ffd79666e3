//! A control plane for tests: the launcher of [`crate::cluster`] with a Kubernetes client.

use std::io::Write;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, GroupVersionKind, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::Value;
use thiserror::Error;

use crate::cluster::{Cluster, Options, StartError, Stored};

/// As `kubectl create` asks: the object says so of whom wrote it, and no field may be unknown.
const AS_KUBECTL: &str = "fieldManager=kubectl-create&fieldValidation=Strict";

/// How long the API server may take until it serves a kind that was defined.
const SERVED_WITHIN: Duration = Duration::from_secs(120);

/// A running control plane that tests speak to.
///
/// Most tests take [`ControlPlane::shared`] and a [`ControlPlane::namespace`] of their own. A test
/// that looks at all nodes takes [`ControlPlane::fresh`]; one that kills the API server, or needs
/// more than etcd and the API server, starts a control plane for itself.
#[derive(Debug)]
pub struct ControlPlane {
    cluster: Mutex<Cluster>,
    kubeconfig: PathBuf,
}

impl ControlPlane {
    /// Starts a control plane and waits until its API server is ready. Missing programs are built
    /// first, with progress on stderr. This blocks the calling thread.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn start(options: Options) -> Result<Self, ControlPlaneError> {
        let cluster = Cluster::start(options, &mut say)?;
        Ok(Self { kubeconfig: cluster.kubeconfig(), cluster: Mutex::new(cluster) })
    }

    /// The control plane that all tests of this program share: etcd and the API server, started by
    /// the first test that asks. It ends with the program.
    ///
    /// # Errors
    /// As [`ControlPlane::start`]; every later caller gets the text of the first error.
    pub fn shared() -> Result<&'static Self, ControlPlaneError> {
        static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
        let shared = SHARED
            .get_or_init(|| Self::start(Options::default()).map_err(|error| error.to_string()));
        shared.as_ref().map_err(|text| ControlPlaneError::Shared(text.clone()))
    }

    /// A control plane that a test has for itself: etcd and the API server with nothing in them.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn fresh() -> Result<FreshControlPlane, ControlPlaneError> {
        Self::fresh_with(Options::default())
    }

    /// The same with these options. One that a test before has left serves again, since a start
    /// takes longer than most tests; but not where controllers or kubelets run, which would make
    /// anew what is removed.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn fresh_with(options: Options) -> Result<FreshControlPlane, ControlPlaneError> {
        if options.controller_manager || options.kwok {
            let has = Some((Self::start(options)?, None));
            return Ok(FreshControlPlane { has, noted_before: 0 });
        }
        let left = {
            let mut all = lock(&LEFT);
            let fits = all.iter().position(|(one, _)| *one.cluster().options() == options);
            fits.map(|at| all.swap_remove(at))
        };
        let (control_plane, stored) = match left {
            Some((control_plane, stored)) => {
                control_plane.cluster().restore(&stored)?;
                (control_plane, stored)
            }
            None => {
                let control_plane = Self::start(options)?;
                let stored = control_plane.cluster().stored()?;
                (control_plane, stored)
            }
        };
        let noted_before = control_plane.cluster().noted().len();
        Ok(FreshControlPlane { has: Some((control_plane, Some(stored))), noted_before })
    }

    /// Creates an object, in the namespace that it names, with all rights. A `kubectl` would take
    /// as long as a hundred of these.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn create(&self, object: &Value) -> Result<(), ControlPlaneError> {
        let path = format!("{}?{AS_KUBECTL}", collection(object));
        let deadline = Instant::now() + SERVED_WITHIN;
        loop {
            match self.cluster().create(&path, &object.to_string()) {
                // A server takes a moment to serve a kind that was just defined.
                Err(StartError::Refused { answer, .. })
                    if answer.contains(" 404 Not Found") && Instant::now() < deadline => {}
                created => return created.map_err(ControlPlaneError::from),
            }
        }
    }

    /// What is at a path of the API server, such as `/api/v1/nodes/n0`, with all rights; `None` if
    /// there is nothing.
    #[must_use]
    pub fn object(&self, path: &str) -> Option<Value> {
        self.cluster().object(path)
    }

    /// The kubeconfig of the administrator.
    #[must_use]
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// The settings of a client with the administrator's rights.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn config(&self) -> Result<Config, ControlPlaneError> {
        config_from(&self.kubeconfig).await
    }

    /// The settings of a client of one of [`Options::users`].
    ///
    /// # Errors
    /// When there is no such user.
    pub async fn config_of(&self, user: &str) -> Result<Config, ControlPlaneError> {
        let path = self.cluster().kubeconfig_of(user);
        config_from(&path).await
    }

    /// A client with the administrator's rights. It belongs to the runtime that asks for it.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client, ControlPlaneError> {
        Ok(Client::try_from(self.config().await?)?)
    }

    /// A new namespace, named after a test. Hold the answer until the test ends: when it ends by a
    /// panic, the logs of the control plane are kept and stderr says where.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn namespace(&self, test: &str) -> Result<TestNamespace<'_>, ControlPlaneError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let letters = test.chars().map(|letter| match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => letter,
            _ => '-',
        });
        // A name has at most 63 letters.
        let letters: String = letters.take(50).collect();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", letters.trim_matches('-'));
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.clone());
        let api = Api::all(self.client().await?);
        api.create(&PostParams::default(), &namespace).await?;
        Ok(TestNamespace { name, control_plane: self })
    }

    /// Kills the API server without warning; its store lives on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill_api_server(&self) -> Result<(), ControlPlaneError> {
        Ok(self.cluster().kill_api_server()?)
    }

    /// Starts the killed API server again, on its old port and store, and waits until it is ready.
    /// This blocks the calling thread.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn start_api_server(&self) -> Result<(), ControlPlaneError> {
        Ok(self.cluster().start_api_server()?)
    }

    /// Whether its API server has Kubernetes' own gangs. Where it has not, a line on stderr says
    /// that the test, which needs them, is skipped.
    #[must_use]
    pub fn has_gangs(&self, test: &str) -> bool {
        let has = self.cluster().release().has_gangs();
        has || skip(test, "this release of Kubernetes has no PodGroups of its own")
    }

    /// Whether its API server keeps counters that devices share. Where it does not, a line on
    /// stderr says that the test, which needs them, is skipped.
    #[must_use]
    pub fn has_shared_counters(&self, test: &str) -> bool {
        let has = self.cluster().release().has_shared_counters();
        has || skip(test, "this release of Kubernetes drops the shared counters of ResourceSlices")
    }

    /// The launcher behind this control plane.
    pub fn cluster(&self) -> MutexGuard<'_, Cluster> {
        lock(&self.cluster)
    }
}

/// What tests have left for those after them, with what each held at first. They end with the
/// program.
static LEFT: Mutex<Vec<(ControlPlane, Stored)>> = Mutex::new(Vec::new());

/// Where objects like this one are.
fn collection(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (root, group, number) = match version.split_once('/') {
        Some((group, number)) => ("/apis", group, number),
        None => ("/api", "", version.as_str()),
    };
    let plural = ApiResource::from_gvk(&GroupVersionKind::gvk(group, number, &kind)).plural;
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{version}/{plural}"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What [`ControlPlane::fresh`] gives. When the test ends by a panic, it is not used again.
#[derive(Debug)]
pub struct FreshControlPlane {
    /// With what it held at first, if it can be used again.
    has: Option<(ControlPlane, Option<Stored>)>,
    /// How much was noted of the tests before.
    noted_before: usize,
}

impl FreshControlPlane {
    /// The requests of [`Options::noted_users`] of this test, one event of the audit log per line.
    #[must_use]
    pub fn noted(&self) -> String {
        self.cluster().noted().split_off(self.noted_before)
    }
}

impl Deref for FreshControlPlane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        let (control_plane, _) = self.has.as_ref().expect("it is there until it is dropped");
        control_plane
    }
}

impl Drop for FreshControlPlane {
    fn drop(&mut self) {
        // In a panic the control plane itself keeps its logs, and ends.
        if !std::thread::panicking() {
            let left = self.has.take();
            let left = left.and_then(|(control_plane, stored)| Some((control_plane, stored?)));
            lock(&LEFT).extend(left);
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            keep_logs(&mut self.cluster());
        }
    }
}

/// A namespace that belongs to one test.
#[derive(Debug)]
pub struct TestNamespace<'a> {
    name: String,
    control_plane: &'a ControlPlane,
}

impl TestNamespace<'_> {
    /// The name of the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for TestNamespace<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            keep_logs(&mut self.control_plane.cluster());
        }
    }
}

/// Why a test has no control plane.
#[derive(Debug, Error)]
pub enum ControlPlaneError {
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The one that tests share could not be started.
    #[error("the shared control plane: {0}")]
    Shared(String),
    /// A kubeconfig could not be read.
    #[error("kubeconfig {path}: {source}")]
    Kubeconfig {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        source: kube::config::KubeconfigError,
    },
    /// The API server refused a request.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

async fn config_from(path: &std::path::Path) -> Result<Config, ControlPlaneError> {
    let failed = |source| ControlPlaneError::Kubeconfig { path: path.to_owned(), source };
    let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?;
    // The client's own repetitions may take minutes and hide what a test looks for.
    config.default_retry = false;
    Ok(config)
}

fn keep_logs(cluster: &mut Cluster) {
    let folder = cluster.keep_folder().display().to_string();
    say(&format!("the logs of the control plane are kept in {folder}"));
}

/// Says why a test is skipped. Not by `eprintln!`, which the test harness hides for tests that
/// pass.
fn skip(test: &str, why: &str) -> bool {
    say(&format!("skipped: {test}: {why}"));
    false
}

/// Past the test harness, which would hide progress until the test fails. Nobody may be reading.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
