//! `oncputime` samples running threads by stack.

mod arguments;

use bpf::types::Tally;
use cli::{CommonFlags, StackTool};
use collect::{SamplingSession, StackChoice};
use loader::{Kernel, LoadedObject, OpenObject, Result, Targets};
use profile::{Meta, Rate, Sampling, State, Unit, Weight};

pub use arguments::Arguments;

impl StackTool for Arguments {
    const NAME: &'static str = "oncputime";
    const OBJECT: bpf::Object = bpf::oncputime::OBJECT;
    const UNIT: Unit = Unit::Samples;
    type Session<'a> = SamplingSession<'a>;

    fn common(&self) -> CommonFlags<'_> {
        CommonFlags {
            target: &self.target,
            output: &self.output,
            duration: &self.duration,
            control: &self.control,
            debuginfod: self.stacks.debuginfod(),
            nanoseconds: false,
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        if !self.output.timeline().recorder.triggers.is_empty() {
            return Err(cli::usage(
                "oncputime sees no waits: give --trigger to offcputime, offwaketime or wallclock",
            ));
        }
        Ok(())
    }

    fn stacks(&self) -> StackChoice {
        self.stacks.choice(&self.output, &self.target)
    }

    fn configure(&self, object: &mut OpenObject, _kernel: &Kernel) -> Result<()> {
        object.set(bpf::constants::DUMPS_CAN_WAIT, true)?;
        object.set(bpf::constants::INCLUDE_IDLE, self.include_idle)
    }

    fn attach<'a>(
        &'a self,
        object: &'a LoadedObject,
        kernel: &Kernel,
        targets: &'a Targets,
    ) -> Result<SamplingSession<'a>> {
        let stacks = self.stacks();
        let rate = self.rate();
        SamplingSession::attach(object, kernel, targets, stacks, self.event, rate, self.cpu)
    }

    fn header(&self, session: &SamplingSession<'_>) -> String {
        let rate = match self.rate() {
            Rate::Frequency(frequency) => format!("at {frequency} Hertz"),
            Rate::Period(period) => format!("every {period} events"),
        };
        let samplers = session.samplers();
        format!(
            "Sampling {rate} ({}, {} CPUs) of {} by {} stack",
            samplers.event().name,
            samplers.cpus(),
            self.target.subject(),
            self.stacks.subject(),
        )
    }

    fn describe(&self, session: &SamplingSession<'_>, meta: &mut Meta) {
        meta.sampling = Some(Sampling {
            event: session.samplers().event().name.into(),
            rate: self.rate(),
        });
    }

    fn weigh(&self, tally: &Tally) -> Vec<(Option<State>, Weight)> {
        let weight = Weight {
            value: tally.events,
            events: tally.events,
            ..Weight::default()
        };
        vec![(None, weight)]
    }
}
