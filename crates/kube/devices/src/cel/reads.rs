//! What an expression reads of a device. Devices that are equal in that have the same answer, so
//! that it is evaluated once for all of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use dovetail_objects::{DeviceAttribute, OfferedDevice};

/// Fields of a device that are always part of its content.
const SHORT: [&str; 2] = ["driver", "allowMultipleAllocations"];

/// The attributes and capacities that an expression reads.
#[derive(Debug, Default)]
pub(super) struct ReadFields(BTreeSet<ReadField>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReadField {
    is_capacity: bool,
    domain: Box<str>,
    name: Box<str>,
    /// Both, with a slash between them, as a driver may write the name.
    full: Box<str>,
}

impl ReadFields {
    /// Those of an expression; `None` where it may read any.
    pub(super) fn of(expression: &IdedExpr) -> Option<Self> {
        let mut fields = Self::default();
        fields.collect(expression).then_some(fields)
    }

    /// Adds what an expression reads; whether that is known.
    fn collect(&mut self, of: &IdedExpr) -> bool {
        if let Some(field) = ReadField::of(&of.expr) {
            self.0.insert(field);
            return true;
        }
        if let Some((within, field)) = element(&of.expr)
            && is_device(within)
        {
            return SHORT.contains(&field);
        }
        match &of.expr {
            Expr::Ident(_) => !is_device(of),
            Expr::Literal(_) | Expr::Unspecified => true,
            Expr::Select(select) => self.collect(&select.operand),
            Expr::Call(call) => {
                let target = call.target.iter().map(|target| &**target);
                target.chain(&call.args).all(|one| self.collect(one))
            }
            Expr::List(list) => list.elements.iter().all(|one| self.collect(one)),
            Expr::Map(map) => map.entries.iter().all(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.collect(&entry.key) && self.collect(&entry.value)
                }
                EntryExpr::StructField(field) => self.collect(&field.value),
            }),
            Expr::Struct(_) => false,
            Expr::Comprehension(of) => {
                let parts =
                    [&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result];
                parts.into_iter().all(|one| self.collect(one))
            }
        }
    }

    /// A text that is the same for devices with the same answer.
    pub(super) fn content(&self, driver: &str, device: &OfferedDevice) -> String {
        let mut text = format!("{driver:?}{}", device.is_for_several);
        for field in &self.0 {
            let own = (*field.domain == *driver).then_some(&*field.name);
            for name in own.into_iter().chain([&*field.full]) {
                match field.is_capacity {
                    true => {
                        let amount = device.capacity.get(name).map(|of| of.value.to_billionths());
                        write!(text, "{amount:?}").ok();
                    }
                    false => {
                        write!(text, "{:?}", device.attributes.get(name)).ok();
                    }
                }
            }
        }
        // One that cannot be read is an error, whatever the expression reads.
        let may_fail = device.attributes.iter().filter(|(_, attribute)| match attribute {
            DeviceAttribute::Text(_) | DeviceAttribute::Number(_) | DeviceAttribute::Truth(_) => {
                false
            }
            DeviceAttribute::Version(_) | DeviceAttribute::List(_) | DeviceAttribute::Other => true,
        });
        for (name, attribute) in may_fail {
            write!(text, "{name:?}{attribute:?}").ok();
        }
        text
    }
}

impl ReadField {
    /// `device.attributes["domain"].name`, however it is written.
    fn of(expression: &Expr) -> Option<Self> {
        let (domains, name) = element(expression)?;
        let (all, domain) = element(&domains.expr)?;
        let (device, field) = element(&all.expr)?;
        let is_capacity = field == "capacity";
        (is_device(device) && (is_capacity || field == "attributes")).then(|| Self {
            is_capacity,
            domain: domain.into(),
            name: name.into(),
            full: format!("{domain}/{name}").into(),
        })
    }
}

/// What a field or an element is taken of, and its name, if that is constant.
fn element(of: &Expr) -> Option<(&IdedExpr, &str)> {
    match of {
        Expr::Select(select) => Some((&*select.operand, &*select.field)),
        Expr::Call(CallExpr { func_name, target: None, args }) if func_name == operators::INDEX => {
            let [of, at] = &args[..] else { return None };
            let Expr::Literal(LiteralValue::String(name)) = &at.expr else { return None };
            Some((of, name.inner()))
        }
        _ => None,
    }
}

fn is_device(of: &IdedExpr) -> bool {
    matches!(&of.expr, Expr::Ident(name) if name == "device")
}
