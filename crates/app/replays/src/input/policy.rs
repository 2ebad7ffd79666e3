//! Policies by name, and what they learnt before.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use dovetail_console::file::{check_place, write_whole};
use dovetail_console::open::open;
use dovetail_console::places::Named;
use dovetail_plan::{Learnt, LearntFile, PolicySpec};
use dovetail_policy::named::{LEARNING, POLICIES};
use dovetail_settings::errors::{BadInput, UsageError};
use dovetail_units::place::bad_json;

/// Accepts the names of policies, with what they do.
pub fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(values())
}

/// The names of policies, with what they do.
pub fn values() -> impl Iterator<Item = PossibleValue> {
    POLICIES.into_iter().map(|(name, about)| PossibleValue::new(name).help(about))
}

/// Files of learning policies.
#[derive(Clone, Debug, Default, Args)]
pub struct LearningFlags {
    /// File (written by --save-learned) from which a learning policy starts [default: nothing
    /// learned]
    #[arg(long = "learned", alias = "learnt", value_name = "FILE")]
    learnt: Option<PathBuf>,
    /// File in which to save what a learning policy has learned by the end of the run
    #[arg(long = "save-learned", alias = "save-learnt", value_name = "FILE")]
    save_learnt: Option<PathBuf>,
}

impl LearningFlags {
    /// The policy as it starts.
    pub fn policy(&self, name: &str, seed: u64) -> Result<PolicySpec> {
        let given = [("--learned", &self.learnt), ("--save-learned", &self.save_learnt)];
        if let Some((flag, _)) = given.iter().find(|(_, path)| path.is_some())
            && !LEARNING.contains(&name)
        {
            let learning = LEARNING.join(", ");
            let text =
                format!("{flag}: policy {name} does not learn; policies that do: {learning}");
            return Err(UsageError(text).into());
        }
        self.save_learnt.as_deref().map_or(Ok(()), check_place)?;
        let mut spec = seeded(name, seed);
        if let Some(path) = &self.learnt {
            spec.learnt = Some(read(path)?);
        }
        Ok(spec)
    }

    /// What a policy starts with: `nothing` or a file; nothing to say of one that does not learn.
    pub fn started_from(&self, name: &str) -> Option<String> {
        let file = self.learnt.as_deref().map(Path::display).map(|path| path.to_string());
        LEARNING.contains(&name).then(|| file.unwrap_or_else(|| "nothing".to_owned()))
    }

    /// The file that is written, by its flag. It may be the one that was read: learning goes on
    /// there.
    pub fn written(&self) -> Named<'_> {
        ("--save-learned", self.save_learnt.as_deref())
    }

    /// Writes what was learnt, if asked to.
    pub fn save(&self, learnt: Option<&Learnt>) -> Result<()> {
        let (Some(path), Some(learnt)) = (&self.save_learnt, learnt) else { return Ok(()) };
        let file = LearntFile::of(learnt.clone());
        let text =
            serde_json::to_string(&file).context("cannot write the learned values as JSON")?;
        write_whole(path, |file| writeln!(file, "{text}"))
    }
}

/// What a policy has learned, from a file.
///
/// # Errors
/// The file cannot be read, or is none that `--save-learned` writes.
pub fn read(path: &Path) -> Result<Learnt> {
    let name = path.display();
    let mut text = String::new();
    let bad = |problem: &dyn std::fmt::Display| {
        let (file, what) = (name.to_string(), "not a file that --save-learned writes");
        BadInput(bad_json(&file, 1, what, &problem.to_string()))
    };
    open(path)?.read_to_string(&mut text).map_err(|error| match error.kind() {
        // No text, or a damaged archive.
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
            anyhow::Error::from(bad(&error))
        }
        _ => anyhow::Error::from(error).context(format!("{name}: cannot read the learned values")),
    })?;
    let file: LearntFile = serde_json::from_str(&text).map_err(|error| bad(&error))?;
    file.into_learnt().map_err(|error| bad(&error).into())
}

/// What a policy starts with that is given no file; the name may have an order in front of it.
pub fn started_from_nothing(variant: &str) -> Option<String> {
    let name = variant.rsplit('/').next().unwrap_or(variant);
    LEARNING.contains(&name).then(|| "nothing".to_owned())
}

/// A policy that starts knowing nothing.
pub fn seeded(name: &str, seed: u64) -> PolicySpec {
    PolicySpec { seed, ..PolicySpec::named(name) }
}
