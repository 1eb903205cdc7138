//! Meanings of the lines and columns of reports.

use crate::waits::gil;

/// Returns the meanings of all lines and columns, for `--explain`.
#[must_use]
pub fn explanation() -> String {
    let gil = format!("    {:<11}{}\n", gil::COLUMN, gil::MEANING);
    format!("{BEFORE_GIL}{gil}{AFTER_GIL}")
}

const BEFORE_GIL: &str = "\
The first line: the process, its threads, the time measured, samples per second and CPU,
and the length from which on each wait is measured by itself. Of shorter ones a sample is
kept: one for each such length of a thread's time in them (-m).

The answer: time with work is time running, waiting for a CPU, or held up by something
else. Causes are shares of that time. Running is in brackets: it holds nobody up.
  waits, longest   number and longest of the waits that were measured by themselves
  N CPUs, % busy   how busy the machine was, and the programs that had its CPUs
A wait for a thread or process that is measured itself counts as idle: what held that one
up is in its own row.

THREADS, PROCESSES: per cent of the life of a thread, or of all threads of a process.
  life       time from start to end inside the measured time; of several added up
  running    on a CPU                                                        ▇
  runnable   ready to run, waiting for a CPU                                 ▒
  waiting    blocked with work to do: by locks, disks, answers of others     ░
  idle       blocked without work: on new requests, on timers of its own     ·
  unknown    blocked, and nothing tells which                                ?
  threads    number of a process's threads
  command    the command line; a child stands below its parent, indented;
             3 × where three processes had this ID, one after another
Idle threads and those beyond the limit are one row (\"14 others\").

WAITS: blocked time with work to do, by kind and resource.
  total      seconds of all threads, with its share of all such time
  waits      number of waits from -m on; longest: the longest of them
  2nd line   where most of that time was spent, innermost function first
  3rd line   threads that held the resource, by share of the time, and the place where
             it was released, or where the thread was woken
BLOCKED, idle or waiting: the same, for time of which nothing tells whether it was idle.
EVENT LOOP: turns of a first thread that waits in epoll. A turn lasts from the return of
one epoll_wait of the loop to the start of the next one; other events wait meanwhile.
  busy             share of the thread's life that was not in epoll_wait of the loop
  with events late time of turns after which epoll_wait had events at once
  LONGEST TURNS    the 100 longest, by the function in which most of each passed;
                   at: start of the longest one, from the start of the measurement
GOROUTINES: time of waiting goroutines of a Go program, from samples of its memory. No thread
waits for them, so their time is no part of the time of threads.
  share        of the time of all waiting goroutines
  goroutines   number of goroutines that waited, on average
  below each   functions of the program, innermost first, and what created the goroutine
STACKS: where a single thread spent its time, in every state.

In the files:
  analysis   every thread with seconds in each state, and:
    covered    share of its life that the flame graph accounts for, in %
    samples    times that it was seen on a CPU: few samples, coarse shares
    switches   context switches: voluntary (it blocked) + involuntary (it was preempted)
";

const AFTER_GIL: &str = "    \
    dormant    blocked in the whole window, on nothing that holds up; counts as idle
  processes  every process with seconds in each state; parent is 0 if it is not known;
             CPUs by the kernel's account, in steps of 10 ms:
    busy       all but idle: threads and what interrupts them
    idle       with nothing to run; also while a thread waits for I/O
    irq        in interrupts: a part of busy; 0 where the kernel does not account it
    steal      taken by the hypervisor: a part of busy
";
