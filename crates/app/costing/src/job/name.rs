//! Which job is meant.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use dovetail_console::plain::plain;
use dovetail_settings::errors::UsageError;

use crate::account::{Account, CostPod};

/// As many are named where none is found, or several are.
const MOST_NAMED: usize = 8;

/// A name as it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct WantedJob<'a> {
    pub name: &'a str,
    pub namespace: Option<&'a str>,
}

/// A job: what it is called in a bill, and its pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Kind, namespace and name, as `cost --by job` has it.
    pub name: String,
    /// Numbers in the list of pods.
    pub pods: BTreeSet<u32>,
}

impl Job {
    /// Its kind; empty where nobody knows.
    pub fn kind(&self) -> &str {
        self.name.split_once(' ').map_or("", |(kind, _)| kind)
    }
}

impl WantedJob<'_> {
    /// The one job of the account that is meant.
    ///
    /// # Errors
    /// No job has the name, or several have it: they are named.
    pub fn find(&self, account: &Account) -> Result<Job> {
        let held = held(account);
        let mut found: BTreeSet<&str> = BTreeSet::new();
        for (number, pod) in account.pods.iter().enumerate() {
            if held.contains_key(&pod.job) && self.is_owner(pod) {
                found.insert(&account.pods[number].job);
            }
        }
        if found.is_empty() {
            let of_pod = account.pods.iter().filter(|pod| held.contains_key(&pod.job));
            found = of_pod.filter(|pod| self.is_pod(pod)).map(|pod| &*pod.job).collect();
        }
        let mut all = found.iter();
        match (all.next(), all.next()) {
            (Some(name), None) => Ok(Job {
                name: (*name).to_owned(),
                pods: (0..)
                    .zip(&account.pods)
                    .filter(|(_, pod)| pod.job == *name)
                    .map(|(n, _)| n)
                    .collect(),
            }),
            (None, _) => Err(self.nobody(&held)),
            _ => {
                let names = found.iter().map(|name| format!("`{}`", plain(name)));
                let names: Vec<String> = names.take(MOST_NAMED).collect();
                let text = format!(
                    "{} jobs are named `{}`: {}{}: pass a full name, or --namespace",
                    found.len(),
                    plain(self.name),
                    names.join(", "),
                    if found.len() > MOST_NAMED { ", ..." } else { "" }
                );
                Err(UsageError(text).into())
            }
        }
    }

    /// Whether a pod is of what is meant, by its owner or its own name.
    pub fn means(&self, pod: &CostPod) -> bool {
        self.is_owner(pod) || self.is_pod(pod)
    }

    fn is_owner(&self, pod: &CostPod) -> bool {
        let (kind, path) = pod.job.split_once(' ').unwrap_or(("", &pod.job));
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let in_namespace = self.namespace.is_none_or(|wanted| wanted == namespace);
        let by_kind = || {
            let wanted = self.name.split_once('/');
            wanted.is_some_and(|(of, wanted)| of.eq_ignore_ascii_case(kind) && wanted == name)
        };
        in_namespace
            && (self.name == pod.job || self.name == name || self.name == path || by_kind())
    }

    fn is_pod(&self, pod: &CostPod) -> bool {
        let in_namespace = self.namespace.is_none_or(|wanted| wanted == pod.namespace);
        let path = format!("{}/{}", pod.namespace, pod.name);
        in_namespace && (self.name == pod.name || self.name == path)
    }

    fn nobody(&self, held: &BTreeMap<String, i128>) -> anyhow::Error {
        let mut most: Vec<(&String, &i128)> = held.iter().collect();
        most.sort_by_key(|(name, time)| (std::cmp::Reverse(**time), *name));
        let names: Vec<String> =
            most.iter().take(MOST_NAMED).map(|(name, _)| format!("`{}`", plain(name))).collect();
        let place = self.namespace.map(|space| format!(" in namespace `{}`", plain(space)));
        let known = match names.is_empty() {
            true => "no job had one".to_owned(),
            false => format!("most GPU-hours were used by {}", names.join(", ")),
        };
        let text = format!(
            "no job named `{}`{} had a GPU: {known}; `dovetail cost --by job` lists all",
            plain(self.name),
            place.unwrap_or_default()
        );
        UsageError(text).into()
    }
}

/// GPU-time by job, of those that held any.
fn held(account: &Account) -> BTreeMap<String, i128> {
    let mut held: BTreeMap<String, i128> = BTreeMap::new();
    for (_, bill) in account.stretches.iter().flat_map(|stretch| &stretch.bills) {
        for ((holder, state), time) in &bill.gpus {
            let pod = holder.and_then(|holder| account.pods.get(holder as usize));
            if let Some(pod) = pod.filter(|_| state.is_allocated() && *time > 0) {
                *held.entry(pod.job.clone()).or_default() += time;
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use dovetail_account::cost::NodeBill;
    use dovetail_account::device_time::DeviceState;

    use super::*;
    use crate::account::Stretch;

    fn account(jobs: &[(&str, &str)]) -> Account {
        let pod = |(job, pod): &(&str, &str)| {
            let path = job.split_once(' ').map_or(*job, |(_, path)| path);
            CostPod {
                namespace: path.split_once('/').expect("a path").0.to_owned(),
                name: (*pod).to_owned(),
                job: (*job).to_owned(),
                ..CostPod::default()
            }
        };
        let times =
            (0..jobs.len() as u32).map(|pod| ((Some(pod), DeviceState::Idle), 1 + i128::from(pod)));
        let bill = NodeBill { gpus: times.collect(), ..NodeBill::default() };
        let stretch = Stretch {
            span: Default::default(),
            bills: vec![(0, bill)],
            billed: Default::default(),
            seen: Default::default(),
        };
        Account {
            pods: jobs.iter().map(pod).collect(),
            stretches: vec![stretch],
            ..Account::default()
        }
    }

    #[test]
    fn a_job_is_found_by_each_of_its_names_and_never_guessed() {
        let account = account(&[
            ("Job vision/train", "train-0"),
            ("Job vision/train", "train-1"),
            ("PyTorchJob speech/train", "train-worker-0"),
            ("speech/tune", "tune-0"),
        ]);
        let find = |name: &str, namespace: Option<&str>| {
            WantedJob { name, namespace }.find(&account).map(|job| (job.name, job.pods.len()))
        };
        let vision = ("Job vision/train".to_owned(), 2);
        for name in ["Job vision/train", "vision/train", "job/train", "train-1", "vision/train-0"] {
            assert_eq!(find(name, None).expect(name), vision, "{name}");
        }
        assert_eq!(find("train", Some("vision")).expect("one"), vision);
        assert_eq!(find("tune", None).expect("one"), ("speech/tune".to_owned(), 1));
        let several = find("train", None).expect_err("two").to_string();
        for part in ["2 jobs", "`Job vision/train`", "`PyTorchJob speech/train`", "--namespace"] {
            assert!(several.contains(part), "{several}");
        }
        let nobody = find("trian", None).expect_err("none").to_string();
        // Most of it first.
        let (first, second) = (nobody.find("speech/tune"), nobody.find("Job vision/train"));
        assert!(
            first.is_some() && first < nobody.find("PyTorchJob") && second.is_some(),
            "{nobody}"
        );
        let nowhere = find("tune", Some("vision")).expect_err("none").to_string();
        assert!(nowhere.contains("in namespace `vision`"), "{nowhere}");
    }
}
