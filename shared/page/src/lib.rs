//! The page of a profile: one self-contained HTML file that answers why a program is slow.
//!
//! The page has three parts. The first screen (`summary`) is plain HTML, which Rust writes. It
//! needs no JavaScript, and it prints. The data block (`embed`) holds the whole capture, and
//! [`extract`] takes it out again. The script (`script`) is plain JavaScript from `web/`, which
//! draws the views of the data.
//!
//! Threads and functions choose their names, so names are hostile. `html` has the one function that
//! escapes text, and `policy` forbids the network and every script and style but the page's own.

mod embed;
pub mod extract;
mod format;
mod html;
mod page;
mod policy;
mod script;
mod summary;

pub use format::Html;
pub use page::{write, write_comparison};

// The profiles that the tests of formats use.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../export/src/fixture.rs"]
mod fixture;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../export/src/timeline_fixture.rs"]
mod timeline_fixture;
