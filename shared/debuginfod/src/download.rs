//! One request to one server.

use std::io::{self, Read, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::DefaultConnector;

use crate::build_id::BuildId;
use crate::cache::{Entry, Partial};
use crate::resolver::SystemResolver;
use crate::settings::{LEAST_BYTES, Settings};

/// Maximum number of redirects of a request.
const MOST_REDIRECTS: u32 = 5;
/// Maximum size of the headers of an answer, in bytes.
const LONGEST_HEADERS: usize = 64 << 10;
/// Number of bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// Reason why a server gave no file.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server does not have the file.
    Absent,
    /// The answer is not the file.
    Refused(String),
    /// The server does not answer.
    Unreachable(String),
    /// The server or this machine failed.
    Failed(String),
}

/// Client of all servers.
pub(crate) struct Client {
    agent: OnceLock<Agent>,
    settings: Settings,
}

impl Client {
    pub(crate) fn new(settings: Settings) -> Client {
        Client {
            agent: OnceLock::new(),
            settings,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Fetches a file from a server, as a file without a name. `allow` gets the number of bytes so
    /// far, and returns an error if there may be no more.
    pub(crate) fn fetch(
        &self,
        server: &str,
        build_id: &BuildId,
        entry: &Entry<'_>,
        mut allow: impl FnMut(u64) -> Result<(), Failure>,
    ) -> Result<(Partial, u64), Failure> {
        let url = format!(
            "{}/buildid/{build_id}/debuginfo",
            server.trim_end_matches('/')
        );
        let agent = self.agent.get_or_init(|| self.agent());
        let request = agent.get(&url).config();
        // A redirect must not lead from TLS to a connection that anybody can change.
        let request = request.https_only(server.starts_with("https:")).build();
        let response = request.call().map_err(|error| unreachable(&error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Failure::Absent),
            status => return Err(Failure::Failed(format!("it answers with status {status}"))),
        }
        let claimed = response.headers().get("X-DEBUGINFOD-SIZE");
        let claimed = claimed.and_then(|size| size.to_str().ok()?.parse().ok());
        self.check_size(claimed.unwrap_or(0))?;

        let partial = entry.begin().map_err(|error| cache_failed(&error))?;
        let mut body = response
            .into_body()
            .into_with_config()
            .limit(u64::MAX)
            .reader();
        let mut pace = Pace::new(self.settings.stall);
        let mut piece = vec![0; PIECE];
        let mut size = 0;
        loop {
            let read = match body.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Failure::Failed(error.to_string())),
            };
            size += read as u64;
            self.check_size(size)?;
            allow(read as u64)?;
            pace.check(size)?;
            let written = partial.file().write_all(&piece[..read]);
            written.map_err(|error| cache_failed(&error))?;
        }
        if !build_id.is_of(partial.file()) {
            let why = "it sends something else than an ELF file with this build ID";
            return Err(Failure::Refused(why.to_owned()));
        }
        Ok((partial, size))
    }

    fn check_size(&self, size: u64) -> Result<(), Failure> {
        let most = self.settings.most_bytes;
        if size > most {
            return Err(Failure::Refused(format!(
                "the file has more than {most} bytes: DEBUGINFOD_MAXSIZE sets the limit"
            )));
        }
        Ok(())
    }

    fn agent(&self) -> Agent {
        let Settings { stall, longest, .. } = self.settings;
        let is_secure = |server: &String| server.starts_with("https:");
        // A server without TLS may redirect to one with TLS, but the roots take 10 ms to read.
        let roots = if self.settings.servers.iter().any(is_secure) {
            rustls_native_certs::load_native_certs().certs
        } else {
            Vec::new()
        };
        let roots: Vec<_> = roots
            .iter()
            .map(|root| Certificate::from_der(root).to_owned())
            .collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(ring::default_provider().into())
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .user_agent(concat!("systemscope/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .max_redirects(MOST_REDIRECTS)
            .max_response_header_size(LONGEST_HEADERS)
            .timeout_resolve(stall)
            .timeout_connect(stall)
            .timeout_send_request(stall)
            .timeout_recv_response(stall)
            .timeout_per_read(stall)
            .timeout_per_write(stall)
            .timeout_global(longest)
            .build();
        let connector = DefaultConnector::default();
        Agent::with_parts(config, connector, SystemResolver::default())
    }
}

/// Returns the failure of a request that got no answer. The server is not asked again, unless it
/// answered wrongly.
fn unreachable(error: &ureq::Error) -> Failure {
    let text = error.to_string();
    match error {
        ureq::Error::TooManyRedirects | ureq::Error::RedirectFailed => Failure::Refused(text),
        ureq::Error::RequireHttpsOnly(_) => {
            Failure::Refused("it redirects to a URL without TLS".to_owned())
        }
        _ => Failure::Unreachable(text),
    }
}

fn cache_failed(error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot write to the cache: {error}"))
}

/// Watch on the minimum speed of a download.
struct Pace {
    stall: Option<Duration>,
    begun: Instant,
    size: u64,
}

impl Pace {
    fn new(stall: Option<Duration>) -> Pace {
        Pace {
            stall,
            begun: Instant::now(),
            size: 0,
        }
    }

    /// Checks the speed after `size` bytes.
    fn check(&mut self, size: u64) -> Result<(), Failure> {
        let Some(stall) = self.stall else {
            return Ok(());
        };
        if self.begun.elapsed() < stall {
            return Ok(());
        }
        if size - self.size < LEAST_BYTES {
            let seconds = stall.as_secs();
            return Err(Failure::Unreachable(format!(
                "it sent less than {} KiB in {seconds} s: DEBUGINFOD_TIMEOUT sets the time",
                LEAST_BYTES >> 10
            )));
        }
        self.begun = Instant::now();
        self.size = size;
        Ok(())
    }
}
