//! Room for what programs measure.

use crate::kernel::threads_alive;
use crate::{OpenObject, Result};

/// Clocks for at least this many threads.
const FEWEST_CLOCKS: u32 = 32768;

/// Makes room for all threads in a map of theirs: for twice as many as are alive now.
pub fn make_room_for_threads(object: &mut OpenObject, map: &str) -> Result<()> {
    let room = threads_alive().saturating_mul(2).max(FEWEST_CLOCKS);
    object.make_room(map, room)
}
