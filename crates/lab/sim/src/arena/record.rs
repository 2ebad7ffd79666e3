//! Finished runs as lines of text, so that a long comparison can be resumed.
//!
//! The first line says of which comparison the runs are; every other one is one run, sealed with a
//! hash over both. A line that was cut off at the end of the file is a run that did not finish.

use std::collections::BTreeSet;

use dovetail_units::place::{CARRIAGE_RETURNS, FilePosition, bad_json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::arena::figures::RunFigures;
use crate::arena::plan::ArenaPlan;
use crate::arena::verdict::ArenaRun;

/// Form of the file; another number is another form.
const FORMAT: u32 = 2;

/// What must be the same for runs to belong to one comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Form of the file.
    pub dovetail_arena: u32,
    /// The program that ran, version and fingerprint.
    pub build: String,
    /// Seeds of the jobs.
    pub seeds: Vec<u64>,
    /// Orders of the machines for each seed.
    pub orders: u64,
    pub regimes: Vec<String>,
    pub policies: Vec<String>,
    /// Fingerprint of the outside data.
    pub data: String,
}

/// One finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub regime: String,
    pub policy: String,
    /// Seed of the jobs.
    pub seed: u64,
    /// Order of the machines.
    pub order: u64,
    pub figures: RunFigures,
}

/// Why a file of runs cannot be resumed. Texts begin with the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunRecordError {
    /// It is not such a file.
    #[error("{0}")]
    Line(String),
    /// It belongs to another comparison.
    #[error(
        "{}: its runs used other settings ({setting}: {found} in the file, {wanted} now); use the \
         same flags, program and data, or another file",
        FilePosition::file(.file)
    )]
    Other {
        file: String,
        /// What differs.
        setting: &'static str,
        /// In the file.
        found: String,
        /// As asked for.
        wanted: String,
    },
}

impl Settings {
    /// The settings of a plan.
    pub fn of(plan: &ArenaPlan, build: &str, data: &str) -> Self {
        Self {
            dovetail_arena: FORMAT,
            build: build.to_owned(),
            seeds: plan.seeds.clone(),
            orders: plan.orders,
            regimes: plan.regimes.iter().map(|regime| regime.name.clone()).collect(),
            policies: plan.policies.clone(),
            data: data.to_owned(),
        }
    }

    /// Refuses a file of another comparison, and says what differs.
    fn check(&self, file: &str, found: &Self) -> Result<(), RunRecordError> {
        let list = |names: &[String]| match names {
            [one] => one.clone(),
            [first, .., last] => format!("{} from {first} to {last}", names.len()),
            [] => "none".to_owned(),
        };
        let settings = [
            ("form", found.dovetail_arena.to_string(), self.dovetail_arena.to_string()),
            ("program", found.build.clone(), self.build.clone()),
            ("seeds", format!("{:?}", found.seeds), format!("{:?}", self.seeds)),
            ("orders of the nodes", found.orders.to_string(), self.orders.to_string()),
            ("data", found.data.clone(), self.data.clone()),
        ];
        let other = |setting, found, wanted| {
            Err(RunRecordError::Other { file: file.to_owned(), setting, found, wanted })
        };
        for (setting, found, wanted) in settings {
            if found != wanted {
                return other(setting, found, wanted);
            }
        }
        let sorted = |names: &[String]| -> BTreeSet<String> { names.iter().cloned().collect() };
        let names = [
            ("regimes", &found.regimes, &self.regimes),
            ("policies", &found.policies, &self.policies),
        ];
        // Whatever their order: runs are found by name.
        for (setting, found, wanted) in names {
            if sorted(found) != sorted(wanted) {
                return other(setting, list(found), list(wanted));
            }
        }
        Ok(())
    }
}

/// What a file of runs holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resumed {
    /// Runs that finished.
    pub records: Vec<RunRecord>,
    /// Bytes up to the end of the last whole line: what is behind them was cut off.
    pub whole_bytes: usize,
}

/// What is wrong with a line, after its place.
fn bad_line(file: &str, line: usize, problem: &str) -> RunRecordError {
    const WHAT: &str = "not a file that `sim arena --resume` writes";
    RunRecordError::Line(bad_json(file, line as u64, WHAT, problem))
}

/// Reads the runs of a file, of which `text` is the content; an empty one has none.
///
/// # Errors
/// [`RunRecordError`] if it is not such a file, of another comparison, or has a run that was
/// edited.
pub fn resumed(file: &str, text: &str, wanted: &Settings) -> Result<Resumed, RunRecordError> {
    if text.lines().next().is_some_and(|first| first.trim_end().contains('\r')) {
        let place = FilePosition::line(file, 1);
        return Err(RunRecordError::Line(format!("{place}: {CARRIAGE_RETURNS}")));
    }
    let mut found = Resumed::default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    check_cut(file, &text[..whole], &text[whole..], wanted)?;
    let mut seen = BTreeSet::new();
    let mut settings = "";
    for (at, line) in text[..whole].lines().enumerate() {
        let bad = |problem: String| bad_line(file, at + 1, &problem);
        if at == 0 {
            let found: Settings = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
            wanted.check(file, &found)?;
            settings = line;
            continue;
        }
        let record: RunRecord = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        // To the byte: a key that is there twice, or that nobody reads, is an edit, too.
        if run_line_after(settings, &record).trim_end() != line {
            return Err(bad(
                "the run was edited, or copied from another file: its sha256 does not match the \
                 line"
                    .to_owned(),
            ));
        }
        let key = (record.regime.clone(), record.policy.clone(), record.seed, record.order);
        if !seen.insert(key) {
            return Err(bad("the run is listed twice".to_owned()));
        }
        found.records.push(record);
    }
    found.whole_bytes = whole;
    Ok(found)
}

/// What is behind the last whole line is to be taken off: it must be the beginning of a line that
/// this comparison writes, not somebody's text.
fn check_cut(file: &str, lines: &str, cut: &str, wanted: &Settings) -> Result<(), RunRecordError> {
    const RECORD: &str = "{\"regime\":\"";
    let is_cut = match lines {
        "" => wanted.line().starts_with(cut),
        _ => cut.starts_with(RECORD) || RECORD.starts_with(cut),
    };
    if is_cut {
        return Ok(());
    }
    let problem = "the line is truncated, and does not match a run";
    Err(bad_line(file, lines.lines().count() + 1, problem))
}

impl Settings {
    /// The first line of a file of runs.
    pub fn line(&self) -> String {
        json(self) + "\n"
    }

    /// The line of a finished run.
    pub fn run_line(&self, record: &RunRecord) -> String {
        run_line_after(&json(self), record)
    }
}

/// The line of a run in a file whose first line, without its end, is `settings`.
fn run_line_after(settings: &str, record: &RunRecord) -> String {
    let mut line = json(record);
    let digest = Sha256::new().chain_update(settings).chain_update(&line).finalize();
    let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    line.truncate(line.len() - 1);
    line + &format!(",\"sha256\":\"{hash}\"}}\n")
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("settings and runs have only plain values")
}

impl RunRecord {
    /// A finished run of a regime. Figures take the way through text that those of a file take, so
    /// that a comparison that was resumed gives the same bytes as one that was not.
    pub fn of(regime: &str, run: ArenaRun) -> Self {
        let ArenaRun { seed, order, policy, figures } = run;
        let record = Self { regime: regime.to_owned(), policy, seed, order, figures };
        serde_json::from_str(&json(&record)).expect("JSON that was just written can be read")
    }

    /// The run.
    pub fn run(self) -> ArenaRun {
        let Self { policy, seed, order, figures, .. } = self;
        ArenaRun { seed, order, policy, figures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::catalogue::regimes;
    use crate::arena::figures::GPU_WEIGHTED_WAIT;

    const REGIME: &str = "training/10-nodes/load-0.7/fifo-skip";

    fn plan(seeds: &[u64]) -> ArenaPlan {
        ArenaPlan {
            regimes: regimes().into_iter().filter(|regime| regime.name == REGIME).collect(),
            policies: vec!["p".into(), "q".into()],
            seeds: seeds.to_vec(),
            orders: 3,
        }
    }

    fn settings(seeds: &[u64]) -> Settings {
        Settings::of(&plan(seeds), "b", "none")
    }

    fn read(text: &str, seeds: &[u64]) -> Result<Resumed, RunRecordError> {
        resumed("runs", text, &settings(seeds))
    }

    fn record(policy: &str, wait: f64) -> RunRecord {
        let figures = RunFigures::from([(GPU_WEIGHTED_WAIT.to_owned(), wait)]);
        let run = ArenaRun { seed: 1, order: 0, policy: policy.into(), figures };
        RunRecord::of(REGIME, run)
    }

    fn line(record: &RunRecord, seeds: &[u64]) -> String {
        settings(seeds).run_line(record)
    }

    #[test]
    fn a_cut_file_gives_the_runs_before_the_cut() {
        let (one, two) = (record("p", 1.0 / 3.0), record("q", 2.0));
        let whole = settings(&[1]).line() + &line(&one, &[1]);
        let text = whole.clone() + &line(&two, &[1]);
        assert_eq!(read(&text, &[1]).unwrap().records, [one.clone(), two]);
        for cut in whole.len()..text.len() {
            let found = read(&text[..cut], &[1]).unwrap();
            assert_eq!(found.records, std::slice::from_ref(&one));
            assert_eq!(found.whole_bytes, whole.len());
        }
        assert_eq!(read("", &[1]).unwrap(), Resumed::default());
        assert_eq!(read(&whole[..9], &[1]).unwrap(), Resumed::default());
    }

    #[test]
    fn other_settings_are_named_and_other_files_refused() {
        let text = settings(&[1, 2]).line();
        let error = read(&text, &[1]).unwrap_err().to_string();
        assert!(error.contains("seeds: [1, 2] in the file, [1] now"), "{error}");
        let with = |policies: &[&str]| {
            let policies = policies.iter().map(|name| (*name).to_owned()).collect();
            let other = ArenaPlan { policies, ..plan(&[1, 2]) };
            resumed("runs", &text, &Settings::of(&other, "b", "none"))
        };
        let error = with(&["p"]).unwrap_err().to_string();
        assert!(error.contains("policies: 2 from p to q in the file, p now"), "{error}");
        assert!(with(&["q", "p"]).is_ok(), "the order of the policies changes no run");
        let one = line(&record("p", 1.0), &[1, 2]);
        let figure = "\"gpu_weighted_wait_hours\":1.0";
        assert!(read(&(text.clone() + &one), &[1, 2]).is_ok() && one.contains(figure));
        let edited = |to: &str| text.clone() + &one.replace(figure, to);
        for (file, at, problem) in [
            ("job_id,duration\n".to_owned(), 1, "expected"),
            ("my only notes".to_owned(), 1, "the line is truncated"),
            (text.repeat(2).replace('\n', "\r"), 1, "lines end with a carriage return alone"),
            ("{".to_owned() + &text[2..30], 1, "the line is truncated"),
            (text.clone() + "my notes", 2, "the line is truncated"),
            (text.clone() + &one + &one, 3, "twice"),
            (text.clone() + &one + "\n", 3, "EOF"),
            (edited("\"gpu_weighted_wait_hours\":0.9"), 2, "the run was edited"),
            (edited(&format!("{figure},{figure}")), 2, "the run was edited"),
            (edited(&format!("{figure},\"wait\":1.0")), 2, "the run was edited"),
            (edited("\"gpu_weighted_wait_hours\":1e999"), 2, "number out of range"),
            (text.clone() + &one.replace("\"seed\":1", "\"seed\":2"), 2, "the run was edited"),
            (text.clone() + &one.replace("{\"", "{\"note\":1,\""), 2, "the run was edited"),
            // A whole line of another comparison.
            (text.clone() + &line(&record("p", 1.0), &[1]), 2, "copied from another file"),
        ] {
            let error = read(&file, &[1, 2]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("runs:{at}:")), "{file}: {error}");
            assert!(!error.contains(" at line "), "one place: {error}");
            assert!(error.contains(problem), "{file}: {error}");
        }
    }
}
