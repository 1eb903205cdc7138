//! Time until a page shows something, until it can be used, and of steps in its flame graph.

use std::fs::File;
use std::io::BufWriter;

use serde_json::Value;
use systemscope_tests::Tool;
use systemscope_tests::printed::output::median;
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::programs::browser::time_page;
use systemscope_tests::programs::workload::scratch;

use super::formats::{STACKS, large};
use crate::figures::{WALL_CLOCK, format_spread};

const ROUNDS: usize = 5;

/// Measures a page of many stacks in Chromium.
pub(crate) fn speed(table: &mut Table) {
    let folder = scratch();
    let [capture, page] = ["large.scope", "large.html"].map(|name| folder.path().join(name));
    let writer = File::create(&capture).expect("a file");
    capture::write(&large(), BufWriter::new(writer)).expect("space for the capture");
    let tool = Tool::new("systemscope").arg("export").arg(&capture);
    tool.arg("-o").arg(&page).run().succeeded();
    let rounds: Vec<Value> = (0..ROUNDS).map(|_| time_page(&page)).collect();
    for (what, place, most) in [
        ("until the first screen is there", "/paint", 300.0),
        ("until the views can be used", "/usable", 1500.0),
        ("of a zoom, 95 % within", "/zoom/most", 16.0),
        ("of a filter by thread, 95 % within", "/filter/most", 16.0),
    ] {
        let times = rounds
            .iter()
            .filter_map(|round| round.pointer(place)?.as_f64());
        let times: Vec<f64> = times.collect();
        let cells: [&str; 5] = [
            &format!("ms {what}, {STACKS} stacks"),
            "page in Chromium",
            &format_spread(&times, 0),
            WALL_CLOCK,
            &format!("at most {most}"),
        ];
        table.row(&cells, Verdict::of(median(times) <= most));
    }
}
