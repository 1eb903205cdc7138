//! Flags that name captures, and reading them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use capture::{self, Partial};
use clap::Args;
use clap::builder::Resettable;
use page::extract::{Extracted, extract, is_page};
use profile::Profile;
use profile::join::{Joined, join};

/// Minimum for the memory limit of a command, in bytes.
const LEAST_MEMORY: u64 = 512 << 20;
/// Memory limit of a command in bytes per byte of its captures. Most commands take 20 times the
/// size of their captures, and a flame graph up to 200 times.
const MEMORY_OF_A_BYTE: u64 = 512;

/// Reads two files, and joins the captures of each to one profile.
///
/// # Errors
/// A file cannot be read, or its captures cannot be joined.
pub(crate) fn pair(before: &Path, after: &Path) -> anyhow::Result<(Profile, Profile)> {
    let flags = CaptureFlags {
        captures: vec![before.to_owned(), after.to_owned()],
        partial: false,
    };
    let both: [Profile; 2] = flags
        .each_joined()?
        .try_into()
        .map_err(|_| anyhow!("a capture is missing: give two"))?;
    Ok(both.into())
}

/// Limits the memory of this process for work on captures of `bytes` in all.
fn limit_memory(bytes: u64) {
    let most = bytes.saturating_mul(MEMORY_OF_A_BYTE).max(LEAST_MEMORY);
    let refusal = "systemscope: this takes more memory than any capture of this size from our tools: do not trust the file, or write folded, pprof or json, which take the least";
    cli::limit_memory(most, refusal);
}

/// Reads the capture of a page. Of a page that compares two captures, it reads the later one.
fn read_page(path: &Path, source: impl BufRead) -> Result<Partial, capture::Error> {
    let Extracted {
        capture,
        is_comparison,
    } = extract(source)?;
    if is_comparison && capture.error.is_none() {
        cli::say(format_args!(
            "systemscope: `{}` compares two captures; this is the later one",
            path.display()
        ));
    }
    Ok(capture)
}

/// Flags that name captures.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Captures")]
pub(crate) struct CaptureFlags {
    /// Captures (*.scope) or pages (*.html), or - for standard input; captures of one window are joined
    #[arg(value_name = "FILE", required = true, help_heading = Resettable::Reset)]
    pub(crate) captures: Vec<PathBuf>,

    /// Use the readable part of a capture that is cut off or damaged
    #[arg(long)]
    pub(crate) partial: bool,
}

impl CaptureFlags {
    /// Reads all captures, and does not join them.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<Profile>> {
        Ok(self.files()?.into_iter().flatten().collect())
    }

    /// Reads all captures, and joins those of each file to one profile.
    ///
    /// # Errors
    /// A file cannot be read, or its captures cannot be joined.
    pub(crate) fn each_joined(&self) -> anyhow::Result<Vec<Profile>> {
        let files = self.files()?.into_iter();
        let joined = files.map(|file| Ok(join(file)?.into_profile()));
        joined.collect()
    }

    /// Reads all captures, file by file, and limits the memory of this process from then on.
    pub(crate) fn files(&self) -> anyhow::Result<Vec<Vec<Profile>>> {
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

    /// Reads all captures, and joins them.
    ///
    /// # Errors
    /// The same as for [`CaptureFlags::read`], or the captures are not of one window.
    pub(crate) fn joined(&self) -> anyhow::Result<Joined> {
        Ok(join(self.read()?)?)
    }

    /// Reads a file, and adds its size to `bytes`.
    fn read_one(&self, path: &Path, bytes: &mut u64) -> anyhow::Result<Vec<Profile>> {
        let source: Box<dyn Read> = if path.as_os_str() == "-" {
            Box::new(stdin().lock())
        } else {
            let file = File::open(path).map_err(|error| anyhow!(cli::reason(&error)))?;
            Box::new(file)
        };
        let mut source = BufReader::with_capacity(1 << 16, source.take(u64::MAX));
        // An error of the first read comes again.
        let is_page = is_page(source.fill_buf().unwrap_or_default());
        let read = if is_page {
            read_page(path, &mut source).and_then(|partial| match partial.error {
                Some(error) if !self.partial => Err(error),
                _ => Ok(vec![partial]),
            })
        } else if self.partial {
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
            capture::Error::NotACapture if is_page => anyhow!(
                "the page holds no capture: another program wrote it, or its data were removed"
            ),
            capture::Error::CutOff | capture::Error::Damaged(_) if !self.partial => {
                anyhow!("{error}; --partial uses the readable part")
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
