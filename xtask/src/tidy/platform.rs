//! Core names no clock, file, socket, process, thread or random hash, and no floating-point
//! function whose last bit depends on the platform. Test code may.

use anyhow::Result;
use syn::visit::{self, Visit};

use super::outcome::{Outcome, Violation};
use super::source::{NamedPath, RustFile, named_paths};
use super::workspace::Workspace;

/// Modules of the standard library that reach outside the program.
const OUTSIDE_MODULES: [&str; 6] = ["fs", "net", "process", "env", "thread", "os"];

/// Types whose content differs from run to run.
const RUN_DEPENDENT: [&str; 6] =
    ["SystemTime", "Instant", "HashMap", "HashSet", "RandomState", "DefaultHasher"];

/// Handles of `std::io` that belong to the process.
const PROCESS_STREAMS: [&str; 3] = ["stdin", "stdout", "stderr"];

/// Methods of `f64` and `f32` that the standard library leaves to the platform. `sqrt`, `abs`,
/// `floor` and the like are exact everywhere and stay.
const PLATFORM_MATHS: [&str; 28] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp",
    "exp2", "exp_m1", "gamma", "hypot", "ln", "ln_1p", "ln_gamma", "log", "log10", "log2", "powf",
    "powi", "sin", "sin_cos", "sinh", "tan", "tanh",
];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let core = workspace.sources.iter().filter(|file| file.path.starts_with("crates/core/"));
    let core: Vec<&RustFile> = core.collect();
    let violations = core.iter().flat_map(|file| violations_of(file)).collect();
    Ok(Outcome { violations, looked_at: format!("{} files of core", core.len()) })
}

fn violations_of(file: &RustFile) -> Vec<Violation> {
    let shipped = file.shipped();
    let mut maths = MathsFinder::default();
    maths.visit_file(&shipped);
    for path in named_paths(&shipped) {
        if let [.., kind, method] = path.segments.as_slice()
            && matches!(kind.as_str(), "f64" | "f32")
            && PLATFORM_MATHS.contains(&method.as_str())
        {
            maths.found.push((path.line, method.clone()));
        }
    }
    let maths = maths.found.into_iter().map(|(line, method)| Violation {
        path: file.path.clone(),
        line,
        message: format!("`{method}` of a float differs between platforms"),
        mend: format!("call libm::{method}, or use integers"),
    });
    let paths = named_paths(&shipped);
    let outside = paths.iter().filter(|path| reaches_outside(path)).map(|path| Violation {
        path: file.path.clone(),
        line: path.line,
        message: format!("core must not name `{}`", path.segments.join("::")),
        mend: "take the value as an argument; for maps use BTreeMap, a dense index or FxHashMap"
            .to_owned(),
    });
    let mut violations: Vec<Violation> = outside.chain(maths).collect();
    violations.sort_by_key(|violation| violation.line);
    violations
}

fn reaches_outside(path: &NamedPath) -> bool {
    let segments: Vec<&str> = path.segments.iter().map(String::as_str).collect();
    let module = match segments.as_slice() {
        ["std", module, ..] => OUTSIDE_MODULES.contains(module),
        _ => false,
    };
    let stream =
        segments.windows(2).any(|pair| pair[0] == "io" && PROCESS_STREAMS.contains(&pair[1]));
    module || stream || segments.iter().any(|segment| RUN_DEPENDENT.contains(segment))
}

#[derive(Default)]
struct MathsFinder {
    found: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for MathsFinder {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let method = call.method.to_string();
        if PLATFORM_MATHS.contains(&method.as_str()) {
            self.found.push((call.method.span().start().line, method));
        }
        visit::visit_expr_method_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let file = RustFile::parse("crates/core/plan/src/lib.rs", text).unwrap();
        violations_of(&file).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn clocks_files_hash_maps_and_platform_maths_are_found() {
        let text = "use std::{fs, time::Duration};\n\
                    use std::collections::{BTreeMap, HashMap};\n\
                    fn a() { let _ = std::time::Instant::now(); }\n\
                    fn b(x: f64) -> f64 { x.exp() }\n\
                    fn c(x: f64) -> f64 { f64::ln(x) }\n\
                    fn d() { g!(std::env::var(\"X\")); }\n\
                    fn e(x: f64) -> f64 { x.sqrt() + libm::exp(x) }\n";
        assert_eq!(lines(text), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn test_code_may_read_files() {
        assert_eq!(lines("#[cfg(test)]\nmod tests { use std::fs; }"), [0_usize; 0]);
    }
}
