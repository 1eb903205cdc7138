//! Programs of other projects.

pub mod browser;
pub mod django;
pub mod firefox;
pub mod javas;
pub mod mariadb;
pub mod nginx;
pub mod peers;
pub mod podman;
pub mod pythons;
