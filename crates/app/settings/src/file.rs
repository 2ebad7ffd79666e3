//! The settings file, `dovetail.toml`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dovetail_model::MigTable;
use serde::Deserialize;

use super::audit::AuditSection;
use super::cost::{self, BadHardware, CostSection};
use super::notices::NoticeSection;
use super::prices::PriceSection;
use super::scheduler::SchedulerSection;
use super::{MAX_SEED, MAX_THREADS};
use crate::errors::UsageError;
use crate::form::Color;
use crate::form::Output;
use crate::toml_file::TomlFile;

/// Read if no other file is named.
const FILE_NAME: &str = "dovetail.toml";

/// What the file can say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSettings {
    pub output: Option<Output>,
    pub seed: Option<u64>,
    pub threads: Option<u64>,
    pub color: Option<Color>,
    pub scheduler: Option<SchedulerSection>,
    pub cost: Option<CostSection>,
    pub prices: Option<PriceSection>,
    pub audit: Option<AuditSection>,
    pub notices: Option<NoticeSection>,
    /// There is a section `[mig]`. It is read by itself, as its mistakes are those of data.
    #[serde(default, rename = "mig", deserialize_with = "is_there")]
    pub has_mig: bool,
    #[serde(skip)]
    pub mig_tables: Vec<MigTable>,
}

fn is_there<'de, D: serde::Deserializer<'de>>(section: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(section).map(|_| true)
}

/// The named file, or the one of the current folder; its name comes with it.
pub(crate) fn read_file(named: Option<&Path>) -> Result<(PathBuf, FileSettings)> {
    let path = named.unwrap_or(Path::new(FILE_NAME)).to_owned();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            let what = format!("{}: cannot read the settings: {error}", path.display());
            return Err(error).context(what);
        }
    };
    let settings = settings_of(&path, &text)?;
    Ok((path, settings))
}

/// What the text of a file says.
pub(crate) fn settings_of(path: &Path, text: &str) -> Result<FileSettings> {
    let file = TomlFile::of(path, text);
    if super::mig::has_broken_syntax(&file, text) {
        super::mig::tables(path, text)?;
    }
    let mut settings = parse(&file).map_err(UsageError)?;
    if settings.has_mig {
        settings.mig_tables = super::mig::tables(path, text)?;
    }
    Ok(settings)
}

fn parse(file: &TomlFile) -> Result<FileSettings, String> {
    let settings: FileSettings = file.parse("settings").map_err(|error| error.0)?;
    let at = |section: &str, key: &str, problem: String| {
        file.error_in(&format!("{section}.{key}"), 0, &problem).0
    };
    let whole = |problem: String| file.error_at(None, &problem).0;
    settings
        .scheduler
        .as_ref()
        .map_or(Ok(()), SchedulerSection::check)
        .map_err(|(key, problem)| at("scheduler", key, problem))?;
    settings
        .audit
        .as_ref()
        .map_or(Ok(()), AuditSection::check)
        .map_err(|(key, problem)| at("audit", key, problem))?;
    settings.cost.as_ref().map_or(Ok(()), CostSection::check).map_err(whole)?;
    settings
        .cost
        .as_ref()
        .map_or(Ok(()), CostSection::check_hardware)
        .map_err(|bad| in_hardware(file, bad))?;
    settings.prices.as_ref().map_or(Ok(()), PriceSection::check).map_err(whole)?;
    settings.notices.as_ref().map_or(Ok(()), NoticeSection::check).map_err(whole)?;
    let out = |name, number, least, most| {
        let what = format!("{number}: expected a whole number from {least} to {most}");
        Err(file.error_in(name, 0, &what).0)
    };
    match (settings.seed, settings.threads) {
        (Some(seed), _) if seed > MAX_SEED => out("seed", seed, 0, MAX_SEED),
        (_, Some(threads)) if !(1..=MAX_THREADS).contains(&threads) => {
            out("threads", threads, 1, MAX_THREADS)
        }
        _ => Ok(settings),
    }
}

/// What is wrong about a machine, with its line.
fn in_hardware(file: &TomlFile, bad: BadHardware) -> String {
    let BadHardware { number, field, problem } = bad;
    let start = file.start_of(&format!("cost.hardware.{}", field.unwrap_or("gpu_model")), number);
    let what = match field {
        Some(field) => format!("{}: {field}: {problem}", cost::place(number)),
        None => problem,
    };
    file.error_at(start, &what).0
}

#[cfg(test)]
mod tests {
    use dovetail_order::Turns;

    use super::*;

    fn parse(text: &str) -> Result<FileSettings, String> {
        super::parse(&TomlFile::of("d.toml", text))
    }

    #[test]
    fn unknown_names_and_values_out_of_range_are_refused() {
        assert_eq!(parse("seed = 7\ncolor = \"never\"").unwrap().seed, Some(7));
        assert!(parse("sed = 7").unwrap_err().contains("unknown field `sed`"));
        assert!(parse("threads = 0").unwrap_err().contains("from 1 to 4096"));
        assert!(parse("output = \"xml\"").unwrap_err().contains("xml"));
    }

    /// Tables of GPUs are data: their mistakes are bad input, those of settings are usage errors.
    #[test]
    fn broken_syntax_within_a_table_of_gpus_is_bad_input() {
        let error = |text: &str| settings_of(Path::new("d.toml"), text).unwrap_err();
        for text in [
            "seed = 7\n[[mig.table\nname = \"X\"\n",
            "[[mig.table]]\nname = \"X\n",
            "[[mig.table]]\nname = \"X\"\nprofiles = [\n  [0,\n",
            "[[mig.table]]\nname = \"X\"\nname = \"Y\"\n",
        ] {
            let error = error(text);
            assert!(error.is::<crate::errors::BadInput>(), "{text}: {error}");
            assert!(error.to_string().starts_with("d.toml:"), "{error}");
        }
        for text in ["seed = \n[[mig.table]]\n", "[[mig.table]]\n[cost\n", "[migrate\n"] {
            assert!(error(text).is::<UsageError>(), "{text}");
        }
    }

    #[test]
    fn a_machine_of_ones_own_is_refused_with_its_line() {
        let good = "gpu_model = \"H100\"\ngpus = 8\ncapex_usd = \"280000\"\nyears = 4\nwatts = 10200\n\
                    pue = \"1\"\nusd_per_kwh = \"0.12\"\nnodes = [\"room=7\"]\n";
        let machine = |edit: (&str, &str)| {
            let text = good.replacen(edit.0, edit.1, 1);
            parse(&format!("[[cost.hardware]]\n{good}\n[[cost.hardware]]\n{text}"))
        };
        // The first stands on lines 2 to 9, the second on 12 to 19.
        for (edit, told) in [
            (
                ("pue = \"1\"", "pue = \"0.4\""),
                "d.toml:17: cost.hardware, number 2: pue: 0.40 is below 1: ",
            ),
            (
                ("pue = \"1\"", "pue = \"-1\""),
                "d.toml:17: cost.hardware, number 2: pue: `-1` is not a PUE (power usage \
                 effectiveness): write a number of at least 1",
            ),
            (
                ("280000", "280k"),
                "d.toml:14: cost.hardware, number 2: capex_usd: `280k` is not an amount",
            ),
            (
                ("room=7", "room"),
                "d.toml:19: cost.hardware, number 2: nodes: `room`: write KEY=VALUE",
            ),
            (
                ("gpus = 8", "gpus = 0"),
                "d.toml:12: cost.hardware, number 2: `H100`: a machine has at least one GPU",
            ),
            (
                ("H100", "h100"),
                "d.toml:12: cost.hardware, number 2: `h100`: cost.hardware, number 1 is for the same",
            ),
        ] {
            let error = machine(edit).unwrap_err();
            assert!(error.starts_with(told), "{edit:?}: {error}");
        }
        assert!(machine(("room=7", "room=8")).is_ok());
    }

    #[test]
    fn the_section_of_the_scheduler_is_refused_with_its_line_or_its_name() {
        let section = |text: &str| parse(&format!("seed = 7\n[scheduler]\n{text}"));
        let good = section("lease = \"a/b\"\nnode_selector = { pool = \"gpu\" }").unwrap();
        assert_eq!(good.scheduler.unwrap().node_selector.unwrap()["pool"], "gpu");
        let unknown = section("listen = \"x:1\"\nlese = \"a/b\"").unwrap_err();
        assert!(unknown.starts_with("d.toml:4: scheduler.lese: unknown field `lese`"), "{unknown}");
        let typed = section("log_json = 1").unwrap_err();
        assert!(
            typed.starts_with("d.toml:3: scheduler.log_json: `1`: expected true or false"),
            "{typed}"
        );
        let own = section(
            "preset = \"latency\"\n[scheduler.weights]\nadvantage = 2\nprotectGuarantees = true",
        );
        let latency = Turns::preset("latency").unwrap();
        assert_eq!(
            own.unwrap().scheduler.unwrap().turns(),
            Turns { advantage: 200, protects_guarantees: true, ..latency }
        );
        for (text, told) in [
            (
                "order = \"dovetail\"\n[scheduler.weights]\nage = -1",
                "d.toml:5: scheduler.weights.age: `-1`: expected a number from 0 to 1000",
            ),
            (
                "lease = \"dovetail\"",
                "d.toml:3: scheduler.lease: \"dovetail\": expected a namespace",
            ),
            (
                "\nlease = \"Bad_NS/UPPER\"",
                "d.toml:4: scheduler.lease: \"Bad_NS/UPPER\": expected a namespace",
            ),
            ("policy = \"best\"", "d.toml:3: scheduler.policy: \"best\": expected one of"),
            ("listen = \"\"", "d.toml:3: scheduler.listen: \"\": expected an address and a port"),
            ("scheduler_name = \"\"", "d.toml:3: scheduler.scheduler_name: \"\": expected a name"),
            (
                "log_json = true\ndevice_resource = \"not a resource!\"",
                "d.toml:4: scheduler.device_resource: \"not a resource!\": expected the name of an extended",
            ),
            (
                "gang_quiet_ms = 3600001",
                "d.toml:3: scheduler.gang_quiet_ms: 3600001: expected 0 to 3600000 milliseconds",
            ),
            (
                "gang_complete_within_ms = 999",
                "d.toml:3: scheduler.gang_complete_within_ms: 999: expected 1000 to 86400000 milliseconds",
            ),
            (
                "node_selector = { \"a b\" = \"c\" }",
                "d.toml:3: scheduler.node_selector: { \"a b\" = \"c\" }: expected the key of a label",
            ),
            (
                "topology = [{ name = \"node\", labels = [\"x\"] }]",
                "d.toml:3: scheduler.topology: level `node`: a level needs a name of its own",
            ),
        ] {
            assert!(section(text).unwrap_err().starts_with(told), "{text}");
        }
    }

    #[test]
    fn thresholds_of_the_audit_are_refused_with_their_line_and_name() {
        let section = |text: &str| parse(&format!("seed = 7\n[audit]\n{text}"));
        let good = section("cordoned_minutes = 60\nlent_idle_percent = 0").unwrap();
        let thresholds = good.audit.unwrap().thresholds();
        assert_eq!((thresholds.cordoned_minutes, thresholds.lent_idle_percent), (60, 0));
        assert_eq!(thresholds.starting_minutes, 10);
        for (text, told) in [
            (
                "cordoned_minutes = 0",
                "d.toml:3: audit.cordoned_minutes: 0: expected a whole number from 1 to 43200",
            ),
            (
                "hung_minutes = 60\nslice_busy_percent = 101",
                "d.toml:4: audit.slice_busy_percent: 101: expected a whole number from 1 to 100",
            ),
            ("lent_idle_percent = -1", "d.toml:3: audit.lent_idle_percent: -1: expected a whole"),
            (
                "cordoned_minute = 60",
                "d.toml:3: audit.cordoned_minute: unknown field: expected one",
            ),
        ] {
            let problem = section(text).unwrap_err();
            assert!(problem.starts_with(told), "{text}: {problem}");
        }
        // Whoever misspells one sees all.
        let unknown = section("cordoned = 60").unwrap_err();
        for threshold in dovetail_facts::THRESHOLDS {
            assert!(unknown.contains(&format!("`{}`", threshold.name)), "{unknown}");
        }
        let typed = section("starting_minutes = \"10m\"").unwrap_err();
        assert!(typed.starts_with("d.toml:3: audit.starting_minutes: the text \"10m\""), "{typed}");
    }

    #[test]
    fn the_section_of_costs_is_refused_with_what_is_wrong() {
        let section = |text: &str| parse(&format!("[cost]\n{text}"));
        let good = section("[cost.teams]\n\"ml-*\" = \"vision\"").unwrap();
        assert_eq!(good.cost.unwrap().teams.unwrap()["ml-*"], "vision");
        for (text, told) in [
            ("method = \"best\"", "d.toml: cost.method = \"best\": `best` is not a split method"),
            (
                "usd_per_vcpu_hour = \"0.04\"",
                "d.toml: cost: set both usd_per_vcpu_hour and usd_per_gib_hour",
            ),
            ("usd_per_vcpu_hour = \"4 ct\"", "d.toml: cost.usd_per_vcpu_hour: `4 ct` is not"),
            ("[cost.teams]\nx = \"\"", "d.toml: cost.teams.\"x\" = \"\": name a team"),
            (
                "[[cost.hardware]]\ngpu_model = \"H100\"\ngpus = 0\ncapex_usd = \"1\"\nyears = 4\nwatts = 1\n\
                 pue = \"1.4\"\nusd_per_kwh = \"0.1\"",
                "d.toml:3: cost.hardware, number 1: `H100`: a machine has at least one GPU",
            ),
        ] {
            let error = section(text).unwrap_err();
            assert!(error.starts_with(told), "{text}: {error}");
        }
    }

    #[test]
    fn the_section_of_prices_is_refused_with_what_is_wrong() {
        let section = |text: &str| parse(&format!("[prices]\n{text}"));
        let good = section(
            "committed_nodes = [\"pool=res, tier=*\"]\n[prices.exchange]\nEUR = \"1.08\"\n\
             GBP = { usd = \"1.25\", as_of = \"2026-11-01\" }\n[[prices.rates]]\ngpu_model = \"H100\"\n\
             usd_per_gpu_hour = \"3.1\"\npurchase = \"committed\"",
        );
        let good = good.unwrap().prices.unwrap();
        let labels = |pairs: &[(&str, &str)]| -> std::collections::BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        assert!(good.is_committed(&labels(&[("pool", "res"), ("tier", "x")])));
        assert!(!good.is_committed(&labels(&[("pool", "res")])));
        assert!(!good.is_committed(&labels(&[("pool", "other"), ("tier", "x")])));
        let pound = good.exchange().unwrap();
        let pound = pound.rate("GBP").unwrap().in_words();
        assert_eq!(pound, "1 GBP = 1.25 USD, of 2026-11-01 (dovetail.toml)");
        for (text, told) in [
            ("commited_nodes = []", "unknown field `commited_nodes`"),
            ("committed_nodes = [\"pool\"]", "prices.committed_nodes: `pool`: write KEY=VALUE"),
            ("[prices.exchange]\nEUR = \"0\"", "prices.exchange.EUR: `0` must be above 0"),
            (
                "[prices.exchange]\nEURO = \"1\"",
                "prices.exchange.EURO: `EURO` is not a currency code",
            ),
            ("[[prices.rates]]\nmodel = \"H100\"", "prices.rates, number 1: unknown field `model`"),
        ] {
            let error = section(text).unwrap_err();
            assert!(error.contains(told) && error.starts_with("d.toml:"), "{text}: {error}");
        }
    }

    #[test]
    fn the_settings_of_the_manifests_are_read() {
        let manifest = include_str!("../../../../deploy/config.yaml");
        let (_, text) = manifest.split_once("dovetail.toml: |\n").unwrap();
        let lines = text.lines().map(|line| line.strip_prefix("    ").unwrap());
        let settings = parse(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        let section = settings.scheduler.unwrap();
        // The rights of the manifests name this lease, the probes this port.
        assert_eq!(section.lease.as_deref(), Some("dovetail/dovetail"));
        assert_eq!(section.listen.as_deref(), Some("0.0.0.0:10251"));
    }
}
