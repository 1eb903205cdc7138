//! The format `html`.

use std::io::{self, Write};

use export::{Format, Needs, Options, Written};
use profile::Profile;

/// The page as a format.
pub struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".html"]
    }

    fn readers(&self) -> &'static str {
        "a browser: one page that says why the program is slow, with every view and the capture in it"
    }

    fn needs(&self) -> Needs {
        Needs::ALL
    }

    fn shows_times(&self) -> bool {
        true
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        crate::write(profile, writer).map(|()| Written::default())
    }
}
