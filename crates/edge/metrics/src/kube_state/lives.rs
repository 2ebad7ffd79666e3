//! Pods that had one name one after the other: what each of them was, and from when. Retries of
//! operators, notebooks and pods of StatefulSets come again under their names, and need not have
//! the owner and the labels of the one before.

use std::collections::{BTreeMap, BTreeSet};

use super::read::{KubePod, KubeState, text};
use crate::prometheus::Series;
use crate::selector::chunks;

/// A pod among those of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodLife {
    pub uid: String,
    /// From when the name was its own; 0 for the first one.
    pub from_ms: u64,
    pub pod: KubePod,
}

/// One kind of series that says when pods began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BeginSeries {
    /// When they were first seen, which is up to one scrape late.
    Seen,
    /// When they were made, which holds where somebody keeps it.
    Created,
}

/// Answers about when pods began: by namespace, name and uid.
#[derive(Clone, Debug, Default)]
pub struct PodBegins {
    begins_ms: BTreeMap<(String, String, String), BTreeMap<BeginSeries, u64>>,
}

impl BeginSeries {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Created, Self::Seen];

    /// The queries for when pods of these names began, of those seen in a window before its moment.
    pub fn queries(self, names: &[&str], window_ms: u64, step_ms: u64) -> Vec<String> {
        let window_ms = window_ms.max(1);
        let of = |label: &str, names: &str| match self {
            Self::Created => {
                format!("last_over_time(kube_pod_created{{{label}=~\"{names}\"}}[{window_ms}ms])")
            }
            Self::Seen => format!(
                "min_over_time(timestamp(kube_pod_info{{{label}=~\"{names}\"}})[{window_ms}ms:{step_ms}ms])"
            ),
        };
        let query = |names: Vec<String>| {
            let names = names.join("|");
            format!("{} or {}", of("pod", &names), of("exported_pod", &names))
        };
        chunks(names).into_iter().map(query).collect()
    }
}

impl PodBegins {
    /// Takes an answer to one of [`BeginSeries::queries`]; what names no pod, and what is no time,
    /// is left out.
    pub fn take(&mut self, kind: BeginSeries, series: Vec<Series>) {
        for Series { labels, samples } in series {
            let part = |name: &str| text(&labels, name);
            let (Some(namespace), Some(pod), Some(uid)) =
                (part("namespace"), part("pod"), part("uid"))
            else {
                continue;
            };
            let Some(value) = samples.last().map(|sample| sample.value) else { continue };
            // Years 1970 to 10000.
            if !(1.0..253_402_300_800.0).contains(&value) {
                continue;
            }
            let at_ms = (value * 1000.0) as u64;
            let begins = self.begins_ms.entry((namespace, pod, uid)).or_default();
            let begin_ms = begins.entry(kind).or_insert(at_ms);
            *begin_ms = at_ms.min(*begin_ms);
        }
    }

    fn of(&self, (namespace, pod): &(String, String), uid: &str) -> Option<u64> {
        let key = (namespace.clone(), pod.clone(), uid.to_owned());
        // Its last kind, which is when it was made.
        self.begins_ms.get(&key)?.values().next_back().copied()
    }
}

impl KubeState {
    /// Names that several pods had, one after the other.
    pub fn pods_come_again(&self) -> BTreeSet<&str> {
        let several = self.of_uids.iter().filter(|(_, of_uid)| of_uid.len() > 1);
        several.map(|((_, name), _)| name.as_str()).collect()
    }

    /// Tells pods of one name apart by when they began. Of those of which nobody knows that they
    /// stay one.
    pub fn take_lives(&mut self, begins: &PodBegins) {
        for (key, of_uid) in std::mem::take(&mut self.of_uids) {
            if of_uid.len() < 2 {
                continue;
            }
            let life = |(uid, pod): (String, KubePod)| {
                Some(PodLife { from_ms: begins.of(&key, &uid)?, uid, pod })
            };
            let Some(mut lives) = of_uid.into_iter().map(life).collect::<Option<Vec<PodLife>>>()
            else {
                continue;
            };
            lives.sort_by(|one, other| (one.from_ms, &one.uid).cmp(&(other.from_ms, &other.uid)));
            lives[0].from_ms = 0;
            // Without a time it is who had the name last; where any of them stood stays known.
            if let (Some(known), Some(last)) = (self.pods.get_mut(&key), lives.last()) {
                let nodes = std::mem::take(&mut known.nodes);
                *known = KubePod { nodes, ..last.pod.clone() };
            }
            self.lives.insert(key, lives);
        }
    }

    /// Pods that had a name one after the other; none where it was one pod's, as far as anybody
    /// knows.
    pub fn lives(&self, namespace: &str, pod: &str) -> &[PodLife] {
        self.lives.get(&(namespace.to_owned(), pod.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Which of the pods of a name had it at a moment, counted from 0.
    pub fn turn_at(&self, namespace: &str, pod: &str, at_ms: u64) -> u32 {
        let lives = self.lives(namespace, pod).iter();
        (lives.filter(|life| life.from_ms <= at_ms).count().max(1) - 1) as u32
    }

    /// Which of the pods of a name has a uid; the last one where none does.
    pub fn turn_of(&self, namespace: &str, pod: &str, uid: Option<&str>) -> u32 {
        let lives = self.lives(namespace, pod);
        let known = lives.iter().position(|life| Some(life.uid.as_str()) == uid);
        known.unwrap_or(lives.len().max(1) - 1) as u32
    }

    /// The last of the pods of a name.
    pub fn last_turn(&self, namespace: &str, pod: &str) -> u32 {
        self.turn_of(namespace, pod, None)
    }

    /// One of the pods of a name, as it was last seen.
    pub fn pod_in_turn(&self, namespace: &str, pod: &str, turn: u32) -> Option<&KubePod> {
        match self.lives(namespace, pod).get(turn as usize) {
            Some(life) => Some(&life.pod),
            None => self.pod(namespace, pod),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube_state::read::tests::series;
    use crate::kube_state::{KubeTable, PodSum};

    /// `z` had the name first, though its uid comes last, and `a` since 3,000 s, when it was made;
    /// it was seen later. Of `other` nobody says when its pods began, `alone` is one pod.
    #[test]
    fn pods_of_one_name_have_their_own_facts_in_their_order() {
        let of = |pod, uid| [("namespace", "ml"), ("pod", pod), ("uid", uid)];
        let mut state = KubeState::default();
        for (pod, uid, owner, node) in [
            ("x-0", "a", "new", "n2"),
            ("x-0", "z", "old", "n1"),
            ("other", "b", "one", "n1"),
            ("other", "c", "two", "n1"),
            ("alone", "d", "alone", "n1"),
        ] {
            let by = [("created_by_kind", "Job"), ("created_by_name", owner), ("node", node)];
            let all: Vec<(&str, &str)> = of(pod, uid).into_iter().chain(by).collect();
            state.take(KubeTable::PodInfo, series(&all, 1.0));
        }
        for (uid, team) in [("a", "blue"), ("z", "red")] {
            let all: Vec<(&str, &str)> =
                of("x-0", uid).into_iter().chain([("label_team", team)]).collect();
            state.take(KubeTable::PodLabels, series(&all, 1.0));
        }
        assert_eq!(state.pods_come_again(), BTreeSet::from(["other", "x-0"]));
        let mut begins = PodBegins::default();
        begins.take(BeginSeries::Seen, series(&of("x-0", "z"), 1_000.0));
        begins.take(BeginSeries::Created, series(&of("x-0", "a"), 3_000.0));
        begins.take(BeginSeries::Seen, series(&of("x-0", "a"), 3_030.0));
        begins.take(BeginSeries::Seen, series(&of("other", "b"), f64::NAN));
        state.take_lives(&begins);
        let mut failed = series(&of("x-0", "z"), 1.0);
        failed[0].labels.insert("phase".to_owned(), "Failed".to_owned());
        state.take_ends(failed);
        let turns = [0, 2_999_999, 3_000_000].map(|at_ms| state.turn_at("ml", "x-0", at_ms));
        assert_eq!(turns, [0, 0, 1]);
        let told = [0, 1].map(|turn| {
            let pod = state.pod_in_turn("ml", "x-0", turn).expect("it is known");
            let owner = state.top_owner("ml", "x-0", turn).expect("it is known").1;
            (owner, pod.labels["label_team"].clone(), pod.node.clone(), pod.has_succeeded)
        });
        let expected = [("old", "red", "n1", Some(false)), ("new", "blue", "n2", None)];
        let expected = expected.map(|(owner, team, node, ended)| {
            (owner.to_owned(), team.to_owned(), node.to_owned(), ended)
        });
        assert_eq!(told, expected);
        // By its name alone it is the last one, wherever one of them stood.
        let known = state.pod("ml", "x-0").expect("it is known");
        assert_eq!((known.labels["label_team"].as_str(), known.nodes.len()), ("blue", 2));
        assert!(state.lives("ml", "other").is_empty() && state.lives("ml", "alone").is_empty());
        let of_other = [state.turn_of("ml", "other", Some("c")), state.last_turn("ml", "alone")];
        assert_eq!(of_other, [0, 0]);
        let all: Vec<(&str, &str)> = of("x-0", "z").into_iter().chain([("node", "n1")]).collect();
        let kept = &PodSum::read(series(&all, 8.0))[0];
        assert_eq!(state.turn_of("ml", "x-0", kept.uid.as_deref()), 0);
        assert_eq!(state.turn_of("ml", "x-0", None), 1);
    }
}
