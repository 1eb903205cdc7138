//! Awaited cgroups, and the first thread in a cgroup (`include/targets/awaited_cgroups.h`).

use std::collections::{BTreeMap, HashMap};

use bpf::MapName;
use bpf::types::{AwaitedLevel, CGROUP_NAME_LENGTH, CgroupPlace};
use libbpf_rs::{MapCore, MapFlags};

use super::cgroups::{Cgroup, CgroupMount};
use super::units::{holds_units_of_system, is_unit_of_system, units};
use super::{Targets, living_threads};
use crate::error::Context;
use crate::{LoadedObject, OpenObject, Result, monotonic_ns};

/// Capacity of the maps of cgroups. One map has awaited cgroups that may appear while others of the
/// same name are remembered. The other maps have cgroups that lead to awaited ones.
pub(super) const ROOM: u32 = 1 << 12;

/// Text before and after the ID in the name of a container's cgroup, by runtime. `mark` of
/// `containers.rs` parses such names.
const AROUND_ID: [(&str, &str); 7] = [
    ("", ""),
    ("docker-", ".scope"),
    ("libpod-", ".scope"),
    ("libpod-", ""),
    ("crio-", ".scope"),
    ("cri-containerd-", ".scope"),
    ("nerdctl-", ".scope"),
];

/// A cgroup that does not exist yet, or that is measured again when it comes back. Unit names and
/// container IDs count only for cgroups that root alone can make, because other users could choose
/// the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AwaitedCgroup {
    /// Cgroup at this path below the mount.
    At(String),
    /// Cgroup of the system's unit with this name.
    OfUnit(String),
    /// Cgroup of the container with this ID.
    OfContainer(String),
}

/// Maps a level and the name of a cgroup there to the level below that cgroup, or to 0 if the
/// cgroup is a target.
type Places = BTreeMap<(u64, String), u64>;

impl AwaitedCgroup {
    /// Maximum length of an awaited cgroup's name, in bytes.
    pub const LONGEST_NAME: usize = CGROUP_NAME_LENGTH - 2;

    /// Returns the names of the cgroups from the root down to this cgroup, which programs must
    /// recognize.
    fn names(&self) -> Vec<String> {
        match self {
            AwaitedCgroup::At(path) => parts(path).map(str::to_owned).collect(),
            AwaitedCgroup::OfUnit(name) => vec![name.clone()],
            AwaitedCgroup::OfContainer(id) => {
                let names = AROUND_ID.iter();
                names
                    .map(|(start, end)| format!("{start}{id}{end}"))
                    .collect()
            }
        }
    }

    /// Returns whether the names are short enough for programs to recognize the cgroup.
    #[must_use]
    pub fn can_come(&self) -> bool {
        let names = self.names();
        names.iter().all(|name| name.len() <= Self::LONGEST_NAME)
    }

    /// Returns whether `cgroup` is this cgroup.
    fn matches(&self, cgroup: &Cgroup) -> bool {
        match self {
            AwaitedCgroup::At(path) => cgroup.path == *path,
            AwaitedCgroup::OfUnit(name) => {
                cgroup.name() == name && units([cgroup]).any(is_unit_of_system)
            }
            AwaitedCgroup::OfContainer(_) => {
                !cgroup.below_delegated && self.names().iter().any(|it| it == cgroup.name())
            }
        }
    }
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// Levels that lead to the awaited cgroups.
#[derive(Debug, Default)]
struct Route {
    places: Places,
    /// Level of a cgroup's children, by the cgroup's path.
    levels: HashMap<String, u64>,
}

impl Route {
    fn to(awaited: &[AwaitedCgroup]) -> Route {
        let mut route = Route::default();
        for awaited in awaited {
            let level = match awaited {
                AwaitedCgroup::At(path) => {
                    route.add_path(path);
                    continue;
                }
                AwaitedCgroup::OfUnit(_) => AwaitedLevel::LEVEL_AMONG_UNITS,
                AwaitedCgroup::OfContainer(_) => AwaitedLevel::LEVEL_ANYWHERE,
            };
            let names = awaited.names().into_iter();
            let places = names.map(|name| ((level.0.into(), name), 0));
            route.places.extend(places);
        }
        route
    }

    fn add_path(&mut self, path: &str) {
        let mut above = String::new();
        let mut parts = parts(path).peekable();
        while let Some(part) = parts.next() {
            let place = (self.level_below(&above), part.to_owned());
            above = format!("{above}/{part}");
            match parts.peek() {
                // All cgroups below a target are measured, so awaited cgroups there do not matter.
                None => _ = self.places.insert(place, 0),
                Some(_) => {
                    let below = self.level_below(&above);
                    self.places.entry(place).or_insert(below);
                }
            }
        }
    }

    fn level_below(&mut self, path: &str) -> u64 {
        let next = self.levels.len() as u64;
        let first = u64::from(AwaitedLevel::LEVEL_FIRST_OF_PATHS.0);
        *self.levels.entry(path.to_owned()).or_insert(first + next)
    }
}

impl Targets {
    /// Sets the capacity of the maps of awaited cgroups.
    pub(super) fn configure_awaited_cgroups(&self, object: &mut OpenObject) -> Result<()> {
        if self.awaited_cgroups.is_empty() {
            return Ok(());
        }
        let places = Route::to(&self.awaited_cgroups).places.len().max(1);
        object.make_room(
            bpf::maps::AWAITED_CGROUPS,
            u32::try_from(places).unwrap_or(u32::MAX),
        )?;
        object.make_room(bpf::maps::AWAITED_BELOW, ROOM)?;
        object.make_room(bpf::maps::HOLDING_UNITS, ROOM)
    }

    /// Writes the awaited cgroups to the map. Callers do this before programs are attached.
    pub(super) fn fill_awaited_cgroups(&self, object: &LoadedObject) -> Result<()> {
        for ((level, name), below) in Route::to(&self.awaited_cgroups).places {
            let mut place = CgroupPlace {
                level,
                ..CgroupPlace::default()
            };
            for (to, from) in place.name.iter_mut().zip(name.bytes()) {
                *to = from.cast_signed();
            }
            // SAFETY: the value consists of bytes alone.
            let key = unsafe { plain::as_bytes(&place) };
            let value = below.to_ne_bytes();
            (object
                .map(bpf::maps::AWAITED_CGROUPS)?
                .update(key, &value, MapFlags::ANY))
            .context(format!("wait for the cgroup {name}"))?;
        }
        Ok(())
    }

    /// Tells the running programs which awaited cgroups exist, and which cgroups lead to them. A
    /// program misses a new cgroup whose parent it does not know, so this function goes from the
    /// root down.
    pub(super) fn look_for_cgroups(&self, object: &LoadedObject) -> Result<()> {
        if self.awaited_cgroups.is_empty() {
            return Ok(());
        }
        let mount = CgroupMount::find()?;
        let put = |map: MapName, cgroup: &Cgroup, value: &[u8]| {
            (object
                .map(map)?
                .update(&cgroup.id.to_ne_bytes(), value, MapFlags::ANY))
            .context(format!("wait for what is in {}", cgroup.path))
        };
        let route = Route::to(&self.awaited_cgroups);
        let mut paths: Vec<_> = route.levels.iter().collect();
        paths.sort_unstable();
        for (path, level) in paths {
            if let Some(cgroup) = mount.cgroup(path) {
                put(bpf::maps::AWAITED_BELOW, &cgroup, &level.to_ne_bytes())?;
            }
        }
        let is_unit = |awaited: &AwaitedCgroup| matches!(awaited, AwaitedCgroup::OfUnit(_));
        if self.awaited_cgroups.iter().any(is_unit) {
            for cgroup in mount.all().cgroups {
                if holds_units_of_system(&cgroup) {
                    put(bpf::maps::HOLDING_UNITS, &cgroup, &1_u64.to_ne_bytes())?;
                }
            }
        }
        // Processes may have made cgroups before programs knew the parents of these cgroups.
        let (at, named): (Vec<_>, Vec<_>) = (self.awaited_cgroups.iter())
            .partition(|awaited| matches!(awaited, AwaitedCgroup::At(_)));
        let at = at.into_iter().filter_map(|awaited| match awaited {
            AwaitedCgroup::At(path) => mount.cgroup(path),
            _ => None,
        });
        // A name counts only for a cgroup that root made.
        let mut there: Vec<Cgroup> = if named.is_empty() {
            Vec::new()
        } else {
            mount.all().cgroups
        };
        there.retain(|cgroup| named.iter().any(|awaited| awaited.matches(cgroup)));
        for cgroup in at.chain(there) {
            if !self.cgroups.contains(&cgroup) {
                self.add_cgroup(&cgroup, object)?;
            }
        }
        Ok(())
    }

    /// Makes a cgroup a target, although programs may have decided that it is none.
    fn add_cgroup(&self, cgroup: &Cgroup, object: &LoadedObject) -> Result<()> {
        let targets = object.map(bpf::maps::TARGET_CGROUPS)?;
        let id = cgroup.id.to_ne_bytes();
        if targets
            .lookup(&id, MapFlags::ANY)
            .is_ok_and(|known| known.is_some())
        {
            return Ok(());
        }
        (targets.update(&id, &[1], MapFlags::ANY))
            .context(format!("make {} a target", cgroup.path))?;
        let decided = object.map(bpf::maps::CGROUP_MEMBERSHIP)?;
        for id in decided.keys() {
            // A program may have deleted the entry meanwhile.
            let _ = decided.delete(&id);
        }
        Ok(())
    }

    /// Notes that a target cgroup has a thread, unless a program noted that already.
    pub(super) fn look_for_members(&self, object: &LoadedObject) -> Result<()> {
        let first = self.first_variable(object)?;
        if !self.await_members || first.get() != 0 {
            return Ok(());
        }
        if living_threads(object)?.iter().any(|ids| ids.is_target != 0) && first.get() == 0 {
            first.set(monotonic_ns());
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Kernel;

    /// Loads programs for these targets.
    fn object(targets: &Targets) -> LoadedObject {
        let kernel = Kernel::probe().unwrap();
        LoadedObject::of_tests(&bpf::offcputime::OBJECT, |object| {
            kernel.configure(object)?;
            targets.configure(object, &kernel)
        })
    }

    fn root() -> Cgroup {
        CgroupMount::find().unwrap().cgroup("/").unwrap()
    }

    #[test]
    fn a_cgroup_that_came_before_programs_could_see_it_is_a_target() {
        // The root cgroup stands for an awaited cgroup that was made meanwhile.
        let awaiting = |cgroups| Targets {
            cgroups,
            awaited_cgroups: vec![AwaitedCgroup::At("/".to_owned())],
            ..Targets::default()
        };
        let targets = awaiting(vec![]);
        let object = object(&targets);
        let ids = object.map(bpf::maps::TARGET_CGROUPS).unwrap();
        // A known cgroup is already in the maps when the programs are loaded.
        let known = awaiting(vec![root()]);
        known.look_for_cgroups(&object).unwrap();
        assert_eq!(ids.keys().count(), 0);

        // Only the first call deletes the programs' decisions.
        let decided = object.map(bpf::maps::CGROUP_MEMBERSHIP).unwrap();
        for left in [0, 1] {
            decided.update(&[7; 8], &[0], MapFlags::ANY).unwrap();
            targets.look_for_cgroups(&object).unwrap();
            assert!(ids.keys().eq([root().id.to_ne_bytes()]));
            assert_eq!(decided.keys().count(), left);
        }
    }

    fn route(awaited: &[AwaitedCgroup]) -> Vec<(u64, String, u64)> {
        let places = Route::to(awaited).places.into_iter();
        places
            .map(|((level, name), below)| (level, name, below))
            .collect()
    }

    #[test]
    fn paths_have_what_they_share_in_common() {
        let at = |path: &str| AwaitedCgroup::At(path.to_owned());
        let place = |level, name: &str, below| (level, name.to_owned(), below);
        let first = u64::from(AwaitedLevel::LEVEL_FIRST_OF_PATHS.0);
        assert_eq!(
            route(&[at("/a/b"), at("/a/c/d")]),
            [
                place(first, "a", first + 1),
                place(first + 1, "b", 0),
                place(first + 1, "c", first + 2),
                place(first + 2, "d", 0),
            ]
        );
        // Both orders give the same route.
        for paths in [["/a", "/a/b"], ["/a/b", "/a"]] {
            let route = route(&paths.map(at));
            assert_eq!(route[0], place(first, "a", 0));
        }
        assert_eq!(route(&[at("/")]), []);
    }

    #[test]
    fn what_is_there_is_known_by_its_name_and_place() {
        let cgroup = |path: &str| Cgroup {
            path: path.to_owned(),
            id: 1,
            below_delegated: false,
        };
        let users = |path: &str| Cgroup {
            below_delegated: true,
            ..cgroup(path)
        };
        let unit = AwaitedCgroup::OfUnit("a.service".to_owned());
        assert!(unit.matches(&cgroup("/system.slice/a.service")));
        assert!(!unit.matches(&cgroup("/lxc.payload.b/system.slice/a.service")));
        assert!(!unit.matches(&users("/user.slice/user@1.service/a.service")));
        let container = AwaitedCgroup::OfContainer("0a".to_owned());
        assert!(container.matches(&cgroup("/docker/0a")));
        assert!(!container.matches(&cgroup("/docker/0ab")));
        assert!(!container.matches(&users("/docker/0a")));
        let path = AwaitedCgroup::At("/a/b".to_owned());
        assert!(path.matches(&cgroup("/a/b")) && !path.matches(&cgroup("/b")));
        assert!(path.matches(&users("/a/b")));
        let long = AwaitedCgroup::At(format!("/a/{}", "b".repeat(127)));
        assert!(path.can_come() && !long.can_come());
        assert!(AwaitedCgroup::At(format!("/a/{}", "b".repeat(126))).can_come());
    }
}
