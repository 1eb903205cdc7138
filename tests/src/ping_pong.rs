//! How fast the workload `ping_pong` goes.

use std::thread::sleep;
use std::time::Duration;

use crate::Workload;

/// Passes per second in the time from now on. Each takes two context switches.
///
/// # Panics
///
/// When it does not say how many there were, though given ten times as long.
pub fn speed_for(ping_pong: &mut Workload, time: Duration) -> f64 {
    ping_pong.lines_so_far();
    let mut lines = Vec::new();
    let speed = (0..10).find_map(|_| {
        sleep(time);
        lines.extend(ping_pong.lines_so_far());
        speed(&lines)
    });
    speed.expect("a ping-pong that talks")
}

/// Passes per second between two moments, from the lines in between.
fn speed(lines: &[String]) -> Option<f64> {
    let read = |line: &String| -> Option<(f64, f64)> {
        let (time, passes) = line.split_once(' ')?;
        Some((time.parse().ok()?, passes.parse().ok()?))
    };
    // The first line began before.
    let (start, end) = (read(lines.get(1)?)?, read(lines.last()?)?);
    (end.0 > start.0).then(|| (end.1 - start.1) * 1e9 / (end.0 - start.0))
}
