//! Costs of the tools, and measurements of an idle machine. Each test has the machine to itself.

mod cost;
mod floods;
mod idle;
mod real_time;
mod timeline;
