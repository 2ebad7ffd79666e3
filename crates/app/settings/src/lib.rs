//! Settings: defaults, then the file, then the environment, then flags; each remembers its origin.

pub mod duration;
pub mod errors;
pub mod form;

pub mod audit;
pub mod cost;
pub mod file;
pub mod followed;
pub mod kubernetes_names;
mod mig;
pub mod notices;
pub mod prices;
pub mod scheduler;
pub mod toml_file;
mod toml_words;
pub mod weights;

use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use dovetail_model::MigTable;

use crate::errors::UsageError;
use crate::form::Color;
use crate::form::Output;
use audit::AuditSection;
use cost::CostSection;
use file::{FileSettings, read_file};
use notices::NoticeSection;
use prices::PriceSection;
use scheduler::SchedulerSection;

/// The largest seed: seeds of the published runs are signed 64-bit numbers.
const MAX_SEED: u64 = i64::MAX as u64;
/// The seed of the first published run.
const DEFAULT_SEED: u64 = 42;
/// More threads than any machine has.
const MAX_THREADS: u64 = 4096;

/// Flags that every command takes; also settings of the file and the environment.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global flags")]
pub struct SettingFlags {
    /// Output format [default: table]
    #[arg(long, short = 'o', global = true, value_enum, value_name = "FORMAT")]
    pub output: Option<Output>,
    /// Random seed [default: 42]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub seed: Option<u64>,
    /// Number of threads; results do not depend on it [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_THREADS))]
    pub threads: Option<u64>,
    /// When to color messages and headings [default: auto]
    #[arg(long, global = true, value_enum, value_name = "WHEN", alias = "colour")]
    pub color: Option<Color>,
    /// Settings file [default: dovetail.toml in the current folder, if it exists]
    #[arg(long, global = true, value_name = "FILE", env = "DOVETAIL_CONFIG", hide_env = true)]
    pub config: Option<PathBuf>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// No source sets it.
    Default,
    File(PathBuf),
    Environment(&'static str),
    /// The command line.
    Flag(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: SettingOrigin,
}

/// What holds for this call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Form of the result.
    pub output: Setting<Output>,
    /// Seed of everything drawn by chance.
    pub seed: Setting<u64>,
    /// Threads for divided work.
    pub threads: Setting<u64>,
    pub color: Setting<Color>,
    /// What the file says of the scheduler, and which file that is.
    pub scheduler: (SchedulerSection, PathBuf),
    /// What the file says of bills.
    pub cost: CostSection,
    /// What the file says of prices.
    pub prices: PriceSection,
    /// From where on something is a finding.
    pub audit: AuditSection,
    /// Which reports go where.
    pub notices: NoticeSection,
    /// How GPUs are cut that the built-in tables lack.
    pub mig_tables: Vec<MigTable>,
}

impl Settings {
    /// Puts the four sources on top of each other.
    ///
    /// # Errors
    /// A file that cannot be read or holds something unknown, or a variable with a bad value.
    pub fn resolve(flags: &SettingFlags) -> Result<Self> {
        let (path, file) = read_file(flags.config.as_deref())?;
        Self::stacked(flags, path, &file, &|name| std::env::var(name).ok())
    }

    /// The values where no source sets any.
    pub fn of_nothing() -> Self {
        let flags =
            SettingFlags { output: None, seed: None, threads: None, color: None, config: None };
        let nothing = Self::stacked(&flags, PathBuf::new(), &FileSettings::default(), &|_| None);
        nothing.expect("defaults are no mistake")
    }

    fn stacked(
        flags: &SettingFlags,
        path: PathBuf,
        file: &FileSettings,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let scheduler = (file.scheduler.clone().unwrap_or_default(), path.clone());
        let sources = Sources { path, variable };
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let output = ("DOVETAIL_OUTPUT", "--output", named::<Output> as Read<Output>);
        let seed = ("DOVETAIL_SEED", "--seed", whole_up_to::<0, MAX_SEED> as Read<u64>);
        let threads = ("DOVETAIL_THREADS", "--threads", whole_up_to::<1, MAX_THREADS> as Read<u64>);
        let color = ("DOVETAIL_COLOR", "--color", named::<Color> as Read<Color>);
        Ok(Self {
            output: sources.pick(output, Output::default(), file.output, flags.output)?,
            seed: sources.pick(seed, DEFAULT_SEED, file.seed, flags.seed)?,
            threads: sources.pick(threads, cores, file.threads, flags.threads)?,
            color: sources.pick(color, Color::default(), file.color, flags.color)?,
            scheduler,
            cost: file.cost.clone().unwrap_or_default(),
            prices: file.prices.clone().unwrap_or_default(),
            audit: file.audit.clone().unwrap_or_default(),
            notices: file.notices.clone().unwrap_or_default(),
            mig_tables: file.mig_tables.clone(),
        })
    }
}

/// Reads the text of a variable; the error says what would be right.
type Read<T> = fn(&str) -> Result<T, String>;

struct Sources<'v> {
    path: PathBuf,
    variable: &'v dyn Fn(&str) -> Option<String>,
}

impl Sources<'_> {
    /// The value of the strongest source that says something.
    fn pick<T>(
        &self,
        (variable, flag, read): (&'static str, &'static str, Read<T>),
        default: T,
        in_file: Option<T>,
        from_flag: Option<T>,
    ) -> Result<Setting<T>> {
        if let Some(value) = from_flag {
            return Ok(Setting { value, origin: SettingOrigin::Flag(flag) });
        }
        if let Some(text) = (self.variable)(variable).filter(|text| !text.is_empty()) {
            let wrong = |expected| UsageError(format!("{variable}={text}: expected {expected}"));
            let value = read(&text).map_err(wrong)?;
            return Ok(Setting { value, origin: SettingOrigin::Environment(variable) });
        }
        Ok(match in_file {
            Some(value) => Setting { value, origin: SettingOrigin::File(self.path.clone()) },
            None => Setting { value: default, origin: SettingOrigin::Default },
        })
    }
}

fn named<T: ValueEnum>(text: &str) -> Result<T, String> {
    let names = || {
        let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        values.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    };
    T::from_str(text, false).map_err(|_| format!("one of {}", names()))
}

fn whole_up_to<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.ok_or_else(|| format!("a whole number from {LEAST} to {MOST}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> SettingFlags {
        SettingFlags { output: None, seed: None, threads: None, color: None, config: None }
    }

    #[test]
    fn flags_beat_the_environment_which_beats_the_file() {
        let file = FileSettings { seed: Some(1), threads: Some(2), ..FileSettings::default() };
        let variable = |name: &str| (name == "DOVETAIL_THREADS").then(|| "3".to_owned());
        let given = SettingFlags { output: Some(Output::Json), ..flags() };
        let settings = Settings::stacked(&given, "x.toml".into(), &file, &variable).unwrap();
        assert_eq!(
            settings.seed,
            Setting { value: 1, origin: SettingOrigin::File("x.toml".into()) }
        );
        let environment = SettingOrigin::Environment("DOVETAIL_THREADS");
        assert_eq!(settings.threads, Setting { value: 3, origin: environment });
        let flag = SettingOrigin::Flag("--output");
        assert_eq!(settings.output, Setting { value: Output::Json, origin: flag });
        assert_eq!(settings.color, Setting { value: Color::Auto, origin: SettingOrigin::Default });
    }

    #[test]
    fn a_bad_variable_is_named_with_what_would_be_right() {
        let variable = |name: &str| (name == "DOVETAIL_OUTPUT").then(|| "xml".to_owned());
        let file = FileSettings::default();
        let error = Settings::stacked(&flags(), PathBuf::new(), &file, &variable).unwrap_err();
        assert_eq!(
            error.to_string(),
            "DOVETAIL_OUTPUT=xml: expected one of table, json, yaml, csv, html, markdown, sarif"
        );
    }
}
