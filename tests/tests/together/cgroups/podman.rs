//! Containers of a real container runtime.

use std::collections::HashSet;

use systemscope_tests::Turn;
use systemscope_tests::programs::podman::Podman;

use super::{processes, with_runtime_state};

#[test]
fn a_container_of_podmans_is_measured_by_name_and_by_id() {
    let _turn = Turn::share();
    let name = format!("systemscope-{}", std::process::id());
    let container = Podman::run(&name);
    let (id, pid) = (container.id(), container.pid());
    for called in [&name, &id, &id[..12]] {
        let tool = with_runtime_state(container.state(), "offcputime").arg("--container");
        let folded = tool.arg(called).folded_per_thread(1.0);
        assert_eq!(processes(&folded), HashSet::from([pid]), "{called}");
        // Only the container's file system contains the program. If functions have names, the tool
        // read the program there.
        assert!(folded.under("known_sleep").total() > 0, "{folded}");
    }
}
