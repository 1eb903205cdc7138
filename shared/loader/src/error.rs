//! What can go wrong between a command line and a running program.

use std::ffi::OsStr;
use std::io;

/// An error with what was tried; its source says what the kernel answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller lacks a right or the kernel a feature; says which, and what
    /// to do.
    #[error("{0}")]
    Unsupported(String),
    /// A BPF operation failed.
    #[error("{action}: {source}")]
    Bpf {
        /// What was tried.
        action: String,
        /// The library's answer.
        source: libbpf_rs::Error,
    },
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A program that was built without what is asked of it.
pub(crate) fn missing(what: &str) -> Error {
    Error::Unsupported(format!(
        "the BPF program has no {what}: it is not one of ours"
    ))
}

/// Adds what was tried to an error.
pub trait Context<T> {
    /// Says so: `action` completes "cannot …": `attach sched_switch`.
    fn context(self, action: impl Into<String>) -> Result<T>;
}

impl<T> Context<T> for libbpf_rs::Result<T> {
    fn context(self, action: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::Bpf {
            action: format!("cannot {}", action.into()),
            source,
        })
    }
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::System {
            action: format!("cannot {}", action.into()),
            source,
        })
    }
}

/// The name as text, for messages.
pub(crate) fn lossy(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
