//! Programs that are run: ours, those of others, and workloads whose truth is known.

pub mod binaries;
pub mod browser;
pub mod cgroup;
pub mod compiling;
pub mod container;
pub mod control;
pub mod django;
pub mod mariadb;
pub mod nginx;
pub mod peers;
pub mod pinned_map;
pub mod podman;
pub mod process;
pub mod pythons;
pub mod quota;
pub mod simple;
pub mod tool;
pub mod wallclock;
pub mod watch;
pub mod workload;
