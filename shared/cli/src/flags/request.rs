//! The measurement that wallclock asks of oncputime and offcputime. [`Request::encode`] writes it
//! as flags of these tools, and [`Request::decode`] reads it from the flags that a tool parsed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use collect::{Recorder, Sources, Walking};
use debuginfod::Choice;
use export::Format;
use export::capture::Capture;

use super::{CgroupFlags, OutputFlags, StackFlags, TargetFlags, WaitFlags, recorder, walk};
use crate::Processes;
use crate::output::destinations::Planned;

/// Measurement that wallclock asks of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time to measure.
    pub measured: Measured,
    /// Processes or cgroups to measure.
    pub targets: RequestedTargets,
    /// True if descendants of the targets are measured, too.
    pub children: bool,
    /// Pinned map of the cgroups to which the targets are restricted.
    pub cgroup_map: Option<PathBuf>,
    /// Pinned map of the mount namespaces to which the targets are restricted.
    pub mount_namespace_map: Option<PathBuf>,
    /// Settings of unwinding.
    pub walking: Walking,
    /// Extent to which source lines are looked up.
    pub sources: Sources,
    /// Choice of servers with debug files.
    pub debuginfod: Choice,
    /// Minimum length of an interval with an entry of its own in the timeline, in µs; `None`
    /// without a timeline.
    pub timeline_min_us: Option<u64>,
    /// Recorder that keeps only the last part of the window, if there is one.
    pub recorder: Option<Recorder>,
}

/// Time that a request measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Time on the CPU, by samples.
    OnCpu {
        /// Samples per second and CPU.
        frequency: u64,
    },
    /// Time off the CPU, blocked and runnable apart.
    OffCpu {
        /// Minimum length of an interval, in µs.
        min_block_us: u64,
        /// True if shorter intervals are sampled.
        short_are_sampled: bool,
    },
}

/// Processes or cgroups that a request measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedTargets {
    /// Processes; the whole machine if both lists are empty.
    Processes {
        /// IDs, ascending.
        pids: Vec<u32>,
        /// Names of processes that do not exist yet.
        awaited: Vec<String>,
    },
    /// Cgroups, by the words of the flags.
    Cgroups {
        /// Paths.
        paths: Vec<String>,
        /// Units of systemd.
        units: Vec<String>,
        /// Names or IDs of containers.
        containers: Vec<String>,
        /// Set if the cgroups may be created later: whether the first process in them opens the
        /// window.
        awaits_members: Option<bool>,
    },
}

impl RequestedTargets {
    /// Returns the cgroups that the flags choose. Without `--wait` these are the paths of the
    /// cgroups that exist.
    #[must_use]
    pub fn of_cgroups(
        cgroups: &CgroupFlags,
        wait: &WaitFlags,
        awaits_members: bool,
    ) -> RequestedTargets {
        if wait.wait {
            return RequestedTargets::from_words(cgroups, Some(awaits_members));
        }
        let existing = cgroups.cgroups().into_iter();
        RequestedTargets::Cgroups {
            paths: existing.map(|cgroup| cgroup.path).collect(),
            units: Vec::new(),
            containers: Vec::new(),
            awaits_members: None,
        }
    }

    fn from_words(cgroups: &CgroupFlags, awaits_members: Option<bool>) -> RequestedTargets {
        let [paths, units, containers] =
            [&cgroups.cgroup_paths, &cgroups.units, &cgroups.containers]
                .map(|chosen| chosen.iter().map(|cgroups| cgroups.word.clone()).collect());
        RequestedTargets::Cgroups {
            paths,
            units,
            containers,
            awaits_members,
        }
    }

    fn encode(&self) -> Vec<OsString> {
        let each = |name: &str, values: &[String]| -> Vec<OsString> {
            values.iter().map(|value| flag(name, value)).collect()
        };
        match self {
            RequestedTargets::Processes { pids, awaited } => {
                let list: Vec<String> = pids.iter().map(u32::to_string).collect();
                let pids = (!pids.is_empty()).then(|| flag("--pid", list.join(",")));
                pids.into_iter().chain(each("--await", awaited)).collect()
            }
            RequestedTargets::Cgroups {
                paths,
                units,
                containers,
                awaits_members,
            } => {
                let waits = awaits_members.map(|awaits_members| {
                    let awaits_members = awaits_members.to_string();
                    ["--wait".into(), flag("--await-members", awaits_members)]
                });
                [
                    each("--cgroup", paths),
                    each("--unit", units),
                    each("--container", containers),
                    waits.into_iter().flatten().collect(),
                ]
                .concat()
            }
        }
    }

    fn decode(target: &TargetFlags) -> RequestedTargets {
        let TargetFlags {
            processes,
            cgroups,
            wait,
            ..
        } = target;
        if cgroups.are_given() {
            let awaits_members = wait.wait.then(|| wait.awaits_members(cgroups));
            return RequestedTargets::from_words(cgroups, awaits_members);
        }
        RequestedTargets::Processes {
            pids: Processes::ids(processes.all()),
            awaited: wait.names(processes),
        }
    }
}

impl Request {
    /// Returns the name of the tool that measures this.
    #[must_use]
    pub fn tool(&self) -> &'static str {
        match self.measured {
            Measured::OnCpu { .. } => "oncputime",
            Measured::OffCpu { .. } => "offcputime",
        }
    }

    /// Returns the request as flags of the tool, whose output is a capture on stdout.
    #[must_use]
    pub fn encode(&self) -> Vec<OsString> {
        let Request {
            measured,
            targets,
            children,
            cgroup_map,
            mount_namespace_map,
            walking,
            sources,
            debuginfod,
            timeline_min_us,
            recorder,
        } = self;
        let Walking {
            call_graph,
            max_stack,
            languages,
            shows_runtime,
        } = walking;
        let mut flags = match measured {
            Measured::OnCpu { frequency } => vec![flag("--frequency", frequency.to_string())],
            Measured::OffCpu {
                min_block_us,
                short_are_sampled,
            } => {
                let least = flag("--min-block-time", min_block_us.to_string());
                let sample = short_are_sampled.then(|| "--sample-short".into());
                ([least, "--states".into()].into_iter())
                    .chain(sample)
                    .collect()
            }
        };
        flags.extend(targets.encode());
        flags.extend(children.then(|| OsString::from("--children")));
        let maps = [
            ("--cgroupmap", cgroup_map),
            ("--mntnsmap", mount_namespace_map),
        ];
        flags
            .extend((maps.into_iter()).filter_map(|(name, path)| Some(flag(name, path.as_ref()?))));
        flags.extend([
            flag("--call-graph", call_graph.name()),
            flag("--max-stack", max_stack.to_string()),
            flag("--language", languages.name()),
        ]);
        flags.extend(shows_runtime.then(|| OsString::from(walk::SHOWS_RUNTIME)));
        let sources = match sources {
            Sources::None => None,
            Sources::Lines => Some("--srcline"),
            Sources::Inlined => Some("--inline"),
        };
        flags.extend(sources.map(OsString::from));
        let urls = debuginfod.to_text();
        flags.extend(urls.map(|urls| flag("--debuginfod", urls)));
        if let Some(timeline_min_us) = timeline_min_us {
            let least = flag("--timeline-min", timeline_min_us.to_string());
            flags.extend(["--timeline".into(), least]);
        }
        flags.extend(recorder.iter().flat_map(recorder::encode));
        flags.push(flag("--format", Capture.name()));
        flags
    }

    /// Returns the request that a tool parsed; `None` if its output is not a capture on stdout.
    #[must_use]
    pub fn decode(
        measured: Measured,
        target: &TargetFlags,
        stacks: &StackFlags,
        output: &OutputFlags,
    ) -> Option<Request> {
        let plan = output.plan().ok()?;
        let [Planned { format, path, .. }] = &plan[..] else {
            return None;
        };
        let is_capture = format.name() == Capture.name() && path.is_none();
        is_capture.then(|| Request {
            measured,
            targets: RequestedTargets::decode(target),
            children: target.command.follows_children(),
            cgroup_map: target.maps.cgroups(),
            mount_namespace_map: target.maps.mount_namespaces(),
            walking: stacks.walk.walking(),
            sources: output.frames.sources(),
            debuginfod: stacks.debuginfod.choice(),
            timeline_min_us: output.timeline.min_us(),
            recorder: output.timeline.recorder.recorder(),
        })
    }
}

/// Returns a flag with its value in one word, so that the value may begin with a dash.
pub(super) fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push("=");
    flag.push(value);
    flag
}
