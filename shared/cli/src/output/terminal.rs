//! The look of reports on a terminal.

use std::env;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use report::overview::{Bars, Look};
use rustix::termios::tcgetwinsize;

/// Chooses the look of a report on a stream. On a terminal the report has the width of the
/// terminal. It has bars if the terminal is in UTF-8. The bars have colours unless `NO_COLOR` is
/// set or the terminal has none.
pub fn report_look(stream: &(impl AsFd + IsTerminal)) -> Look {
    if !stream.is_terminal() {
        return Look::default();
    }
    let columns = tcgetwinsize(stream).ok().map(|size| size.ws_col);
    let columns = columns.filter(|columns| *columns > 0).map(usize::from);
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    Look::on_terminal(columns, bars(variable))
}

/// Chooses the style of bars from environment variables. Empty variables do not count.
fn bars(variable: impl Fn(&str) -> Option<String>) -> Bars {
    // The first variable that is set counts: see locale(7).
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
