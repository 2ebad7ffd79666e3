//! Texts in the forms of output whose letters may act: HTML, Markdown, SARIF.

/// For HTML, in text and in quoted attributes.
pub fn html(text: &str) -> String {
    escaped(text, |safe, letter, _| match letter {
        '&' => *safe += "&amp;",
        '<' => *safe += "&lt;",
        '>' => *safe += "&gt;",
        '"' => *safe += "&quot;",
        '\'' => *safe += "&#39;",
        letter => safe.push(letter),
    })
}

/// For Markdown, in a paragraph or a cell of a table: nothing in it is markup, a mention or a link.
/// What reads the same without an escape has none: people look at the source, too.
pub fn markdown(text: &str) -> String {
    // A link needs a scheme with slashes, a symbol a second colon, a formula no digit behind it.
    let acts = |letter, rest: &str| match letter {
        ':' => rest.starts_with("//") || begins_symbol(rest),
        _ => !rest.starts_with(|next: char| next.is_ascii_digit()),
    };
    escaped(text, |safe, letter, rest| match letter {
        '&' => *safe += "&amp;",
        '<' => *safe += "&lt;",
        '>' => *safe += "&gt;",
        '@' => *safe += "&#64;",
        ':' if acts(letter, rest) => *safe += "&#58;",
        '$' if !acts(letter, rest) => safe.push(letter),
        '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '+' | '!' | '|' | '~' | '$' => {
            safe.extend(['\\', letter]);
        }
        letter => safe.push(letter),
    })
}

/// Whether what follows a colon is the name of a symbol and the colon behind it: `smile:`.
fn begins_symbol(rest: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_+-".contains(letter);
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(is_of_name)
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    rest.split_once(':').is_some_and(|(name, _)| is_name(name))
}

/// For the text of a SARIF message, in which braces are places for arguments and brackets are
/// links.
pub fn sarif(text: &str) -> String {
    escaped(text, |safe, letter, _| match letter {
        '{' => *safe += "{{",
        '}' => *safe += "}}",
        '[' | ']' | '\\' => safe.extend(['\\', letter]),
        letter => safe.push(letter),
    })
}

/// `write` is told each letter and what follows it.
fn escaped(text: &str, write: impl Fn(&mut String, char, &str)) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        write(&mut safe, letter, letters.as_str());
    }
    safe
}
