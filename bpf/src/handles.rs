//! Names of maps, programs, constants and variables. The build makes them from the objects, so
//! no name is misspelt. An object may still lack a name.

use std::marker::PhantomData;

/// Name of a map, the same in each object that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapName(&'static str);

/// Name of a program, the same in each object that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramName(&'static str);

/// Name of a constant, which user space sets before it loads the object.
#[derive(Clone, Copy, Debug)]
pub struct ConstantName<T> {
    name: &'static str,
    value: PhantomData<T>,
}

/// Name of a variable, which programs and user space share while an object is loaded.
#[derive(Clone, Copy, Debug)]
pub struct VariableName<T> {
    name: &'static str,
    value: PhantomData<T>,
}

impl MapName {
    pub(crate) const fn new(name: &'static str) -> MapName {
        MapName(name)
    }

    /// Returns the name in C.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl ProgramName {
    pub(crate) const fn new(name: &'static str) -> ProgramName {
        ProgramName(name)
    }

    /// Returns the name in C.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl<T> ConstantName<T> {
    pub(crate) const fn new(name: &'static str) -> ConstantName<T> {
        ConstantName {
            name,
            value: PhantomData,
        }
    }

    /// Returns the name in C.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<T> VariableName<T> {
    pub(crate) const fn new(name: &'static str) -> VariableName<T> {
        VariableName {
            name,
            value: PhantomData,
        }
    }

    /// Returns the name in C.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

/// Value of a constant.
pub trait ConstantValue {
    /// Returns the value as C has it in memory.
    fn to_bytes(self) -> Vec<u8>;
}

impl ConstantValue for bool {
    fn to_bytes(self) -> Vec<u8> {
        vec![self.into()]
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl ConstantValue for $integer {
            fn to_bytes(self) -> Vec<u8> {
                self.to_ne_bytes().into()
            }
        }
    )*};
}

macro_rules! enums {
    ($($name:ident),*) => {$(
        impl ConstantValue for crate::types::$name {
            fn to_bytes(self) -> Vec<u8> {
                self.0.to_ne_bytes().into()
            }
        }
    )*};
}

integers!(u32, u64, i64);
enums!(
    CallGraph,
    SpanKind,
    SpanOwner,
    StateFilter,
    SwitchArguments,
    ThreadKind
);
