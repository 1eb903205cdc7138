//! Settings of unwinds: the mode, the depth and the languages.

use bpf::types::{CHAIN_DEPTH, KERNEL_STACK_DEPTH, STACK_DEPTH};
use languages::{LANGUAGES, Language};
use loader::{OpenObject, Result};

use super::CallGraph;

// Readers of captures refuse deeper stacks. The factor leaves capacity for inlined functions.
const _: () = assert!(8 * (STACK_DEPTH + CHAIN_DEPTH) <= capture::MAX_DEPTH);

/// Languages whose functions are shown between native functions.
#[derive(Clone, Copy, Debug, Default)]
pub enum Languages {
    /// Functions of every known language.
    #[default]
    Known,
    /// Functions of these languages, which the user expects to find.
    Only(&'static [&'static dyn Language]),
    /// Native functions only.
    None,
}

impl PartialEq for Languages {
    fn eq(&self, other: &Languages) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Languages {}

impl Languages {
    /// Returns the languages for a name on the command line.
    ///
    /// # Errors
    /// The name is not one of the known names. The error lists them.
    pub fn by_name(name: &str) -> std::result::Result<Languages, String> {
        let one = |language: &&dyn Language| language.name().as_str() == name;
        match name {
            "all" => Ok(Languages::Known),
            "none" => Ok(Languages::None),
            _ => match LANGUAGES.iter().position(one) {
                Some(at) => Ok(Languages::Only(&LANGUAGES[at..=at])),
                None => Err(format!("the languages are {}", Languages::names("and"))),
            },
        }
    }

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Languages::Known => "all".to_owned(),
            Languages::Only(languages) => {
                let names = languages.iter().map(|language| language.name().to_string());
                names.collect::<Vec<_>>().join(",")
            }
            Languages::None => "none".to_owned(),
        }
    }

    /// Returns all names on the command line as a list. `conjunction` comes before the last name.
    #[must_use]
    pub fn names(conjunction: &str) -> String {
        let languages = LANGUAGES.iter().map(|language| language.name().to_string());
        let languages: Vec<String> = languages.collect();
        let all = if conjunction == "and" {
            "all that are known (all)"
        } else {
            "all that are known"
        };
        format!("{}, {all}, {conjunction} none", languages.join(", "))
    }

    /// Returns the chosen languages.
    pub fn list(self) -> &'static [&'static dyn Language] {
        match self {
            Languages::Known => LANGUAGES,
            Languages::Only(languages) => languages,
            Languages::None => &[],
        }
    }

    /// Returns the languages that the user expects to find.
    pub fn expected(self) -> &'static [&'static dyn Language] {
        match self {
            Languages::Only(languages) => languages,
            Languages::Known | Languages::None => &[],
        }
    }
}

/// Settings of unwinding user stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walking {
    /// Mode of unwinding.
    pub call_graph: CallGraph,
    /// Maximum number of native frames in a stack, and of frames of a runtime.
    pub max_stack: usize,
    /// Languages whose frames are inserted between native frames.
    pub languages: Languages,
    /// True if native frames that run functions of a language are shown next to these functions.
    pub shows_runtime: bool,
}

impl Walking {
    /// Maximum number of frames that a user can ask for.
    pub const MAX_FRAMES: usize = STACK_DEPTH;

    /// Sets the constants that tell programs how to unwind.
    ///
    /// # Errors
    /// The object has no such constants.
    pub fn configure(&self, object: &mut OpenObject) -> Result<()> {
        let frames = |depth: usize| u32::try_from(depth).unwrap_or(u32::MAX);
        object.set(bpf::constants::CALL_GRAPH, self.call_graph.mode())?;
        object.set(bpf::constants::MAX_STACK, frames(self.max_stack))?;
        object.set(
            bpf::constants::HELPER_STACK_DEPTH,
            frames(Depths::from_kernel(self).user),
        )
    }
}

impl Default for Walking {
    fn default() -> Walking {
        Walking {
            call_graph: CallGraph::Auto,
            max_stack: Walking::MAX_FRAMES,
            languages: Languages::Known,
            shows_runtime: false,
        }
    }
}

/// Maximum number of frames in a stack that the kernel returns. A stack with that many frames may
/// be deeper.
#[derive(Clone, Copy, Debug)]
pub struct Depths {
    /// Maximum number of frames in a user stack that is unwound by frame pointers.
    pub user: usize,
    /// Maximum number of frames in a kernel stack.
    pub kernel: usize,
}

impl Depths {
    /// Returns the depths of this kernel, from its setting `kernel.perf_event_max_stack`.
    pub fn from_kernel(walking: &Walking) -> Depths {
        let set = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
        let set = set.ok().and_then(|set| set.trim().parse().ok());
        let set = set.unwrap_or(KERNEL_STACK_DEPTH);
        Depths {
            user: walking.max_stack.min(set),
            kernel: KERNEL_STACK_DEPTH.min(set),
        }
    }
}
