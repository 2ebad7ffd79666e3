//! Who is told now, so that nobody is told too often and no cluster is flooded.

use std::collections::BTreeMap;

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The same subject at most so often, in ms.
    pub repeat_ms: u64,
    /// No more notices than this in any `window_ms`.
    pub most: usize,
    pub window_ms: u64,
}

/// Which of several subjects are told now: not those that were told less than [`Rate::repeat_ms`]
/// ago, and of the others, the weightiest first, as many as the window has room for. `told` has
/// when each subject was told last. The others come later: none is lost, as long as what it is
/// about lasts.
pub fn due<'s>(
    rate: &Rate,
    told: &BTreeMap<String, u64>,
    subjects: impl IntoIterator<Item = (&'s str, i128)>,
    now_ms: u64,
) -> Vec<&'s str> {
    let since = |window_ms: u64| now_ms.saturating_sub(window_ms);
    let in_window = told.values().filter(|at_ms| **at_ms > since(rate.window_ms)).count();
    let room = rate.most.saturating_sub(in_window);
    // Where the clock was set back, what was told in its future was just told.
    let is_old =
        |subject: &str| told.get(subject).is_none_or(|at_ms| at_ms + rate.repeat_ms <= now_ms);
    let mut weights: BTreeMap<&str, i128> = BTreeMap::new();
    for (subject, weight) in subjects.into_iter().filter(|(subject, _)| is_old(subject)) {
        let most = weights.entry(subject).or_insert(weight);
        *most = weight.max(*most);
    }
    let mut due: Vec<(&str, i128)> = weights.into_iter().collect();
    due.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    due.into_iter().take(room).map(|(subject, _)| subject).collect()
}

#[cfg(test)]
mod tests {
    use dovetail_cases::cases;
    use proptest::prelude::*;

    use super::*;

    const RATE: Rate = Rate { repeat_ms: 50, most: 4, window_ms: 30 };

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn nobody_is_told_twice_in_a_repeat_and_no_window_has_too_many(
            steps in prop::collection::vec((1u64..40, prop::collection::vec((0u8..12, 0i128..100), 0..12)), 1..40),
        ) {
            let (mut now_ms, mut told) = (1_000, BTreeMap::new());
            let mut log: Vec<(u64, String)> = Vec::new();
            for (pause_ms, wanted) in steps {
                now_ms += pause_ms;
                let names: Vec<(String, i128)> =
                    wanted.iter().map(|(name, weight)| (format!("s{name}"), *weight)).collect();
                let asked = names.iter().map(|(name, weight)| (name.as_str(), *weight));
                let found = due(&RATE, &told, asked, now_ms);
                // Who is left out has to wait for a repeat or for room, and weighs no more than who
                // is not.
                let of_now = found.len();
                for (name, weight) in &names {
                    let was_told = told.get(name).is_some_and(|at: &u64| at + RATE.repeat_ms > now_ms);
                    prop_assert!(!(was_told && found.contains(&name.as_str())));
                    if !was_told && !found.contains(&name.as_str()) {
                        let recent = log.iter().filter(|(at, _)| at + RATE.window_ms > now_ms).count();
                        prop_assert_eq!(recent + of_now, RATE.most);
                        let least = names.iter().filter(|(n, _)| found.contains(&n.as_str())).map(|(_, w)| *w);
                        prop_assert!(least.clone().count() == 0 || *weight <= least.max().unwrap_or(0));
                    }
                }
                let found: Vec<String> = found.into_iter().map(str::to_owned).collect();
                for name in found {
                    told.insert(name.clone(), now_ms);
                    log.push((now_ms, name));
                }
            }
            for (place, (at, name)) in log.iter().enumerate() {
                let later = &log[place + 1..];
                prop_assert!(later.iter().all(|(when, other)| other != name || at + RATE.repeat_ms <= *when));
                let window = later.iter().filter(|(when, _)| *when < at + RATE.window_ms).count();
                prop_assert!(window < RATE.most);
            }
        }
    }
}
