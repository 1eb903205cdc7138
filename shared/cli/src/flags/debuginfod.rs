//! Flag for debug files from debuginfod servers.

use clap::Args;
use debuginfod::Choice;

/// Flag that chooses the servers with debug files that are not on this machine.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Frames")]
pub struct DebuginfodFlags {
    /// Fetch missing symbols by build ID from debuginfod servers
    ///
    /// Without URLS the servers are those of DEBUGINFOD_URLS, or else of /etc/debuginfod/*.urls.
    /// DEBUGINFOD_URLS alone has the same effect as the flag; `--debuginfod=off` fetches nothing.
    /// With --srcline and --inline missing lines are fetched, too. Files are fetched while the tool
    /// measures, and kept in the cache of elfutils and gdb. At the end the tool waits at most
    /// DEBUGINFOD_MAXTIME seconds for the others [default: 30].
    #[arg(
        long, value_name = "URLS", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = Choice::parse
    )]
    debuginfod: Option<Choice>,
}

impl DebuginfodFlags {
    /// Returns the choice of servers.
    #[must_use]
    pub fn choice(&self) -> Choice {
        self.debuginfod.clone().unwrap_or_default()
    }
}
