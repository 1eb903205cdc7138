//! Names of the frames that are not code, and what stands for names that are not known.
//!
//! All are in brackets. No name of a target's thread or function begins with one: see
//! [`text::function`](crate::text::function).

use crate::LanguageName;

/// The user stack could not be captured.
pub const MISSED_USER: &str = "[Missed User Stack]";
/// The kernel stack could not be captured.
pub const MISSED_KERNEL: &str = "[Missed Kernel Stack]";
/// At the root of a stack that is deeper than can be captured.
pub const TRUNCATED: &str = "[truncated]";
/// A stack without a single frame, where one is needed to carry the state.
pub const NO_STACK: &str = "[no stack]";
/// Measured running time that no sample hit.
pub const NO_SAMPLE: &str = "[running, no sample]";
/// Blocked time in intervals too short to keep the stacks of.
pub const BLOCKED_BELOW: &str = "[blocked, below -m]";
/// Time spent waiting for a CPU in intervals too short to keep the stacks of.
pub const RUNNABLE_BELOW: &str = "[runnable, below -m]";
/// Waker: a timer's interrupt.
pub const TIMER: &str = "[timer]";
/// Waker: another interrupt.
pub const INTERRUPT: &str = "[irq]";
/// Waker: work that an interrupt left for later.
pub const SOFTIRQ: &str = "[softirq]";
/// In place of a waker: none came before the window ended.
pub const STILL_BLOCKED: &str = "[still blocked]";
/// In place of a waker: one came and was not seen.
pub const MISSED_WAKER: &str = "[Missed Waker]";

/// In place of a thread's name: it has none.
pub const UNNAMED: &str = "[unnamed]";
/// In place of a function's name: nothing names it, nor the file that it is in.
pub const UNKNOWN: &str = "[unknown]";
/// In place of the name of an inlined function: it has none.
pub const INLINED: &str = "[inlined]";
/// In place of the name of a function of the vDSO.
pub const VDSO: &str = "[vdso]";

/// What is marked in the frames that a language's runtime keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanguageMark {
    /// The native frame that runs the frames that follow is not known.
    NotPlaced,
    /// Memory could not be read.
    ReadFailed,
    /// There are more frames than are kept.
    TooDeep,
    /// Something is there that no runtime leaves.
    NotUnderstood,
    /// The thread went on before anybody had read its frames.
    NotRead,
    /// A frame's function could not be named in time.
    FunctionIsGone,
}

impl LanguageMark {
    /// All marks.
    pub const ALL: [LanguageMark; 6] = [
        LanguageMark::NotPlaced,
        LanguageMark::ReadFailed,
        LanguageMark::TooDeep,
        LanguageMark::NotUnderstood,
        LanguageMark::NotRead,
        LanguageMark::FunctionIsGone,
    ];

    /// The mark without its language.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            LanguageMark::NotPlaced => "not placed",
            LanguageMark::ReadFailed => "read failed",
            LanguageMark::TooDeep => "too deep",
            LanguageMark::NotUnderstood => "not understood",
            LanguageMark::NotRead => "not read",
            LanguageMark::FunctionIsGone => "function is gone",
        }
    }

    /// The name of the frame that stands for it, such as `[ruby: too deep]`.
    #[must_use]
    pub fn of(self, language: LanguageName) -> String {
        format!("[{language}: {}]", self.text())
    }
}

/// Whether a text stands for a waker that is no thread.
#[must_use]
pub fn is_waker(text: &str) -> bool {
    [TIMER, INTERRUPT, SOFTIRQ, STILL_BLOCKED, MISSED_WAKER].contains(&text)
}

/// Whether a text stands for what has no name, or is no code or no thread.
#[must_use]
pub(crate) fn is_ours(text: &str) -> bool {
    is_marker(text)
        || is_waker(text)
        || [
            UNNAMED,
            UNKNOWN,
            INLINED,
            VDSO,
            "[running]",
            "[runnable]",
            "[blocked]",
        ]
        .contains(&text)
}

/// Whether a frame name is one of this module's.
#[must_use]
pub fn is_marker(name: &str) -> bool {
    [
        MISSED_USER,
        MISSED_KERNEL,
        TRUNCATED,
        NO_STACK,
        NO_SAMPLE,
        BLOCKED_BELOW,
        RUNNABLE_BELOW,
    ]
    .contains(&name)
}
