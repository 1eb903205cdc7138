//! Lines of a report that fit the terminal.

use std::collections::HashSet;
use std::io::{self, Write};

use export::text::cut::cut;

use crate::waits::split::{Split, apportion};

/// Maximum and minimum width of a report, in columns.
const WIDEST: usize = 120;
const NARROWEST: usize = 80;
/// Width of a bar, in cells.
pub(super) const BAR: usize = 15;
/// The cell of each part of a [`Split`].
const CELLS: [char; 5] = ['▇', '▒', '░', '·', '?'];
/// The SGR parameter of each part's colour, as in flame graphs: red, amber, blue, dim, dim.
const COLOURS: [&str; 5] = ["31", "33", "34", "2", "2"];

/// Width, bars and details of a report.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    width: usize,
    bars: Bars,
    has_details: bool,
}

/// Style of bars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bars {
    /// No bars.
    #[default]
    None,
    /// Bars of characters without colours.
    Plain,
    /// Bars of coloured characters.
    Coloured,
}

impl Default for Look {
    /// Returns the look of a report that does not go to a terminal.
    fn default() -> Look {
        Look {
            width: WIDEST,
            bars: Bars::None,
            has_details: false,
        }
    }
}

impl Look {
    /// Returns the look on a terminal with this number of columns, or of unknown width.
    #[must_use]
    pub fn on_terminal(columns: Option<usize>, bars: Bars) -> Look {
        Look {
            width: columns.unwrap_or(WIDEST).clamp(NARROWEST, WIDEST),
            bars,
            has_details: false,
        }
    }

    /// Returns the look with or without details on sampling and losses.
    #[must_use]
    pub fn with_details(self, has_details: bool) -> Look {
        Look {
            has_details,
            ..self
        }
    }
}

/// Destination of a report's lines. A page cuts each line to the report's width.
pub(super) struct Page<'a> {
    look: Look,
    writer: &'a mut dyn Write,
    /// Lines that [`line_once`](Page::line_once) wrote.
    seen: HashSet<String>,
}

impl<'a> Page<'a> {
    pub(super) fn new(look: Look, writer: &'a mut dyn Write) -> Page<'a> {
        Page {
            look,
            writer,
            seen: HashSet::new(),
        }
    }

    /// Returns the width of a line, in columns.
    pub(super) fn width(&self) -> usize {
        self.look.width
    }

    /// Returns whether the report has details.
    pub(super) fn has_details(&self) -> bool {
        self.look.has_details
    }

    /// Returns whether rows have bars.
    pub(super) fn has_bars(&self) -> bool {
        self.look.bars != Bars::None
    }

    /// Writes a line, cut to the width.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.writer, "{}", cut(text.trim_end(), self.look.width))
    }

    /// Writes a line unless this function wrote it before.
    pub(super) fn line_once(&mut self, text: &str) -> io::Result<()> {
        if self.seen.insert(text.to_owned()) {
            self.line(text)
        } else {
            Ok(())
        }
    }

    /// Writes an empty line.
    pub(super) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.writer)
    }

    /// Writes a line, with a bar in it if rows have bars.
    pub(super) fn bar(&mut self, before: &str, split: &Split, after: &str) -> io::Result<()> {
        if self.look.bars == Bars::None {
            return self.line(&format!("{before}{after}"));
        }
        let mut bar = String::new();
        let cells = apportion(split.parts(), BAR as u64);
        for ((cells, character), colour) in cells.into_iter().zip(CELLS).zip(COLOURS) {
            let is_coloured = self.look.bars == Bars::Coloured && cells > 0;
            if is_coloured {
                bar.push_str(&format!("\u{1b}[{colour}m"));
            }
            bar.extend((0..cells).map(|_| character));
            if is_coloured {
                bar.push_str("\u{1b}[0m");
            }
        }
        if split.whole() == 0 {
            bar.extend((0..BAR).map(|_| ' '));
        }
        let used = before.chars().count() + BAR + 1;
        let after = after.trim_end();
        let after = cut(after, self.look.width.saturating_sub(used));
        writeln!(self.writer, "{before}{bar} {after}")
    }
}
