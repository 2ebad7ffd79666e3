//! Functions that Kubernetes adds to CEL for quantities and semantic versions
//! (`k8s.io/apiserver/pkg/cel/library`), and the names of all that are known.

use std::cmp::Ordering;

use cel::common::functions::Function;
use cel::common::types::{BOOL_TYPE, CelBool, CelDouble, CelInt, CelString, STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal};
use cel::{DeclarationError, Env, ExecutionError, extensions};
use dovetail_model::Quantity;
use dovetail_model::quantity::MOST_OF_DEVICES;

use super::values::{CelQuantity, QUANTITY, SEMVER, Version};

const UNIT: i128 = 1_000_000_000;

type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// The functions of the standard library, of strings and of lists, and those declared here.
pub(super) const FUNCTIONS: [&str; 56] = [
    "add",
    "asApproximateFloat",
    "asInteger",
    "bool",
    "bytes",
    "charAt",
    "compareTo",
    "contains",
    "distinct",
    "double",
    "dyn",
    "endsWith",
    "exists",
    "flatten",
    "format",
    "hasValue",
    "indexOf",
    "int",
    "isGreaterThan",
    "isInteger",
    "isLessThan",
    "isQuantity",
    "isSemver",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "major",
    "matches",
    "max",
    "min",
    "minor",
    "none",
    "of",
    "ofNonZeroValue",
    "optional",
    "or",
    "orValue",
    "patch",
    "quantity",
    "range",
    "replace",
    "reverse",
    "semver",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "string",
    "sub",
    "substring",
    "trim",
    "type",
    "uint",
    "upperAscii",
];

/// In an environment that has the standard library.
pub(super) fn declare(env: &mut Env) {
    declared(env).expect("no function is declared twice");
}

fn declared(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    let text = || vec![STRING_TYPE];
    env.add_overload("quantity", "string_to_quantity", text(), |args| {
        let text = argument_text(&args[0])?;
        let read = Quantity::read(&text, MOST_OF_DEVICES);
        let read = read.map_err(|error| failed("quantity", &error))?;
        Ok(CowVal::owned(CelQuantity(read.to_billionths())))
    })?;
    env.add_overload("isQuantity", "is_quantity_string", text(), |args| {
        truth(Quantity::read(&argument_text(&args[0])?, MOST_OF_DEVICES).is_ok())
    })?;
    env.add_overload("semver", "string_to_semver", text(), |args| {
        let read = Version::read(&argument_text(&args[0])?);
        Ok(CowVal::owned(read.map_err(|error| failed("semver", &error))?))
    })?;
    env.add_overload("semver", "string_bool_to_semver", vec![STRING_TYPE, BOOL_TYPE], |args| {
        let read = Version::read(&normal(&argument_text(&args[0])?));
        Ok(CowVal::owned(read.map_err(|error| failed("semver", &error))?))
    })?;
    env.add_overload("isSemver", "is_semver_string", text(), |args| {
        truth(Version::read(&argument_text(&args[0])?).is_ok())
    })?;
    quantities(env)?;
    versions(env)
}

fn quantities(env: &mut Env) -> Result<(), DeclarationError> {
    let mut member = |name: &str, others: usize, op: Function| {
        let id = format!("quantity_{name}_{others}");
        let others: Vec<Type> = (0..others).map(|_| QUANTITY.to_owned()).collect();
        env.add_member_overload(name, &id, QUANTITY.to_owned(), others, op)
    };
    member("compareTo", 1, |args| ordering(amount(&args, 0)?.cmp(&amount(&args, 1)?)))?;
    member("isGreaterThan", 1, |args| truth(amount(&args, 0)? > amount(&args, 1)?))?;
    member("isLessThan", 1, |args| truth(amount(&args, 0)? < amount(&args, 1)?))?;
    member("sign", 0, |args| number(amount(&args, 0)?.signum() as i64))?;
    member("isInteger", 0, |args| truth(integer(amount(&args, 0)?).is_some()))?;
    member("asInteger", 0, |args| {
        let whole = integer(amount(&args, 0)?);
        number(whole.ok_or_else(|| failed("asInteger", &"cannot convert value to integer"))?)
    })?;
    member("asApproximateFloat", 0, |args| {
        let amount = amount(&args, 0)?;
        Ok(CowVal::owned(CelDouble::from(amount as f64 / UNIT as f64)))
    })?;
    member("add", 1, |args| sum(amount(&args, 0)?, amount(&args, 1)?))?;
    member("sub", 1, |args| sum(amount(&args, 0)?, -amount(&args, 1)?))?;
    for (name, sign) in [("add", 1), ("sub", -1)] {
        let op: Function = match sign {
            1 => |args| sum(amount(&args, 0)?, i128::from(whole(&args[1])?) * UNIT),
            _ => |args| sum(amount(&args, 0)?, -i128::from(whole(&args[1])?) * UNIT),
        };
        let int = vec![cel::common::types::INT_TYPE];
        env.add_member_overload(
            name,
            &format!("quantity_{name}_int"),
            QUANTITY.to_owned(),
            int,
            op,
        )?;
    }
    Ok(())
}

fn versions(env: &mut Env) -> Result<(), DeclarationError> {
    let mut member = |name: &str, others: usize, op: Function| {
        let id = format!("semver_{name}_{others}");
        let others: Vec<Type> = (0..others).map(|_| SEMVER.to_owned()).collect();
        env.add_member_overload(name, &id, SEMVER.to_owned(), others, op)
    };
    member("compareTo", 1, |args| ordering(compared(&args)?))?;
    member("isGreaterThan", 1, |args| truth(compared(&args)?.is_gt()))?;
    member("isLessThan", 1, |args| truth(compared(&args)?.is_lt()))?;
    member("major", 0, |args| number(version(&args, 0)?.major.cast_signed()))?;
    member("minor", 0, |args| number(version(&args, 0)?.minor.cast_signed()))?;
    member("patch", 0, |args| number(version(&args, 0)?.patch.cast_signed()))
}

/// As upstream normalizes: without a leading `v`, with the parts that are missing, and without
/// leading zeros.
fn normal(text: &str) -> String {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<&str> = numbers.splitn(3, '.').collect();
    parts.resize(3, "0");
    let plain = parts.iter().map(|part| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0",
        short => short,
    });
    format!("{}{rest}", plain.collect::<Vec<_>>().join("."))
}

fn integer(billionths: i128) -> Option<i64> {
    (billionths % UNIT == 0).then(|| i64::try_from(billionths / UNIT).ok()).flatten()
}

fn sum<'b, 'v>(one: i128, other: i128) -> Answer<'b, 'v> {
    Ok(CowVal::owned(CelQuantity(one.saturating_add(other))))
}

fn truth<'b, 'v>(truth: bool) -> Answer<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(truth)))
}

fn number<'b, 'v>(number: i64) -> Answer<'b, 'v> {
    Ok(CowVal::owned(CelInt::from(number)))
}

fn ordering<'b, 'v>(ordering: Ordering) -> Answer<'b, 'v> {
    number(ordering as i64)
}

fn amount(args: &[CowVal<'_, '_>], at: usize) -> Result<i128, ExecutionError> {
    Ok(argument::<CelQuantity>(args, at)?.0)
}

fn version<'a>(
    args: &'a [CowVal<'_, '_>],
    at: usize,
) -> Result<&'a semver::Version, ExecutionError> {
    Ok(&argument::<Version>(args, at)?.0)
}

fn compared(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(version(args, 0)?.cmp_precedence(version(args, 1)?))
}

fn argument<'a, T: StaticVal>(
    args: &'a [CowVal<'_, '_>],
    at: usize,
) -> Result<&'a T, ExecutionError> {
    let found = args.get(at).and_then(|one| one.downcast_ref::<T>());
    found.ok_or_else(ExecutionError::missing_argument_or_target)
}

fn argument_text(value: &CowVal<'_, '_>) -> Result<String, ExecutionError> {
    let text = value.downcast_ref::<CelString<'_>>();
    let text = text.ok_or_else(ExecutionError::missing_argument_or_target)?;
    Ok(text.inner().to_string())
}

fn whole(value: &CowVal<'_, '_>) -> Result<i64, ExecutionError> {
    let number = value.downcast_ref::<CelInt>();
    Ok(*number.ok_or_else(ExecutionError::missing_argument_or_target)?.inner())
}

fn failed(function: &str, error: &dyn std::fmt::Display) -> ExecutionError {
    ExecutionError::function_error(function, error)
}
