//! How user stacks are walked, and how far.

use bpf::types::{CHAIN_DEPTH, KERNEL_STACK_DEPTH, STACK_DEPTH};
use languages::{LANGUAGES, Language};
use loader::{OpenObject, Result};

use super::CallGraph;

// Readers of captures refuse deeper stacks: there is room for functions that are inlined.
const _: () = assert!(8 * (STACK_DEPTH + CHAIN_DEPTH) <= capture::MOST_DEPTH);

/// Whose functions are shown beside native ones.
#[derive(Clone, Copy, Debug, Default)]
pub enum Languages {
    /// The functions of every language that is known.
    #[default]
    Known,
    /// The functions of these languages, which are expected to be there.
    Only(&'static [&'static dyn Language]),
    /// No others.
    None,
}

impl Languages {
    /// Returns what is called so on a command line.
    ///
    /// # Errors
    /// What the names are.
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

    /// Returns its name on a command line.
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

    /// Returns the languages.
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

/// How user stacks are walked.
#[derive(Clone, Copy, Debug)]
pub struct Walking {
    /// By what.
    pub call_graph: CallGraph,
    /// How many native frames are walked at most, and how many of a runtime.
    pub max_stack: usize,
    /// Whose frames are put between the native ones.
    pub languages: Languages,
    /// Whether the native frames that run functions of a language are shown with them.
    pub shows_runtime: bool,
}

impl Walking {
    /// The most frames that can be asked for.
    pub const MOST_FRAMES: usize = STACK_DEPTH;

    /// Tells programs how to unwind.
    ///
    /// # Errors
    /// The object has no such constants.
    pub fn configure(&self, object: &mut OpenObject) -> Result<()> {
        let frames = |depth: usize| u32::try_from(depth).unwrap_or(u32::MAX);
        object.set(bpf::constants::CALL_GRAPH, self.call_graph.mode())?;
        object.set(bpf::constants::MAX_STACK, frames(self.max_stack))?;
        object.set(
            bpf::constants::HELPER_STACK_DEPTH,
            frames(Depths::of_kernel(self).user),
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

/// How many frames the kernel tells of a stack at most: one that has as many may have more.
#[derive(Clone, Copy, Debug)]
pub struct Depths {
    /// Of a user stack, by frame pointers.
    pub user: usize,
    /// Of its own.
    pub kernel: usize,
}

impl Depths {
    /// Of this kernel, as it is set: `kernel.perf_event_max_stack`.
    pub fn of_kernel(walking: &Walking) -> Depths {
        let set = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack");
        let set = set.ok().and_then(|set| set.trim().parse().ok());
        let set = set.unwrap_or(KERNEL_STACK_DEPTH);
        Depths {
            user: walking.max_stack.min(set),
            kernel: KERNEL_STACK_DEPTH.min(set),
        }
    }
}
