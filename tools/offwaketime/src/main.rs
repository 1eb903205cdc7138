//! offwaketime: where threads block, and who ends it.

mod arguments;
mod trace;

use std::process::ExitCode;

use arguments::Arguments;
use export::Form;
use export::svg::{Caption, Colours};
use profile::Profile;
use trace::Measured;

fn main() -> ExitCode {
    cli::run("offwaketime", || {
        let arguments: Arguments = cli::parse()?;
        arguments.check()?;
        loader::check_privileges()?;
        let output = cli::Output::new(arguments.output.output.clone())?;
        let svg = arguments
            .svg
            .clone()
            .map(|path| cli::Output::new(Some(path)))
            .transpose()?;
        let mut window = cli::Window::new(arguments.duration.get(), arguments.control.control_fd)?;

        let Measured { named, runnable_ns } = trace::run(&arguments, &mut window)?;

        window.report(&named.profile.losses.to_string())?;
        if let Some(svg) = svg {
            svg.write(|writer| draw(&arguments, &named.profile, writer))?;
        }
        let options = export::folded::Options {
            per_thread: arguments.output.per_thread,
            delimited: arguments.output.delimited,
            annotate_kernel: arguments.output.annotate,
            nanoseconds: arguments.nanoseconds,
        };
        let form = match (arguments.output.capture, arguments.output.classic) {
            (true, _) => Form::Capture,
            (_, true) => Form::Classic,
            _ => Form::Folded,
        };
        let mut written = export::folded::Written::default();
        output.write(|writer| {
            written = form.write(&named.profile, &options, writer)?;
            Ok(())
        })?;
        named.report(arguments.output.verbose);
        if !arguments.states {
            eprintln!(
                "offwaketime: left out {} us of waiting for a CPU after the wake-ups; --states shows it",
                runnable_ns / 1000
            );
        }
        if let Some(left_out) = written.left_out() {
            eprintln!("offwaketime: {left_out}");
        }
        Ok(())
    })
}

/// The flame graph: sleepers below, their wakers on top of them.
fn draw(
    arguments: &Arguments,
    profile: &Profile,
    writer: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    let caption = Caption {
        title: format!("Who ended the waits of {}", arguments.subject()),
        subtitle: "below the --: where it waited; above: who woke it, from the leaf up; widths are blocked time".to_owned(),
    };
    export::svg::write(
        profile,
        profile.values(),
        Colours::Wakeups,
        &caption,
        writer,
    )
}
