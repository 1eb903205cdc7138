//! The data block: a capture inside a page.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use profile::Profile;

/// `type` of the element. No browser runs a script of this type.
pub(crate) const TYPE: &str = "application/octet-stream";
/// `id` of the capture of a page.
pub(crate) const CAPTURE: &str = "capture";
/// `id` of the earlier capture of a page that compares two.
pub(crate) const BEFORE: &str = "before";

/// Writes a `script` element that is never run. It holds the records of a capture: compressed by
/// zlib, in base64, which cannot close the element.
///
/// # Errors
/// Returns the errors of `writer`.
pub(crate) fn write(id: &str, profile: &Profile, writer: &mut dyn Write) -> io::Result<()> {
    let version = capture::VERSION;
    write!(
        writer,
        "<script type=\"{TYPE}\" id=\"{id}\" data-version=\"{version}\">"
    )?;
    let text = Base64 {
        writer: &mut *writer,
        rest: Vec::new(),
    };
    let mut packed = ZlibEncoder::new(text, Compression::default());
    capture::write_records(profile, &mut packed)?;
    packed.finish()?.finish()?;
    writer.write_all(b"</script>\n")
}

/// A writer of bytes as base64.
struct Base64<'a> {
    writer: &'a mut dyn Write,
    /// Bytes that are not yet written: fewer than the three that four characters stand for.
    rest: Vec<u8>,
}

impl Base64<'_> {
    /// Writes the last bytes with their padding.
    fn finish(self) -> io::Result<()> {
        let text = STANDARD.encode(self.rest);
        self.writer.write_all(text.as_bytes())
    }
}

impl Write for Base64<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend(bytes);
        let whole = self.rest.len() - self.rest.len() % 3;
        let text = STANDARD.encode(&self.rest[..whole]);
        self.rest.drain(..whole);
        self.writer.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
