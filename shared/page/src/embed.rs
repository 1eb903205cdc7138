//! The data block: a capture inside a page.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
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
    let text = EncoderWriter::new(&mut *writer, &STANDARD);
    let mut packed = ZlibEncoder::new(text, Compression::default());
    capture::write_records(profile, &mut packed)?;
    packed.finish()?.finish()?;
    writer.write_all(b"</script>\n")
}
