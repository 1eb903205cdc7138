//! The flags that say what is written, and where.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use collect::Sources;
use export::folded::Folded;
use export::{Format, Needs, Options, by_name};

use crate::destinations::{Planned, format_of_file, pair};

/// What to print, and where.
#[derive(Args, Clone, Debug, Default)]
pub struct OutputFlags {
    /// Append `_[k]` to kernel frames
    #[arg(short = 'a', long)]
    pub annotate: bool,

    /// Put a - frame between user and kernel frames
    #[arg(short = 'd', long)]
    pub delimited: bool,

    /// Folded output, one line per stack: the default, accepted for bcc's sake
    #[arg(short = 'f', long)]
    pub folded: bool,

    /// Tell threads apart: the first field is comm-PID/TID
    #[arg(long)]
    pub per_thread: bool,

    /// Tell processes apart: the first field is comm-PID
    #[arg(long, conflicts_with = "per_thread")]
    pub per_process: bool,

    #[command(flatten)]
    pub(crate) frames: FrameFlags,

    /// bcc's size of its map of stacks: accepted, there is nothing to set here
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub stack_storage_size: Option<u64>,

    /// bcc's form of several lines per stack, leaf first
    #[arg(long, conflicts_with = "formats")]
    pub classic: bool,

    #[command(flatten)]
    pub(crate) formats: FormatFlags,

    /// Say on stderr what is being done
    #[arg(short = 'v', long)]
    pub verbose: bool,
}

/// What is told of frames beside their functions.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct FrameFlags {
    /// Append how far each frame is into its function: read+0x1f
    #[arg(short = 's', long, visible_alias = "show-offset")]
    pub symbol_offsets: bool,

    /// Append where each frame is in its file: read [libc.so.6+0xf8c4f]
    #[arg(long)]
    pub addresses: bool,

    /// Append the source file and line of each frame, where debug information is
    /// at hand: parse (row.c:17)
    #[arg(long, visible_alias = "source-lines")]
    pub srcline: bool,

    /// Show functions that the compiler put into others as frames of their own,
    /// where debug information is at hand
    #[arg(long)]
    pub inline: bool,

    /// Put why a thread was blocked on top of its stack: [lock: mutex]
    #[arg(long)]
    pub reasons: bool,
}

impl FrameFlags {
    /// What is to be looked up in debug information.
    #[must_use]
    pub fn sources(&self) -> Sources {
        match (self.inline, self.srcline) {
            (true, _) => Sources::Inlined,
            (false, true) => Sources::Lines,
            (false, false) => Sources::None,
        }
    }

    /// How frames are written.
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

/// In which formats, and where they go.
#[derive(Args, Clone, Debug, Default)]
pub struct FormatFlags {
    /// The formats that are named.
    #[arg(long = "format", value_name = "NAMES", value_delimiter = ',', value_parser = format)]
    #[arg(help = format!(
        "Write in these formats: {}. Several need -o: a name that each format's ending is \
         added to, or one for each", export::format_names()
    ))]
    pub formats: Vec<Chosen>,

    /// The files to write.
    #[arg(short = 'o', value_name = "FILE")]
    #[arg(help = format!(
        "Write to FILE, which appears only once it is whole; without --format its ending says \
         in which format: {}", export::format_endings()
    ))]
    pub files: Vec<PathBuf>,

    /// The same as --format if that is a format, else as -o
    #[arg(long, value_name = "FORMAT|FILE")]
    pub output: Vec<OsString>,
}

/// A format that was asked for by its name.
#[derive(Clone, Copy)]
pub struct Chosen(pub &'static dyn Format);

impl fmt::Debug for Chosen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.name())
    }
}

/// A format's name.
fn format(name: &str) -> Result<Chosen, String> {
    by_name(name)
        .map(Chosen)
        .ok_or_else(|| format!("the formats are {}", export::format_names()))
}

impl FormatFlags {
    /// The formats that are named, and the files.
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

    /// What goes where.
    ///
    /// # Errors
    /// That cannot be told: a wrong command line.
    pub fn plan(&self) -> anyhow::Result<Vec<Planned>> {
        let (formats, files) = self.named();
        pair(&formats, &files, &Folded)
    }

    /// What must be measured for the formats and the flags.
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
            ..Needs::NAMES
        };
        let needs = formats.iter().map(|format| format.needs());
        needs.fold(flags, |sum, needs| sum | needs)
    }

    /// How stacks are written.
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

    /// The formats' names and the files.
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
        let error = parse_line::<Arguments>("--format chrome").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("invalid value 'chrome' for '--format <NAMES>'"),
            "{error}"
        );
        assert!(
            error.contains("the formats are folded, svg, pprof"),
            "{error}"
        );
    }
}
