//! Values that have a name: one table for both ways.

/// The name of a value of the table; empty if it is not in it.
pub(crate) fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, of)| *of == value).map_or("", |(name, _)| name)
}

/// The value of a name; `None` if the table has no such name.
pub(crate) fn by_name<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(of, _)| *of == name).map(|(_, value)| *value)
}
