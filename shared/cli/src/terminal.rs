//! The look of reports on a terminal.

use std::env;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use export::report::overview::{Bars, Look};
use rustix::termios::tcgetwinsize;

/// Returns how a report is to look on a stream: with bars on a terminal that is in UTF-8, in
/// colours unless `NO_COLOR` is set or the terminal has none, and as wide as the terminal.
pub fn report_look(stream: &(impl AsFd + IsTerminal)) -> Look {
    if !stream.is_terminal() {
        return Look::default();
    }
    let columns = tcgetwinsize(stream).ok().map(|size| size.ws_col);
    let columns = columns.filter(|columns| *columns > 0).map(usize::from);
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    Look::on_terminal(columns, bars(variable))
}

/// Returns how bars are drawn, by the environment's variables that are not empty.
fn bars(variable: impl Fn(&str) -> Option<String>) -> Bars {
    // The first of these that is set counts: locale(7).
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(&variable);
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    if !locale.contains("utf-8") && !locale.contains("utf8") {
        return Bars::None;
    }
    let has_no_colours = variable("TERM").is_none_or(|terminal| terminal == "dumb");
    if has_no_colours || variable("NO_COLOR").is_some() {
        Bars::Plain
    } else {
        Bars::Coloured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_how_bars_are_drawn() {
        for (variables, expected) in [
            (
                &[("LANG", "en_US.UTF-8"), ("TERM", "xterm")][..],
                Bars::Coloured,
            ),
            (&[("LC_ALL", "C.utf8"), ("TERM", "dumb")], Bars::Plain),
            (
                &[
                    ("LANG", "de_DE.UTF-8"),
                    ("TERM", "xterm"),
                    ("NO_COLOR", "1"),
                ],
                Bars::Plain,
            ),
            (
                &[("LC_ALL", "C"), ("LANG", "en_US.UTF-8"), ("TERM", "xterm")],
                Bars::None,
            ),
            (&[("TERM", "xterm")], Bars::None),
        ] {
            let value = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(bars(value), expected, "{variables:?}");
        }
    }
}
