//! Sampling events, one on every online CPU. Follows CPUs that go online or offline.

mod events;
mod pace;
mod pacemaker;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys::{self as sys, perf_event_attr};
use libbpf_rs::{Link, ProgramMut};
use profile::Rate;

use crate::cpus::online_cpus;
use crate::error::{Context, Error};
use crate::sampling::pacemaker::Pacemaker;
use crate::{LoadedObject, Result};

pub use events::Event;

/// Interval between checks for CPUs that went online or offline.
const HOTPLUG_INTERVAL: Duration = Duration::from_secs(1);

/// Sampling events that run one program.
pub struct Samplers<'a> {
    program: ProgramMut<'a>,
    event: Event,
    rate: Rate,
    only_cpu: Option<u32>,
    /// Pacer of clocks with a frequency. It ends before the descriptors of the clocks close.
    pacemaker: Option<Pacemaker>,
    /// Links by CPU. A link closes the descriptor of its event when it is dropped.
    links: BTreeMap<u32, Link>,
    looked: Instant,
}

impl<'a> Samplers<'a> {
    /// Makes the event run the program `sample` on every online CPU, or on `only_cpu`. Without
    /// `event`, the event is hardware cycles if the machine counts them, or else the CPU clock.
    pub fn attach(
        object: &'a LoadedObject,
        event: Option<Event>,
        rate: Rate,
        only_cpu: Option<u32>,
    ) -> Result<Self> {
        let cpus = online_cpus()?;
        let first = only_cpu.or(cpus.first().copied()).unwrap_or(0);
        if !cpus.contains(&first) {
            let online: Vec<String> = cpus.iter().map(u32::to_string).collect();
            return Err(Error::Unsupported(format!(
                "CPU {first} is not online: give one of {}",
                online.join(", ")
            )));
        }
        let event = match event {
            Some(event) => event,
            None if open(Event::CPU_CYCLES, rate, first).is_ok() => Event::CPU_CYCLES,
            None => Event::CPU_CLOCK,
        };
        // Other events measure no time, and a period that the user gave must not change.
        let pacemaker = match rate {
            Rate::Frequency(frequency) if event.is_clock() => Some(Pacemaker::start(frequency)),
            _ => None,
        };
        let mut samplers = Samplers {
            program: object.program(bpf::programs::SAMPLE)?,
            event,
            rate,
            only_cpu,
            pacemaker: pacemaker.transpose().map_err(unpaced)?,
            links: BTreeMap::new(),
            looked: Instant::now(),
        };
        samplers.cover(&cpus)?;
        Ok(samplers)
    }

    /// Returns the event in use.
    pub fn event(&self) -> Event {
        self.event
    }

    /// Returns the number of CPUs on which samples are taken.
    pub fn cpus(&self) -> usize {
        self.links.len()
    }

    /// Marks the start of the window. Samples before the start no longer affect the pace.
    pub fn begin(&self) {
        if let Some(pacemaker) = &self.pacemaker {
            pacemaker.begin();
        }
    }

    /// Adds CPUs that went online, and removes CPUs that went offline. Frequent calls cost little.
    ///
    /// # Errors
    /// The CPUs cannot be listed, or the kernel refuses the event or its next period on a CPU.
    pub fn follow_hotplug(&mut self) -> Result<()> {
        if let Some(failure) = self.pacemaker.as_ref().and_then(Pacemaker::take_failure) {
            return Err(unpaced(failure));
        }
        if self.looked.elapsed() < HOTPLUG_INTERVAL {
            return Ok(());
        }
        self.looked = Instant::now();
        let cpus = online_cpus()?;
        self.cover(&cpus)
    }

    fn cover(&mut self, online: &[u32]) -> Result<()> {
        // The kernel ends the events of a CPU that goes offline.
        let pacemaker = self.pacemaker.as_ref();
        self.links.retain(|cpu, _| {
            let stays = online.contains(cpu);
            if let (false, Some(pacemaker)) = (stays, pacemaker) {
                pacemaker.remove(*cpu);
            }
            stays
        });
        for &cpu in online {
            if self.links.contains_key(&cpu) || self.only_cpu.is_some_and(|only| only != cpu) {
                continue;
            }
            match open(self.event, self.rate, cpu) {
                Ok(fd) => {
                    let fd = fd.into_raw_fd();
                    let link = self
                        .program
                        .attach_perf_event(fd)
                        .context(format!("attach to {} on CPU {cpu}", self.event.name))?;
                    if let Some(pacemaker) = &self.pacemaker {
                        pacemaker.add(cpu, fd);
                    }
                    self.links.insert(cpu, link);
                }
                // The CPU went offline after the list was read.
                Err(_) if !online_cpus()?.contains(&cpu) => {}
                Err(error) => return Err(refused(self.event, self.rate, cpu, error)),
            }
        }
        Ok(())
    }
}

fn unpaced(error: io::Error) -> Error {
    Error::System {
        action: "cannot pace the clocks that sample".to_owned(),
        source: error,
    }
}

fn refused(event: Event, rate: Rate, cpu: u32, error: io::Error) -> Error {
    let name = event.name;
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => Error::Unsupported(format!(
            "this machine cannot count {name}: -e cpu-clock works everywhere"
        )),
        Some(libc::EMFILE) => Error::Unsupported(format!(
            "too many open files to sample on CPU {cpu}: raise the limit with `ulimit -n`"
        )),
        _ => Error::System {
            action: format!("cannot sample {name} at {rate:?} on CPU {cpu}"),
            source: error,
        },
    }
}

/// Opens a perf event that counts everything that runs on `cpu`.
fn open(event: Event, rate: Rate, cpu: u32) -> io::Result<OwnedFd> {
    let mut attributes = perf_event_attr {
        type_: event.kind,
        size: size_of::<perf_event_attr>() as u32,
        config: event.config.into(),
        ..Default::default()
    };
    match rate {
        Rate::Frequency(frequency) => {
            attributes.set_freq(1);
            attributes.__bindgen_anon_1.sample_freq = frequency;
        }
        Rate::Period(period) => attributes.__bindgen_anon_1.sample_period = period,
    }
    // SAFETY: the attributes live until the call returns, and contain their size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1,
            cpu as libc::c_int,
            -1,
            sys::PERF_FLAG_FD_CLOEXEC as libc::c_ulong,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn object() -> LoadedObject {
        LoadedObject::of_tests(&bpf::oncputime::OBJECT, |_| Ok(()))
    }

    const RATE: Rate = Rate::Frequency(1);

    #[test]
    fn cpus_are_followed_as_they_come_and_go() {
        let object = object();
        let online = online_cpus().unwrap();
        let event = Some(Event::CPU_CLOCK);
        let mut samplers = Samplers::attach(&object, event, RATE, None).unwrap();
        // No machine has a CPU with the second number.
        samplers.cover(&[online[0], u32::MAX >> 1]).unwrap();
        assert!(samplers.links.keys().eq([&online[0]]));
        samplers.cover(&[]).unwrap();
        assert_eq!(samplers.cpus(), 0);
        // The last check seems to be recent for as long as this test takes.
        samplers.looked = Instant::now() + 1000 * HOTPLUG_INTERVAL;
        samplers.follow_hotplug().unwrap();
        assert_eq!(samplers.cpus(), 0);
        samplers.looked = Instant::now() - HOTPLUG_INTERVAL;
        samplers.follow_hotplug().unwrap();
        assert!(samplers.links.keys().eq(&online));
    }

    #[test]
    fn what_to_do_is_said_where_the_kernel_refuses() {
        let message = |number| {
            let error = io::Error::from_raw_os_error(number);
            refused(Event::CPU_CYCLES, Rate::Frequency(49), 3, error).to_string()
        };
        for number in [libc::ENOENT, libc::EOPNOTSUPP, libc::ENODEV] {
            assert!(message(number).contains("-e cpu-clock works everywhere"));
        }
        assert!(message(libc::EMFILE).contains("ulimit -n"));
        assert!(
            message(libc::EACCES).contains("on CPU 3: "),
            "{}",
            message(libc::EACCES)
        );
    }
}
