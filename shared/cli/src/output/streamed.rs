//! A capture whose timeline is written while the tool measures.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use capture::{KeySamples, Stream};
use collect::RowSink;
use profile::Profile;

use super::{OpenOutput, Output};

/// A capture that is being written.
pub(crate) struct StreamedCapture {
    stream: Rc<RefCell<Stream<OpenOutput>>>,
    is_stdout: bool,
}

impl StreamedCapture {
    /// Begins a capture. `profile` has the circumstances of the measurement as far as they are
    /// known.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn begin(output: Output, profile: &Profile) -> anyhow::Result<StreamedCapture> {
        let is_stdout = output.is_stdout();
        let stream = Stream::new(output.open()?, profile)?;
        Ok(StreamedCapture {
            stream: Rc::new(RefCell::new(stream)),
            is_stdout,
        })
    }

    /// Returns whether the capture goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.is_stdout
    }

    /// Returns the receiver of the timeline's rows.
    pub(crate) fn sink(&self) -> RowSink {
        let stream = Rc::clone(&self.stream);
        Box::new(move |parts, samples| stream.borrow_mut().add(parts, samples))
    }

    /// Writes the tables, and gives the file its name.
    ///
    /// # Errors
    /// The output cannot be written, or a sink still exists.
    pub(crate) fn finish(self, profile: &Profile, keys: &[KeySamples]) -> anyhow::Result<()> {
        let stream = Rc::into_inner(self.stream);
        let stream =
            stream.ok_or_else(|| io::Error::other("the capture is still being written"))?;
        let output = stream.into_inner().finish(profile, keys)?;
        output.finish()
    }
}
