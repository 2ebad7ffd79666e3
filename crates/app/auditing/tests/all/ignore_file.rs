//! Files of findings that somebody ignores.

use dovetail_auditing::ignore_file::parse;
use dovetail_facts::ObjectRef;

#[test]
fn every_entry_names_a_check_and_a_reason() {
    let good = "never = [\"req-01\"]\n[[ignore]]\ncheck = \"SCH-05\"\n\
                object = \"Deployment prod/serve\"\nreason = \"agreed until May\"\n";
    let policy = parse(good, "i.toml").unwrap();
    assert!(policy.never.contains("REQ-01"));
    let suppression = &policy.suppressions[0];
    assert_eq!(suppression.object, Some(ObjectRef::new("Deployment", "prod", "serve")));
    assert_eq!((&*suppression.by, &*suppression.why), ("i.toml, entry 1", "agreed until May"));
    let bad = [
        ("[[ignore]]\ncheck = \"SCH-05\"\n", "i.toml:1: ignore: missing field `reason`"),
        ("never = [\"SCH-99\"]", "i.toml: `SCH-99` is not a check"),
        ("[[ignore]]\ncheck = \"SCH-05\"\nreason = \" \"", "i.toml: entry 1: `reason` is empty"),
        ("[[ignore]]\ncheck = \"SCH-05\"\nreason = \"x\"\nobject = \"serve\"", "is not an object"),
        ("x = 1", "i.toml:1: x: unknown field `x`"),
    ];
    for (text, problem) in bad {
        let error = parse(text, "i.toml").unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}
