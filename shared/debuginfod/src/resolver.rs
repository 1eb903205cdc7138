//! Addresses of servers.

use std::net::{IpAddr, SocketAddr};

use process::{Answer, getent};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Maximum number of addresses of a server, as [`ResolvedSocketAddrs`] holds.
const MOST_ADDRESSES: usize = 16;

/// Resolves names with getent(1), or with libc on a system without it.
#[derive(Debug, Default)]
pub(crate) struct SystemResolver {
    libc: DefaultResolver,
}

impl Resolver for SystemResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().unwrap_or_default();
        let is_secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if is_address || host.is_empty() {
            return self.libc.resolve(uri, config, timeout);
        }
        match getent("ahosts", host, *timeout.after) {
            Ok(Answer::Entry(lines)) => {
                let mut found = self.empty();
                for address in parse_addresses(&lines).take(MOST_ADDRESSES) {
                    found.push(SocketAddr::new(address, port));
                }
                if found.is_empty() {
                    return Err(Error::HostNotFound);
                }
                Ok(found)
            }
            Ok(Answer::Missing) => Err(Error::HostNotFound),
            Ok(Answer::Unable) => self.libc.resolve(uri, config, timeout),
            Err(error) => Err(Error::Io(error)),
        }
    }
}

/// Parses what `getent ahosts` prints: a line for each address and type of socket.
fn parse_addresses(lines: &str) -> impl Iterator<Item = IpAddr> {
    let streams = lines.lines().filter(|line| line.contains("STREAM"));
    streams.filter_map(|line| line.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_streams() {
        let lines = "::1             STREAM localhost\n\
            ::1             DGRAM  \n\
            192.0.2.7       STREAM \n\
            nonsense        STREAM \n";
        let expected: [IpAddr; 2] = ["::1".parse().unwrap(), "192.0.2.7".parse().unwrap()];
        assert!(parse_addresses(lines).eq(expected));
    }

    #[test]
    fn a_name_has_addresses() {
        let agent = ureq::Agent::with_parts(
            Config::default(),
            ureq::unversioned::transport::DefaultConnector::default(),
            SystemResolver::default(),
        );
        // Port 1 of this machine is closed: the name was found.
        let closed = agent.get("http://localhost:1/").call();
        assert!(
            matches!(closed, Err(Error::Io(_) | Error::ConnectionFailed)),
            "{closed:?}"
        );
        let unknown = agent.get("http://no-such-name.invalid/").call();
        assert!(matches!(unknown, Err(Error::HostNotFound)), "{unknown:?}");
    }
}
