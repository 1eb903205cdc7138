//! Thread clocks as tab-separated text: a header line, then one row per thread, ended threads
//! included. Two rows share a TID if the kernel reused it.

use std::io::{self, Write};

use profile::{Profile, Thread};

use crate::format::{Format, Needs};
use crate::text::frames::thread_name;
use crate::text::options::{Options, Written};

/// Names of the columns. Times are in ns, instants in ns of `CLOCK_MONOTONIC`.
const HEADER: &str = "pid\ttid\tcomm\tstarted_ns\tended_ns\trunning_ns\trunnable_ns\tblocked_ns\tvoluntary\tinvoluntary";

/// The clocks format: the threads of a profile in their order. The list of formats does not have it,
/// because it needs accounts.
pub struct Clocks;

impl Format for Clocks {
    fn name(&self) -> &'static str {
        "clocks"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".tsv"]
    }

    fn readers(&self) -> &'static str {
        "awk, spreadsheets: a row for each thread"
    }

    fn needs(&self) -> Needs {
        Needs {
            accounts: true,
            ..Needs::NAMES
        }
    }

    fn write(
        &self,
        profile: &Profile,
        _options: &Options,
        writer: &mut dyn Write,
    ) -> io::Result<Written> {
        writeln!(writer, "{HEADER}")?;
        for Thread { id, comm, clock } in &profile.threads {
            writeln!(
                writer,
                "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                id.pid,
                id.tid,
                thread_name(profile, *comm),
                clock.started_ns,
                clock.ended_ns,
                clock.running_ns,
                clock.runnable_ns,
                clock.blocked_ns,
                clock.voluntary,
                clock.involuntary
            )?;
        }
        Ok(Written::default())
    }
}

#[cfg(test)]
mod tests {
    use profile::{Clock, ThreadId, Unit};

    use super::*;
    use crate::fixture::written;

    const CLOCK: Clock = Clock {
        started_ns: 3,
        ended_ns: 18,
        running_ns: 4,
        runnable_ns: 5,
        blocked_ns: 6,
        voluntary: 7,
        involuntary: 8,
    };

    #[test]
    fn golden() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let id = ThreadId { pid: 1, tid: 2 };
        let comm = profile.names.id(profile::text::comm(b"a\tb c;d"));
        let clock = CLOCK;
        profile.threads.push(Thread { id, comm, clock });
        let options = Options::default();
        let text = written(|writer| Clocks.write(&profile, &options, writer).map(drop));
        assert_eq!(
            text,
            "pid\ttid\tcomm\tstarted_ns\tended_ns\trunning_ns\trunnable_ns\tblocked_ns\t\
             voluntary\tinvoluntary\n1\t2\ta?b c:d\t3\t18\t4\t5\t6\t7\t8\n"
        );
    }
}
