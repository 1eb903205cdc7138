//! The page as a whole: its parts in their order.

use std::io::{self, Write};

use profile::Profile;
use profile::diff::Diff;

use crate::html::Escaped;
use crate::policy::policy;
use crate::script::{SCRIPT, STYLE};
use crate::{embed, summary};

/// Writes the page of a profile.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write(profile: &Profile, writer: &mut dyn Write) -> io::Result<()> {
    write_head(&summary::title(profile), writer)?;
    summary::write(profile, writer)?;
    write_app(writer)?;
    embed::write(embed::CAPTURE, profile, writer)?;
    write_script(writer)
}

/// Writes the page that compares two profiles. `changes` are those from `before` to `after`.
///
/// # Errors
/// Returns the errors of `writer`.
pub fn write_comparison(
    before: &Profile,
    after: &Profile,
    changes: &Diff,
    writer: &mut dyn Write,
) -> io::Result<()> {
    write_head(&summary::title_of_changes(after), writer)?;
    summary::write_comparison(before, after, changes, writer)?;
    write_app(writer)?;
    // Readers of the later capture then know that there is an earlier one.
    embed::write(embed::BEFORE, before, writer)?;
    embed::write(embed::CAPTURE, after, writer)?;
    write_script(writer)
}

fn write_head(title: &str, writer: &mut dyn Write) -> io::Result<()> {
    let policy = policy(&STYLE, &SCRIPT);
    write!(
        writer,
        "<!DOCTYPE html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"systemscope {version}\">\n\
         <title>{title}</title>\n\
         <style>{style}</style>\n\
         </head>\n\
         <body>\n",
        version = env!("CARGO_PKG_VERSION"),
        title = Escaped(title),
        style = *STYLE,
    )
}

/// Writes the element that the script fills, and the line that stands in its place. The script
/// hides the line. No script can say that the page is cut short, because the script is at its end.
fn write_app(writer: &mut dyn Write) -> io::Result<()> {
    writer.write_all(
        b"<p id=\"trouble\" role=\"alert\">The views of stacks, wakers and times open when the page \
          is loaded. If this line stays, the page was cut short, or the browser runs no scripts.</p>\n\
          <div id=\"app\" hidden></div>\n",
    )
}

fn write_script(writer: &mut dyn Write) -> io::Result<()> {
    write!(
        writer,
        "<script type=\"module\">{}</script>\n</body>\n</html>\n",
        *SCRIPT
    )
}
