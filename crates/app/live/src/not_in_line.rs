//! Pods and gangs that are pending without being in line, as text.

use dovetail_console::table::{counted, wrapped};
use dovetail_control::ask::NotInLine;
use dovetail_objects::harmless;

/// Shown one by one; of more, the first.
const SHOWN: usize = 50;

/// Each with its reason.
pub(crate) fn text(all: &[NotInLine]) -> String {
    let mut text = String::new();
    for one in all.iter().take(SHOWN) {
        let NotInLine { name, queue, pods, message, .. } = one;
        let pods = counted(*pods, "pod");
        let told = match message.strip_prefix(name.as_str()) {
            Some(rest) => format!("{name} (queue {queue}, {pods}){rest}"),
            None => format!("{name} (queue {queue}, {pods}): {message}"),
        };
        text += &wrapped(&harmless(&told), 0);
    }
    if all.len() > SHOWN {
        text += &format!("and {} more: --output json shows all\n", all.len() - SHOWN);
    }
    text
}
