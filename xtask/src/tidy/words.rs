//! Texts for people use the words of the Kubernetes documentation. Read are documents outside
//! `docs/internals`, help of the command line, and literals that the program shows; code spans,
//! fenced blocks, quotations, link targets and placeholders are exempt.

use anyhow::Result;

use super::links::outside_fences;
use super::outcome::{Outcome, Violation};
use super::shown::shown;
use super::workspace::{TextFile, Workspace};

/// A line of text for people.
struct Passage<'a> {
    path: &'a str,
    line: usize,
    text: &'a str,
}

/// A pattern, and what to write instead.
struct Pattern {
    words: Words,
    instead: &'static str,
}

enum Words {
    /// These words in a row, wherever they are. `a|b` is either.
    Anywhere(&'static str),
    /// One of these words next to one of [`NOUNS`], articles and forms of “to be” between them
    /// aside.
    BesideNoun(&'static [&'static str]),
}

/// What the project is about; verbs of people are wrong beside them.
const NOUNS: [&str; 12] = [
    "pod", "pods", "job", "jobs", "queue", "queues", "node", "nodes", "gpu", "gpus", "figure",
    "figures",
];

/// Words that do not part a verb from its noun.
const BETWEEN: [&str; 16] = [
    "a", "an", "the", "its", "of", "is", "are", "was", "were", "be", "to", "not", "no", "has",
    "have", "that",
];

const PATTERNS: [Pattern; 22] = [
    anywhere("nobody", "no pod, no one, or a passive sentence"),
    anywhere("whoever", "the pod, the user"),
    anywhere("mend|mends|mended|mending", "fix"),
    anywhere("anew", "again, from scratch"),
    anywhere("dearest", "most expensive"),
    anywhere("in vain", "failed, without effect"),
    anywhere("let|lets go", "preempt, evict"),
    anywhere("of a|one moment", "snapshot"),
    anywhere("what waits", "pending pods, pending jobs"),
    anywhere("by its own word", "according to"),
    anywhere("is|are told", "reports, logs, records"),
    anywhere("was|were told", "reported, logged, recorded"),
    beside(&["stop", "stops", "stopped", "stopping"], "preempt, evict"),
    beside(&["who"], "that"),
    beside(&["held"], "allocated"),
    beside(&["kept"], "reserved, stored"),
    beside(&["turn", "turns"], "position, becomes"),
    beside(&["begin", "begins", "began"], "start"),
    beside(&["says", "say", "said"], "reports, sets the condition"),
    beside(&["stand", "stands", "stood"], "be, appear"),
    beside(&["look", "looks", "looked"], "check, sample, scan"),
    beside(&["blind"], "unmeasured"),
];

const fn anywhere(words: &'static str, instead: &'static str) -> Pattern {
    Pattern { words: Words::Anywhere(words), instead }
}

const fn beside(words: &'static [&'static str], instead: &'static str) -> Pattern {
    Pattern { words: Words::BesideNoun(words), instead }
}

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let is_read = |file: &&TextFile| {
        file.path.ends_with(".md")
            && !file.path.starts_with("docs/internals/")
            && !is_generated(file)
    };
    let documents: Vec<&TextFile> = workspace.texts.iter().filter(is_read).collect();
    let passages = documents.iter().flat_map(|file| {
        let lines = outside_fences(&file.text);
        lines.map(|(index, text)| Passage { path: &file.path, line: index + 1, text })
    });
    let mut violations: Vec<Violation> =
        passages.flat_map(|passage| violations_of(&passage)).collect();
    let mut count = 0;
    for file in &workspace.sources {
        for (text, line) in shown(file) {
            count += 1;
            violations.extend(violations_of(&Passage { path: &file.path, line, text: &text }));
        }
    }
    let looked_at = format!("{} documents and {count} texts of the program", documents.len());
    Ok(Outcome { violations, looked_at })
}

/// A generated reference has the words of help texts, which are its source.
fn is_generated(file: &TextFile) -> bool {
    file.text.starts_with("<!-- Written by")
}

fn violations_of(passage: &Passage<'_>) -> Vec<Violation> {
    let words = words_of(passage.text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let found = PATTERNS.iter().filter_map(|pattern| {
        let hit = hit(&pattern.words, &words)?;
        Some(Violation {
            path: passage.path.to_owned(),
            line: passage.line,
            message: format!("`{hit}` is not a word of the Kubernetes documentation"),
            mend: format!("write, for example: {}", pattern.instead),
        })
    });
    found.collect()
}

/// The words that break a pattern.
fn hit(pattern: &Words, words: &[&str]) -> Option<String> {
    match pattern {
        Words::Anywhere(row) => {
            let row: Vec<Vec<&str>> =
                row.split(' ').map(|word| word.split('|').collect()).collect();
            let windows = words.windows(row.len());
            let mut hits = windows.filter(|window| {
                row.iter().zip(*window).all(|(either, word)| either.contains(word))
            });
            hits.next().map(|window| window.join(" "))
        }
        Words::BesideNoun(verbs) => words.iter().enumerate().find_map(|(at, word)| {
            let before = words[..at].iter().rev().find(|word| !BETWEEN.contains(word));
            let after = words[at + 1..].iter().find(|word| !BETWEEN.contains(word));
            let nouns = || before.into_iter().chain(after);
            let is_hit = verbs.contains(word) && nouns().any(|noun| NOUNS.contains(noun));
            is_hit.then(|| (*word).to_owned())
        }),
    }
}

/// The words of a text in lower case, without code spans, quotations and targets of links. A mark
/// of punctuation is a word of its own, so that what is beside a noun ends with its clause.
fn words_of(text: &str) -> Vec<String> {
    if text.trim_start().starts_with('>') {
        return Vec::new();
    }
    let text = without(&without(&without(text, '`', '`'), '“', '”'), '"', '"');
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    let mut words = vec![String::new()];
    for letter in plain.chars() {
        if letter.is_alphanumeric() || matches!(letter, '_' | '\'' | '-') {
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        } else {
            if !letter.is_whitespace() && !matches!(letter, '[' | ']' | '*') {
                words.push(letter.to_string());
            }
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A text without what is between two marks. Of an odd number of marks the last begins nothing.
fn without(text: &str, open: char, close: char) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        let Some((_, behind)) = after.split_once(close) else { break };
        kept.push_str(before);
        kept.push('`');
        rest = behind;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each pattern, in order, a text that it finds and one that it does not.
    const EXAMPLES: [(&str, &str); 22] = [
        ("GPUs that nobody uses", "GPUs that `nobody` uses"),
        ("whoever asks", "the user who asks"),
        ("what mends it", "what fixes it, to be amended"),
        ("it is read anew", "it is read again"),
        ("dearest first", "dear reader"),
        ("tried in vain", "tried in a van"),
        ("it lets go of it", "it goes"),
        ("of one moment", "of a momentary lapse"),
        ("what waits is listed", "a request waits"),
        ("by its own word", "by its own name"),
        ("the owner is told", "the owner tells"),
        ("teams were told", "teams told us"),
        ("stop a pod", "stop the process"),
        ("a pod who waits", "people who wait for a pod"),
        ("GPUs held by pods", "the lock is held"),
        ("the node is kept", "the file is kept"),
        ("the pod turns", "the wheel turns"),
        ("the job begins", "the period begins"),
        ("the queue says so", "the manual says so"),
        ("figures stand in it", "people stand in it"),
        ("look at the pod; looked nodes over", "Look it up. Pods run."),
        ("blind GPUs", "a double-blind study"),
    ];

    fn hits(text: &str) -> Vec<usize> {
        let words = words_of(text);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let patterns = PATTERNS.iter().enumerate();
        patterns.filter_map(|(at, pattern)| hit(&pattern.words, &words).map(|_| at)).collect()
    }

    #[test]
    fn every_pattern_finds_its_words_and_no_others() {
        for (at, (wrong, right)) in EXAMPLES.into_iter().enumerate() {
            assert!(hits(wrong).contains(&at), "{wrong}");
            assert_eq!(hits(right), [0_usize; 0], "{right}");
        }
    }

    #[test]
    fn code_quotations_and_targets_of_links_are_exempt() {
        let exempt = [
            "`stop` pods",
            "> nobody",
            "it prints “nobody”, \"anew\"",
            "[a](nobody.md)",
            "The pod runs. Who asks?",
        ];
        for text in exempt {
            assert_eq!(hits(text), [0_usize; 0], "{text}");
        }
    }
}
