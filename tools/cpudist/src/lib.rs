//! `cpudist` measures the distribution of the lengths of threads' stays on the CPU or off it.

mod arguments;
mod local_time;
mod periods;
mod sink;
mod thread_names;
mod trace;

use std::io::{self, Write};
use std::process::ExitCode;

use arguments::Form;
use cli::{HeldCommand, Output, Window};
use collect::LeftOut;
use profile::spans::{Distribution, Histogram};
use sink::Sink;

pub use arguments::Arguments;

/// Runs `cpudist` from its command line to its exit status.
#[must_use]
pub fn run(command_line: &cli::CommandLine) -> ExitCode {
    cli::run(command_line.called(), || {
        let arguments: Arguments = command_line.parse()?;
        arguments.validate()?;
        loader::check_privileges()?;
        let hgrm = arguments
            .hgrm
            .clone()
            .map(|path| Output::new(Some(path)))
            .transpose()?;
        let mut command = arguments.target.command().start()?;
        let sink = Sink::new(&arguments, command.as_ref())?;
        let mut window = Window::new("cpudist", arguments.duration(), None, None)?;

        let outcome = measure(&arguments, sink, hgrm, &mut window, command.as_mut());
        cli::conclude(command_line.called(), outcome, command, window.signals())
    })
}

/// Measures, and prints each period.
fn measure(
    arguments: &Arguments,
    mut sink: Sink,
    hgrm: Option<Output>,
    window: &mut Window,
    command: Option<&mut HeldCommand>,
) -> anyhow::Result<()> {
    let mut all = Histogram::new(arguments.question().scale);
    let mut names = arguments.thread_names();
    let losses = trace::run(arguments, window, command, |distribution| {
        let distribution = names.filter(distribution);
        all.merge(&distribution.sum());
        sink.write(|writer| print(arguments, &distribution, writer))
    })?;

    if let Some(hgrm) = hgrm {
        hgrm.write(|writer| export::distribution::hgrm::write(&all, writer))?;
    }
    if arguments.form() == Form::Hgrm {
        sink.write(|writer| export::distribution::hgrm::write(&all, writer))?;
    }
    sink.finish()?;
    for line in names.remarks() {
        cli::say(format_args!("cpudist: {line}"));
    }
    let lost = cli::list_losses(&[
        (losses.counts, "span"),
        (losses.switches, "switch"),
        (losses.clocks + losses.children, "thread"),
    ]);
    let spans = cli::count(all.spans(), "span");
    cli::say(format_args!("cpudist: {spans}; {lost}"));
    for line in cli::left_out(&LeftOut::from(&losses)) {
        cli::say(format_args!("cpudist: {line}"));
    }
    Ok(())
}

/// Prints one period in the chosen format.
fn print(
    arguments: &Arguments,
    distribution: &Distribution,
    writer: &mut dyn Write,
) -> io::Result<()> {
    use export::distribution::{json, log2, percentiles};

    let time = arguments.timestamp.then(local_time::now);
    let time = time.as_deref();
    match arguments.form() {
        Form::Json => json::write(distribution, time, writer),
        Form::Percentiles => percentiles::write(distribution, time, writer),
        Form::Log2 => log2::write(distribution, time, arguments.extension, writer),
        // `measure` prints the percentiles of the whole run at its end.
        Form::Hgrm => Ok(()),
    }
}
