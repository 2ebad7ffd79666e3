//! A gang as `dovetail why` shows it.

use dovetail_cluster::world::how_many;
use dovetail_console::table::{counted, table, wrapped};
use dovetail_control::ask::{GangLine, MemberLine};
use dovetail_objects::harmless;

/// Pods shown one by one; of more, the first.
const SHOWN: usize = 16;

/// Its pods as a table.
pub(crate) fn text(gang: &GangLine) -> String {
    let mut text = format!("{}{}\n", harmless(&gang.name), together(gang.min, gang.members.len()));
    if let Some(fitting) = gang.fitting_pods {
        let waiting = gang.count("waits");
        let waiting = counted(waiting, "pending pod");
        text += &wrapped(&format!("{fitting} of its {waiting} would fit now"), 0);
    }
    let row = |member: &MemberLine| {
        let node = member.node.clone().unwrap_or_else(|| "-".to_owned());
        vec![member.pod.clone(), member.state.replace('_', " "), node]
    };
    let rows = gang.members.iter().take(SHOWN).map(row).collect();
    text += &format!("\n{}", table(&["pod", "state", "node"], rows));
    if gang.members.len() > SHOWN {
        text += &format!("and {} more\n", gang.members.len() - SHOWN);
    }
    text
}

/// How many of so many pods start together at least.
fn together(min: Option<u32>, pods: usize) -> String {
    match min {
        // Why is said above.
        None => ": its minimum number of pods is unknown".to_owned(),
        Some(u32::MAX) => format!(", {} pods together", how_many(u32::MAX)),
        Some(0 | 1) if pods <= 1 => String::new(),
        Some(0 | 1) => ", each pod starts independently".to_owned(),
        Some(min) => format!(", at least {min} pods start together"),
    }
}

#[cfg(test)]
mod tests {
    use super::together;

    #[test]
    fn pods_start_together_only_where_there_are_two() {
        assert_eq!(together(Some(0), 1), "");
        assert_eq!(together(Some(0), 3), ", each pod starts independently");
        assert_eq!(together(Some(2), 3), ", at least 2 pods start together");
    }
}
