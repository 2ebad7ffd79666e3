//! Owners found by what their objects, or objects below them, say in their own text.

use std::collections::BTreeSet;

use dovetail_facts::ObjectRef;
use serde_json::Value;

use super::inventory::Inventory;

/// Owners, at the top, of the objects that say something. `may_say` looks at the text of an object
/// first, because most say nothing and to parse a text takes longer.
pub(super) fn owners_that_say(
    inventory: &Inventory,
    may_say: impl Fn(&ObjectRef, &str) -> bool,
    says: impl Fn(&ObjectRef, &Value) -> bool,
) -> BTreeSet<ObjectRef> {
    let objects = inventory.sources.texts().chain(inventory.sources.controlled());
    let mut owners = BTreeSet::new();
    for (object, text) in objects.filter(|(object, text)| may_say(object, text)) {
        let Ok(value) = serde_json::from_str::<Value>(text) else { continue };
        if says(object, &value) {
            owners.extend(inventory.owners.chain(object, None).pop());
        }
    }
    owners
}
