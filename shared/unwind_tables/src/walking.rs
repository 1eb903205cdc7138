//! Settings of unwinding: the mode, the depth and the languages.

use bpf::types::{CHAIN_DEPTH, KERNEL_STACK_DEPTH, STACK_DEPTH};
use languages::{LANGUAGES, Language};
use loader::{OpenObject, Result};

use super::CallGraph;

// Readers of captures refuse deeper stacks. The factor leaves capacity for inlined functions.
const _: () = assert!(8 * (STACK_DEPTH + CHAIN_DEPTH) <= capture::MOST_DEPTH);

/// Languages whose functions are shown beside native ones.
#[derive(Clone, Copy, Debug, Default)]
pub enum Languages {
    /// The functions of every known language.
    #[default]
    Known,
    /// The functions of these languages, which are expected to be there.
    Only(&'static [&'static dyn Language]),
    /// Native functions only.
    None,
}

impl Languages {
    /// Returns the languages of a name on a command line.
    ///
    /// # Errors
    /// Fails for any other name, and lists the names.
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

    /// Returns the name on a command line.
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

    /// Returns all names on a command line as a list, the last one after `conjunction`.
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

    /// Returns the languages that are expected to be there.
    pub fn expected(self) -> &'static [&'static dyn Language] {
        match self {
            Languages::Only(languages) => languages,
            Languages::Known | Languages::None => &[],
        }
    }
}

/// Settings of unwinding user stacks.
#[derive(Clone, Copy, Debug)]
pub struct Walking {
    /// Mode of unwinding.
    pub call_graph: CallGraph,
    /// Maximum native frames of a stack, and maximum frames of a runtime.
    pub max_stack: usize,
    /// Languages whose frames are inserted between the native ones.
    pub languages: Languages,
    /// True if the native frames that run functions of a language are shown with them.
    pub shows_runtime: bool,
}

impl Walking {
    /// Largest number of frames that can be asked for.
    pub const MOST_FRAMES: usize = STACK_DEPTH;

    /// Sets the constants of the programs that choose how they unwind.
    ///
    /// # Errors
    /// Fails if the object has no such constants.
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
            max_stack: Walking::MOST_FRAMES,
            languages: Languages::Known,
            shows_runtime: false,
        }
    }
}

/// Maximum frames of a stack that the kernel returns: a stack with as many may be deeper.
#[derive(Clone, Copy, Debug)]
pub struct Depths {
    /// Maximum frames of a user stack, by frame pointers.
    pub user: usize,
    /// Maximum frames of a kernel stack.
    pub kernel: usize,
}

impl Depths {
    /// Returns the depths of this kernel, by its setting `kernel.perf_event_max_stack`.
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
