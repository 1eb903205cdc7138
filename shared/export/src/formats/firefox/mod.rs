//! Processed profiles of Firefox Profiler: samples with real stacks, markers for waits, and the
//! CPU use of each thread.
//!
//! Samples weigh ms. A stay of 2.5 ms in a stack weighs 2 ms or 3 ms: the rest is carried to the
//! next stay in the same state, so that short stays count as much as long ones (after
//! `context_switch.rs` of mstange/samply). A frame for the state is on top of each stack off the
//! CPU, because the leaf of a stack decides its category and its colour.

mod file;
#[cfg(test)]
mod tests;
mod threads;
mod weights;

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use profile::Profile;

use crate::format::{Format, Needs};
use crate::text::options::{Options, Written};

/// The format of Firefox Profiler.
pub struct Firefox;

/// The format of Firefox Profiler in gzip, which it opens as well.
pub struct PackedFirefox;

const NEEDS: Needs = Needs {
    threads: true,
    reasons: true,
    wakers: true,
    times: true,
    ..Needs::NAMES
};

impl Format for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".firefox.json"]
    }

    fn readers(&self) -> &'static str {
        "[Firefox Profiler](https://profiler.firefox.com): stacks and waits over time, CPU use"
    }

    fn needs(&self) -> Needs {
        NEEDS
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        threads::write(profile, writer)?;
        Ok(Written::default())
    }
}

impl Format for PackedFirefox {
    fn name(&self) -> &'static str {
        "firefox-gz"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".firefox.json.gz"]
    }

    fn readers(&self) -> &'static str {
        "the same, in a tenth of the size"
    }

    fn needs(&self) -> Needs {
        NEEDS
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
        let mut packed = GzEncoder::new(writer, Compression::fast());
        threads::write(profile, &mut packed)?;
        packed.finish()?.flush()?;
        Ok(Written::default())
    }
}
