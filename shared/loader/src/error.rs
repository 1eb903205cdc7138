//! Errors of loading, attaching and configuring programs.

use std::ffi::OsStr;
use std::io;

/// Error with the action that failed. The kernel's answer is its source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller lacks a right, or the kernel lacks a feature. The text names it, and says what
    /// the user should do.
    #[error("{0}")]
    Unsupported(String),
    /// A BPF operation failed.
    #[error("{action}: {source}")]
    Bpf {
        /// Action that failed.
        action: String,
        /// Error that libbpf returned.
        source: libbpf_rs::Error,
    },
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// Action that failed.
        action: String,
        /// Error that the kernel returned.
        source: io::Error,
    },
}

/// Result whose error is an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Makes the error for a map, a program or a variable that the object lacks.
pub(crate) fn missing(what: &str) -> Error {
    Error::Unsupported(format!(
        "the BPF program has no {what}: it is not one of ours"
    ))
}

/// Extension of results that adds the action that failed to an error.
pub trait Context<T> {
    /// Adds `action`, a verb phrase that completes "cannot …", such as `attach sched_switch`.
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

/// Returns the name as text, for messages.
pub(crate) fn lossy(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}
