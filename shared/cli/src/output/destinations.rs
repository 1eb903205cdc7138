//! Pairs output formats with files, and writes profiles to them.

use std::collections::HashSet;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use export::capture::Capture;
use export::{Format, Options, Written};
use formats::{FORMATS, by_ending, without_ending};
use profile::Profile;

use crate::{Output, usage};

/// A format and its destination.
#[derive(Clone)]
pub struct Planned {
    /// Format to write.
    pub format: &'static dyn Format,
    /// File to write; `None` means standard output.
    pub path: Option<PathBuf>,
    /// True if the file must not exist yet: the tool, not the user, chose its name.
    pub is_new: bool,
}

/// Checks that a format shows the timeline for which `flag` asks.
///
/// # Errors
/// A usage error if none does.
pub fn check_shows_times(flag: &str, plan: &[Planned]) -> anyhow::Result<()> {
    if plan.iter().any(|planned| planned.format.shows_times()) {
        return Ok(());
    }
    let formats = FORMATS.iter().filter(|format| format.shows_times());
    let names: Vec<&str> = formats.map(|format| format.name()).collect();
    Err(usage(format!(
        "{flag} needs a format that shows times: give --format one of {}, or -o FILE with its ending",
        names.join(", ")
    )))
}

/// Returns the format that belongs to a file's ending.
#[must_use]
pub fn format_of_file(path: &Path) -> Option<&'static dyn Format> {
    by_ending(path.file_name()?.to_str()?)
}

/// Returns the format of a file without `--format`. The file's ending chooses the format. Names
/// without an ending, `.txt` and standard output have the format `usual`.
fn format_or(usual: &'static dyn Format, file: &Path) -> anyhow::Result<&'static dyn Format> {
    if let Some(format) = format_of_file(file) {
        return Ok(format);
    }
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    let is_ending = ending.contains(char::is_alphabetic) && ending != "txt";
    if !is_ending {
        return Ok(usual);
    }
    let known: Vec<&str> = FORMATS
        .iter()
        .flat_map(|format| format.endings().iter().copied())
        .collect();
    Err(usage(format!(
        "no format has the ending of `{}`: end the name in one of {}, or choose a format with --format",
        file.display(),
        known.join(", ")
    )))
}

/// Pairs formats with files. The file `-` means standard output.
///
/// - As many formats as files: the first format goes to the first file, and so on.
/// - Several formats and one file: each format's ending is added to the file's name.
/// - Files alone: the endings choose the formats, and `usual` is the format without an ending.
///
/// # Errors
/// A usage error for any other numbers of formats and files, or if no format has a file's ending.
pub fn pair(
    formats: &[&'static dyn Format],
    files: &[PathBuf],
    usual: &'static dyn Format,
) -> anyhow::Result<Vec<Planned>> {
    let planned = |format, path: Option<&PathBuf>| Planned {
        format,
        path: path.filter(|path| !is_stdout(path)).cloned(),
        is_new: false,
    };
    Ok(match (formats, files) {
        ([], []) => vec![planned(usual, None)],
        ([], files) => {
            let files = files.iter();
            let planned = files.map(|file| Ok(planned(format_or(usual, file)?, Some(file))));
            planned.collect::<anyhow::Result<_>>()?
        }
        ([format], []) => vec![planned(*format, None)],
        (formats, files) if formats.len() == files.len() => {
            let pairs = formats.iter().zip(files);
            pairs
                .map(|(format, file)| planned(*format, Some(file)))
                .collect()
        }
        (formats, [file]) if !is_stdout(file) => {
            let files = formats.iter();
            files
                .map(|format| planned(*format, Some(&with_ending_of(*format, file))))
                .collect()
        }
        (formats, [] | [_]) => {
            return Err(usage(format!(
                "{} formats cannot all go to standard output: give -o one name, to which their endings are added, or give -o once for each format",
                formats.len()
            )));
        }
        (formats, files) => {
            return Err(usage(format!(
                "{} formats and {} files do not match: give -o one name, to which the formats' endings are added, or give -o once for each format",
                formats.len(),
                files.len()
            )));
        }
    })
}

fn is_stdout(file: &Path) -> bool {
    file == Path::new("-")
}

/// Returns the file with this format's ending, which replaces the ending of another format.
fn with_ending_of(format: &dyn Format, file: &Path) -> PathBuf {
    let own = format!(".{}", format.name());
    let ending = format.endings().first().copied().unwrap_or(&own);
    let name = file.file_name().unwrap_or_default();
    let mut name = match name.to_str() {
        Some(text) => without_ending(text).into(),
        None => name.to_owned(),
    };
    name.push(ending);
    file.with_file_name(name)
}

impl Planned {
    /// Returns the output of a later recording: the number stands before the file's ending. The
    /// first recording has the number 1, and the name that the user gave.
    #[must_use]
    pub fn numbered(&self, recording: u32) -> Planned {
        let path = self.path.as_ref().filter(|_| recording > 1).map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let stem = without_ending(&name);
            let ending = &name[stem.len()..];
            path.with_file_name(format!("{stem}-{recording}{ending}"))
        });
        Planned {
            path: path.or_else(|| self.path.clone()),
            ..self.clone()
        }
    }
}

/// Destinations of whole profiles, checked to be writable.
pub struct Destinations(Vec<(&'static dyn Format, Output)>);

impl Destinations {
    /// Checks all destinations, before the tool measures anything.
    ///
    /// # Errors
    /// Two destinations are the same file, a binary format would go to a terminal, or a file
    /// cannot be written.
    pub fn new(plan: Vec<Planned>) -> anyhow::Result<Destinations> {
        let mut taken = HashSet::new();
        let mut outputs = Vec::new();
        for planned in plan {
            let Planned {
                format,
                path,
                is_new,
            } = planned;
            match &path {
                Some(path) if !taken.insert(resolve(path)) => {
                    return Err(usage(format!(
                        "two outputs go to `{}`: give one of them another file",
                        path.display()
                    )));
                }
                None if format.is_binary() && io::stdout().is_terminal() => {
                    return Err(usage(format!(
                        "cannot write {} to a terminal: the format is binary; give -o FILE, or redirect standard output",
                        format.name()
                    )));
                }
                _ => {
                    let output = match path {
                        Some(path) if is_new => Output::create_new(path)?,
                        path => Output::new(path)?,
                    };
                    outputs.push((format, output));
                }
            }
        }
        Ok(Destinations(outputs))
    }

    /// Takes the destination of a capture, if it is the only destination that shows times.
    pub(crate) fn take_capture(&mut self) -> Option<Output> {
        let mut places = (0..self.0.len()).filter(|&place| self.0[place].0.shows_times());
        let (place, other) = (places.next()?, places.next());
        let is_capture = self.0[place].0.name() == Capture.name();
        (is_capture && other.is_none()).then(|| self.0.remove(place).1)
    }

    /// Returns whether standard output is one of the destinations.
    #[must_use]
    pub fn include_stdout(&self) -> bool {
        self.0.iter().any(|(_, output)| output.is_stdout())
    }

    /// Returns whether one of the formats is the capture.
    #[must_use]
    pub fn include_captures(&self) -> bool {
        let mut formats = self.0.iter().map(|(format, _)| format.name());
        formats.any(|name| name == Capture.name())
    }

    /// Writes a profile to all destinations. Returns the counts of lines that each format wrote and
    /// left out.
    ///
    /// # Errors
    /// A destination cannot be written. The destinations before it are whole.
    pub fn write(self, profile: &Profile, options: &Options) -> anyhow::Result<Vec<Written>> {
        self.write_each(|format, writer| format.write(profile, options, writer))
    }

    /// Writes a profile that was joined from several captures. The capture format writes the
    /// captures in `parts`, so that a reader can join them again.
    ///
    /// # Errors
    /// The same as for [`Destinations::write`].
    pub fn write_with_parts(
        self,
        profile: &Profile,
        parts: &[&Profile],
        options: &Options,
    ) -> anyhow::Result<Vec<Written>> {
        self.write_each(|format, writer| {
            if format.name() != Capture.name() {
                return format.write(profile, options, writer);
            }
            for part in parts {
                Capture.write(part, options, &mut *writer)?;
            }
            Ok(Written::default())
        })
    }

    fn write_each(
        self,
        write: impl Fn(&dyn Format, &mut dyn Write) -> io::Result<Written>,
    ) -> anyhow::Result<Vec<Written>> {
        let mut all = Vec::new();
        for (format, output) in self.0 {
            let mut written = Written::default();
            output.write(|writer| {
                written = write(format, writer)?;
                Ok(())
            })?;
            all.push(written);
        }
        Ok(all)
    }
}

/// Resolves a path to an absolute path without links. The file need not exist.
fn resolve(path: &Path) -> PathBuf {
    if let Ok(resolved) = fs::canonicalize(path) {
        return resolved;
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder.join(path.file_name().unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use export::folded::Folded;
    use formats::by_name;
    use tempfile::TempDir;

    use super::*;

    fn plan(formats: &[&str], files: &[&str]) -> anyhow::Result<Vec<(&'static str, String)>> {
        let formats: Vec<_> = formats.iter().map(|name| by_name(name).unwrap()).collect();
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let plan = pair(&formats, &files, &Folded)?.into_iter();
        let plan = plan.map(|planned| {
            let path = planned.path.map(|path| path.display().to_string());
            (planned.format.name(), path.unwrap_or_default())
        });
        Ok(plan.collect())
    }

    #[test]
    fn formats_and_files_are_paired() {
        let pairs = |formats: &[&str], files: &[&str]| plan(formats, files).unwrap();
        let owned = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, file)| (*name, (*file).to_owned()))
                .collect()
        };
        for (formats, files, expected) in [
            (&[][..], &[][..], &[("folded", "")][..]),
            (&[], &["a"], &[("folded", "a")]),
            (
                &[],
                &["a.svg", "b.pb.gz"],
                &[("svg", "a.svg"), ("pprof", "b.pb.gz")],
            ),
            (&[], &["-"], &[("folded", "")]),
            (
                &[],
                &["a.JSON", "b.txt"],
                &[("json", "a.JSON"), ("folded", "b.txt")],
            ),
            (&["json"], &["-"], &[("json", "")]),
            (&["json"], &["a.html"], &[("json", "a.html")]),
            (&["json"], &[], &[("json", "")]),
            (&["json"], &["a.svg"], &[("json", "a.svg")]),
            (
                &["json", "svg"],
                &["a", "b"],
                &[("json", "a"), ("svg", "b")],
            ),
            (
                &["pprof", "speedscope", "classic"],
                &["x/run.2"],
                &[
                    ("pprof", "x/run.2.pb.gz"),
                    ("speedscope", "x/run.2.speedscope.json"),
                    ("classic", "x/run.2.classic"),
                ],
            ),
            (
                &["svg", "json"],
                &["run.speedscope.json"],
                &[("svg", "run.svg"), ("json", "run.json")],
            ),
        ] {
            assert_eq!(pairs(formats, files), owned(expected));
        }
    }

    #[test]
    fn what_cannot_be_paired_is_a_wrong_command_line() {
        let error =
            |formats: &[&str], files: &[&str]| plan(formats, files).unwrap_err().to_string();
        assert!(
            error(&["svg", "json"], &[]).contains("2 formats cannot all go to standard output")
        );
        assert!(error(&["svg", "json"], &["-"]).contains("cannot all go to standard output"));
        for name in ["x.pb", "x.htm", "x.json.gz"] {
            let message = error(&[], &[name]);
            assert!(message.contains(&format!("no format has the ending of `{name}`")));
            assert!(message.contains(".pb.gz"), "{message}");
        }
        assert!(error(&["svg"], &["a", "b"]).contains("1 formats and 2 files"));
        assert!(error(&["svg", "json", "scope"], &["a", "b"]).contains("3 formats and 2 files"));
    }

    #[test]
    fn no_two_go_to_one_file() {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| Some(folder.path().join(name));
        let to = |one, other| {
            let plan = [one, other].map(|path| Planned {
                format: &Folded,
                path,
                is_new: false,
            });
            Destinations::new(plan.into()).map(drop)
        };
        assert!(to(path("a"), path("b")).is_ok());
        let error = to(path("a"), path("./a")).unwrap_err().to_string();
        assert!(error.contains("two outputs go to"), "{error}");
        fs::write(folder.path().join("old"), "").unwrap();
        std::os::unix::fs::symlink("old", folder.path().join("link")).unwrap();
        assert!(to(path("old"), path("link")).is_err());
        let error = to(path("a"), path("missing/b")).unwrap_err().to_string();
        assert!(error.ends_with("create its folder first"), "{error}");
    }
}
