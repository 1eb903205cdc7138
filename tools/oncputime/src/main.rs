//! oncputime: where threads spend the time in which they run.

mod arguments;
mod trace;

use std::process::ExitCode;

use arguments::Arguments;
use export::Form;

fn main() -> ExitCode {
    cli::run("oncputime", || {
        let arguments: Arguments = cli::parse()?;
        arguments.target.validate()?;
        loader::check_privileges()?;
        let output = cli::Output::new(arguments.output.output.clone())?;
        let mut window = cli::Window::new(arguments.duration.get(), arguments.control.control_fd)?;

        let measured = trace::run(&arguments, &mut window)?;

        window.report(&measured.profile.losses.to_string())?;
        let options = export::folded::Options {
            per_thread: arguments.output.per_thread,
            delimited: arguments.output.delimited,
            annotate_kernel: arguments.output.annotate,
            nanoseconds: false,
        };
        let form = match (arguments.output.capture, arguments.output.classic) {
            (true, _) => Form::Capture,
            (_, true) => Form::Classic,
            _ => Form::Folded,
        };
        output.write(|writer| form.write(&measured.profile, &options, writer).map(drop))?;
        measured.report(arguments.output.verbose);
        Ok(())
    })
}
