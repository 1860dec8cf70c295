//! What a token lets its holder do over HTTP: each address with its verb, and what it is about.
//!
//! Invariants: an address that is not in [`need`] is for nobody who shows a token; what a request
//! names in its body is held to the token where it is read (`api`). All of this comes before what
//! the pool itself permits the token's user, which is asked as for everybody.

use crate::api::{Control, Failure};
use crate::pool::Pool;
use crate::quotas::Peer;
use axum::RequestExt;
use axum::extract::{ConnectInfo, MatchedPath, Path, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use node::{Service, StreamId};
use std::collections::HashMap;
use token::{Asked, Grant, Refusal, Verb};
use units::Rate;
use wire::{Code, Problem};

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// The volume that the address names, or a directory.
    Volume,
    /// The volume of the stream that the address names.
    Stream,
    /// What the answer shows is held to the token's volumes, or the body names them.
    Shown,
    /// The pool: only with all volumes.
    Pool,
}

/// What a token must have for a request; none where no token will do.
fn need(method: &Method, address: &str) -> Option<(Verb, About)> {
    use About::{Pool, Shown, Stream, Volume};
    use Verb::{Create, Manage, Read, Write};
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    Some(match (method, address) {
        ("GET", "/v1/health" | "/v1/openapi.json" | "/v1/status" | "/metrics") => (Read, Shown),
        ("GET", "/v1/policy" | "/v1/volumes" | "/v1/streams" | "/v1/streams/{id}") => (Read, Shown),
        ("GET", "/v1/quota" | "/v1/files") => (Read, Pool),
        ("POST", "/v1/plan" | "/v1/entries" | "/v1/file") => (Read, Pool),
        ("GET", "/v1/volumes/{name}" | "/v1/volumes/{name}/data") => (Read, Volume),
        ("POST", "/v1/volumes/{name}/block") => (Read, Volume),
        ("PUT", "/v1/volumes/{name}/data" | "/v1/volumes/{name}/times") => (Write, Volume),
        ("PATCH", "/v1/volumes/{name}") => (Write, Volume),
        ("POST", "/v1/sync") => (Write, Shown),
        ("POST", "/v1/volumes") => (Create, Shown),
        ("DELETE", "/v1/volumes/{name}") => (Create, Volume),
        ("POST", "/v1/volumes/{name}/rename") => (Manage, Volume),
        ("PUT", "/v1/volumes/{name}/access" | "/v1/volumes/{name}/service") => (Manage, Volume),
        ("DELETE", "/v1/volumes/{name}/handles/{handle}") => (Manage, Volume),
        ("PATCH" | "DELETE", "/v1/streams/{id}") => (Manage, Stream),
        ("PUT", "/v1/policy" | "/v1/bus" | "/v1/disks/{disk}/profile") => (Manage, Pool),
        ("POST", "/v1/disks/{disk}/reprofile") => (Manage, Pool),
        _ => return None,
    })
}

/// Holds a request to the token that was shown with it.
pub async fn hold(State(control): State<Control>, mut request: Request, next: Next) -> Response {
    match held(&control, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

async fn held(control: &Control, request: &mut Request) -> Result<(), Failure> {
    let peer = request.extensions().get::<ConnectInfo<Peer>>().cloned();
    let grant = peer.and_then(|ConnectInfo(peer)| peer.scope);
    let Some(grant) = grant else {
        // The door has let nobody in without one.
        return Err(crate::api::fault().into());
    };
    let Some(address) = request.extensions().get::<MatchedPath>().cloned() else {
        return Ok(()); // there is nothing at this address, which is said behind
    };
    let Some((verb, about)) = need(request.method(), address.as_str()) else {
        return Err(not_by_token(request.method(), address.as_str()).into());
    };
    grant.has(verb).map_err(|refusal| refused(&refusal))?;
    let part = match about {
        About::Shown => return Ok(()),
        About::Pool => {
            let asked = Asked { verb, volume: None };
            return Ok(grant.permits(asked).map_err(|refusal| refused(&refusal))?);
        }
        About::Volume | About::Stream => {
            let parts = request.extract_parts::<Path<HashMap<String, String>>>().await;
            let Path(mut parts) = parts.map_err(|error| bad_address(error.body_text()))?;
            let part = if about == About::Volume { "name" } else { "id" };
            parts.remove(part).ok_or_else(crate::api::fault)?
        }
    };
    let pool = &*control.entry.0;
    let permitted = match about {
        About::Stream => {
            let stream = part.parse().ok().and_then(|id| pool.stream(StreamId(id)));
            // One that is not there is not told from one that is not for this token.
            stream.is_some_and(|stream| grant.names(&shown_name(pool, &stream.volume)))
        }
        _ => return Ok(permitted(&grant, pool, verb, &part)?),
    };
    match permitted {
        true => Ok(()),
        false => {
            let what = format!("no stream {part} is on a volume that the token is for");
            Err(Problem::new(Code::TokenScope, what, NEXT).into())
        }
    }
}

/// What a volume is called by everybody, whatever it was asked for by.
fn shown_name(pool: &dyn Pool, name: &str) -> String {
    pool.volume(name).map_or_else(|| name.to_owned(), |volume| volume.name)
}

/// Whether a grant lets somebody do this with what is known by this name. A refusal has the name
/// that was given: by its number a volume does not tell its name.
///
/// # Errors
/// It does not.
pub fn permits(grant: &Grant, pool: &dyn Pool, verb: Verb, name: &str) -> Result<(), Refusal> {
    let shown = shown_name(pool, name);
    grant.permits(Asked { verb, volume: Some(&shown) }).map_err(|refusal| match refusal {
        Refusal::Volume(_) => Refusal::Volume(name.to_owned()),
        other => other,
    })
}

fn permitted(grant: &Grant, pool: &dyn Pool, verb: Verb, name: &str) -> Result<(), Box<Problem>> {
    permits(grant, pool, verb, name).map_err(|refusal| refused(&refusal))
}

/// Refuses what the token that a peer has shown does not let him do with a volume.
///
/// # Errors
/// Which of its restrictions does not.
pub fn permit(peer: &Peer, pool: &dyn Pool, verb: Verb, name: &str) -> Result<(), Box<Problem>> {
    peer.scope.as_deref().map_or(Ok(()), |grant| permitted(grant, pool, verb, name))
}

/// The same of a rename: whatever lies under a directory goes with it.
///
/// # Errors
/// As above.
pub fn permit_rename(
    peer: &Peer,
    pool: &dyn Pool,
    name: &str,
    others: &[&str],
) -> Result<(), Box<Problem>> {
    let Some(grant) = peer.scope.as_deref() else { return Ok(()) };
    for other in others {
        permitted(grant, pool, Verb::Manage, other)?;
    }
    if grant.is_for_all() {
        return Ok(());
    }
    // What is there of it may be a directory, also where a volume has the same name.
    for directory in [name].iter().chain(others) {
        let under = format!("{}/", shown_name(pool, directory));
        let outside = |(found, _): &(String, _)| found.starts_with(&under) && !grant.names(found);
        if pool.names().iter().any(outside) {
            return Err(refused(&Refusal::Volume(format!("{directory}/..."))));
        }
    }
    Ok(())
}

/// Refuses a contract that is larger than the token that a peer has shown.
///
/// # Errors
/// It is.
pub fn promise(peer: &Peer, rate: Rate) -> Result<(), Box<Problem>> {
    let promised = peer.scope.as_deref().map_or(Ok(()), |grant| grant.promises(rate));
    promised.map_err(|refusal| refused(&refusal))
}

/// The same of a contract for a volume.
///
/// # Errors
/// As above; and for answers in time, which have no rate to hold against the token's.
pub fn promise_service(peer: &Peer, service: &Service) -> Result<(), Box<Problem>> {
    match (service, peer.scope.as_deref().and_then(Grant::rate_max)) {
        (Service::BestEffort(_), _) | (_, None) => Ok(()),
        (Service::Rate { rate, .. }, _) => promise(peer, *rate),
        (Service::Latency { .. }, Some(most)) => {
            let what = format!(
                "the token is for contracts of at most {most}, and one of answers in time has no \
                 such number"
            );
            Err(Box::new(Problem::new(Code::TokenScope, what, NEXT)))
        }
    }
}

const NEXT: &str =
    "`slackline token show` says what a token lets you do; ask who made it for another";

/// What is said to who asks for more than his token has.
pub fn refused(refusal: &Refusal) -> Box<Problem> {
    let code = match refusal {
        Refusal::Expired { .. } => Code::NoToken,
        _ => Code::TokenScope,
    };
    Box::new(Problem::new(code, refusal.to_string(), NEXT))
}

fn not_by_token(method: &Method, address: &str) -> Problem {
    let what = format!("{method} {address} is for those on this machine, and for no token");
    let next = "ask over the daemon's unix socket";
    Problem::new(Code::TokenScope, what, next)
}

fn bad_address(what: String) -> Problem {
    Problem::new(Code::BadRequest, what, "GET /v1/openapi.json tells what the address looks like")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What no token will do: streams have their bytes on a unix socket, and a token makes none.
    const ON_THIS_MACHINE: [(&str, &str); 4] = [
        ("POST", "/v1/streams"),
        ("GET", "/v1/tokens"),
        ("POST", "/v1/tokens"),
        ("DELETE", "/v1/tokens/{number}"),
    ];

    /// A new address is decided upon, and one that is gone is forgotten.
    #[test]
    fn every_address_has_its_verb_or_is_for_no_token() {
        let document: serde_json::Value =
            serde_json::from_str(&crate::routes::openapi_json()).unwrap();
        let mut undecided = Vec::new();
        for (address, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                let method = method.to_uppercase();
                if !["GET", "PUT", "POST", "PATCH", "DELETE"].contains(&&*method) {
                    continue;
                }
                let known = need(&method.parse().unwrap(), address).is_some();
                if known == ON_THIS_MACHINE.contains(&(&method, address)) {
                    undecided.push(format!("{method} {address}"));
                }
            }
        }
        assert!(undecided.is_empty(), "{undecided:?}");
    }
}
