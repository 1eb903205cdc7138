//! The forms in which the tools print stacks.

use std::io::{self, Write};

use profile::{Profile, capture};

use crate::classic;
use crate::folded::{self, Options, Written};

/// A form of stacks on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One line per stack.
    Folded,
    /// bcc's several lines per stack.
    Classic,
    /// All that was measured.
    Capture,
}

impl Form {
    /// Writes a profile.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(
        self,
        profile: &Profile,
        options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        match self {
            Form::Folded => folded::write(profile, options, writer),
            Form::Classic => classic::write(profile, options, writer),
            Form::Capture => capture::write(profile, writer).map(|()| Written::default()),
        }
    }
}
