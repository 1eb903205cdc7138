//! The first screen.
use profile::Profile;
use profile::diff::Diff;
use std::io::{self, Write};
pub(crate) fn title(_: &Profile) -> String {
    String::new()
}
pub(crate) fn write(_: &Profile, _: &mut dyn Write) -> io::Result<()> {
    Ok(())
}
pub(crate) fn write_comparison(
    _: &Profile,
    _: &Profile,
    _: &Diff,
    _: &mut dyn Write,
) -> io::Result<()> {
    Ok(())
}
