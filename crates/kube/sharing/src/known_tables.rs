//! All tables by which it is decided which GPUs a profile's name means.

use dovetail_model::MigTable;

/// Tables of a cluster's GPUs, each once, and the built-in ones.
pub(crate) fn known_tables<'t>(of_gpus: impl IntoIterator<Item = &'t MigTable>) -> Vec<MigTable> {
    let mut known: Vec<MigTable> = MigTable::all().collect();
    for table in of_gpus {
        if !known.contains(table) {
            known.push(table.clone());
        }
    }
    known
}
