//! MIG profiles, against NVIDIA's own libraries: the GPUs that go-nvml plays, and go-nvlib's
//! reading of names. Its GPUs that are newer than the A100 have other sizes than drivers report,
//! and are not asked.

use std::collections::BTreeSet;

use dovetail_model::{MigTable, mig_profile_name};
use dovetail_testkit::world::{NameAnswer, ProfileAnswer, ProfileOracle};

/// The table of a GPU as the judge writes it, by name.
fn ours(table: &MigTable) -> Vec<ProfileAnswer> {
    let each = table.profiles.iter().enumerate().map(|(place, profile)| ProfileAnswer {
        name: profile.name.clone(),
        compute_slices: profile.compute_slices,
        memory_slices: profile.memory_slices,
        most_instances: most(table, place),
        starts: profile.starts.clone(),
    });
    let mut all: Vec<ProfileAnswer> = each.collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// The most instances of one profile that make a legal layout.
fn most(table: &MigTable, place: usize) -> u16 {
    let only = |count: &u16| {
        let mut layout = vec![0; table.profiles.len()];
        layout[place] = *count;
        table.is_legal(&layout)
    };
    (0..=8).filter(only).max().unwrap_or(0)
}

/// Names of all GPUs in several spellings, and names that nothing has.
fn names() -> Vec<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for profile in MigTable::all().flat_map(|table| table.profiles) {
        for end in ["", "+me", "-me", "+gfx", "+me.all", "+me,gfx"] {
            names.insert(format!("{}{end}", profile.name.trim_end_matches("+me")));
        }
    }
    for strange in
        ["", "2g", "g.5gb", "1g.5", "1g.5GB", "x.5gb", "-1g.5gb", "+1g.5gb", "1g.5gb+", "1g..5gb"]
    {
        names.insert(strange.to_owned());
    }
    names.into_iter().collect()
}

/// What differs in how a name is read. Ours also finds names whose memory is rounded in another
/// way, and knows no division of an instance.
fn difference(table: &MigTable, name: &str, theirs: &NameAnswer) -> Option<String> {
    let place = table.profile(name);
    let found = place.map_or("", |place| &*table.profiles[place].name);
    let is_same = match &*theirs.profile {
        "" => place.is_none() || found != name,
        profile => found == profile,
    };
    if !is_same {
        return Some(format!("{name:?} is {:?}, ours {found:?}", theirs.profile));
    }
    // What could be a name is kept as it is, and nothing else is one.
    let written = mig_profile_name(name);
    let is_kept = written.as_deref() == theirs.is_well_formed.then_some(name);
    (!is_kept).then(|| format!("{name:?} is {theirs:?}, ours {written:?}"))
}

#[test]
fn tables_and_names_of_mig_profiles_are_those_of_nvidias_libraries() {
    let mut oracle = ProfileOracle::start().unwrap();
    let (names, mut read) = (names(), 0);
    for gpu in ["A100-40GB", "A100-80GB", "A30"] {
        let table = MigTable::of_model(gpu).expect(gpu);
        let answers = oracle.judge(gpu, &names).unwrap();
        let mut theirs = answers.profiles;
        theirs.sort_by(|one, other| one.name.cmp(&other.name));
        assert_eq!(ours(&table), theirs, "{gpu}");
        assert_eq!(answers.names.len(), names.len());
        for (name, theirs) in names.iter().zip(&answers.names) {
            read += usize::from(!theirs.profile.is_empty());
            assert_eq!(difference(&table, name, theirs), None, "{gpu}");
        }
    }
    assert_eq!(read, 7 + 7 + 5, "each profile is read by its own name");
}
