//! What can be said of an expression before it is evaluated: whether all its names are known, and
//! what it costs at most.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr};

use super::functions::FUNCTIONS;

/// The most that an evaluation may cost, as `CELSelectorExpressionMaxCost` in `resource.k8s.io`.
const MOST_COST: u64 = 1_000_000;
/// Elements of the longest list or map of a device
/// (`ResourceSliceMaxAttributesAndCapacitiesPerDevice`, and lists of attributes).
const LONGEST: u64 = 48;
/// Names of types, which stand for themselves.
const TYPES: [&str; 13] = [
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "optional",
    "string",
    "type",
    "uint",
    "math",
];
/// Fields of a device.
const FIELDS: [&str; 4] = ["driver", "attributes", "capacity", "allowMultipleAllocations"];

/// Longest expression, in bytes (`CELSelectorExpressionMaxLength`).
const LONGEST_TEXT: usize = 10 * 1024;
/// Brackets, and operators before a value, that may stand inside each other, as in upstream's
/// parser.
const DEEPEST: usize = 250;

/// Refuses a text that is too long, or nested too deeply, to be read.
pub(super) fn size(text: &str) -> Result<(), String> {
    let problem = |what: &str| Err(format!("CEL compile error: the expression is {what}"));
    let (mut open, mut before) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'?' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        before = if matches!(byte, b'!' | b'-' | b' ') { before + 1 } else { 0 };
        if open > DEEPEST || before > DEEPEST {
            return problem("nested too deeply");
        }
    }
    match text.len() <= LONGEST_TEXT {
        true => Ok(()),
        false => problem("too long"),
    }
}

/// Refuses an expression with names that nobody knows, or that may cost too much.
pub(super) fn check(expression: &IdedExpr) -> Result<(), String> {
    let cost = Scope(Vec::new()).cost(expression)?;
    match cost <= MOST_COST {
        true => Ok(()),
        false => Err(format!("the expression may cost {cost}, but at most {MOST_COST} is allowed")),
    }
}

/// Variables that macros bring in.
struct Scope<'e>(Vec<&'e str>);

impl<'e> Scope<'e> {
    fn cost(&mut self, of: &'e IdedExpr) -> Result<u64, String> {
        let rest = match &of.expr {
            Expr::Ident(name) => self.known(name)?,
            Expr::Select(select) => {
                let is_device =
                    matches!(&select.operand.expr, Expr::Ident(name) if name == "device");
                if is_device && !self.0.contains(&"device") && !FIELDS.contains(&&*select.field) {
                    return Err(format!("undefined field '{}'", select.field));
                }
                self.cost(&select.operand)?
            }
            Expr::Call(call) => self.call(call)?,
            Expr::List(list) => self.sum(list.elements.iter())?,
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr))?,
            Expr::Struct(of) => {
                return Err(format!("undeclared reference to '{}'", of.type_name));
            }
            Expr::Comprehension(of) => self.comprehension(of)?,
            Expr::Literal(_) | Expr::Unspecified => 0,
        };
        Ok(rest.saturating_add(1))
    }

    fn known(&self, name: &str) -> Result<u64, String> {
        let is_known = name == "device" || self.0.contains(&name) || TYPES.contains(&name);
        match is_known {
            true => Ok(0),
            false => Err(format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn call(&mut self, call: &'e CallExpr) -> Result<u64, String> {
        let is_known = FUNCTIONS.contains(&&*call.func_name)
            // Operators, and what macros are made of.
            || call.func_name.starts_with(['_', '@', '!', '-']);
        if !is_known {
            return Err(format!("undeclared reference to '{}' (in container '')", call.func_name));
        }
        let target = call.target.iter().map(|target| &**target);
        self.sum(target.chain(&call.args))
    }

    fn entries(&mut self, entries: impl Iterator<Item = &'e EntryExpr>) -> Result<u64, String> {
        let mut sum = 0_u64;
        for entry in entries {
            let cost = match entry {
                EntryExpr::StructField(field) => self.cost(&field.value)?,
                EntryExpr::MapEntry(entry) => self.sum([&entry.key, &entry.value].into_iter())?,
            };
            sum = sum.saturating_add(cost);
        }
        Ok(sum)
    }

    fn sum(&mut self, of: impl Iterator<Item = &'e IdedExpr>) -> Result<u64, String> {
        let mut sum = 0_u64;
        for one in of {
            sum = sum.saturating_add(self.cost(one)?);
        }
        Ok(sum)
    }

    fn comprehension(&mut self, of: &'e ComprehensionExpr) -> Result<u64, String> {
        let before = self.sum([&of.iter_range, &of.accu_init].into_iter())?;
        let elements = match &of.iter_range.expr {
            Expr::List(list) => list.elements.len() as u64,
            Expr::Map(map) => map.entries.len() as u64,
            _ => LONGEST,
        };
        let outside = self.0.len();
        self.0.extend([&*of.iter_var, &*of.accu_var]);
        self.0.extend(of.iter_var2.as_deref());
        let each = self.sum([&of.loop_cond, &of.loop_step].into_iter());
        let after = self.cost(&of.result);
        self.0.truncate(outside);
        Ok(before.saturating_add(elements.saturating_mul(each?)).saturating_add(after?))
    }
}
