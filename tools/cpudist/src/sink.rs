//! Destination of the histograms: standard output or a file.

use std::io::{self, Write};
use std::path::PathBuf;

use cli::{HeldCommand, Output, Spool};

use crate::arguments::Arguments;

/// Standard output or a file.
pub(crate) enum Sink {
    /// Standard output shows a period as soon as it has ended.
    Stdout,
    /// The file gets all periods at the end. A spool collects them on disk, because the periods of
    /// hours may take too much memory.
    File {
        spool: Spool,
        /// Name of the file, if the tool chose it.
        own: Option<PathBuf>,
    },
}

impl Sink {
    /// Opens the destination that the command line names. With a command the default is a file,
    /// because standard output belongs to the command.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(
        arguments: &Arguments,
        command: Option<&HeldCommand>,
    ) -> anyhow::Result<Sink> {
        let own = command.filter(|_| arguments.file.is_none());
        let own = own.map(|command| command.default_file("cpudist", ".txt"));
        let output = match &own {
            Some(own) => Output::create_new(own.clone())?,
            None => Output::new(arguments.file.clone())?,
        };
        Ok(match Spool::new(output)? {
            Some(spool) => Sink::File { spool, own },
            None => Sink::Stdout,
        })
    }

    /// Writes the output of `body`.
    ///
    /// # Errors
    /// A write to standard output or to the file fails.
    pub(crate) fn write(
        &mut self,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Sink::Stdout => Output::new(None)?.write(|writer| body(writer)),
            Sink::File { spool, .. } => spool.add(body),
        }
    }

    /// Writes the file under its name, and prints the name if the tool chose it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let Sink::File { spool, own } = self else {
            return Ok(());
        };
        spool.finish()?;
        if let Some(file) = own {
            cli::say(format_args!("cpudist: wrote `{}`", file.display()));
        }
        Ok(())
    }
}
