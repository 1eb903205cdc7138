//! Finds the samples of rows of time after scaling and rounding have replaced samples.

use crate::merge::ThreadProfile;
use crate::name_order::NameOrder;
use crate::{Sample, Table};

/// Returns the sample that replaced each sample: the row of its thread with the same texts. A
/// sample that was rounded to nothing, or whose thread has no clock, stays unchanged. `threads` are
/// in the order of their IDs.
pub(super) fn settled(
    samples: &Table<Sample>,
    threads: &[ThreadProfile],
    order: &NameOrder<'_>,
) -> Vec<Sample> {
    let settled = samples.iter().map(|sample| {
        let thread = threads.binary_search_by_key(&sample.thread, |it| Some(it.thread.id));
        let stacks = thread.map_or(&[][..], |place| &threads[place].stacks);
        let place = stacks.binary_search_by(|(kept, _)| {
            let by_state = kept.state.cmp(&sample.state);
            by_state.then_with(|| order.compare(kept, sample))
        });
        place.map_or(*sample, |place| stacks[place].0)
    });
    settled.collect()
}
