//! Requests over HTTP that show a token: each address with its verb, and what it is about.
//!
//! Invariants: an address that is not in [`need`] is for nobody who shows a token; what a request
//! names in its body is held to the token where it is read (`api`).

use crate::api::{Control, Failure};
use crate::problem::fault;
use crate::quotas::Peer;
use crate::scope::{NEXT, permitted, refused, shown_name};
use axum::RequestExt;
use axum::extract::{ConnectInfo, MatchedPath, Path, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use node::StreamId;
use std::collections::HashMap;
use token::{Asked, Verb};
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
        ("GET", "/v1/overview" | "/v1/history" | "/v1/events" | "/v1/recordings") => (Read, Shown),
        ("GET", "/v1/quota" | "/v1/files") => (Read, Pool),
        ("POST", "/v1/plan" | "/v1/entries" | "/v1/file") => (Read, Pool),
        ("GET", "/v1/volumes/{name}" | "/v1/volumes/{name}/data") => (Read, Volume),
        ("GET", "/v1/volumes/{name}/recorded") => (Read, Volume),
        ("POST", "/v1/volumes/{name}/block" | "/v1/volumes/{name}/player") => (Read, Volume),
        ("PUT", "/v1/volumes/{name}/data" | "/v1/volumes/{name}/times") => (Write, Volume),
        ("PATCH", "/v1/volumes/{name}") => (Write, Volume),
        ("POST", "/v1/sync") => (Write, Shown),
        ("POST", "/v1/volumes") => (Create, Shown),
        ("DELETE", "/v1/volumes/{name}") => (Create, Volume),
        ("POST", "/v1/volumes/{name}/rename") => (Manage, Volume),
        ("PUT", "/v1/volumes/{name}/access" | "/v1/volumes/{name}/service") => (Manage, Volume),
        ("PUT", "/v1/volumes/{name}/keep") => (Manage, Volume),
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
        return Err(fault().into());
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
            parts.remove(part).ok_or_else(fault)?
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

    /// What no token will do: streams have their bytes on a unix socket, a copy is made of two volumes,
    /// and a token makes none.
    const ON_THIS_MACHINE: [(&str, &str); 5] = [
        ("POST", "/v1/streams"),
        ("PUT", "/v1/volumes/{name}/recorded"),
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
