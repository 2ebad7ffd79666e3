//! Selectors: expressions in CEL about one device (`device.driver`, `device.attributes`,
//! `device.capacity`, `device.allowMultipleAllocations`).
//!
//! Parsing and evaluation are those of crate `cel`. Upstream checks types before it evaluates; here
//! names are checked, and a wrong type is an error of the evaluation. Upstream counts what an
//! evaluation costs and stops at a limit; here the most that it could cost is estimated before, and
//! an expression above the same limit is refused.
//!
//! Two things are known to differ: sums of quantities can be compared with `==`, which is an error
//! upstream, and `x in []` is an error where `x` is one, which upstream does not evaluate. All else
//! is compared with upstream on random selectors (`dovetail-scheduler`, test `selectors`).

mod check;
mod functions;
mod reads;
mod values;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::common::types::{CelBool, CelInt, CelList, CelMap, CelMapKey, CelString};
use cel::common::value::Val;
use cel::{Context, Env, Program, Value};
use dovetail_objects::{DeviceAttribute, OfferedDevice};

use reads::ReadFields;
use values::{CelQuantity, Domains, Version};

/// Compiles selectors.
pub(crate) struct Language {
    env: Arc<Env>,
}

/// A compiled selector.
#[derive(Debug)]
pub(crate) struct CelSelector {
    program: Program,
    /// What it reads of a device; `None` where that may be all.
    reads: Option<ReadFields>,
}

impl CelSelector {
    /// A text that is the same for devices of which the same is true; `None` where it is not known
    /// what decides that.
    pub(crate) fn content(&self, driver: &str, device: &OfferedDevice) -> Option<String> {
        self.reads.as_ref().map(|reads| reads.content(driver, device))
    }
}

/// Hundreds of functions, which are the same for all: declared once.
static DECLARED: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    functions::declare(&mut env);
    Arc::new(env)
});

impl Default for Language {
    fn default() -> Self {
        Self { env: Arc::clone(&DECLARED) }
    }
}

impl Language {
    /// Reads an expression; what is wrong with it otherwise.
    pub(crate) fn compile(&self, expression: &str) -> Result<CelSelector, String> {
        check::size(expression)?;
        let failed = |problem: String| format!("CEL compile error: compilation failed: {problem}");
        let program = self.env.compile(expression).map_err(|errors| failed(errors.to_string()))?;
        check::check(program.expression()).map_err(failed)?;
        let reads = ReadFields::of(program.expression());
        Ok(CelSelector { program, reads })
    }

    /// Whether a device of a driver meets a selector; what went wrong otherwise.
    pub(crate) fn meets(
        &self,
        selector: &CelSelector,
        driver: &str,
        device: &OfferedDevice,
    ) -> Result<bool, String> {
        let failed = |problem: String| format!("CEL runtime error: {problem}");
        let device = described(driver, device).map_err(failed)?;
        let mut context = Context::with_env(Arc::clone(&self.env));
        context.add_variable_as_val("device", device);
        match selector.program.execute(&context) {
            Ok(Value::Bool(meets)) => Ok(meets),
            Ok(other) => {
                Err(failed(format!("the expression returns {}, not a bool", other.type_of())))
            }
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl std::fmt::Debug for Language {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Language")
    }
}

type Fields = HashMap<CelMapKey<'static>, Box<dyn Val>>;

/// A device as expressions see it.
fn described(driver: &str, device: &OfferedDevice) -> Result<Box<dyn Val>, String> {
    let mut attributes: HashMap<CelMapKey<'static>, Fields> = HashMap::new();
    for (name, attribute) in &device.attributes {
        let value = value_of(attribute).map_err(|what| format!("attribute {name}: {what}"))?;
        let (domain, id) = qualified(name, driver);
        attributes.entry(key(domain)).or_default().insert(key(id), value);
    }
    let mut capacity: HashMap<CelMapKey<'static>, Fields> = HashMap::new();
    for (name, of) in &device.capacity {
        let (domain, id) = qualified(name, driver);
        let amount = Box::new(CelQuantity(of.value.to_billionths()));
        capacity.entry(key(domain)).or_default().insert(key(id), amount);
    }
    let fields: [(&str, Box<dyn Val>); 4] = [
        ("driver", text(driver)),
        ("allowMultipleAllocations", Box::new(CelBool::from(device.is_for_several))),
        ("attributes", Box::new(domains(attributes))),
        ("capacity", Box::new(domains(capacity))),
    ];
    let fields: Fields = fields.into_iter().map(|(name, value)| (key(name), value)).collect();
    Ok(Box::new(CelMap::from(fields)))
}

fn domains(of: HashMap<CelMapKey<'static>, Fields>) -> Domains {
    // order-free: from one map into another.
    let maps = of.into_iter().map(|(domain, fields)| {
        let map: Box<dyn Val> = Box::new(CelMap::from(fields));
        (domain, map)
    });
    Domains::new(CelMap::from(maps.collect::<Fields>()))
}

fn value_of(attribute: &DeviceAttribute) -> Result<Box<dyn Val>, String> {
    Ok(match attribute {
        DeviceAttribute::Text(value) => text(value),
        DeviceAttribute::Number(number) => Box::new(CelInt::from(*number)),
        DeviceAttribute::Truth(truth) => Box::new(CelBool::from(*truth)),
        DeviceAttribute::Version(value) => {
            let read = Version::read(value);
            Box::new(read.map_err(|error| format!("parse semantic version: {error}"))?)
        }
        DeviceAttribute::List(all) => {
            let all: Result<Vec<Box<dyn Val>>, String> = all.iter().map(value_of).collect();
            Box::new(CelList::from(all?))
        }
        DeviceAttribute::Other => return Err("unsupported attribute value".to_owned()),
    })
}

fn text(value: &str) -> Box<dyn Val> {
    Box::new(CelString::from(value.to_owned()))
}

fn key(name: &str) -> CelMapKey<'static> {
    CelMapKey::String(CelString::from(name.to_owned()))
}

/// Domain and name of an attribute; without a domain it is its driver's.
pub(crate) fn qualified<'a>(name: &'a str, driver: &'a str) -> (&'a str, &'a str) {
    name.split_once('/').unwrap_or((driver, name))
}
