//! Names of frames that are not code, and texts in place of unknown names.
//!
//! All these texts are in brackets. [`text::function`](crate::text::function) changes names of a
//! target's threads and functions that begin with a bracket.

use crate::LanguageName;

/// Frame: the user stack could not be captured.
pub const MISSED_USER: &str = "[Missed User Stack]";
/// Frame: the kernel stack could not be captured.
pub const MISSED_KERNEL: &str = "[Missed Kernel Stack]";
/// Root frame of a stack that is deeper than the tools capture.
pub const TRUNCATED: &str = "[truncated]";
/// Frame that carries the state of a stack without frames.
pub const NO_STACK: &str = "[no stack]";
/// Frame for measured running time without a sample.
pub const NO_SAMPLE: &str = "[running, no sample]";
/// Frame for blocked time in intervals too short to keep their stacks.
pub const BLOCKED_BELOW: &str = "[blocked, below -m]";
/// Frame for time waiting for a CPU in intervals too short to keep their stacks.
pub const RUNNABLE_BELOW: &str = "[runnable, below -m]";
/// Waker: a timer's interrupt.
pub const TIMER: &str = "[timer]";
/// Waker: an interrupt that is not a timer's.
pub const INTERRUPT: &str = "[irq]";
/// Waker: work that an interrupt deferred.
pub const SOFTIRQ: &str = "[softirq]";
/// In place of a waker: the wait had not ended when the window closed.
pub const STILL_BLOCKED: &str = "[still blocked]";
/// In place of a waker: the tool missed it.
pub const MISSED_WAKER: &str = "[Missed Waker]";

/// In place of the name of a thread that has none.
pub const UNNAMED: &str = "[unnamed]";
/// In place of the name of a function whose symbol and file are both unknown.
pub const UNKNOWN: &str = "[unknown]";
/// In place of the name of an inlined function that has none.
pub const INLINED: &str = "[inlined]";
/// In place of the name of a function in the vDSO.
pub const VDSO: &str = "[vdso]";

/// Fault that a marker reports in the frames of a language's runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanguageMark {
    /// The native frame that runs the next frames is unknown.
    NotPlaced,
    /// The tool could not read memory.
    ReadFailed,
    /// The stack has more frames than the tool keeps.
    TooDeep,
    /// Memory contains values that no runtime writes.
    NotUnderstood,
    /// The thread continued before the tool had read its frames.
    NotRead,
    /// The tool could not name a frame's function in time.
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

    /// Returns the text of the mark without its language.
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

    /// Returns the name of the marker's frame, such as `[ruby: too deep]`.
    #[must_use]
    pub fn frame_name(self, language: LanguageName) -> String {
        format!("[{language}: {}]", self.text())
    }
}

/// Returns whether a text stands for a waker that is not a thread.
#[must_use]
pub fn is_waker(text: &str) -> bool {
    [TIMER, INTERRUPT, SOFTIRQ, STILL_BLOCKED, MISSED_WAKER].contains(&text)
}

/// Returns whether a text is a text of the tools, not a name of a target.
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

/// Returns whether a frame's name is a marker of this module.
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
