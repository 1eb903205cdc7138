//! Waits of blocked threads: reasons, resources, and the causes that held a program up.

pub(super) mod gil;
pub(super) mod groups;
pub(super) mod objects;
pub(super) mod reasons;
pub(super) mod split;
pub(super) mod work;
