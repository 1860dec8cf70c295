//! The tests of this crate, but for those that need a process of their own: one program is
//! built and linked in a fraction of the time that one for each file takes.

#[path = "support/http.rs"]
mod http;
#[path = "../../slackline/tests/nbd/client.rs"]
#[allow(dead_code)]
mod nbd;
#[path = "support/real.rs"]
mod real;
#[path = "support/schema.rs"]
mod schema;
mod support;
#[path = "support/users.rs"]
mod users;

mod best_effort;
mod extremes;
mod failing;
mod files;
mod files_beside_others;
mod hanging;
mod hanging_disk;
mod hung_up;
mod metrics;
mod openapi;
mod owners;
mod page;
mod quotas;
mod streams;
mod unattached;
mod waits;
mod windows;
