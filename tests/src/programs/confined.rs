//! Confinement of processes: cgroups with their quotas, and containers.

pub mod cgroup;
pub mod container;
pub mod pinned_map;
pub mod quota;
