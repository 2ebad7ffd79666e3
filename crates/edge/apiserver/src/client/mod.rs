//! Connections to the API server, kept apart by purpose: a flood of events or statuses must delay
//! neither a bind nor a renewal of the leadership.

mod credentials;
mod lists;
mod request;

use std::sync::mpsc;
use std::time::Duration;

use kube::{Client, Config};
use thiserror::Error;
use tokio::runtime::Handle;

pub use credentials::NoCredentials;
pub(crate) use lists::next_page;
pub use lists::{ListError, Lists, PAGE, read_lists, read_some_lists};
pub use request::{send, with_causes};

/// One client per purpose, each with connections of its own.
#[derive(Clone)]
pub struct Clients {
    /// Lists and watches.
    pub watches: Client,
    /// `pods/binding` and nothing else. It retries nothing: a bind must not land later than it was
    /// meant to.
    pub binds: Client,
    /// Conditions and events of pods. It retries nothing: what was to be said may be out of date.
    pub announcements: Client,
    /// Everything else: reads of single objects, evictions. It retries nothing: who asks counts the
    /// tries, and must see that a disruption budget keeps a pod (429).
    pub rest: Client,
    /// The lease alone. It retries nothing: the leadership counts time itself.
    pub lease: Client,
}

/// No client could be made of a configuration.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Certificates or credentials cannot be used.
    #[error(
        "cannot set up a client for the API server at {server}: check the kubeconfig's certificates and \
         credentials{}", .command.as_deref().map(and_its).unwrap_or_default()
    )]
    Unusable {
        /// Address of the server.
        server: String,
        /// The command that the kubeconfig has run for credentials.
        command: Option<String>,
        /// What kube says, without what the command printed.
        #[source]
        source: NoCredentials,
    },
    /// The kubeconfig names an auth-provider, which gives no credentials.
    #[error(
        "cannot set up a client for the API server at {server}: the kubeconfig's auth-provider \
         `{provider}` {problem}: configure an exec credential plugin, for example `{plugin}`"
    )]
    Legacy {
        /// Address of the server.
        server: String,
        provider: String,
        /// Why it gives none.
        problem: &'static str,
        /// A plugin that gives them instead.
        plugin: &'static str,
    },
    /// The command that the kubeconfig has run for credentials does not end.
    #[error(
        "cannot set up a client for the API server at {server}: the kubeconfig's command `{command}` printed no \
         credentials within {} s: run it manually to see why", .limit.as_secs()
    )]
    Silent {
        /// Address of the server.
        server: String,
        command: String,
        /// How long was waited.
        limit: Duration,
    },
}

/// A connection is given up when it cannot be made within this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A read is given up when nothing comes for so long.
const READ_TIMEOUT: Option<Duration> = Some(Duration::from_secs(60));
/// A command that the kubeconfig has run for credentials may take so long; somebody may have to log
/// in.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

impl Clients {
    /// Clients for the server and the credentials of this configuration. Nothing is sent yet.
    ///
    /// # Errors
    /// When certificates or credentials cannot be used, or are not given in time.
    pub fn new(config: &Config) -> Result<Self, ClientError> {
        in_time(config, Self::of)
    }

    fn of(config: &Config) -> Result<Self, ClientError> {
        // Watches end by their own time-outs; a bind, a look and a renewal by their callers'.
        Ok(Self {
            watches: with(config, true, None)?,
            binds: with(config, false, None)?,
            announcements: with(config, false, None)?,
            rest: with(config, false, READ_TIMEOUT)?,
            lease: with(config, false, None)?,
        })
    }
}

/// The client for lists and watches alone: a command for credentials does not run for others that
/// nobody uses.
///
/// # Errors
/// As for [`Clients::new`].
pub fn to_watch(config: &Config) -> Result<Client, ClientError> {
    in_time(config, |config| with(config, true, None))
}

/// The client for reads of single objects and pages alone.
///
/// # Errors
/// As for [`Clients::new`].
pub(crate) fn to_read(config: &Config) -> Result<Client, ClientError> {
    in_time(config, |config| with(config, true, READ_TIMEOUT))
}

/// Makes clients; where a command gives their credentials, that is waited for, and not for ever.
fn in_time<T: Send + 'static>(
    config: &Config,
    make: fn(&Config) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    match command(config) {
        Some(command) => within(COMMAND_TIMEOUT, config, command, make),
        None => make(config),
    }
}

fn within<T: Send + 'static>(
    limit: Duration,
    config: &Config,
    command: String,
    make: fn(&Config) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let (sender, receiver) = mpsc::channel();
    let (runtime, theirs) = (Handle::current(), config.clone());
    std::thread::spawn(move || {
        let _entered = runtime.enter();
        // Nobody listens any more where it took too long.
        _ = sender.send(make(&theirs));
    });
    let server = config.cluster_url.to_string();
    let given = receiver.recv_timeout(limit);
    given.unwrap_or_else(|_| Err(ClientError::Silent { server, command, limit }))
}

fn with(
    config: &Config,
    retries: bool,
    read_timeout: Option<Duration>,
) -> Result<Client, ClientError> {
    let mut config = config.clone();
    config.default_retry = retries;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = read_timeout;
    config.reset_reader_on_write = true;
    client(config)
}

/// One client of a configuration.
///
/// # Errors
/// When certificates or credentials cannot be used.
pub fn client(config: Config) -> Result<Client, ClientError> {
    let (server, command) = (config.cluster_url.to_string(), command(&config));
    let hint = config.auth_info.exec.as_ref().and_then(|exec| exec.install_hint.clone());
    let provider = config.auth_info.auth_provider.as_ref().map(|provider| provider.name.clone());
    Client::try_from(config).map_err(|error| {
        if let Some(name) = provider.filter(|_| credentials::is_of_provider(&error)) {
            let (problem, plugin) = credentials::instead_of_provider(&name);
            return ClientError::Legacy {
                server,
                provider: credentials::shown(&name),
                problem,
                plugin,
            };
        }
        let hint = credentials::install_hint(&error, hint.as_deref()).unwrap_or_default();
        let source = NoCredentials(with_causes(&error) + &hint);
        ClientError::Unusable { server, command, source }
    })
}

/// The words about a command.
fn and_its(command: &str) -> String {
    format!(", and its command `{command}`")
}

/// The command that is run for credentials.
fn command(config: &Config) -> Option<String> {
    config.auth_info.exec.as_ref()?.command.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_command(command: &str, arguments: &[&str]) -> Config {
        let mut config = Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": command, "args": arguments,
        });
        config.auth_info.exec = serde_json::from_value(exec).expect("a command");
        config
    }

    #[tokio::test]
    async fn a_command_that_gives_no_credentials_is_named() {
        let missing = Clients::new(&with_command("dovetail-no-such-command", &[]));
        let told = missing.err().expect("an error").to_string();
        assert!(told.contains("http://127.0.0.1:1/"), "{told}");
        assert!(told.ends_with(", and its command `dovetail-no-such-command`"), "{told}");
        let config = with_command("sleep", &["3"]);
        let silent = within(Duration::ZERO, &config, "sleep".to_owned(), Clients::of);
        let told = silent.err().expect("an error").to_string();
        assert!(told.contains("command `sleep` printed no credentials within 0 s"), "{told}");
    }

    /// Control characters of the hint do not reach the terminal.
    #[tokio::test]
    async fn how_to_install_a_command_is_told_only_if_it_cannot_be_run() {
        let told = |command: &str, arguments: &[&str]| {
            let mut config = with_command(command, arguments);
            let hint = "Install it:\n  krew install\u{1b}[2J login\n";
            config.auth_info.exec.as_mut().expect("a command").install_hint = Some(hint.to_owned());
            with_causes(&Clients::new(&config).err().expect("an error"))
        };
        let missing = told("dovetail-no-such-command", &[]);
        let hint = "; install hint of the kubeconfig: Install it: krew install[2J login";
        assert!(missing.ends_with(hint), "{missing}");
        let failed = told("sh", &["-c", "exit 1"]);
        assert!(failed.contains("it failed") && !failed.contains("krew"), "{failed}");
    }

    #[tokio::test]
    async fn an_auth_provider_without_credentials_is_named_with_what_replaces_it() {
        let told = |name: &str| {
            let mut config = Config::new("http://127.0.0.1:1".parse().expect("an address"));
            let provider = json!({"name": name, "config": {}});
            config.auth_info.auth_provider =
                Some(serde_json::from_value(provider).expect("a provider"));
            Clients::new(&config).err().expect("an error").to_string()
        };
        for (name, plugin) in [
            ("oidc", "`kubectl oidc-login`"),
            ("gcp", "`gke-gcloud-auth-plugin`"),
            ("azure", "`kubelogin`"),
            ("openstack", "`kubectl oidc-login`"),
        ] {
            let told = told(name);
            let is_named = told.contains(&format!("auth-provider `{name}` is "));
            assert!(is_named && told.ends_with(plugin), "{told}");
            let is_removed = ["gcp", "azure"].contains(&name);
            assert_eq!(told.contains("since 1.26"), is_removed, "{told}");
        }
    }

    #[tokio::test]
    async fn what_a_command_for_credentials_prints_is_not_shown() {
        let told = |script: &str| {
            let config = with_command("sh", &["-c", script, "with-a-key-of-its-own"]);
            let error = Clients::new(&config).err().expect("an error");
            let told = with_causes(&error);
            for secret in ["SECRET", "with-a-key-of-its-own", "KUBERNETES_EXEC_INFO"] {
                let shown = format!("{told} {error:?}");
                assert!(!shown.contains(secret), "{shown}");
            }
            told
        };
        let failed = told("echo SECRET; echo please log in >&2; exit 7");
        assert!(failed.ends_with("it failed (exit status: 7): please log in"), "{failed}");
        let unread = told("echo '{SECRET: [}'");
        assert!(
            unread.ends_with("it printed no valid credentials: run it manually to see its output"),
            "{unread}"
        );
    }
}
