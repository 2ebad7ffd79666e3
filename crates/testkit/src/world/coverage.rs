//! What a run over many worlds has covered, from the oracle's answers.

use std::collections::BTreeMap;
use std::fmt;

use super::oracle::OracleAnswer;

/// Counts over pairs of a pending pod and a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Pending pods asked about.
    pub pods: u64,
    /// Pods that no node suits.
    pub pods_without_node: u64,
    /// Pods that wait behind a scheduling gate.
    pub pods_gated: u64,
    /// Pairs asked about.
    pub pairs: u64,
    /// Pairs that fit.
    pub pairs_feasible: u64,
    /// Worlds in which fewer than 5 or more than 95 of 100 pairs fit.
    pub worlds_one_sided: u64,
    /// Worlds seen.
    pub worlds: u64,
    /// By plugin name; plugins that rejected nothing are absent.
    pub plugins: BTreeMap<String, PluginCoverage>,
    /// How often each reason was given.
    pub reasons: BTreeMap<String, u64>,
}

/// Counts of one plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PluginCoverage {
    /// Pairs it rejects.
    pub rejects: u64,
    /// Pairs it rejects and nothing else does.
    pub alone: u64,
}

impl Coverage {
    /// Counts a world's answer.
    pub fn add(&mut self, answer: &OracleAnswer) {
        let (mut pairs, mut feasible) = (0, 0);
        for pod in &answer.pods {
            self.pods += 1;
            self.pods_gated += u64::from(!pod.gated.is_empty());
            self.pods_without_node += u64::from(pod.feasible().is_empty());
            for node in &pod.nodes {
                pairs += 1;
                feasible += u64::from(node.rejects.is_empty());
                for rejection in &node.rejects {
                    let plugin = self.plugins.entry(rejection.plugin.clone()).or_default();
                    plugin.rejects += 1;
                    plugin.alone += u64::from(node.rejects.len() == 1);
                    for reason in &rejection.reasons {
                        *self.reasons.entry(reason.clone()).or_default() += 1;
                    }
                }
            }
        }
        self.worlds += 1;
        self.pairs += pairs;
        self.pairs_feasible += feasible;
        self.worlds_one_sided += u64::from(feasible * 20 < pairs || feasible * 20 > pairs * 19);
    }

    /// Pairs that a plugin accepts.
    pub fn accepted_by(&self, plugin: &str) -> u64 {
        self.pairs - self.plugins.get(plugin).map_or(0, |counts| counts.rejects)
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} worlds ({} one-sided), {} pods ({} without a node, {} gated), {} pairs, {} fit",
            self.worlds,
            self.worlds_one_sided,
            self.pods,
            self.pods_without_node,
            self.pods_gated,
            self.pairs,
            self.pairs_feasible,
        )?;
        writeln!(out, "{:<24}{:>10}{:>10}{:>10}", "plugin", "accepts", "rejects", "alone")?;
        for (name, counts) in &self.plugins {
            let accepts = self.accepted_by(name);
            writeln!(out, "{name:<24}{accepts:>10}{:>10}{:>10}", counts.rejects, counts.alone)?;
        }
        Ok(())
    }
}
