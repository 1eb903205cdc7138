//! Checks of a tool's statistics on user stacks, and of the roots of its stacks.

use crate::printed::folded::bare;
use crate::{Folded, Line, Tool};

/// Counts in the line on stderr that says how unwinds of user stacks ended. With `-v` a tool always
/// prints this line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserStacks {
    /// Number of unwinds that reached the first function of their thread.
    pub reached_root: u64,
    /// Number of these unwinds that needed a frame pointer somewhere.
    pub by_frame_pointer: u64,
    /// Number of unwinds cut short by an address in no mapping.
    pub no_mapping: u64,
    /// Number of unwinds cut short by memory that could not be read.
    pub read_failed: u64,
    /// Number of unwinds cut short by more frames than the tool keeps.
    pub too_deep: u64,
    /// Number of unwinds cut short by code without an unwind rule.
    pub no_rule: u64,
    /// Number of unwinds cut short by 32-bit code.
    pub code_32_bit: u64,
}

impl UserStacks {
    /// Parses the line on a tool's stderr.
    ///
    /// # Panics
    ///
    /// Panics if the line is missing or occurs twice.
    #[track_caller]
    pub fn read(stderr: &str) -> UserStacks {
        let mut found = stderr
            .lines()
            .filter_map(|line| Some(line.split_once(": user stacks: ")?.1));
        let line = found
            .next()
            .unwrap_or_else(|| panic!("no line about user stacks in:\n{stderr}"));
        assert_eq!(found.next(), None, "two lines about user stacks:\n{stderr}");
        let count = |what: &str| count_before(line, what).unwrap_or(0);
        UserStacks {
            reached_root: count("reached the root"),
            by_frame_pointer: count("of them by frame pointer"),
            no_mapping: count("no mapping"),
            read_failed: count("read failed"),
            too_deep: count("too deep"),
            no_rule: count("no rule"),
            code_32_bit: count("32-bit code"),
        }
    }

    /// Returns the number of stacks that were cut short.
    pub fn cut_short(&self) -> u64 {
        self.no_mapping + self.read_failed + self.too_deep + self.no_rule + self.code_32_bit
    }

    /// Returns the number of all unwinds.
    pub fn total(&self) -> u64 {
        self.reached_root + self.cut_short()
    }

    /// Asserts that at least `per_mille` thousandths of the unwinds reached the root.
    ///
    /// # Panics
    ///
    /// Panics if fewer did, or if there was no unwind.
    #[track_caller]
    pub fn assert_reached(&self, per_mille: u64) {
        assert!(self.total() > 0, "no user stack was unwound");
        assert!(
            self.reached_root * 1000 >= self.total() * per_mille,
            "{} of {} user stacks reached the root: {self:?}",
            self.reached_root,
            self.total()
        );
    }
}

/// Returns the number at the beginning of the clause that contains `words`: in `… root (99.8 %), 12
/// (1.0 %) of them …`, 12 for `of them`.
fn count_before(line: &str, words: &str) -> Option<u64> {
    let mut parts = line
        .split("; ")
        .flat_map(|part| part.split(": "))
        .flat_map(|part| part.split(", "));
    let part = parts.find(|part| part.contains(words))?;
    let number = part.split_whitespace().next()?;
    number.replace(',', "").parse().ok()
}

/// Returns the user stacks of process `pid` that `tool` measures in two seconds.
///
/// # Panics
///
/// Panics if the tool fails, or if less than `per_mille` thousandths of the stacks reached the
/// root.
#[track_caller]
pub fn whole_stacks(tool: &str, pid: u32, per_mille: u64) -> Folded {
    let mut on_pid = Tool::new(tool).pid(pid).args("-v -U --duration 2");
    // Other tests may leave the process little CPU time.
    if tool == "oncputime" {
        on_pid = on_pid.args("-F 999");
    }
    let finished = on_pid.run().succeeded();
    UserStacks::read(&finished.stderr).assert_reached(per_mille);
    Folded::parse(&finished.stdout)
}

/// Returns whether a stack begins where the kernel or libc starts a thread: at `_start` or at
/// `clone`. `_start` has no name in a stripped program, and `clone` has none in a stripped libc.
pub fn starts_a_thread(line: &Line) -> bool {
    let frame = |index: usize| line.frames.get(index).map_or("", |frame| bare(frame));
    let of_libc = |name: &str, names: &[&str]| {
        names.contains(&name) || (name.starts_with("[libc") && name.ends_with(']'))
    };
    let clones = ["clone", "__clone", "clone3", "__clone3"];
    // The thread's function is called by a second function of libc.
    frame(0) == "_start"
        || (frame(0).starts_with('[') && frame(1).starts_with("__libc_start_main"))
        || (of_libc(frame(0), &clones)
            && of_libc(frame(1), &["start_thread"])
            && line.frames.len() > 2)
}

/// Asserts that lines for which `right` holds have at least `per_mille` thousandths of all values.
///
/// # Panics
///
/// Panics if these lines have less, or if there are no values.
#[track_caller]
pub fn assert_most(what: &str, folded: &Folded, per_mille: u64, right: impl Fn(&Line) -> bool) {
    let (total, wrong) = (folded.total(), folded.only(|line| !right(line)));
    assert!(total > 0, "{what}: there are no values");
    assert!(
        wrong.total() * 1000 <= total * (1000 - per_mille),
        "{what}: not {} of {total}:{wrong:.20}",
        wrong.total()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "offcputime: user stacks: 1,234 (99.5 %) reached the root, 12 of them by frame pointer in part; cut short: 1 (0.1 %) no mapping, 2 (0.2 %) too deep, 3 (0.2 %) no rule\n";

    #[test]
    fn the_line_is_read() {
        let read = UserStacks::read(&format!("Tracing... Hit Ctrl-C to end.\n{LINE}"));
        let expected = UserStacks {
            reached_root: 1234,
            by_frame_pointer: 12,
            no_mapping: 1,
            read_failed: 0,
            too_deep: 2,
            no_rule: 3,
            code_32_bit: 0,
        };
        assert_eq!(read, expected);
        assert_eq!((read.total(), read.cut_short()), (1240, 6));
        read.assert_reached(990);
    }

    #[test]
    #[should_panic(expected = "1234 of 1240")]
    fn a_share_too_small_fails() {
        UserStacks::read(LINE).assert_reached(999);
    }

    #[test]
    #[should_panic(expected = "not 7 of 107")]
    fn a_wrong_root_fails() {
        let folded = Folded::parse(b"x;_start;main 100\nx;main;f 7\n");
        assert_most("x", &folded, 990, starts_a_thread);
    }

    #[test]
    fn a_thread_starts_in_libc() {
        let folded = Folded::parse(
            b"x;[java];__libc_start_main@@GLIBC_2.34;main 1\nx;[libc.so.6] 1\nx;[libc.so.6];[libc.so.6];f 1\nx;[x];[libc.so.6];f 1\nx;clone3;start_thread;f 1\n",
        );
        let right: Vec<bool> = folded.lines.iter().map(starts_a_thread).collect();
        assert_eq!(right, [true, false, true, false, true]);
    }
}
