//! Lists of seeds.

use dovetail_replays::input::seeds::Seeds;

#[test]
fn lists_and_ranges_name_each_seed_once() {
    assert_eq!("42-44,7".parse(), Ok(Seeds(vec![42, 43, 44, 7])));
    for bad in ["", "a", "1-", "3-1", "1,1", "1-3,2", "0-99999", "9223372036854775808"] {
        assert!(bad.parse::<Seeds>().is_err(), "{bad}");
    }
}
