//! Name of a file, as viewers show it.

use profile::Profile;

/// Returns the tool and its targets: `wallclock of PID 712`.
pub(crate) fn title(profile: &Profile) -> String {
    let meta = &profile.meta;
    match &*meta.tool {
        "" => "systemscope".to_owned(),
        tool => format!("{tool} of {}", meta.targets),
    }
}
