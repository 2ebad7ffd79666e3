//! Files of reservations.

use dovetail_model::Beneficiary;
use dovetail_replays::input::reservations_file::read;
use dovetail_settings::toml_file::TomlFile;

#[test]
fn reservations_are_read_and_refused_with_line_and_field() {
    let text = "[reservations.night]\nqueue = \"vision\"\ngpus = 8\ncount = 4\n\
                from = \"10h\"\nto = \"20h\"\nasked = \"2h\"\n[reservations.repair]\n\
                gpus = 1\ncount = 1\nfrom = \"0s\"\nto = \"1h\"\n";
    let reservations = |text: &str| {
        let read = read(&TomlFile::of("r.toml", text));
        read.map_err(|error| error.to_string())
    };
    let read = reservations(text).expect("as documented");
    let [(0, repair), (7_200_000, night)] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(night.beneficiary, Some(Beneficiary::Queue("vision".to_owned())));
    assert_eq!((night.from_ms, night.to_ms, night.count), (36_000_000, 72_000_000, 4));
    assert_eq!(night.requirement.gpu_milli(), 8_000);
    assert_eq!(repair.beneficiary, None);
    for (from, to, told) in [
        ("count = 4", "count = 0", "r.toml:4: reservations.night.count: `0`: expected pods"),
        ("gpus = 8", "gpus = 0", "r.toml:3: reservations.night.gpus: `0`: expected GPUs"),
        ("\"20h\"", "\"10h\"", "r.toml:6: reservations.night.to: 10h is not after `from`"),
        ("\"10h\"", "\"noon\"", "r.toml:5: reservations.night.from: `noon` is not a duration"),
        ("gpus = 8", "job = \"j\"\ngpus = 8", "r.toml:1: reservations.night: names both a queue"),
        ("queue =", "team =", "r.toml:2: reservations.night.team: unknown field"),
    ] {
        let error = reservations(&text.replacen(from, to, 1)).expect_err(told);
        assert!(error.starts_with(told), "{error}");
    }
}
