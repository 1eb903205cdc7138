//! Reading the captures that a command line names.

use std::fs::File;
use std::io::{BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use profile::Profile;
use profile::capture::{self, Partial};
use profile::join::{Joined, join};

/// Bytes of memory that a command may have, however small its captures are.
const LEAST_MEMORY: u64 = 512 << 20;
/// Bytes of memory for each byte of its captures, where that is more. A command takes some 20
/// times the size of its captures, and a flame graph up to 200 times.
const MEMORY_OF_A_BYTE: u64 = 512;

/// Two files, each as a profile of all that is in it.
///
/// # Errors
/// One cannot be read.
pub(crate) fn pair(before: &Path, after: &Path) -> anyhow::Result<(Profile, Profile)> {
    let flags = CaptureFlags {
        captures: vec![before.to_owned(), after.to_owned()],
        partial: false,
    };
    let files = flags.files()?.into_iter();
    let joined = files.map(|file| Ok(join(file)?.into_profile()));
    let joined: Vec<Profile> = joined.collect::<anyhow::Result<_>>()?;
    let joined: [Profile; 2] = joined
        .try_into()
        .map_err(|_| anyhow!("a capture is lacking"))?;
    Ok(joined.into())
}

/// Bounds the memory of what is made of captures of so many bytes.
fn limit_memory(bytes: u64) {
    let most = bytes.saturating_mul(MEMORY_OF_A_BYTE).max(LEAST_MEMORY);
    let refusal = "systemscope: this takes more memory than with any capture of this size that our tools write: do not trust the file; folded, pprof and json take the least";
    cli::limit_memory(most, refusal);
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
        Ok(self.files()?.into_iter().flatten().collect())
    }

    /// Reads them all, file by file, and bounds the memory that is taken from then on.
    fn files(&self) -> anyhow::Result<Vec<Vec<Profile>>> {
        let mut bytes = 0;
        let files = self.captures.iter().map(|path| {
            let shown = path.display();
            let read = self.read_one(path, &mut bytes);
            read.with_context(|| format!("cannot read `{shown}`"))
        });
        let files = files.collect::<anyhow::Result<_>>()?;
        limit_memory(bytes);
        Ok(files)
    }

    /// Reads them all, and puts them together.
    ///
    /// # Errors
    /// As [`CaptureFlags::read`], or they are not of one window.
    pub(crate) fn joined(&self) -> anyhow::Result<Joined> {
        Ok(join(self.read()?)?)
    }

    /// Reads a file, and adds its size to `bytes`.
    fn read_one(&self, path: &Path, bytes: &mut u64) -> anyhow::Result<Vec<Profile>> {
        let source: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(stdin().lock()),
            false => {
                let file = File::open(path).map_err(|error| anyhow!(cli::reason(&error)))?;
                Box::new(file)
            }
        };
        let mut source = BufReader::with_capacity(1 << 16, source.take(u64::MAX));
        let read = if self.partial {
            capture::read_what_is_whole(&mut source)
        } else {
            let whole = |profile| Partial {
                profile,
                error: None,
            };
            let profiles = capture::read_all(&mut source);
            profiles.map(|profiles| profiles.into_iter().map(whole).collect())
        };
        *bytes = bytes.saturating_add(u64::MAX - source.get_ref().limit());
        let partials = read.map_err(|error| match error {
            capture::Error::CutOff | capture::Error::Damaged(_) if !self.partial => {
                anyhow!("{error}; --partial takes what can be read")
            }
            error => error.into(),
        })?;
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
