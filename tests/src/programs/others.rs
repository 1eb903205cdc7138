//! Programs of other projects.

pub mod browser;
pub mod django;
pub mod firefox;
pub mod gos;
pub mod javas;
pub mod mariadb;
pub mod nginx;
pub mod nodes;
pub mod peers;
pub mod php;
pub mod podman;
pub mod pythons;
pub mod rubies;
pub mod versions;
