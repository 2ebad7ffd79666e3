//! Messages cut where the API server, or a reader, would cut them.

use dovetail_objects::shortened;

#[test]
fn a_long_text_ends_behind_a_sentence_or_a_word() {
    assert_eq!(shortened("as it is", 8), "as it is");
    assert_eq!(shortened("one two, three four", 12), "one two…");
    assert_eq!(shortened("one two three four", 9), "one two…");
    assert_eq!(shortened("One two three. Four five six.", 20), "One two three. …");
    // Neither ends in the second half.
    assert_eq!(shortened("a bcdefghijklmn", 10), "a bcdefg…");
    assert_eq!(shortened("ééééééé", 5), "ééé…");
    for most_letters in 0..30 {
        let text = shortened("One two three. Four five six; seven.", most_letters);
        assert!(text.chars().count() <= most_letters.max(1), "{most_letters}: {text}");
    }
}
