//! V8, the JavaScript engine of Node.js.
//!
//! `engine` finds the engine in a file, and `layout` has the offsets of its versions. `walk`
//! reads the frames of a thread. The other modules name a frame: `heap` reads objects,
//! `functions` reads the description of a function, `code` finds machine code and the functions
//! in it, and `scripts` finds lines. A process may forge any of its data. They are read with
//! bounds, and impossible values are left out.

mod code;
mod engine;
mod functions;
mod heap;
mod language;
pub(crate) mod layout;
mod positions;
mod scripts;
mod sizes;
mod strings;
mod walk;

pub use language::Node;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
