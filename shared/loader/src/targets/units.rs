//! Cgroups of systemd's units, by the units' names.

use super::cgroups::Cgroup;

/// Suffixes of the units that have cgroups (systemd.unit(5)).
const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

/// Returns the cgroups of this machine's units, including the units of users' service managers.
/// Leaves out units of a systemd in a container.
pub fn units<'a, All>(all: All) -> impl Iterator<Item = &'a Cgroup> + Clone
where
    All: IntoIterator<Item = &'a Cgroup, IntoIter: Clone>,
{
    all.into_iter().filter(|cgroup| is_unit(&cgroup.path))
}

/// Returns whether a unit belongs to the system's service manager. No user's service manager
/// started such a unit, and no user can forge it.
#[must_use]
pub fn is_unit_of_system(unit: &Cgroup) -> bool {
    !unit.below_delegated && parts_above(&unit.path).is_some_and(|mut parts| parts.all(is_slice))
}

/// Returns the full name of a unit. `nginx` stands for `nginx.service`.
#[must_use]
pub fn unit_name(name: &str) -> String {
    if KINDS.iter().any(|kind| name.ends_with(kind)) {
        name.to_owned()
    } else {
        format!("{name}.service")
    }
}

/// Returns whether the system's systemd puts units into a cgroup. systemd puts slices into slices,
/// and other units into slices.
pub(super) fn holds_units_of_system(cgroup: &Cgroup) -> bool {
    let mut parts = cgroup.path.split('/').filter(|part| !part.is_empty());
    !cgroup.below_delegated && parts.all(is_slice)
}

fn is_slice(part: &str) -> bool {
    part.ends_with(".slice")
}

/// Returns the names of the cgroups above a cgroup; `None` if the path has no `/`.
fn parts_above(path: &str) -> Option<impl Iterator<Item = &str>> {
    let (above, _) = path.rsplit_once('/')?;
    Some(above.split('/').filter(|part| !part.is_empty()))
}

/// Returns whether a path is that of a unit. A user's systemd is a service, and holds units as
/// slices do.
fn is_unit(path: &str) -> bool {
    let holds_units =
        |part: &str| is_slice(part) || part.starts_with("user@") && part.ends_with(".service");
    KINDS.iter().any(|kind| path.ends_with(kind))
        && parts_above(path).is_some_and(|mut parts| parts.all(holds_units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_where_systemd_puts_them() {
        for (path, is_one) in [
            ("/system.slice/nginx.service", true),
            ("/init.scope", true),
            ("/system.slice", true),
            ("/system.slice/system-getty.slice/getty@tty1.service", true),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service",
                true,
            ),
            (
                "/machine.slice/libpod-0a.scope/system.slice/nginx.service",
                false,
            ),
            ("/lxc.payload.a/system.slice/nginx.service", false),
            ("/system.slice/nginx.service/worker", false),
            ("/system.slice/nginx.service/worker.service", false),
            ("/", false),
        ] {
            assert_eq!(is_unit(path), is_one, "{path}");
        }
        let all = ["/", "/a.slice", "/a.slice/b"].map(|path| Cgroup {
            path: path.to_owned(),
            id: 1,
            below_delegated: false,
        });
        let found: Vec<_> = units(&all).map(Cgroup::name).collect();
        assert_eq!(found, ["a.slice"]);
    }

    #[test]
    fn units_below_a_users_systemd_or_a_delegated_cgroup_are_not_the_systems() {
        for (path, below_delegated, is_of_system) in [
            ("/system.slice/nginx.service", false, true),
            ("/system.slice/nginx.service", true, false),
            // The system's systemd starts the systemd of a user.
            ("/user.slice/user-1000.slice/user@1000.service", false, true),
            ("/user.slice/user-1000.slice/session-3.scope", false, true),
            // Root also has a systemd of its own.
            (
                "/user.slice/user-0.slice/user@0.service/app.slice/web.service",
                false,
                false,
            ),
        ] {
            let unit = Cgroup {
                path: path.to_owned(),
                id: 1,
                below_delegated,
            };
            assert_eq!(is_unit_of_system(&unit), is_of_system, "{unit:?}");
        }
    }

    #[test]
    fn a_service_needs_no_ending() {
        for (given, name) in [
            ("nginx", "nginx.service"),
            ("nginx.service", "nginx.service"),
            ("postgresql@15-main", "postgresql@15-main.service"),
            ("user.slice", "user.slice"),
        ] {
            assert_eq!(unit_name(given), name);
        }
    }
}
