//! Where histograms go.

use std::io::{self, Write};
use std::path::PathBuf;

use cli::{HeldCommand, Output, Spool};

use crate::arguments::Arguments;

/// Standard output, or a file.
pub(crate) enum Sink {
    /// An interval is there as soon as it has ended.
    Stdout,
    /// All of them, at the end: of hours there may be more than memory should hold.
    File {
        spool: Spool,
        /// Its name, if nobody gave one.
        own: Option<PathBuf>,
    },
}

impl Sink {
    /// Where the command line says; a command has standard output to itself.
    ///
    /// # Errors
    /// The file cannot be written: why, and what to do.
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

    /// Writes what `body` does.
    ///
    /// # Errors
    /// Those of standard output, or of the file.
    pub(crate) fn write(
        &mut self,
        body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Sink::Stdout => Output::new(None)?.write(|writer| body(writer)),
            Sink::File { spool, .. } => spool.add(body),
        }
    }

    /// Puts the file in its place, and tells of it if nobody named it.
    ///
    /// # Errors
    /// It cannot be written.
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
