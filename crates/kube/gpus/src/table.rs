//! By which table the GPUs of a node are cut: that of the model that a label names, else of its
//! instance type, else the one to which the profiles belong that the node offers.

use dovetail_model::{MigTable, lacks_memory_size};
use dovetail_objects::Labels;

use super::count::type_of;
use super::model::sized_model;

/// The table of a node that offers instances of these profiles; `None` if nothing tells it, or if
/// they contradict what does.
pub(super) fn table_of(of: &Labels, profiles: &[&str]) -> Option<MigTable> {
    let has_all = |table: &MigTable| profiles.iter().all(|name| table.profile(name).is_some());
    // A label that names the model leaves nothing to guess, also where no table has it.
    if let Some(model) = sized_model(of).filter(|model| !lacks_memory_size(model)) {
        return MigTable::of_model(&model).filter(has_all);
    }
    match type_of(of) {
        Some((_, of_type)) => MigTable::of_model(of_type.gpu_model).filter(has_all),
        None => table_by_profiles(profiles),
    }
}

/// The table that has all of these profiles. Several that have them are one where they cut the
/// profiles alike: whatever the GPU is, its instances lie in the same way.
fn table_by_profiles(profiles: &[&str]) -> Option<MigTable> {
    let all: Vec<MigTable> = MigTable::all().collect();
    let places = |table: &MigTable| -> Option<Vec<usize>> {
        profiles.iter().map(|name| table.named(name, &all)).collect()
    };
    let mut fitting = all.iter().filter_map(|table| Some((table, places(table)?)));
    let (first, first_places) = fitting.next()?;
    let is_alike = |(other, places): (&MigTable, Vec<usize>)| {
        let slices = |table: &MigTable| (table.compute_slices, table.memory_slices);
        slices(other) == slices(first) && places == first_places
    };
    fitting.all(is_alike).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_identify_a_table_where_no_other_has_them_or_cuts_them_otherwise() {
        let name = |profiles: &[&str]| table_by_profiles(profiles).map(|table| table.name);
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(name(&["1g.20gb"]), is("A100-80GB"));
        assert_eq!(name(&["1g.5gb"]), is("A100-40GB"));
        assert_eq!(name(&["3g.71gb"]), is("H200"));
        assert_eq!(name(&["2g.12gb"]), is("A30"));
        // One slice of the memory of an 80 GB GPU, two of a 40 GB GPU; another profile decides.
        assert_eq!(name(&["1g.10gb"]), None);
        assert_eq!(name(&["1g.10gb", "3g.40gb"]), is("A100-80GB"));
        // Of two GPUs, which cut it alike.
        assert_eq!(name(&["1g.12gb"]), is("H100-NVL"));
        // A quarter of the memory with one of four compute slices, or of seven.
        assert_eq!(name(&["1g.24gb"]), None);
        // Of no GPU together, of none at all.
        assert_eq!(name(&["1g.5gb", "3g.71gb"]), None);
        assert_eq!(name(&["9g.5gb"]), None);
    }
}
