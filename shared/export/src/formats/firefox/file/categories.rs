//! Categories of frames and markers.

use std::collections::HashMap;

use fxprof_processed_profile::{CategoryColor, CategoryHandle, CategoryPairHandle, Profile};
use profile::{FrameKind, Reason};

/// Category of a frame or a marker. It decides the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Category {
    /// No code, and no time of which the state is known.
    Other,
    /// Code in user space.
    User,
    /// Code of the kernel.
    Kernel,
    /// Functions that the runtime of a language runs.
    Interpreted,
    /// Running time without a stack.
    Running,
    /// Time waiting for a CPU.
    Runnable,
    /// Time waiting for anything else, and the reason if it is known.
    Blocked(Option<Reason>),
    /// Blocked time without pending work. Viewers can leave it out.
    Idle(Option<Reason>),
}

impl From<FrameKind> for Category {
    fn from(kind: FrameKind) -> Category {
        match kind {
            FrameKind::User => Category::User,
            FrameKind::Kernel => Category::Kernel,
            FrameKind::Interpreted(_) => Category::Interpreted,
            FrameKind::Marker => Category::Other,
        }
    }
}

pub(super) type Categories = HashMap<Category, (CategoryHandle, CategoryPairHandle)>;

/// Adds all categories, with a subcategory for each reason of waits.
pub(super) fn add_categories(profile: &mut Profile) -> Categories {
    let mut categories = Categories::new();
    for (category, name, color) in [
        (Category::User, "User", CategoryColor::Yellow),
        (Category::Kernel, "Kernel", CategoryColor::Orange),
        (Category::Interpreted, "Interpreted", CategoryColor::Green),
        (Category::Running, "Running", CategoryColor::LightBlue),
        (Category::Runnable, "Runnable", CategoryColor::Purple),
        (Category::Blocked(None), "Blocked", CategoryColor::Red),
        (Category::Idle(None), "Idle", CategoryColor::Transparent),
    ] {
        let main = profile.add_category(name, color);
        categories.insert(category, (main, main.into()));
        let of_reason: fn(Option<Reason>) -> Category = match category {
            Category::Blocked(_) => Category::Blocked,
            Category::Idle(_) => Category::Idle,
            _ => continue,
        };
        for reason in Reason::ALL {
            let pair = profile.add_subcategory(main, reason.name());
            categories.insert(of_reason(Some(reason)), (main, pair));
        }
    }
    categories
}
