//! Files of what policies have learned.

use dovetail_replays::input::policy::read;
use dovetail_settings::errors::BadInput;

/// A file that is no text at all is bad input, as one with other text is, and not a failure of
/// the machine.
#[test]
fn what_is_not_a_file_of_learnt_values_is_bad_input() {
    let path = std::env::temp_dir().join(format!("dovetail-learnt-{}", std::process::id()));
    for bytes in [&b"\xff\xfe"[..], b"\x1f\x8b\x08\x00damaged", b"text", b"{\"format\": \"x\"}"] {
        std::fs::write(&path, bytes).expect("a file");
        let error = read(&path).expect_err("no learnt values");
        assert!(error.downcast_ref::<BadInput>().is_some(), "{bytes:?}: {error:?}");
    }
    std::fs::remove_file(&path).expect("the file");
}
