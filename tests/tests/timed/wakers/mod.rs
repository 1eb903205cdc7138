//! Wakers of waits with known lengths.

mod agree;
mod chain;
mod each_other;
mod early;
mod told_apart;

use std::thread::sleep;
use std::time::Duration;

use systemscope_tests::tries::undisturbed;
use systemscope_tests::{Seen, Tool, Watch};

/// Measures processes with offwaketime in a window. Only hidden events may be missing in the
/// results.
fn measure_waits(window: Duration, pids: &[impl ToString], arguments: &str) -> Seen {
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    undisturbed(|| {
        let tool = Tool::new("offwaketime").arg("-p").arg(pids.join(","));
        let mut watch = Watch::apart(tool.args(arguments));
        watch.open();
        sleep(window);
        let seen = watch.close();
        seen.misses_what_was_hidden().then_some(seen)
    })
}
