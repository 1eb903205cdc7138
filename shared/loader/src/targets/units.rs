//! Cgroups of systemd's units, by the units' names.

use super::cgroups::Cgroup;

/// What the names of units end in that have cgroups: systemd.unit(5).
const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

/// The cgroups of this machine's units among all there are. Units of other machines, as
/// of containers that run a systemd of their own, are not among them.
pub fn units<'a, All>(all: All) -> impl Iterator<Item = &'a Cgroup> + Clone
where
    All: IntoIterator<Item = &'a Cgroup, IntoIter: Clone>,
{
    all.into_iter().filter(|cgroup| is_unit(&cgroup.path))
}

/// What a unit is called in full: `nginx` means `nginx.service`.
#[must_use]
pub fn unit_name(name: &str) -> String {
    match KINDS.iter().any(|kind| name.ends_with(kind)) {
        true => name.to_owned(),
        false => format!("{name}.service"),
    }
}

/// Whether systemd puts units into the cgroup at a path: slices lie in each other, and the
/// rest lies in them, or in the service that is a user's systemd.
pub(super) fn may_hold_units(path: &str) -> bool {
    let holds_units = |part: &str| {
        part.ends_with(".slice") || part.starts_with("user@") && part.ends_with(".service")
    };
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    parts.all(holds_units)
}

fn is_unit(path: &str) -> bool {
    let Some((above, name)) = path.rsplit_once('/') else {
        return false;
    };
    KINDS.iter().any(|kind| name.ends_with(kind)) && may_hold_units(above)
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
        });
        let found: Vec<_> = units(&all).map(Cgroup::name).collect();
        assert_eq!(found, ["a.slice"]);
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
