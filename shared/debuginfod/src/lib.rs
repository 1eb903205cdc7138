//! Fetches debug files by build ID from debuginfod servers, and shares the cache of elfutils and
//! gdb.
//!
//! A [`Fetcher`] has threads of its own, which wait for the network. It answers the questions of
//! [`symbolize::DebugFiles`].
//!
//! Servers are hostile as far as this crate can tell: a file counts only once it is whole and has
//! the build ID that was asked for, and its size, the number of files and the time have bounds. The
//! protocol is that of debuginfod(8), and the cache and the variables are those of
//! debuginfod-client-config(7).

mod build_id;
mod cache;
mod download;
mod fetcher;
mod resolver;
mod settings;
mod summary;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use cache::Cache;
pub use fetcher::Fetcher;
pub use settings::{Choice, Environment, Settings};
pub use summary::Summary;
