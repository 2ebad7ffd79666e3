//! Nodes, pods and jobs of several clusters that have the same name: they are told apart by their
//! cluster, where rows are not. What people name themselves, such as namespaces, teams, queues,
//! models and pools, is one in all clusters.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_store::SumRow;

use super::dimension::Dimension;

/// Names that objects of several clusters have, by the place of their dimension in the keys of
/// rows.
#[derive(Debug, Default)]
pub struct SameNames {
    of_places: BTreeMap<usize, BTreeSet<String>>,
}

impl SameNames {
    /// Of rows with their keys.
    pub fn of<'r>(
        by: &[Dimension],
        rows: impl Iterator<Item = (&'r SumRow, &'r [String])> + Clone,
    ) -> Self {
        if by.contains(&Dimension::Cluster) {
            return Self::default();
        }
        let is_object = |dimension: &Dimension| {
            matches!(dimension, Dimension::Node | Dimension::Pod | Dimension::Job)
        };
        let places = by.iter().enumerate().filter(|(_, dimension)| is_object(dimension));
        let several = |place: usize| {
            names_of_several(rows.clone().map(|(row, key)| (&*row.cluster, &*key[place])))
        };
        Self { of_places: places.map(|(place, _)| (place, several(place))).collect() }
    }

    /// Puts the cluster before such names.
    pub(crate) fn tell_apart(&self, cluster: &str, key: &mut [String]) {
        for (place, names) in &self.of_places {
            if names.contains(&key[*place]) {
                key[*place] = format!("{cluster}/{}", key[*place]);
            }
        }
    }
}

/// Names that objects of several clusters have, of names with their clusters.
pub(crate) fn names_of_several<'n>(
    names: impl Iterator<Item = (&'n str, &'n str)>,
) -> BTreeSet<String> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    // Words for what has no name are no names.
    let named = names.filter(|(_, name)| !name.starts_with('('));
    let again = named.filter(|(cluster, name)| *first.entry(name).or_insert(cluster) != *cluster);
    again.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use dovetail_account::cost::Paid;
    use dovetail_account::device_time::DeviceState;

    use super::*;

    fn told(by: &[Dimension], rows: &[(&str, &[&str])]) -> Vec<Vec<String>> {
        let row = |cluster: &str| SumRow {
            cluster: cluster.into(),
            party: None,
            workload: None,
            pod: None,
            node: None,
            group: None,
            paid: Paid::Gpus(DeviceState::Idle),
            gpu_milli_ms: 0,
            charges: 0,
            costs: Default::default(),
        };
        let mut rows: Vec<(SumRow, Vec<String>)> = rows
            .iter()
            .map(|(cluster, key)| (row(cluster), key.iter().map(|&part| part.into()).collect()))
            .collect();
        let names = SameNames::of(by, rows.iter().map(|(row, key)| (row, &**key)));
        rows.iter_mut().for_each(|(row, key)| names.tell_apart(&row.cluster, key));
        rows.into_iter().map(|(_, key)| key).collect()
    }

    #[test]
    fn machines_of_one_name_in_two_clusters_are_two_and_teams_are_one() {
        use Dimension::{Cluster, Job, Node, Team};
        let rows: [(&str, &[&str]); 5] = [
            ("west", &["eyes", "n1"]),
            ("east", &["eyes", "n1"]),
            ("east", &["ears", "n1"]),
            ("east", &["eyes", "n2"]),
            ("west", &["eyes", "(unknown)"]),
        ];
        let nodes: Vec<String> =
            told(&[Team, Node], &rows).into_iter().map(|key| key.join(" ")).collect();
        let apart = ["eyes west/n1", "eyes east/n1", "ears east/n1", "eyes n2", "eyes (unknown)"];
        assert_eq!(nodes, apart);
        let jobs = told(&[Job], &[("west", &["Job a/b"]), ("east", &["Job a/b"])]);
        assert_eq!(jobs, [["west/Job a/b"], ["east/Job a/b"]]);
        assert_eq!(
            told(&[Cluster, Node], &[("west", &["west", "n1"]), ("east", &["east", "n1"])])[0],
            ["west", "n1"]
        );
    }
}
