//! Which field of an object could not be read.
//!
//! The error says where in the text reading ended: walking the text up to there gives the way to
//! the field, once for all types. Wrapping the reader of every type in one that notes the way gives
//! the same, and a second copy of each of them.

/// A step on the way: a key of an object, once it was read, or a place in a list.
enum PathStep {
    Key(Option<String>),
    Place(usize),
}

/// The way to the field at which an error arose, such as `spec.containers[0].image`; `.` for the
/// whole text.
pub fn field_path(json: &[u8], error: &serde_json::Error) -> String {
    let read = &json[..end_of(json, error)];
    let mut rest = read;
    let mut way = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'{' => way.push(PathStep::Key(None)),
            b'[' => way.push(PathStep::Place(0)),
            b'}' | b']' => _ = way.pop(),
            b',' => match way.last_mut() {
                Some(PathStep::Key(key)) => *key = None,
                Some(PathStep::Place(place)) => *place += 1,
                None => {}
            },
            b'"' => {
                let (text, behind) = text(rest);
                rest = behind;
                if let Some(PathStep::Key(key @ None)) = way.last_mut() {
                    *key = Some(text);
                }
            }
            _ => {}
        }
    }
    // A list where none may be, of which nothing was read; before one in a list it is that one.
    let is_in_list = read.trim_ascii_end().ends_with(b"[");
    let is_before_list = json[read.len()..].trim_ascii_start().starts_with(b"[");
    if is_in_list && !is_before_list && is_about_the_list(&error.to_string()) {
        way.pop();
    }
    in_words(&way)
}

/// Whether an error is about a list and not about something in it.
fn is_about_the_list(problem: &str) -> bool {
    ["invalid type: sequence", "expected value"].iter().any(|about| problem.starts_with(about))
}

/// How much of the text was read before the error arose.
fn end_of(json: &[u8], error: &serde_json::Error) -> usize {
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    json.len().min(before + error.column())
}

/// The text behind a quotation mark, and what comes behind it.
fn text(json: &[u8]) -> (String, &[u8]) {
    let mut is_escaped = false;
    let end = json.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    let (text, behind) = json.split_at(end.unwrap_or(json.len()));
    let quoted = [b"\"", text, b"\""].concat();
    let text = serde_json::from_slice(&quoted);
    let text = text.unwrap_or_else(|_| String::from_utf8_lossy(&quoted).into_owned());
    (text, behind.get(1..).unwrap_or_default())
}

fn in_words(way: &[PathStep]) -> String {
    let mut path = String::new();
    for step in way {
        match step {
            PathStep::Key(None) => {}
            PathStep::Key(Some(key)) if path.is_empty() => path.push_str(key),
            PathStep::Key(Some(key)) => path.extend([".", key]),
            PathStep::Place(place) => path.push_str(&format!("[{place}]")),
        }
    }
    if path.is_empty() { ".".to_owned() } else { path }
}
