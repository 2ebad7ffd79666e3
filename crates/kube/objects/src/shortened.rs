//! Messages that are longer than the API server, or a reader, takes.

use std::borrow::Cow;

/// Most letters of a message of a condition (`metav1.Condition`).
pub const MOST_CONDITION_LETTERS: usize = 32_768;

/// The text in at most so many letters: a longer one ends with `…`, behind a sentence where one
/// ends in its second half, else behind a word.
pub fn shortened(text: &str, most_letters: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most_letters).is_none() {
        return Cow::Borrowed(text);
    }
    // A space and the sign of omission.
    let last = text.char_indices().nth(most_letters.saturating_sub(2));
    let kept = last.map_or("", |(end, _)| &text[..end]);
    let in_second_half = |end: &usize| *end >= kept.len() / 2;
    let sentence = kept.rfind(". ").map(|end| end + 1).filter(in_second_half);
    if let Some(end) = sentence {
        return Cow::Owned(format!("{} …", &kept[..end]));
    }
    // A word that ends with the part is whole only if a space follows it.
    let is_whole = text[kept.len()..].starts_with(' ');
    let word = kept.rfind(' ').filter(|end| !is_whole && in_second_half(end));
    let kept = word.map_or(kept, |end| &kept[..end]);
    Cow::Owned(format!("{}…", kept.trim_end_matches([' ', ',', ';', ':'])))
}
