//! How many files the process may have open.

use crate::limits::{CONNECTIONS_MAX, connections_for};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as it may be raised; gives it.
pub fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    // `None` is no limit at all. Where it cannot be raised it stays as it was.
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    now.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Why so many are too few; `None` where they suffice.
pub fn warning(descriptors: usize) -> Option<String> {
    let connections = connections_for(descriptors);
    (connections < CONNECTIONS_MAX).then(|| {
        format!(
            "the limit of open files is {descriptors}, so that no more than {connections} of \
             {CONNECTIONS_MAX} connections are taken; raise it (systemd: LimitNOFILE=32768, shell: \
             ulimit -Hn)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_it_may_be_and_told_where_that_is_low() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let soft = Rlimit { current: Some(200), maximum };
        setrlimit(Resource::Nofile, soft).unwrap();
        assert_eq!(Some(raise() as u64), maximum.or(Some(usize::MAX as u64)));
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(warning(32_768), None, "as packaged");
        let low = warning(1024).unwrap();
        assert!(low.contains("no more than 192 of 4096"), "{low}");
    }
}
