//! Tips for words that the command line does not know. clap offers the most similar of all names,
//! hidden aliases included, however different it is. Here a name must be near, and only names that
//! the help shows are offered.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use strsim::osa_distance;

/// The error with tips that name what is near, or without tips. `root` has parsed the line.
pub(crate) fn with_near_tips(mut error: Error, root: &mut Command, line: &[OsString]) -> Error {
    let words = line.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    match error.kind() {
        ErrorKind::UnknownArgument => tip_for_flag(&mut error, root, &words),
        ErrorKind::InvalidSubcommand => tip_for_command(&mut error, root, &words),
        _ => {}
    }
    error
}

fn tip_for_command(error: &mut Error, root: &Command, words: &[String]) {
    let wrong = error.get(ContextKind::InvalidSubcommand);
    let Some(ContextValue::String(wrong)) = wrong else { return };
    let children = Stop::of(root, words).level.get_subcommands();
    // The help of the program names `options`, which has no line of its own there.
    let shown = children.filter(|child| !child.is_hide_set() || child.get_name() == "options");
    let near = nearest(wrong, shown.map(|child| (child.get_name(), child.get_name())));
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    if let Some(near) = near {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near.names));
    }
}

fn tip_for_flag(error: &mut Error, root: &mut Command, words: &[String]) {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return };
    let Some(wrong) = wrong.strip_prefix("--") else { return };
    let stop = Stop::of(root, words);
    let here = nearest(wrong, flags(stop.level));
    let (later, names) = named_later(stop.level, stop.after);
    let there = nearest(wrong, flags(later)).filter(|there| {
        !names.is_empty() && here.as_ref().is_none_or(|here| there.steps < here.steps)
    });
    let place = there.and_then(|there| {
        let command = [stop.path.as_slice(), names.as_slice()].concat().join(" ");
        let (flag, valid) = (there.names.first()?, root.get_styles().get_valid());
        let tip = format!(
            "write '{valid}--{flag}{valid:#}' after the command: \
             '{valid}{command} --{flag}{valid:#}'"
        );
        Some(StyledStr::from(tip))
    });
    let path = stop.path;
    let offered = error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Suggested);
    let tips: Vec<String> = match (&place, here) {
        (None, Some(here)) => here.names.iter().map(|name| format!("--{name}")).collect(),
        _ => Vec::new(),
    };
    // clap's usage line shows the flag that clap offered.
    let is_usage_right = match offered {
        Some(ContextValue::String(offered)) => tips.contains(&offered),
        _ => true,
    };
    if let Some(place) = place {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![place]));
    } else if !tips.is_empty() {
        error.insert(ContextKind::SuggestedArg, ContextValue::Strings(tips));
    }
    let level = path.iter().try_fold(root, |level, name| level.find_subcommand_mut(name));
    if let Some(level) = level.filter(|_| !is_usage_right) {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(level.render_usage()));
    }
}

/// Where the parser refused a word.
struct Stop<'c, 'w> {
    level: &'c Command,
    /// The names of the commands above and of `level`, without that of the program.
    path: Vec<&'w str>,
    /// The words that follow the refused one.
    after: &'w [String],
}

impl<'c, 'w> Stop<'c, 'w> {
    fn of(root: &'c Command, words: &'w [String]) -> Self {
        let mut stop = Self { level: root, path: Vec::new(), after: words };
        while let Some((word, after)) = stop.after.split_first() {
            stop.after = after;
            if word.starts_with('-') {
                let Some(flag) = flag_named(stop.level, word) else { break };
                stop.after = after.get(count_values(flag, word, after)..).unwrap_or_default();
            } else if word == "help" {
                // The words behind it name commands as if it were not there.
            } else if let Some(child) = stop.level.find_subcommand(word) {
                stop.level = child;
                stop.path.push(word);
            } else if stop.level.get_positionals().next().is_none() {
                break;
            }
        }
        stop
    }
}

/// The command below `level` that later words name, with these names.
fn named_later<'c, 'w>(level: &'c Command, words: &'w [String]) -> (&'c Command, Vec<&'w str>) {
    let (mut level, mut names) = (level, Vec::new());
    for word in words.iter().filter(|word| *word != "help") {
        if let Some(child) = level.find_subcommand(word) {
            level = child;
            names.push(word.as_str());
        }
    }
    (level, names)
}

/// The flag of a command that a word such as `--config=x` or `-o` names.
fn flag_named<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|flag| match word.strip_prefix("--") {
        Some(long) => spellings(flag).contains(&long.split('=').next().unwrap_or_default()),
        None => flag.get_short().is_some_and(|short| word.chars().nth(1) == Some(short)),
    })
}

/// How many of the words after a flag are its values.
fn count_values(flag: &Arg, word: &str, after: &[String]) -> usize {
    let is_attached = word.contains('=') || (!word.starts_with("--") && word.len() > 2);
    if is_attached || !flag.get_action().takes_values() {
        return 0;
    }
    let most = flag.get_num_args().map_or(1, |range| range.max_values());
    after.iter().take(most).take_while(|word| !word.starts_with('-')).count()
}

/// Spellings of the flags that the help of a command shows, each with the name shown there.
fn flags(command: &Command) -> Vec<(&str, &str)> {
    let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
    let named = shown.filter_map(|flag| Some((flag, flag.get_long()?)));
    let spelled = named
        .flat_map(|(flag, name)| spellings(flag).into_iter().map(move |spelling| (spelling, name)));
    spelled.collect()
}

/// The long name of a flag and its aliases.
fn spellings(flag: &Arg) -> Vec<&str> {
    let mut all = flag.get_all_aliases().unwrap_or_default();
    all.extend(flag.get_long());
    all
}

/// Names that are near a word, all equally.
struct Near {
    steps: usize,
    names: Vec<String>,
}

/// The nearest of names, given as pairs of a spelling and the name to show.
fn nearest<'n>(word: &str, names: impl IntoIterator<Item = (&'n str, &'n str)>) -> Option<Near> {
    let pairs = names.into_iter();
    let near: Vec<(usize, &str)> =
        pairs.filter_map(|(spelling, name)| Some((steps(word, spelling)?, name))).collect();
    let steps = near.iter().map(|(steps, _)| *steps).min()?;
    let nearest = near.iter().filter(|(of_name, _)| *of_name == steps);
    let names: BTreeSet<&str> = nearest.map(|(_, name)| *name).collect();
    Some(Near { steps, names: names.into_iter().map(str::to_owned).collect() })
}

/// How many letters of a word to change for a name, if at most a third. The start of a name counts
/// as one, and a `no-` before a name as none: `--no-color` means a value of `--color`.
fn steps(word: &str, name: &str) -> Option<usize> {
    let words = [Some(word), word.strip_prefix("no-")].into_iter().flatten();
    let near = words.filter_map(|word| {
        let letters = word.chars().count();
        let steps = if word == name {
            0
        } else if letters >= 3 && name.starts_with(word) {
            1
        } else {
            osa_distance(word, name)
        };
        (steps <= letters.max(3) / 3).then_some(steps)
    });
    near.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_if_a_third_of_the_letters_change() {
        for (word, name, expected) in [
            ("audti", "audit", Some(1)),
            ("exmaple", "example", Some(1)),
            ("perid", "period", Some(1)),
            ("anonymos", "anonymise", Some(2)),
            ("kube", "kubeconfig", Some(1)),
            ("no-colour", "colour", Some(0)),
            ("kubeconfig", "config", None),
            ("severity", "version", None),
            ("queston", "version", None),
            ("x", "by", None),
        ] {
            assert_eq!(steps(word, name), expected, "{word} {name}");
        }
    }
}
