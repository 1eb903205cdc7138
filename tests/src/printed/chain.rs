//! A known chain of calls, and comparisons of stacks with it.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::printed::folded::bare;
use crate::truth::gdb::{self, Backtrace};
use crate::{Folded, Line};

/// A chain of calls from the root to the leaf. The workload's source gives the workload's own
/// functions. A debugger gives the frames of libraries around and between them, because their
/// number is not known.
#[derive(Clone)]
pub struct Chain {
    frames: Vec<Frame>,
}

#[derive(Clone)]
enum Frame {
    /// A function of the workload, with this name.
    Known(String),
    /// A function of a library, with its name if it has one.
    Foreign(Option<String>),
}

impl fmt::Debug for Chain {
    /// Writes the chain as a folded stack, with library functions in parentheses.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, frame) in self.frames.iter().enumerate() {
            if index > 0 {
                write!(formatter, ";")?;
            }
            match frame {
                Frame::Known(name) => write!(formatter, "{name}")?,
                Frame::Foreign(name) => {
                    write!(formatter, "({})", name.as_deref().unwrap_or("?"))?;
                }
            }
        }
        Ok(())
    }
}

impl Chain {
    /// Builds the chain of a thread with the calls `known`, outermost first. `all_known` contains
    /// all functions of the workload.
    ///
    /// # Panics
    ///
    /// Panics if the debugger shows another chain.
    pub fn new(backtrace: &Backtrace, known: &[&str], all_known: &HashSet<&str>) -> Chain {
        let frames = backtrace.frames.iter().map(|name| match name {
            Some(name) if all_known.contains(plain(name)) => Frame::Known(plain(name).to_owned()),
            Some(name) => Frame::Foreign(Some(name.clone())),
            None => Frame::Foreign(None),
        });
        let chain = Chain {
            frames: frames.collect(),
        };
        let seen = chain.frames.iter().filter_map(|frame| match frame {
            Frame::Known(name) => Some(name.as_str()),
            Frame::Foreign(_) => None,
        });
        let seen: Vec<&str> = seen.collect();
        assert_eq!(
            seen, known,
            "the debugger does not agree on {}: {backtrace:#?}",
            backtrace.comm
        );
        chain
    }

    /// Returns the chains of all threads of a process whose stacks do not change, by thread name.
    /// `known` contains the calls of each thread.
    ///
    /// # Panics
    ///
    /// Panics if two threads have the same name, or if a thread of `known` is missing.
    pub fn all_of(pid: u32, known: &BTreeMap<&str, Vec<&str>>) -> BTreeMap<String, Chain> {
        let all_known: HashSet<&str> = known.values().flatten().copied().collect();
        let mut backtraces = BTreeMap::new();
        for backtrace in gdb::backtraces(pid).into_values() {
            let comm = backtrace.comm.clone();
            let double = backtraces.insert(comm, backtrace);
            assert!(double.is_none(), "threads of one name: {double:#?}");
        }
        let chains = known.iter().map(|(comm, calls)| {
            let backtrace = backtraces
                .get(*comm)
                .unwrap_or_else(|| panic!("no thread {comm} in {backtraces:#?}"));
            let chain = Chain::new(backtrace, calls, &all_known);
            ((*comm).to_owned(), chain)
        });
        chains.collect()
    }

    /// Returns the part from the root to the last call of `function`.
    pub fn up_to(&self, function: &str) -> Chain {
        let end = self.frames.iter().rposition(|frame| match frame {
            Frame::Known(name) => name == function,
            Frame::Foreign(_) => false,
        });
        let end = end.unwrap_or_else(|| panic!("no {function} in {self:?}"));
        Chain {
            frames: self.frames[..=end].to_vec(),
        }
    }

    /// Appends calls of the workload to the chain.
    pub fn then(mut self, calls: &[&str]) -> Chain {
        let calls = calls.iter().map(|call| Frame::Known((*call).to_owned()));
        self.frames.extend(calls);
        self
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether the chain has no frame.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns whether a stack equals this chain, frame for frame.
    pub fn is(&self, line: &Line) -> bool {
        line.frames.len() == self.len() && self.common(line) == self.len()
    }

    /// Returns whether a stack is a beginning of this chain: each frame of the stack, from the root
    /// on, equals the chain's frame at the same place.
    pub fn begins(&self, line: &Line) -> bool {
        line.frames.len() <= self.len() && self.common(line) == line.frames.len()
    }

    /// Returns whether a stack begins with this whole chain; more frames may follow.
    pub fn is_root_of(&self, line: &Line) -> bool {
        self.common(line) == self.len()
    }

    /// Returns whether a stack leaves this chain after the chain's first call of the workload. The
    /// rest of the stack must not contain calls of the chain, so a stack that merely skips frames
    /// does not count.
    pub fn is_left_by(&self, line: &Line) -> bool {
        let common = self.common(line);
        let is_own = |frame: &Frame| matches!(frame, Frame::Known(_));
        let first = self.frames.iter().position(is_own).unwrap_or(0);
        let mut others = line
            .frames
            .iter()
            .skip(common)
            .map(|name| plain(bare(name)));
        common > first
            && !others.any(|name| {
                let is_named = |frame: &Frame| matches!(frame, Frame::Known(own) if own == name);
                self.frames.iter().any(is_named)
            })
    }

    /// Returns the number of frames, from the root on, that a stack and this chain have in common.
    pub fn common(&self, line: &Line) -> usize {
        let pairs = self.frames.iter().zip(&line.frames);
        pairs.take_while(|(frame, name)| frame.may_be(name)).count()
    }
}

impl Frame {
    /// Returns whether a tool may print this frame as `printed`: a printed name must be right, or
    /// absent.
    fn may_be(&self, printed: &str) -> bool {
        let printed = plain(bare(printed));
        match self {
            Frame::Known(name) => name == printed,
            Frame::Foreign(_) if is_file(printed) => true,
            Frame::Foreign(None) => !printed.starts_with('['),
            Frame::Foreign(Some(name)) => may_be_same(name, printed),
        }
    }
}

/// Returns whether a printed frame stands for code without a name in a file.
fn is_file(printed: &str) -> bool {
    let marks = ["[Missed User Stack]", "[truncated]", "[unknown]"];
    printed.starts_with('[') && printed.ends_with(']') && !marks.contains(&printed)
}

/// Removes the suffix that a compiler adds to the name of an outlined part of a function, such as a
/// catch block.
fn plain(name: &str) -> &str {
    let marks = [" [clone .cold]", "[cold]", ".cold"];
    let moved = marks.iter().find_map(|mark| name.strip_suffix(mark));
    moved.unwrap_or(name)
}

/// Returns whether two names may belong to the same library function. A function can have several
/// names, such as `read`, `__read` and `__libc_read`. Names that are not identifiers are printed in
/// many ways, so they are not compared.
fn may_be_same(name: &str, printed: &str) -> bool {
    let simple = |name: &str| {
        let start = name.split('@').next().unwrap_or_default();
        let start = start.trim_start_matches('_').trim_end_matches("_impl");
        let is_identifier = start
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.');
        is_identifier.then(|| start.to_owned())
    };
    match (simple(name), simple(printed)) {
        (Some(name), Some(printed)) => name.contains(&printed) || printed.contains(&name),
        _ => true,
    }
}

/// Asserts that `explains` holds for each line and the chain of the line's thread.
///
/// # Panics
///
/// Panics if a chain does not explain a line of `folded`, or if the thread of a line has no chain
/// in `chains`.
#[track_caller]
pub fn assert_explained(
    folded: &Folded,
    chains: &BTreeMap<String, Chain>,
    explains: impl Fn(&Chain, &Line) -> bool,
) {
    let mut wrong = String::new();
    for line in &folded.lines {
        let chain = chains
            .get(&line.comm)
            .unwrap_or_else(|| panic!("no chain is known for the thread of {line}"));
        if !explains(chain, line) {
            wrong.push_str(&format!("  {line}\ndoes not fit\n  {chain:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Chain {
        let frames = ["_start", "??", "main", "work[cold]", "nanosleep"];
        let backtrace = Backtrace {
            comm: "x".to_owned(),
            frames: frames
                .iter()
                .map(|name| (*name != "??").then(|| (*name).to_owned()))
                .collect(),
        };
        Chain::new(
            &backtrace,
            &["main", "work"],
            &HashSet::from(["main", "work"]),
        )
    }

    fn line(stack: &str) -> Line {
        let folded = Folded::parse(format!("x;{stack} 1\n").as_bytes());
        folded.lines[0].clone()
    }

    #[test]
    fn a_stack_is_the_chain_frame_for_frame() {
        let chain = chain();
        for whole in [
            "_start;[libc.so.6];main;work;__nanosleep",
            "_start;__libc_start_call_main;main;work.cold;[libc.so.6]_[o]",
        ] {
            assert!(chain.is(&line(whole)), "{whole}");
        }
        for other in [
            "[libc.so.6];main;work;nanosleep",
            "_start;[libc.so.6];main;nanosleep",
            "_start;[libc.so.6];main;work;read",
            "_start;[libc.so.6];main;[x];nanosleep",
            "_start;[unknown];main;work;nanosleep",
            "_start;[libc.so.6];main;work",
            "_start;[libc.so.6];main;work;nanosleep;nanosleep",
        ] {
            assert!(!chain.is(&line(other)), "{other}");
        }
    }

    #[test]
    fn a_stack_may_be_on_its_way() {
        let chain = chain();
        assert!(chain.begins(&line("_start;[libc.so.6];main")));
        assert!(!chain.begins(&line("_start;[libc.so.6];main;other")));
        assert!(chain.is_left_by(&line("_start;[libc.so.6];main;other;read")));
        assert!(!chain.is_left_by(&line("_start;[libc.so.6];main;other;work")));
        assert!(!chain.is_left_by(&line("_start;[libc.so.6];other")));
        let root = chain.up_to("main");
        assert_eq!(root.len(), 3);
        assert!(root.is_root_of(&line("_start;[libc.so.6];main;other")));
        assert!(
            root.then(&["other"])
                .is(&line("_start;[libc.so.6];main;other"))
        );
    }

    #[test]
    #[should_panic(expected = "does not agree")]
    fn the_debugger_must_agree() {
        let backtrace = Backtrace {
            comm: "x".to_owned(),
            frames: vec![Some("main".to_owned())],
        };
        Chain::new(
            &backtrace,
            &["main", "work"],
            &HashSet::from(["main", "work"]),
        );
    }
}
