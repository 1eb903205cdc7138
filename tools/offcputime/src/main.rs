//! offcputime: where threads spend the time in which they are off the CPU.

mod arguments;
mod trace;

use std::process::ExitCode;

use arguments::Arguments;
use export::Form;

fn main() -> ExitCode {
    cli::run("offcputime", || {
        let arguments: Arguments = cli::parse()?;
        arguments.check()?;
        loader::check_privileges()?;
        let output = cli::Output::new(arguments.output.output.clone())?;
        let clocks = arguments
            .clocks
            .clone()
            .map(|path| cli::Output::new(Some(path)))
            .transpose()?;
        let mut window = cli::Window::new(arguments.duration.get(), arguments.control.control_fd)?;

        let measured = trace::run(&arguments, &mut window)?;

        window.report(&measured.profile.losses.to_string())?;
        if let Some(clocks) = clocks {
            clocks.write(|writer| export::clocks::write(&measured.profile, writer))?;
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
            written = form.write(&measured.profile, &options, writer)?;
            Ok(())
        })?;
        measured.report(arguments.output.verbose);
        if let Some(left_out) = written.left_out() {
            eprintln!("offcputime: {left_out}");
        }
        Ok(())
    })
}
