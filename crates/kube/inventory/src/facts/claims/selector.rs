//! What the selectors of devices say, as far as it is understood. They are CEL expressions, which
//! nobody evaluates here: of each comparison that is known it is clear which drivers' devices it
//! can be true for, all others leave that open.

use super::driver::{DRIVERS, GpuDriver};
use super::whose::Whose;

/// What is understood of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) whose: Whose,
    pub(super) profile: Option<Box<str>>,
    /// Whether it is about parts of GPUs, whichever.
    pub(super) is_part: bool,
}

/// Deeper than anybody writes: what lies deeper leaves everything open.
const MOST_DEPTH: usize = 32;

impl Selected {
    /// What one expression says.
    pub(super) fn by(expression: &str) -> Self {
        Self::of(expression, true, MOST_DEPTH)
    }

    /// With what another one says beside it.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            whose: self.whose.and(other.whose),
            profile: self.profile.or(other.profile),
            is_part: self.is_part || other.is_part,
        }
    }

    /// Where one of both holds.
    fn or(self, other: Self) -> Self {
        let differs = self.profile != other.profile;
        Self {
            whose: self.whose.or(other.whose),
            is_part: self.is_part || other.is_part || differs,
            profile: self.profile.filter(|_| !differs),
        }
    }

    /// Of an expression that is true, or is not.
    fn of(text: &str, is_true: bool, depth: usize) -> Self {
        let text = text.trim();
        let Some(depth) = depth.checked_sub(1) else { return Self::default() };
        let outside = outside_brackets(text);
        if let [(0, '('), (last, ')')] = *outside {
            return Self::of(&text[1..last], is_true, depth);
        }
        // Which of two values it has, nobody knows. A field that may be missing is written with the
        // same letter.
        let asks = |at: usize| text[at..].starts_with('?') && !text[..at].ends_with('.');
        if outside.iter().any(|(at, _)| asks(*at)) {
            return Self::default();
        }
        for (sign, is_either) in [("||", is_true), ("&&", !is_true)] {
            let parts = parts(text, &outside, sign);
            if parts.len() > 1 {
                let join = if is_either { Self::or } else { Self::and };
                let each = parts.into_iter().map(|part| Self::of(part, is_true, depth));
                return each.reduce(join).unwrap_or_default();
            }
        }
        match text.strip_prefix('!') {
            Some(rest) => Self::of(rest, !is_true, depth),
            None => Self::by_comparison(text, is_true),
        }
    }

    /// Of a text without signs that join others.
    fn by_comparison(text: &str, is_true: bool) -> Self {
        let pieces = pieces(text);
        let whose = whose(&pieces, is_true);
        let is_compared = |piece: &&QuotedText<'_>| {
            !piece.before.ends_with("!=") && !piece.after.starts_with("!=")
        };
        let mut named = pieces.iter().filter(|_| is_true).filter(is_compared);
        let is_part = named.any(|piece| DRIVERS.iter().any(|driver| driver.is_part(piece.quoted)));
        // What has no profile makes nothing true, its opposite neither.
        let profile = profile(&pieces).filter(|_| is_true);
        let is_part = is_part || (profile.is_none() && names_profile(&unquoted(text, &pieces)));
        Self { whose, profile: profile.map(Into::into), is_part }
    }
}

/// The profile that a comparison is true for, where it is true for one alone.
fn profile<'t>(pieces: &[QuotedText<'t>]) -> Option<&'t str> {
    let is_one = |QuotedText { before, quoted, after }: &&QuotedText<'_>| {
        let named = match before.strip_suffix("==") {
            Some(named) if after.is_empty() => named,
            // What is compared with follows, and may have a text of its own in it.
            None if before.is_empty() && after.starts_with("==") => {
                pieces.last().map_or("", |last| &last.after).trim_start_matches("==")
            }
            _ => return false,
        };
        is_profile(quoted) && ends_with_its_name(named)
    };
    pieces.iter().find(is_one).map(|piece| piece.quoted)
}

/// Attributes that say which part of a GPU it is.
fn profile_names() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().map(|driver| driver.profile).filter(|name| !name.is_empty())
}

fn ends_with_its_name(text: &str) -> bool {
    profile_names().any(|name| text.strip_suffix(name).is_some_and(is_apart))
}

/// Whether such an attribute stands in a text.
fn names_profile(text: &str) -> bool {
    profile_names().flat_map(|name| text.match_indices(name)).any(|(at, _)| is_apart(&text[..at]))
}

/// Whether a name begins behind a text.
fn is_apart(before: &str) -> bool {
    !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

/// What stands in no quotation marks.
fn unquoted(text: &str, pieces: &[QuotedText<'_>]) -> String {
    match pieces.last() {
        None => text.to_owned(),
        Some(last) => {
            let before = pieces.iter().map(|piece| &*piece.before);
            before.chain([&*last.after]).collect::<Vec<_>>().join(" ")
        }
    }
}

/// A text in quotation marks, with what stands around it without blanks.
struct QuotedText<'t> {
    before: String,
    quoted: &'t str,
    after: String,
}

fn pieces(text: &str) -> Vec<QuotedText<'_>> {
    let mut texts = Vec::new();
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once(['"', '\'']) {
        let mark = &rest[before.len()..=before.len()];
        let Some((quoted, after)) = opened.split_once(mark) else { break };
        texts.push((before, quoted, after));
        rest = after;
    }
    let plain = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    let until_next = |text: &str| plain(text.split(['"', '\'']).next().unwrap_or_default());
    let piece = |(before, quoted, after)| QuotedText {
        before: plain(before),
        quoted,
        after: until_next(after),
    };
    texts.into_iter().map(piece).collect()
}

/// Whose devices a comparison is true, or not true, for.
fn whose(pieces: &[QuotedText<'_>], is_true: bool) -> Whose {
    const DRIVER: &str = "device.driver";
    if let [QuotedText { before, quoted, after }] = pieces {
        let sign = match (before.strip_prefix(DRIVER), after.strip_suffix(DRIVER)) {
            (Some(sign), None) if after.is_empty() || after == ")" => sign,
            (None, Some(sign)) if before.is_empty() => sign,
            _ => "",
        };
        // Other drivers' names may be such, whether the test is of this kind or its opposite.
        let tests =
            |is_such: fn(&str, &str) -> bool| Whose::named(|name| is_such(name, quoted) == is_true);
        match sign {
            "==" if is_true => return Whose::exactly(quoted),
            "!=" if !is_true => return Whose::exactly(quoted),
            "==" | "!=" => return Whose::named(|name| name != *quoted),
            ".startsWith(" => return tests(|name, text| name.starts_with(text)),
            ".endsWith(" => return tests(|name, text| name.ends_with(text)),
            ".contains(" => return tests(|name, text| name.contains(text)),
            _ => {}
        }
    }
    // Of the attributes of a driver: what is not there makes nothing true, but in an optional.
    let is_optional = pieces.iter().any(|piece| {
        [&piece.before, &piece.after]
            .iter()
            .any(|text| text.contains('?') || text.contains("orValue"))
    });
    let is_of = |QuotedText { before, after, .. }: &&QuotedText<'_>| {
        before.ends_with("device.attributes[")
            || before.ends_with("device.capacity[")
            || (before.is_empty() && after == "indevice.attributes")
    };
    let named = pieces.iter().filter(is_of).filter_map(|piece| GpuDriver::named(piece.quoted));
    match is_true && !is_optional {
        true => named.map(Whose::of).fold(Whose::ANYBODY, Whose::and),
        false => Whose::ANYBODY,
    }
}

/// The letters of a text that are in no brackets and in no quotation marks, and the outermost
/// brackets.
fn outside_brackets(text: &str) -> Vec<(usize, char)> {
    let (mut depth, mut quote) = (0_u32, None);
    let is_outside = |(_, letter): &(usize, char)| {
        if quote.is_some() {
            quote = quote.filter(|mark| mark != letter);
            return false;
        }
        match letter {
            '"' | '\'' => quote = Some(*letter),
            '(' | '[' | '{' => {
                depth += 1;
                return depth == 1;
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && quote.is_none()
    };
    text.char_indices().filter(is_outside).collect()
}

/// The parts of a text between signs that are `outside` of brackets.
fn parts<'t>(text: &'t str, outside: &[(usize, char)], sign: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in outside {
        if *at >= from && text[*at..].starts_with(sign) {
            parts.push(&text[from..*at]);
            from = at + sign.len();
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Whether a text is the profile of a MIG device: `1g.10gb`, `1c.3g.40gb`, `1g.10gb+me`.
fn is_profile(text: &str) -> bool {
    let plain = text.split_once('+').map_or(text, |(plain, _)| plain);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = plain.rsplit('.');
    let memory = parts.next().and_then(|part| part.strip_suffix("gb")).is_some_and(digits);
    let compute = parts.next().and_then(|part| part.strip_suffix('g')).is_some_and(digits);
    let shape = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    memory && compute && text.len() <= 32 && text.chars().all(shape)
}

/// Of a selector that which is understood, as one that says only this; anything else in it may be
/// somebody's name.
pub(crate) fn reduced(expression: &str) -> String {
    let Selected { whose, profile, is_part } = Selected::by(expression);
    let profile = profile.map(|profile| format!("profile == '{profile}'"));
    let part = is_part.then(|| "type == 'mig'".to_owned());
    let whose = Some(whose.as_selector()).filter(|text| !text.is_empty());
    let told: Vec<String> = [whose, part, profile].into_iter().flatten().collect();
    told.join(" && ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NVIDIA: &str = "gpu.nvidia.com";

    /// Names of the drivers of GPUs that it may be, and whether it may be another one.
    fn whose_by(text: &str) -> (Vec<&'static str>, bool) {
        let whose = Selected::by(text).whose;
        let gpus = DRIVERS.iter().filter(|driver| whose.may_be(driver.resource));
        (gpus.map(|driver| driver.name).collect(), whose.may_be("example.com/gpu"))
    }

    fn part_by(text: &str) -> (Option<String>, bool) {
        let Selected { profile, is_part, .. } = Selected::by(text);
        (profile.as_deref().map(str::to_owned), is_part)
    }

    /// By hand, from what CEL makes of each.
    #[test]
    fn selectors_say_whose_devices_they_may_be_true_for() {
        let (amd, intel) = ("gpu.amd.com", "gpu.intel.com");
        let of_nvidia = "device.attributes['gpu.nvidia.com'].productName";
        let all = vec![NVIDIA, amd, intel];
        for (text, gpus, is_others) in [
            ("device.driver == \"gpu.nvidia.com\"", vec![NVIDIA], false),
            ("'gpu.nvidia.com'==device.driver && true", vec![NVIDIA], false),
            ("device.driver != 'gpu.nvidia.com'", vec![amd, intel], true),
            ("!(device.driver == 'gpu.nvidia.com')", vec![amd, intel], true),
            ("device.driver == 'net.example.com'", vec![], true),
            ("device.driver != 'net.example.com'", all.clone(), true),
            ("device.driver.startsWith('gpu.')", all.clone(), true),
            ("device.driver.endsWith(\"nvidia.com\")", vec![NVIDIA], true),
            ("!device.driver.endsWith('nvidia.com')", vec![amd, intel], true),
            ("device.driver.startsWith('net.')", vec![], true),
            ("device.attributes[dra.domain].type == 'gpu'", all.clone(), true),
            ("device.allowMultipleAllocations == false", all.clone(), true),
            ("device.attributes['x.y'].size > 3", all.clone(), true),
            (
                "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0",
                vec![NVIDIA],
                false,
            ),
            (
                "device.driver == 'gpu.nvidia.com' || device.driver == 'gpu.amd.com'",
                vec![NVIDIA, amd],
                false,
            ),
            (
                "device.driver == 'gpu.nvidia.com' || device.driver == 'net.example.com'",
                vec![NVIDIA],
                true,
            ),
            ("(device.driver == 'gpu.nvidia.com') && (x == '||' || y == ')')", vec![NVIDIA], false),
            ("size > 3 ? device.driver == 'gpu.nvidia.com' : true", all.clone(), true),
            ("device.driver == 'gpu.nvidia.com", all.clone(), true),
            ("'gpu.nvidia.com' in device.attributes", vec![NVIDIA], false),
            ("!('gpu.nvidia.com' in device.attributes)", all.clone(), true),
            (&format!("{of_nvidia} == 'A' || {of_nvidia} == 'B'"), vec![NVIDIA], false),
            (&"(!".repeat(20_000), all.clone(), true),
            ("", all.clone(), true),
        ] {
            assert_eq!(whose_by(text), (gpus, is_others), "{text:.80}");
            assert_eq!(Selected::by(&reduced(text)), Selected::by(text), "{text:.80}");
        }
    }

    #[test]
    fn selectors_say_which_slice_and_nothing_else_is_kept_of_them() {
        let part = |text: &str| part_by(&format!("device.attributes['gpu.nvidia.com'].{text}"));
        let profile = |text: &str| (Some(text.to_owned()), false);
        assert_eq!(part("type == 'mig'"), (None, true));
        assert_eq!(part("type != 'mig'"), (None, false));
        assert_eq!(part("profile == '1g.10gb' && secret == 'canary'"), profile("1g.10gb"));
        for open in [
            "profile != '1g.10gb'",
            "profile in ['1g.10gb', '3g.40gb']",
            "profile.startsWith('1g.')",
            "profile == (true ? '1g.10gb' : '3g.40gb')",
            "profile == '1g.10gb' == false",
            "profile == 'odd'",
        ] {
            assert_eq!(part(open), (None, true), "{open}");
            let text = format!("device.attributes['gpu.nvidia.com'].{open}");
            assert_eq!(Selected::by(&reduced(&text)), Selected::by(&text), "{open}");
        }
        let of_nvidia = "device.attributes['gpu.nvidia.com'].profile";
        assert_eq!(part_by(&format!("!({of_nvidia} == '1g.10gb')")), (None, true));
        assert_eq!(part_by(&format!("'1g.10gb' == {of_nvidia}")), profile("1g.10gb"));
        let in_list = format!("['1g.10gb', '3g.40gb'].exists(p, {of_nvidia} == p)");
        assert_eq!(part_by(&in_list), (None, true));
        assert_eq!(part("productName == 'profile'"), (None, false));
        assert_eq!(part("profile == '1g.10gb' || profile == '3g.40gb'"), (None, true));
        let one = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb' && secret == 'canary'";
        for text in [one, "x == 'a.gb'", "'1g.10gb", "type == 'mig' && canary"] {
            assert_eq!(Selected::by(&reduced(text)), Selected::by(text), "{text}");
            assert!(!reduced(text).contains("canary"));
        }
        for no in ["g.10gb", "1g.gb", "10gb", "1g.10gb+me canary"] {
            assert!(!is_profile(no), "{no}");
        }
        assert!(is_profile("1g.10gb+me") && is_profile("1c.3g.40gb"));
    }
}
