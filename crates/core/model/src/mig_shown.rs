//! Under which name a node offers a MIG profile.
//!
//! A driver has one name for each profile, and a pod starts only where its name is offered. What
//! nodes show decides: the node itself first, then nodes with GPUs of the same model. What neither
//! shows has the name of the table of the node's GPUs. What GPUs of other models show says nothing,
//! also where one table is for both: their nodes may have other drivers.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::MigTable;
use crate::mig_names::mig_profile_name;

/// Names of profiles that nodes are seen to offer.
#[derive(Clone, Debug, Default)]
pub struct ShownProfiles {
    of_node: BTreeMap<String, Names>,
    of_model: BTreeMap<String, Names>,
}

/// Names under which there are instances now, and those of which a node still says the name: a
/// resource that vanishes stays at 0 until the kubelet restarts.
#[derive(Clone, Debug, Default)]
struct Names {
    now: BTreeSet<String>,
    before: BTreeSet<String>,
}

impl Names {
    fn add(&mut self, name: String, count: i64) {
        let names = if count > 0 { &mut self.now } else { &mut self.before };
        names.insert(name);
    }

    /// The name of the profile at a place of a table, if it is among them.
    fn of<'n>(&'n self, table: &'n MigTable, place: usize) -> Option<&'n str> {
        let own = table.profiles[place].name.as_str();
        [&self.now, &self.before].into_iter().find_map(|names| {
            if names.contains(own) {
                return Some(own);
            }
            names.iter().map(String::as_str).find(|name| table.profile(name) == Some(place))
        })
    }
}

impl ShownProfiles {
    /// A node with GPUs of a model shows so many instances of a profile under a name, which may be
    /// none. What is no such name is ignored.
    pub fn see(&mut self, (node, model): (&str, &str), name: &str, count: i64) {
        let Some(name) = mig_profile_name(name) else { return };
        self.of_node.entry(node.to_owned()).or_default().add(name.clone(), count);
        self.of_model.entry(model.to_owned()).or_default().add(name, count);
    }

    /// Whether any node has instances under exactly this name.
    pub fn has(&self, name: &str) -> bool {
        let asked = mig_profile_name(name);
        asked.is_some_and(|asked| self.of_model.values().any(|names| names.now.contains(&asked)))
    }

    /// The name under which a node offers the profile at a place of the table of its GPUs, or would
    /// offer it. Names of which there are instances come first. Where nodes of a model show
    /// several, it is that of the table if they show it, else the first in the alphabet.
    pub fn offered<'n>(
        &'n self,
        (node, model): (&str, &str),
        table: &'n MigTable,
        place: usize,
    ) -> &'n str {
        let of = |names: &'n Names| names.of(table, place);
        let of_node = self.of_node.get(node).and_then(of);
        let shown = of_node.or_else(|| self.of_model.get(model).and_then(of));
        shown.unwrap_or(&table.profiles[place].name)
    }

    /// The place of the profile that a node offers, or would offer, under a name; `None` if it has
    /// no profile of that name. `table`: that of its GPUs. A node with instances of one profile
    /// under two names offers both.
    pub fn requested(&self, of: (&str, &str), table: &MigTable, name: &str) -> Option<usize> {
        let asked = mig_profile_name(name)?;
        let place = table.profile(name)?;
        let is_there = self.of_node.get(of.0).is_some_and(|names| names.now.contains(&asked));
        let is_offered =
            || mig_profile_name(self.offered(of, table, place)).as_ref() == Some(&asked);
        (is_there || is_offered()).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(all: &[(&str, &str, &str)]) -> ShownProfiles {
        let mut shown = ShownProfiles::default();
        all.iter().for_each(|&(node, model, name)| shown.see((node, model), name, 1));
        shown
    }

    /// Whether a node offers a profile under each of its two names.
    fn offers(shown: &ShownProfiles, (node, model): (&str, &str)) -> [bool; 2] {
        let table = MigTable::of_model(model).expect(model);
        ["3g.39gb", "3g.40gb"].map(|name| shown.requested((node, model), &table, name).is_some())
    }

    #[test]
    fn a_node_offers_a_profile_under_one_name() {
        let node = ("n", "A100-80GB");
        let (old, new) = ([true, false], [false, true]);
        assert_eq!(offers(&seen(&[]), node), new);
        assert_eq!(offers(&seen(&[("n", "A100-80GB", "3g.39gb")]), node), old);
        assert_eq!(offers(&seen(&[("m", "A100-80GB", "3g.39gb")]), node), old);
        let both = [("n", "A100-80GB", "3g.40gb"), ("m", "A100-80GB", "3g.39gb")];
        assert_eq!(offers(&seen(&both), node), new);
        assert_eq!(offers(&seen(&both), ("m", "A100-80GB")), old);
        assert_eq!(offers(&seen(&both), ("other", "A100-80GB")), new);
        // What it shows of other profiles says nothing of this one.
        let beside = [("n", "A100-80GB", "1g.10gb"), ("m", "A100-80GB", "3g.39gb")];
        assert_eq!(offers(&seen(&beside), node), old);
    }

    #[test]
    fn a_name_without_instances_counts_where_no_other_has_some() {
        let node = ("n", "A100-80GB");
        let (old, new) = ([true, false], [false, true]);
        let mut shown = seen(&[("n", "A100-80GB", "1g.10gb")]);
        shown.see(node, "3g.39gb", 0);
        assert_eq!([offers(&shown, node), offers(&shown, ("m", "A100-80GB"))], [old, old]);
        assert!(!shown.has("3g.39gb"));
        shown.see(node, "3g.40gb", 2);
        assert_eq!([offers(&shown, node), offers(&shown, ("m", "A100-80GB"))], [new, new]);
    }

    #[test]
    fn a_node_with_instances_under_both_names_offers_both() {
        let both = seen(&[("n", "A100-80GB", "3g.39gb"), ("n", "A100-80GB", "3g.40gb")]);
        assert_eq!(offers(&both, ("n", "A100-80GB")), [true, true]);
        assert_eq!(offers(&both, ("m", "A100-80GB")), [false, true]);
        assert!(both.has("3g.39gb"));
    }

    /// Both models have one table, and each its own driver.
    #[test]
    fn what_one_model_shows_says_nothing_of_another() {
        let shown = seen(&[("a", "A100-80GB", "3g.39gb"), ("h", "H100", "1g.10gb")]);
        assert_eq!(offers(&shown, ("h", "H100")), [false, true]);
        assert_eq!(offers(&shown, ("b", "A100-80GB")), [true, false]);
        let shown = seen(&[("a", "A100-80GB", "3g.40gb"), ("g", "H100", "3g.39gb")]);
        assert_eq!(offers(&shown, ("h", "H100")), [true, false]);
        assert_eq!(offers(&shown, ("b", "A100-80GB")), [false, true]);
    }

    #[test]
    fn a_name_of_another_models_profile_is_offered_only_where_it_is_shown() {
        let (table, node) = (MigTable::of_model("H100").expect("a table"), ("h", "H100"));
        let place = |shown: &ShownProfiles, name: &str| shown.requested(node, &table, name);
        // A profile of the H200.
        assert_eq!(place(&seen(&[]), "1g.18gb"), None);
        assert_eq!(place(&seen(&[]), "1g.11gb"), None);
        assert_eq!(place(&seen(&[("h", "H100", "1g.11gb")]), "1g.11gb"), Some(0));
        // A name of a resource has no plus sign.
        assert_eq!(place(&seen(&[]), "1g.10gb.me"), Some(6));
        assert_eq!(place(&seen(&[]), "gpu"), None);
    }
}
