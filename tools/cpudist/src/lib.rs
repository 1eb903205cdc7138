//! cpudist: how long threads stay on the CPU at a time, or off it.

mod arguments;
mod intervals;
mod local_time;
mod trace;

use std::process::ExitCode;

use arguments::Form;
use cli::Output;
use profile::spans::{Distribution, Histogram};

pub use arguments::Arguments;

/// The program.
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
        let mut window = cli::Window::new(arguments.duration(), None)?;

        let mut all = Histogram::new(arguments.question().scale);
        let losses = trace::run(&arguments, &mut window, |distribution| {
            all.merge(&distribution.sum());
            print(&arguments, distribution)
        })?;

        if let Some(hgrm) = hgrm {
            hgrm.write(|writer| export::distribution::hgrm::write(&all, writer))?;
        }
        if arguments.form() == Form::Hgrm {
            let stdout = Output::new(None)?;
            stdout.write(|writer| export::distribution::hgrm::write(&all, writer))?;
        }
        eprintln!(
            "cpudist: {} spans; lost: {} spans, {} switches, {} threads",
            all.spans(),
            losses.counts,
            losses.switches,
            losses.clocks
        );
        Ok(())
    })
}

/// Prints one interval in the form that was asked for.
fn print(arguments: &Arguments, distribution: &Distribution) -> anyhow::Result<()> {
    use export::distribution::{json, log2, percentiles};

    let time = arguments.timestamp.then(local_time::now);
    let time = time.as_deref();
    Output::new(None)?.write(|writer| match arguments.form() {
        Form::Json => json::write(distribution, time, writer),
        Form::Percentiles => percentiles::write(distribution, time, writer),
        Form::Log2 => log2::write(distribution, time, arguments.extension, writer),
        // Of the whole run, at its end.
        Form::Hgrm => Ok(()),
    })
}
