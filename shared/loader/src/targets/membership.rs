//! Targets by membership: threads in some cgroups or mount namespaces, which threads can join and
//! leave (`include/targets/cgroups.h`, `include/clock/moves.h`).

use bpf::{ProgramName, constants, maps, programs};
use libbpf_rs::{MapCore, MapFlags};

use super::{Targets, awaited_cgroups, pinned_maps};
use crate::error::Context;
use crate::{LoadedObject, OpenObject, Result};

/// Maximum number of cgroups whose membership programs store.
const ROOM_FOR_CGROUPS: u32 = 1 << 14;
/// Maximum number of processes whose moves programs store until user space has handled them.
const ROOM_FOR_MOVES: u32 = 1 << 12;
/// Programs that run only if threads can join and leave. Objects without a thread clock lack them.
const PROGRAMS: [ProgramName; 2] = [programs::NOTE_MOVE, programs::FIND_DEPARTED];

impl Targets {
    /// Returns whether the targets depend on cgroups or mount namespaces, so that threads can join
    /// and leave.
    pub fn by_membership(&self) -> bool {
        self.has_cgroups() || self.has_pinned_maps()
    }

    /// Returns whether the targets depend on pinned maps, which other programs may change at any
    /// time.
    pub fn has_pinned_maps(&self) -> bool {
        self.cgroup_map.is_some() || self.mount_namespace_map.is_some()
    }

    /// Configures the filters. Loads no programs and sizes no maps that are not needed.
    pub(super) fn configure_membership(&self, object: &mut OpenObject) -> Result<()> {
        let by_membership = self.by_membership();
        for program in PROGRAMS {
            if object.has_program(program) {
                object.choose(program, by_membership)?;
            }
        }
        if !by_membership {
            return Ok(());
        }
        object.set(constants::BY_MEMBERSHIP, true)?;
        if object.has_program(programs::NOTE_MOVE) {
            object.make_room(maps::MOVED, ROOM_FOR_MOVES)?;
        }
        if self.has_cgroups() {
            object.set(constants::FILTER_CGROUPS, true)?;
            let later = if self.awaited_cgroups.is_empty() {
                0
            } else {
                awaited_cgroups::ROOM
            };
            let there = u32::try_from(self.cgroups.len()).unwrap_or(u32::MAX);
            object.make_room(maps::TARGET_CGROUPS, there.saturating_add(later))?;
            object.make_room(maps::CGROUP_MEMBERSHIP, ROOM_FOR_CGROUPS)?;
        }
        let pinned = [
            (
                constants::FILTER_CGROUPMAP,
                maps::ALLOWED_CGROUPS,
                &self.cgroup_map,
            ),
            (
                constants::FILTER_MNTNSMAP,
                maps::ALLOWED_MOUNT_NAMESPACES,
                &self.mount_namespace_map,
            ),
        ];
        for (filter, map, path) in pinned {
            if let Some(path) = path {
                object.set(filter, true)?;
                object.reuse(map, &pinned_maps::open(path)?)?;
            }
        }
        Ok(())
    }

    /// Writes the cgroups to the map.
    pub(super) fn fill_cgroups(&self, object: &LoadedObject) -> Result<()> {
        if !self.has_cgroups() {
            return Ok(());
        }
        let map = object.map(maps::TARGET_CGROUPS)?;
        for cgroup in &self.cgroups {
            map.update(&cgroup.id.to_ne_bytes(), &[1], MapFlags::ANY)
                .context(format!("make {} a target", cgroup.path))?;
        }
        Ok(())
    }
}
