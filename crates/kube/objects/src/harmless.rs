//! What was quoted from an object, made harmless before anybody sees it: in an event, a log, a
//! terminal.

use std::borrow::Cow;

/// The text with every character escaped that moves a cursor, ends a line, turns the direction of
/// writing or cannot be seen: `\n`, `\u{1b}`. Annotations may hold any of them.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_harmful(letter) {
            // Control characters among these come out as `\t`, `\r`, `\n` or by their number.
            true if letter.is_ascii() => shown.extend(letter.escape_default()),
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

fn is_harmful(letter: char) -> bool {
    let is_hidden = matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    letter.is_control() || is_hidden
}
