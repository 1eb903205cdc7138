//! Reading the captures that a command line names.

use std::fs::File;
use std::io::{BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use profile::Profile;
use profile::capture::{self, Partial};
use profile::join::{Joined, join};

/// One file, as a profile of all that is in it.
///
/// # Errors
/// It cannot be read.
pub(crate) fn one(path: &Path) -> anyhow::Result<Profile> {
    let flags = CaptureFlags {
        captures: vec![path.to_owned()],
        partial: false,
    };
    Ok(flags.joined()?.into_profile())
}

/// Which captures.
#[derive(Args, Clone, Debug)]
pub(crate) struct CaptureFlags {
    /// Captures (*.scope), or - for standard input; several of one window are
    /// put together
    #[arg(value_name = "FILE", required = true)]
    pub(crate) captures: Vec<PathBuf>,

    /// Take what can be read of a capture that is cut off or damaged
    #[arg(long)]
    pub(crate) partial: bool,
}

impl CaptureFlags {
    /// Reads them all, as they were written.
    ///
    /// # Errors
    /// The first that cannot be read, and why.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<Profile>> {
        let mut profiles = Vec::new();
        for path in &self.captures {
            let shown = path.display();
            let read = self.read_one(path);
            profiles.extend(read.with_context(|| format!("cannot read `{shown}`"))?);
        }
        Ok(profiles)
    }

    /// Reads them all, and puts them together.
    ///
    /// # Errors
    /// As [`CaptureFlags::read`], or they are not of one window.
    pub(crate) fn joined(&self) -> anyhow::Result<Joined> {
        Ok(join(self.read()?)?)
    }

    fn read_one(&self, path: &Path) -> anyhow::Result<Vec<Profile>> {
        let source: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(stdin().lock()),
            false => {
                let file = File::open(path).map_err(|error| anyhow!(cli::reason(&error)))?;
                Box::new(file)
            }
        };
        let source = BufReader::with_capacity(1 << 16, source);
        if !self.partial {
            return capture::read_all(source).map_err(|error| match error {
                capture::Error::CutOff | capture::Error::Damaged(_) => {
                    anyhow!("{error}; --partial takes what can be read")
                }
                error => error.into(),
            });
        }
        let partials = capture::read_what_is_whole(source)?;
        let profiles = partials.into_iter().map(|Partial { profile, error }| {
            if let Some(error) = error {
                let samples = profile.samples.len();
                cli::say(format_args!(
                    "systemscope: `{}`: {error}; {samples} samples could be read",
                    path.display()
                ));
            }
            profile
        });
        Ok(profiles.collect())
    }
}
