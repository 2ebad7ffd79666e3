//! What was quoted from an object, made harmless before anybody sees it.

use std::borrow::Cow;

use dovetail_objects::harmless;

#[test]
fn nothing_that_moves_a_cursor_or_hides_is_left_and_nothing_is_lost() {
    let quoted = harmless("3\u{1b}[31mred\n\u{7}\u{9b}\u{202e}é");
    assert_eq!(quoted, r"3\u{1b}[31mred\n\u{7}\u{9b}\u{202e}é");
    assert!(matches!(harmless("größe `3`"), Cow::Borrowed(_)));
}
