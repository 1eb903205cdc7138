//! Thread clocks as tab-separated text: a header line, then one row per thread,
//! exited ones too. Two rows may share a thread ID that was used again.

use std::io::{self, BufRead, Write};

use profile::{Clock, Profile, Thread, ThreadId, Unit};
use thiserror::Error;

use crate::stack_text::thread_name;

/// The columns; times are nanoseconds, instants those of `CLOCK_MONOTONIC`.
const HEADER: &str = "pid\ttid\tcomm\tstarted_ns\tended_ns\trunning_ns\trunnable_ns\tblocked_ns\tvoluntary\tinvoluntary";

/// Why thread clocks could not be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The text could not be read at all.
    #[error("cannot read thread clocks: {0}")]
    Read(#[from] io::Error),
    /// The first line is not the header.
    #[error("the thread clocks start with `{0}`, not with the names of their columns")]
    Header(String),
    /// A line is not a row.
    #[error("line {number} of the thread clocks is not a row of ten columns: `{line}`")]
    Row {
        /// The line, counted from 1.
        number: usize,
        /// What is on it.
        line: String,
    },
}

/// Writes the rows of a profile's threads in their order.
///
/// # Errors
/// Those of the writer.
pub fn write(profile: &Profile, writer: &mut dyn Write) -> io::Result<()> {
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
    Ok(())
}

/// Reads what [`write`] wrote: a profile of threads alone.
///
/// # Errors
/// The reader fails, or the text is something else.
pub fn read(reader: impl BufRead) -> Result<Profile, Error> {
    let mut lines = reader.lines();
    let header = lines.next().transpose()?.unwrap_or_default();
    if header != HEADER {
        return Err(Error::Header(header));
    }
    let mut profile = Profile::new(Unit::Nanoseconds);
    for (line, number) in lines.zip(2..) {
        let line = line?;
        match row(&line, &mut profile) {
            Some(thread) => profile.threads.push(thread),
            None => return Err(Error::Row { number, line }),
        }
    }
    Ok(profile)
}

fn row(line: &str, profile: &mut Profile) -> Option<Thread> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [pid, tid, comm, numbers @ ..] = &columns[..] else {
        return None;
    };
    let numbers: Vec<u64> = numbers
        .iter()
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let [
        started_ns,
        ended_ns,
        running_ns,
        runnable_ns,
        blocked_ns,
        voluntary,
        involuntary,
    ] = numbers[..]
    else {
        return None;
    };
    Some(Thread {
        id: ThreadId {
            pid: pid.parse().ok()?,
            tid: tid.parse().ok()?,
        },
        comm: profile.names.text(comm),
        clock: Clock {
            started_ns,
            ended_ns,
            running_ns,
            runnable_ns,
            blocked_ns,
            voluntary,
            involuntary,
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
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
    fn golden_and_back() {
        let mut profile = Profile::new(Unit::Nanoseconds);
        let id = ThreadId { pid: 1, tid: 2 };
        let comm = profile.names.text("a\tb c;d");
        let clock = CLOCK;
        profile.threads.push(Thread { id, comm, clock });
        let text = written(|writer| write(&profile, writer));
        assert_eq!(
            text,
            "pid\ttid\tcomm\tstarted_ns\tended_ns\trunning_ns\trunnable_ns\tblocked_ns\t\
             voluntary\tinvoluntary\n1\t2\ta?b c:d\t3\t18\t4\t5\t6\t7\t8\n"
        );
        let read = read(text.as_bytes()).unwrap();
        let [thread] = read.threads[..] else {
            unreachable!("one thread: {read:?}")
        };
        assert_eq!((thread.id, thread.clock), (id, CLOCK));
        assert_eq!(&*read.names[thread.comm], "a?b c:d");
    }

    #[test]
    fn anything_else_is_refused() {
        let problem = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert!(problem("").contains("names of their columns"));
        assert!(problem("pid\ttid\n").contains("names of their columns"));
        for row in [
            "1\t2\tx\t3",
            "1\t2\tx\t3\t4\t5\t6\t7\t8\t9\t10",
            "1\t2\tx\t3\t4\t5\t6\t7\t8\t-9",
        ] {
            assert!(
                problem(&format!("{HEADER}\n{row}\n")).contains("line 2"),
                "{row}"
            );
        }
    }
}
