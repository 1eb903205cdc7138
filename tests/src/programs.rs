//! Programs that tests run: tools of this project, programs of other projects, and workloads that
//! measure themselves.

pub mod binaries;
pub mod compiling;
mod confined;
pub mod control;
mod others;
pub mod process;
pub mod simple;
pub mod sources;
pub mod tool;
pub mod wallclock;
pub mod watch;
pub mod workload;

pub use confined::{cgroup, container, pinned_map, quota};
pub use others::{
    browser, django, firefox, gos, javas, mariadb, nginx, nodes, peers, php, podman, pythons,
    rubies, versions,
};
