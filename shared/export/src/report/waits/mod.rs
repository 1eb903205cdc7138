//! What blocked threads waited for: why, on what, and what held a program up by that.

pub(super) mod gil;
pub(super) mod objects;
pub(super) mod reasons;
pub(super) mod split;
pub(super) mod work;
