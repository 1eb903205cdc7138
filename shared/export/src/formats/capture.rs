//! Captures: the whole measurement, for later analysis and for other machines.

use std::io::{self, Write};

use profile::Profile;

use crate::format::{Format, Needs};
use crate::text::options::{Options, Written};

/// The capture format, which `capture.proto` describes.
pub struct Capture;

impl Format for Capture {
    fn name(&self) -> &'static str {
        "scope"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".scope"]
    }

    fn readers(&self) -> &'static str {
        "`systemscope` itself, later and elsewhere: everything that was measured"
    }

    fn needs(&self) -> Needs {
        Needs::ALL
    }

    fn shows_times(&self) -> bool {
        true
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        capture::write(profile, writer).map(|()| Written::default())
    }
}
