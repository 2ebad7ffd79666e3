//! The connection to a cluster: the file and context that kubectl would use, unless others are
//! named.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use dovetail_console::plain::plain;
use dovetail_settings::errors::UsageError;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

/// The variable that names files in the place of `~/.kube/config`.
const VARIABLE: &str = "KUBECONFIG";

/// Flags as written.
#[derive(Clone, Debug, Default, Args)]
pub struct ConnectionFlags {
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[arg(skip)]
    is_of_pod: bool,
}

impl ConnectionFlags {
    /// The connection of a file and a context, as far as they are named.
    pub fn of(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context, is_of_pod: false }
    }

    /// The connection of the pod that this runs in.
    pub fn of_pod() -> Self {
        Self { is_of_pod: true, ..Self::default() }
    }

    /// Whether a file or a context is named.
    pub fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// As messages name it.
    pub fn name(&self) -> String {
        let file = match &self.kubeconfig {
            Some(path) => format!("kubeconfig {}", path.display()),
            None if self.is_of_pod => "the cluster of this pod".to_owned(),
            None => "the default kubeconfig".to_owned(),
        };
        match &self.context {
            Some(context) => format!("context {} of {file}", plain(context)),
            None => file,
        }
    }

    /// The settings of a client.
    ///
    /// # Errors
    /// Names the file that cannot be used, or where a file was looked for.
    pub async fn connect(&self) -> Result<Config> {
        if self.is_of_pod {
            return Config::incluster()
                .context("no connection to a cluster: this process does not run in a pod");
        }
        let named = || self.name();
        let file = match &self.kubeconfig {
            Some(path) => {
                check_readable(path)?;
                let invalid = || format!("cannot read {}: check that it is valid YAML", named());
                Kubeconfig::read_from(path).map_err(readable).with_context(invalid)?
            }
            None => match self.of_kubectl()? {
                Some(file) => file,
                None => return Ok(Config::incluster()?),
            },
        };
        let options = KubeConfigOptions { context: self.context.clone(), ..Default::default() };
        check_context(&file, self.context.as_deref(), &self.name())?;
        Config::from_custom_kubeconfig(file, &options).await.with_context(named)
    }

    /// The file that kubectl would read; `None` where there is none and this runs in a pod.
    fn of_kubectl(&self) -> Result<Option<Kubeconfig>> {
        let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        let places = places(variable.as_deref(), home.map(PathBuf::from).as_deref());
        if places.files.iter().any(|file| file.exists()) {
            return places.read().map(Some);
        }
        if self.context.is_none() && Config::incluster().is_ok() {
            return Ok(None);
        }
        Err(NoKubeconfig(places.missing()).into())
    }
}

/// There is no kubeconfig where kubectl would look for one, and this runs in no pod.
#[derive(Debug)]
pub struct NoKubeconfig(String);

impl std::error::Error for NoKubeconfig {}

impl fmt::Display for NoKubeconfig {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "no kubeconfig: {}; pass --kubeconfig FILE", self.0)
    }
}

/// Refuses a file that cannot be opened, in fewer words than the client has for it.
fn check_readable(path: &Path) -> Result<()> {
    let name = plain(&path.display().to_string());
    let told = |error| {
        anyhow::anyhow!(
            "cannot read kubeconfig {name}: {error}; check the path and its permissions"
        )
    };
    File::open(path).map(drop).map_err(told)
}

/// What is wrong with a kubeconfig, without the lines of the file that the parser shows: they may
/// hold a token.
fn readable(error: KubeconfigError) -> anyhow::Error {
    let mut error: &dyn std::error::Error = &error;
    let mut causes = Vec::new();
    loop {
        let text = error.to_string();
        causes.push(plain(text.lines().next().unwrap_or_default()));
        match error.source() {
            Some(source) => error = source,
            None => break,
        }
    }
    causes.dedup_by(|next, before| before.ends_with(&**next));
    anyhow::anyhow!("{}", causes.join(": "))
}

/// Where kubectl looks for its file.
#[derive(Clone, Debug)]
pub struct Places {
    is_by_variable: bool,
    pub files: Vec<PathBuf>,
}

/// These places by the variable `KUBECONFIG` and the home directory.
pub fn places(variable: Option<&std::ffi::OsStr>, home: Option<&Path>) -> Places {
    match variable {
        Some(paths) => {
            let files = std::env::split_paths(&OsString::from(paths)).collect();
            Places { is_by_variable: true, files }
        }
        None => {
            let files = home.map(|home| home.join(".kube").join("config"));
            Places { is_by_variable: false, files: files.into_iter().collect() }
        }
    }
}

impl Places {
    /// The files that exist, merged as kubectl does: a key has the value of the first file that has
    /// it, and missing files are skipped.
    ///
    /// # Errors
    /// A file that exists and cannot be read.
    pub fn read(&self) -> Result<Kubeconfig> {
        let mut existing = self.files.iter().filter(|file| file.exists());
        let merged = existing.try_fold(Kubeconfig::default(), |merged, file| {
            Kubeconfig::read_from(file).and_then(|next| merged.merge(next))
        });
        merged.map_err(readable).with_context(|| self.words())
    }

    /// Where there is no file, in words.
    pub fn missing(&self) -> String {
        let verb = if self.files.len() == 1 { "does" } else { "do" };
        match self.files.is_empty() {
            true => self.words(),
            false => format!("{}, which {verb} not exist", self.words()),
        }
    }

    /// Where it looks, in words.
    pub fn words(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        let files = plain(&files.join(", "));
        match (self.is_by_variable, self.files.is_empty()) {
            (true, _) => format!("${VARIABLE} names {files}"),
            (false, false) => format!("${VARIABLE} is not set, and the default is {files}"),
            (false, true) => format!("neither ${VARIABLE} nor $HOME is set"),
        }
    }
}

/// Refuses a context that the file lacks, and one whose user is missing: the server would treat
/// requests as anonymous.
///
/// # Errors
/// Names both, and the contexts that are there.
pub fn check_context(file: &Kubeconfig, wanted: Option<&str>, name: &str) -> Result<()> {
    let current = wanted.or(file.current_context.as_deref()).unwrap_or_default();
    let context = file.contexts.iter().find(|one| one.name == current);
    if context.is_none() {
        let known: Vec<&str> = file.contexts.iter().map(|one| one.name.as_str()).collect();
        let problem = match current.is_empty() {
            true => "no current context is set".to_owned(),
            false => format!("context \"{}\" does not exist", plain(current)),
        };
        let text = match known.is_empty() {
            true => format!(
                "{name}: {problem}, and the file has no contexts; pass another file with --kubeconfig FILE"
            ),
            false => format!(
                "{name}: {problem}; pass --context NAME (available: {})",
                plain(&known.join(", "))
            ),
        };
        return Err(UsageError(text).into());
    }
    let user = context.and_then(|one| one.context.as_ref()?.user.as_deref()).unwrap_or_default();
    if user.is_empty() || file.auth_infos.iter().any(|one| one.name == user) {
        return Ok(());
    }
    let text = format!(
        "{name}: context \"{current}\" names user \"{user}\", which the file does not contain; add \
         the user, or pass another --context NAME"
    );
    Err(UsageError(text).into())
}
