//! The open-file limit: a broker lives on sockets, and the soft limit of a login shell is a thousand.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one and returns what was reached; `None` is no limit.
pub fn raise_open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        return current;
    }
    getrlimit(Resource::Nofile).current
}
