//! Idle time of blocked threads, compared with programs that know it, and with servers whose stacks
//! show it.

use systemscope_tests::printed::folded::{Line, bare};
use systemscope_tests::printed::table::{Table, Verdict};
use systemscope_tests::truth::idleness::{Scenario, Times};
use systemscope_tests::{Folded, Tool, Workload};

use crate::programs::{self, Program};

const FLAGS: &str = "-m 0 --reasons --states --nanoseconds";
const SECONDS: f32 = 5.0;
const PRECISION: f64 = 0.95;

/// Measures the workload for idle threads, at three loads.
pub(crate) fn scenarios(table: &mut Table) {
    for Scenario { name, .. } in &Scenario::ALL {
        let mut last = f64::INFINITY;
        for busy in [10, 50, 90] {
            let workload = Workload::start("idle", &[(*name).to_owned(), busy.to_string()]);
            let tool = Tool::new("offcputime").args(FLAGS).pid(workload.pid());
            let times = Times::of(&tool.folded(SECONDS));
            let idle = times.idle + times.missed;
            let percent = |part: f64| format!("{:.1} %", part * 100.0);
            let share = idle as f64 / times.blocked() as f64;
            let is_right = times.precision() >= PRECISION && share <= last * 1.02;
            last = share;
            let cells = [
                "idle time",
                &format!("{name}, {busy} % busy"),
                &format!("{} of blocked time", percent(share)),
                &format!(
                    "{} right, {} of it shown",
                    percent(times.precision()),
                    percent(times.recall())
                ),
                &format!("right {}; less with more load", percent(PRECISION)),
                "none tells",
            ];
            table.row(&cells, Verdict::of(is_right));
        }
    }
}

/// Server program. `serves` is the name of its serving threads, or `None` if only its first thread
/// serves. `waits` has the functions in which a serving thread waits for the next request.
struct Server {
    start: fn() -> Program,
    serves: Option<&'static str>,
    waits: &'static [&'static str],
}

const SERVERS: [Server; 5] = [
    Server {
        start: programs::nginx,
        serves: None,
        waits: &["epoll_wait"],
    },
    Server {
        start: programs::redis,
        serves: None,
        waits: &["epoll_wait"],
    },
    Server {
        start: programs::asyncio_server,
        serves: None,
        waits: &["epoll_wait"],
    },
    Server {
        start: programs::node_server,
        serves: None,
        waits: &["epoll_pwait"],
    },
    Server {
        start: programs::mariadb,
        serves: Some("mariadbd"),
        waits: &["vio_read", "poll"],
    },
];

/// Measures servers under load. Their threads wait for the next request in known functions.
pub(crate) fn servers(table: &mut Table) {
    for Server {
        start,
        serves,
        waits,
    } in &SERVERS
    {
        let program = start();
        let tool = Tool::new("offcputime").args(FLAGS);
        let tool = match serves {
            Some(_) => tool.pid(program.pid),
            None => tool.args(&format!("-t {}", program.pid)),
        };
        let folded = tool.folded(SECONDS);
        let sum = |is_counted: &dyn Fn(&Line) -> bool| -> u64 {
            let lines = blocked(&folded, *serves);
            lines
                .filter(|line| is_counted(line))
                .map(|line| line.value)
                .sum()
        };
        let is_idle = |line: &Line| waits.iter().any(|function| line.has(function));
        let is_shown = |line: &Line| bare(line.leaf()).ends_with(" (idle)]");
        let idle = sum(&is_idle);
        let shown = sum(&is_shown);
        let right = sum(&|line| is_idle(line) && is_shown(line));
        let share = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
        let precision = share(right, shown);
        let cells = [
            "idle time",
            program.name,
            &format!("{:.1} % of blocked time", share(idle, sum(&|_| true))),
            &format!(
                "{precision:.1} % right, {:.1} % of it shown",
                share(right, idle)
            ),
            &format!("right {:.0} %", PRECISION * 100.0),
            "none tells",
        ];
        table.row(&cells, Verdict::of(precision >= PRECISION * 100.0));
    }
}

/// Returns the blocked time of the serving threads, except threads that did nothing.
fn blocked<'a>(folded: &'a Folded, serves: Option<&'a str>) -> impl Iterator<Item = &'a Line> {
    let is_its = move |line: &&Line| serves.is_none_or(|comm| line.comm == comm);
    let lines = folded.lines.iter().filter(is_its);
    lines.filter(|line| {
        let leaf = line.leaf();
        leaf.ends_with("]_[o]") && !leaf.ends_with(" (dormant)]_[o]")
    })
}
