//! Java in HotSpot, the virtual machine of OpenJDK 8 and later.
//!
//! A Java function runs in the interpreter or as compiled code, and the machine can replace one by
//! the other. Both have their frames on the native stack. The code cache tells the sizes of the
//! frames, and a frame leads to its `Method`, which has the names and the lines. Compilers inline
//! functions; the debug information of compiled code tells which.
//!
//! All offsets come from the tables that every machine has for its own debugger
//! (`src/hotspot/share/runtime/vmStructs.hpp` of OpenJDK). No version needs a table here.

mod compiled;
mod fields;
mod flags;
mod heap;
mod language;
mod layout;
mod locks;
mod method;
mod parks;
mod step;
mod symbol;
mod tables;
mod threads;

pub use language::Java;

#[cfg(test)]
mod tests;
