//! Durations, percentages, dollars, bytes and GPU-hours for people look the same everywhere,
//! because `core/units` alone rounds them: elsewhere no literal rounds a figure beside its unit.

use anyhow::Result;
use syn::visit::Visit;

use super::labels::Strings;
use super::outcome::{Outcome, Violation};
use super::source::RustFile;
use super::workspace::Workspace;

/// The one crate that formats.
const UNITS: &str = "crates/core/units/";

/// What stands behind a figure that somebody reads.
const BEHIND: [&str; 11] =
    ["%", " h", " min", " s", " ms", " d", " GPU-hours", " GPUs", " GiB", " MiB", " a month"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let is_product = |file: &&RustFile| {
        file.path.starts_with("crates/")
            && !file.path.starts_with(UNITS)
            && !file.path.starts_with("crates/testkit/")
    };
    let files: Vec<&RustFile> = workspace.sources.iter().filter(is_product).collect();
    let violations = files.iter().flat_map(|file| violations_of(file)).collect();
    Ok(Outcome { violations, looked_at: format!("{} files", files.len()) })
}

fn violations_of(file: &RustFile) -> Vec<Violation> {
    let mut strings = Strings::default();
    strings.visit_file(&file.shipped());
    let wrong = strings.found.into_iter().filter(|(text, _)| rounds_beside_a_unit(text));
    let violation = |(_, line): (String, usize)| Violation {
        path: file.path.clone(),
        line,
        message: "a figure is rounded right beside its unit".to_owned(),
        mend: "call what formats it in crates/core/units, or add it there".to_owned(),
    };
    wrong.map(violation).collect()
}

/// Whether a format has a placeholder with a number of digits between `$` and a unit.
fn rounds_beside_a_unit(text: &str) -> bool {
    let mut places = text.match_indices(":.").chain(text.match_indices(":+."));
    places.any(|(at, found)| {
        let (before, behind) = (&text[..at], &text[at + found.len()..]);
        let Some(open) = before.rfind('{') else { return false };
        let Some((digits, behind)) = behind.split_once('}') else { return false };
        let is_placeholder = digits.chars().all(|c| c.is_ascii_digit());
        let has_unit = |unit: &&str| {
            behind.strip_prefix(*unit).is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
        };
        // A width or a place in a style sheet is no figure.
        let is_style = before[..open].ends_with(':') && behind.starts_with('%');
        is_placeholder
            && !is_style
            && (before[..open].ends_with('$') || BEHIND.iter().any(has_unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_beside_their_units_in_one_crate() {
        for text in
            ["{hours:.1} h", "it cost ${:.2} then", "{:.0}% of it", "{g:.1} GPU-hours", "{:+.1}%"]
        {
            assert!(rounds_beside_a_unit(text), "{text}");
        }
        for text in ["{value:.2}", "{:.1} Standard", "a: {} h", "width:{:.1}%", "{} of {x:.3} kg"] {
            assert!(!rounds_beside_a_unit(text), "{text}");
        }
    }
}
