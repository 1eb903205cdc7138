//! Flags that choose formats, files and the text of frames.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use collect::Sources;
use export::folded::Folded;
use export::{Format, Needs, Options};
use formats::by_name;

use super::TimelineFlags;
use crate::output::destinations::{Planned, check_shows_times, format_of_file, pair};

/// Heading of the flags that choose formats and files.
const OUTPUT: &str = "Output";

/// Flags of the output: formats, files, frames and labels.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = OUTPUT)]
pub struct OutputFlags {
    #[command(flatten)]
    pub(crate) formats: FormatFlags,

    /// Tell threads apart: the first field is comm-PID/TID
    #[arg(long)]
    pub per_thread: bool,

    /// Tell processes apart: the first field is comm-PID
    #[arg(long, conflicts_with = "per_thread")]
    pub per_process: bool,

    /// Append `_[k]` to kernel frames
    #[arg(short = 'a', long)]
    pub annotate: bool,

    /// Put a frame `-` between user and kernel frames
    #[arg(short = 'd', long)]
    pub delimited: bool,

    /// Write folded text, one line per stack; the default, accepted for compatibility with bcc
    #[arg(short = 'f', long, hide_short_help = true)]
    pub folded: bool,

    /// Write bcc's text: several lines per stack, leaf first
    #[arg(long, hide_short_help = true, conflicts_with = "formats")]
    pub classic: bool,

    /// Size of bcc's map of stacks; accepted and ignored
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub stack_storage_size: Option<u64>,

    /// Print details on stderr: how stacks were unwound, which files were not read
    #[arg(short = 'v', long)]
    pub verbose: bool,

    #[command(flatten)]
    pub(crate) frames: FrameFlags,

    #[command(flatten)]
    pub(crate) timeline: TimelineFlags,
}

/// Flags that add to the text of frames.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Frames")]
pub struct FrameFlags {
    /// Append each frame's offset in its function: read+0x1f
    #[arg(short = 's', long, visible_alias = "show-offset")]
    pub symbol_offsets: bool,

    /// Append each frame's file and address: read [libc.so.6+0xf8c4f]
    #[arg(long)]
    pub addresses: bool,

    /// Append the source line, if known: parse (row.c:17)
    ///
    /// Source lines come from debug information.
    #[arg(long, visible_alias = "source-lines")]
    pub srcline: bool,

    /// Show inlined functions as frames, if debug information exists
    #[arg(long)]
    pub inline: bool,

    /// Put the reason of each wait on top of its stack: [lock: mutex]
    #[arg(long)]
    pub reasons: bool,
}

impl FrameFlags {
    /// Returns the parts of debug information that the flags need.
    #[must_use]
    pub fn sources(&self) -> Sources {
        match (self.inline, self.srcline) {
            (true, _) => Sources::Inlined,
            (false, true) => Sources::Lines,
            (false, false) => Sources::None,
        }
    }

    /// Returns the options for writing frames.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            symbol_offsets: self.symbol_offsets,
            addresses: self.addresses,
            source_lines: self.srcline,
            reasons: self.reasons,
            ..Options::default()
        }
    }
}

/// Flags that choose formats and files.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = OUTPUT)]
pub struct FormatFlags {
    /// Files to write.
    #[arg(short = 'o', value_name = "FILE")]
    #[arg(help = "Write to FILE; without --format its ending chooses the format")]
    #[arg(long_help = format!(
        "Write to FILE; without --format its ending chooses the format: {}. The file appears only \
         once it is whole", formats::endings()
    ))]
    pub files: Vec<PathBuf>,

    /// Formats chosen by name.
    #[arg(long = "format", value_name = "NAMES", value_delimiter = ',', value_parser = format)]
    #[arg(help = "Write these formats, such as svg,pprof")]
    #[arg(long_help = format!(
        "Write these formats: {}. Several need -o: one name, to which each format's ending is \
         added, or one for each format", formats::names()
    ))]
    pub formats: Vec<Chosen>,

    /// Write this format, as --format does, or to this file, as -o does
    #[arg(long, value_name = "FORMAT|FILE", hide_short_help = true)]
    pub output: Vec<OsString>,
}

/// A format that the user chose by name.
#[derive(Clone, Copy)]
pub struct Chosen(pub &'static dyn Format);

impl fmt::Debug for Chosen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.name())
    }
}

/// Parses a format's name.
fn format(name: &str) -> Result<Chosen, String> {
    by_name(name)
        .map(Chosen)
        .ok_or_else(|| format!("the formats are {}", formats::names()))
}

impl FormatFlags {
    /// Returns the formats that are chosen by name, and the files.
    #[must_use]
    pub fn named(&self) -> (Vec<&'static dyn Format>, Vec<PathBuf>) {
        let mut formats: Vec<_> = self.formats.iter().map(|chosen| chosen.0).collect();
        let mut files = self.files.clone();
        for word in &self.output {
            let names = word.to_str().map(|word| word.split(',').map(by_name));
            match names.and_then(Iterator::collect::<Option<Vec<_>>>) {
                Some(named) => formats.extend(named),
                None => files.push(word.into()),
            }
        }
        (formats, files)
    }
}

impl OutputFlags {
    fn named(&self) -> (Vec<&'static dyn Format>, Vec<PathBuf>) {
        let (mut formats, files) = self.formats.named();
        if self.classic {
            formats.push(&export::classic::Classic);
        }
        (formats, files)
    }

    /// Pairs the formats with the files.
    ///
    /// # Errors
    /// A usage error if they cannot be paired (see [`pair`]), or if a timeline is requested and no
    /// format shows it.
    pub fn plan(&self) -> anyhow::Result<Vec<Planned>> {
        let (formats, files) = self.named();
        let plan = pair(&formats, &files, &Folded)?;
        if let Some(flag) = self.timeline.asking_flag() {
            check_shows_times(flag, &plan)?;
        }
        Ok(plan)
    }

    /// Returns the flags of the timeline.
    #[must_use]
    pub fn timeline(&self) -> &TimelineFlags {
        &self.timeline
    }

    /// Returns the data that the formats and the flags need.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let (mut formats, files) = self.named();
        if formats.is_empty() {
            formats.extend(files.iter().filter_map(|file| format_of_file(file)));
        }
        let flags = Needs {
            addresses: self.frames.symbol_offsets
                || self.frames.addresses
                || self.frames.sources() > Sources::None,
            threads: self.per_thread,
            processes: self.per_process,
            reasons: self.frames.reasons,
            times: self.timeline.asking_flag().is_some(),
            ..Needs::NAMES
        };
        let needs = formats.iter().map(|format| format.needs());
        let needs = needs.fold(flags, |sum, needs| sum | needs);
        Needs {
            threads: needs.threads || needs.times,
            processes: needs.processes || needs.times,
            accounts: needs.accounts || needs.times,
            reasons: needs.reasons || needs.times,
            wakers: needs.wakers || needs.times,
            ..needs
        }
    }

    /// Returns the options for writing stacks.
    #[must_use]
    pub fn options(&self, nanoseconds: bool) -> Options {
        Options {
            per_thread: self.per_thread,
            per_process: self.per_process,
            delimited: self.delimited,
            annotate: self.annotate,
            nanoseconds,
            ..self.frames.options()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::parse::parse_line;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        output: OutputFlags,
    }

    fn flags(line: &str) -> OutputFlags {
        parse_line::<Arguments>(line).unwrap().output
    }

    /// Returns the planned formats' names and files.
    fn plan(line: &str) -> Vec<(&'static str, Option<String>)> {
        let plan = flags(line).plan().unwrap().into_iter();
        let plan = plan.map(|planned| {
            let path = planned.path.map(|path| path.to_str().unwrap().to_owned());
            (planned.format.name(), path)
        });
        plan.collect()
    }

    #[test]
    fn a_name_is_a_format_and_anything_else_a_file() {
        let file = |name: &str| Some(name.to_owned());
        assert_eq!(plan("--output folded"), [("folded", None)]);
        assert_eq!(plan("--output pprof -o x"), [("pprof", file("x"))]);
        assert_eq!(plan("--output ./pprof"), [("folded", file("./pprof"))]);
        assert_eq!(plan("--output x.svg"), [("svg", file("x.svg"))]);
        assert_eq!(plan("--classic -o x.svg"), [("classic", file("x.svg"))]);
        assert_eq!(
            plan("--output pprof,folded -o x"),
            [("pprof", file("x.pb.gz")), ("folded", file("x.folded"))]
        );
        assert!(parse_line::<Arguments>("--classic --format json").is_err());
    }

    #[test]
    fn unknown_formats_are_told_from_those_there_are() {
        let error = parse_line::<Arguments>("--format trace").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("invalid value 'trace' for '--format <NAMES>'"),
            "{error}"
        );
        assert!(
            error.contains("the formats are folded, html, svg, pprof"),
            "{error}"
        );
    }
}
