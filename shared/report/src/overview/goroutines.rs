//! Waits of goroutines, by reason, and the functions with most of each reason's time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use export::text::numbers::{count, duration, whole_percent};
use profile::text::clean;

use super::page::Page;
use crate::place::join_names;
use crate::{GoroutineWait, Goroutines, Process, Run};

/// Maximum number of reasons.
const REASONS: usize = 8;
/// Maximum number of stacks of a reason.
const STACKS: usize = 3;
/// Width of the figures, in characters.
const FIGURES: usize = 32;
/// Indentation of the functions of a reason, in characters.
const INDENT: usize = 5;
/// Minimum width of functions beside their creator, in characters.
const LEAST: usize = 20;

/// Writes the goroutines of some processes. Writes nothing if none has any.
pub(super) fn write<'a>(
    run: &Run,
    processes: impl IntoIterator<Item = &'a Process<'a>>,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let processes: Vec<&Process<'_>> = processes.into_iter().collect();
    for goroutines in &run.goroutines {
        let process = { processes.iter() }.find(|process| process.pid == goroutines.pid);
        if let Some(process) = process {
            let subject = if processes.len() > 1 {
                format!(" of {} (PID {})", process.name, process.pid)
            } else {
                String::new()
            };
            write_process(goroutines, &subject, page)?;
        }
    }
    Ok(())
}

fn write_process(goroutines: &Goroutines, subject: &str, page: &mut Page<'_>) -> io::Result<()> {
    let mut reasons: BTreeMap<&str, Vec<&GoroutineWait>> = BTreeMap::new();
    for wait in &goroutines.waits {
        reasons.entry(&wait.reason).or_default().push(wait);
    }
    let time = |waits: &[&GoroutineWait]| waits.iter().map(|wait| wait.ns).sum::<u64>();
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, waits)| Reverse(time(waits)));
    let all: u64 = reasons.iter().map(|(_, waits)| time(waits)).sum();
    let measured = goroutines.measured_ns.max(1);
    let figures = |ns: u64| {
        format!(
            "{:>10} {:>8} {:>12.1}",
            duration(ns),
            whole_percent(ns, all),
            ns as f64 / measured as f64
        )
    };
    let room = page.width() - FIGURES - 1;

    page.blank()?;
    page.line(&format!(
        "{:<room$} {:>10} {:>8} {:>12}",
        format!("GOROUTINES{subject}, by reason"),
        "total",
        "share",
        "goroutines"
    ))?;
    for (reason, waits) in reasons.iter().take(REASONS) {
        let name = if reason.is_empty() {
            "no reason"
        } else {
            reason
        };
        let name = clean(name);
        page.line(&format!(
            " {name:<width$} {}",
            figures(time(waits)),
            width = room - 1
        ))?;
        write_stacks(waits, room, figures, page)?;
    }
    let rest = reasons.iter().skip(REASONS).map(|(_, waits)| time(waits));
    let rest: Vec<u64> = rest.collect();
    if !rest.is_empty() {
        let name = count(rest.len() as u64, "other reason");
        let figures = figures(rest.iter().sum());
        page.line(&format!(" {name:<width$} {figures}", width = room - 1))?;
    }
    let indent = " ".repeat(INDENT);
    let mut remarks = remarks(goroutines, measured).into_iter();
    remarks.try_for_each(|remark| page.line(&format!("{indent}{remark}")))
}

/// Writes the stacks with most of the time of a reason. Stacks with the same functions of the
/// program and the same creator are one.
fn write_stacks(
    waits: &[&GoroutineWait],
    room: usize,
    figures: impl Fn(u64) -> String,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let mut stacks: BTreeMap<(Vec<&str>, Option<&str>), u64> = BTreeMap::new();
    for wait in waits {
        let key = (own_functions(wait), wait.creator.as_deref());
        *stacks.entry(key).or_default() += wait.ns;
    }
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_by_key(|(_, ns)| Reverse(*ns));
    let is_single = stacks.len() == 1;
    for ((functions, creator), ns) in stacks.into_iter().take(STACKS) {
        let width = room - INDENT;
        let text = clean(&describe(functions, creator, width)).into_owned();
        let blank = " ".repeat(INDENT);
        if is_single {
            page.line(&format!("{blank}{text}"))?;
        } else {
            page.line(&format!("{blank}{text:<width$} {}", figures(ns)))?;
        }
    }
    Ok(())
}

/// Returns functions and the creator in at most `most` characters. Calls of a function by itself are
/// shown once.
fn describe(functions: Vec<&str>, creator: Option<&str>, most: usize) -> String {
    if functions.is_empty() {
        return "functions are not known".to_owned();
    }
    let mut functions: Vec<&str> = functions.into_iter().map(short_name).collect();
    functions.dedup();
    // The runtime creates the goroutine of `main`.
    let creator = creator.filter(|creator| !is_of_runtime(creator));
    let creator = creator.map_or_else(String::new, |creator| {
        format!(" ← created by {}", short_name(creator))
    });
    let left = most.saturating_sub(creator.chars().count());
    if left < LEAST {
        return join_names(&functions, most);
    }
    join_names(&functions, left) + &creator
}

/// Returns the functions from the innermost one that is not the runtime's. If all are, returns all.
fn own_functions(wait: &GoroutineWait) -> Vec<&str> {
    let names = || wait.functions.iter().map(String::as_str);
    let own: Vec<&str> = names().skip_while(|name| is_of_runtime(name)).collect();
    if own.is_empty() {
        names().collect()
    } else {
        own
    }
}

/// Returns whether a function belongs to Go's runtime. The runtime has functions in other packages,
/// such as `sync.runtime_Semacquire`.
fn is_of_runtime(name: &str) -> bool {
    name.starts_with("runtime.") || name.contains(".runtime_")
}

/// Returns a name without the path of its package, but with the package itself and its version, such
/// as `caddy/v2.Load` of `github.com/caddyserver/caddy/v2.Load`.
fn short_name(name: &str) -> &str {
    let path = name.split(['(', '[']).next().unwrap_or(name);
    let Some(last) = path.rfind('/') else {
        return name;
    };
    let version = path[last + 1..].strip_prefix('v');
    let is_version = version.is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()));
    let start = match path[..last].rfind('/') {
        Some(before) if is_version => before + 1,
        _ if is_version => 0,
        _ => last + 1,
    };
    &name[start..]
}

/// Returns a line about the samples, and one about what they lack, if they lack anything.
fn remarks(goroutines: &Goroutines, measured: u64) -> Vec<String> {
    let rate = goroutines.samples as f64 / (measured as f64 / 1e9);
    let sampled = format!(
        "sampled {rate:.1} times a second, at most {}; no part of the threads' time",
        count(goroutines.most, "goroutine")
    );
    let mut others = Vec::new();
    let (number, ns) = goroutines.system;
    if number > 0 {
        let number = count(number, "goroutine");
        others.push(format!(
            "{number} of Go's runtime left out ({})",
            duration(ns)
        ));
    }
    if goroutines.runnable_ns > 0 {
        others.push(format!("runnable for {}", duration(goroutines.runnable_ns)));
    }
    others.extend(goroutines.losses.iter().cloned());
    let others = (!others.is_empty()).then(|| others.join("; "));
    [sampled].into_iter().chain(others).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::overview::Look;

    #[test]
    fn names_are_without_the_path_of_their_package() {
        for (name, short) in [
            ("main.main", "main.main"),
            ("net/http.(*Server).Serve", "http.(*Server).Serve"),
            ("github.com/caddyserver/caddy/v2.Load", "caddy/v2.Load"),
            ("k8s.io/api/core/v1.(*Pod).Get", "core/v1.(*Pod).Get"),
            ("v2/v3.f", "v2/v3.f"),
            (
                "main.f[go.shape.struct{a/b.C}]",
                "main.f[go.shape.struct{a/b.C}]",
            ),
            ("a/", ""),
        ] {
            assert_eq!(short_name(name), short);
        }
    }

    #[test]
    fn reasons_come_longest_first_with_their_stacks() {
        let wait = |reason: &str, functions: &[&str], creator: Option<&str>, seconds: u64| {
            let functions = functions.iter().map(ToString::to_string).collect();
            GoroutineWait {
                reason: reason.to_owned(),
                functions,
                creator: creator.map(str::to_owned),
                ns: seconds * 1_000_000_000,
            }
        };
        let receive = [
            "runtime.gopark",
            "runtime.chanrecv1",
            "main.take",
            "main.work",
        ];
        let goroutines = Goroutines {
            pid: 7,
            samples: 100,
            measured_ns: 10_000_000_000,
            most: 9,
            system: (4, 40_000_000_000),
            runnable_ns: 500_000_000,
            waits: vec![
                wait(
                    "select",
                    &["runtime.gopark", "main.\u{1b}[2Jserve"],
                    None,
                    10,
                ),
                wait("chan receive", &receive, Some("main.start"), 20),
                wait("chan receive", &receive[1..], Some("main.start"), 2),
                wait("chan receive", &["runtime.gopark"], None, 1),
                wait("", &[], None, 7),
            ],
            losses: vec!["1 was lost".to_owned()],
        };
        let mut written = Vec::new();
        let mut page = Page::new(
            Look::on_terminal(Some(100), crate::overview::Bars::None),
            &mut written,
        );
        write_process(&goroutines, "", &mut page).unwrap();
        let text = String::from_utf8(written).unwrap();
        let expected = "
GOROUTINES, by reason                                                    total    share   goroutines
 chan receive                                                           23.0 s     57 %          2.3
     main.take ← main.work ← created by main.start                      22.0 s     55 %          2.2
     runtime.gopark                                                     1.00 s      2 %          0.1
 select                                                                 10.0 s     25 %          1.0
     main.?[2Jserve
 no reason                                                              7.00 s     18 %          0.7
     functions are not known
     sampled 10.0 times a second, at most 9 goroutines; no part of the threads' time
     4 goroutines of Go's runtime left out (40.0 s); runnable for 500 ms; 1 was lost
";
        assert_eq!(text, expected);
    }
}
