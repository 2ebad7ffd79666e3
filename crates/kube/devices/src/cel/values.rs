//! Values that Kubernetes adds to CEL: quantities, semantic versions, and maps whose domains are
//! empty where they are not there.

use std::any::Any;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Sizer};
use cel::common::types::{CelInt, CelMap, MAP_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};

pub(super) static QUANTITY: Type = Type::new_unspecified_type("kubernetes.Quantity");
pub(super) static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");

/// A quantity, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CelQuantity(pub(super) i128);

/// A semantic version.
#[derive(Clone, Debug)]
pub(super) struct Version(pub(super) semver::Version);

/// Maps by domain. A domain that is not there is an empty map.
#[derive(Clone, Debug)]
pub(super) struct Domains {
    of: CelMap<'static>,
    none: CelMap<'static>,
}

impl Version {
    /// Reads one that is written in full.
    pub(super) fn read(text: &str) -> Result<Self, semver::Error> {
        text.parse().map(Self)
    }
}

impl Domains {
    pub(super) fn new(of: CelMap<'static>) -> Self {
        Self { of, none: CelMap::default() }
    }
}

impl Val for CelQuantity {
    fn get_type(&self) -> &Type {
        &QUANTITY
    }

    fn cel_type() -> &'static Type {
        &QUANTITY
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>() == Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(*self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for CelQuantity {}

impl Val for Version {
    fn get_type(&self) -> &Type {
        &SEMVER
    }

    fn cel_type() -> &'static Type {
        &SEMVER
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0.cmp_precedence(&other.0).is_eq())
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Version {}

impl Val for Domains {
    fn get_type(&self) -> &Type {
        &MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.of.as_container()
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        self.of.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Sizer for Domains {
    fn size(&self) -> CelInt {
        self.of.size()
    }
}

impl Indexer for Domains {
    fn get<'b, 'v>(&'b self, domain: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match self.of.get(domain) {
            Err(ExecutionError::NoSuchKey(_)) => Ok(CowVal::Borrowed(&self.none)),
            found => found,
        }
    }

    fn steal<'v>(self: Box<Self>, domain: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match self.get(domain) {
            Ok(found) => Ok(found.clone_as_boxed()),
            Err(error) => Err(error),
        }
    }
}
