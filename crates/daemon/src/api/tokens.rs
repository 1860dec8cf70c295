//! Tokens, made, listed and revoked by whoever is on this machine.

use super::extract::{Body, Failure, Number};
use super::{Answered, Control};
use crate::problem::fault;
use crate::quotas::Peer;
use crate::tokens::Kept;
use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use token::{Names, Restriction, UNTIL_MAX, Verb, Verbs};
use wire::control as api;
use wire::{Code, Problem};

/// List the asker's tokens that are neither revoked nor over; an administrator's list has
/// everybody's.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens", responses(
    (status = 200, description = "What is known of them: not the tokens themselves",
        body = api::Tokens),
    (status = "default", description = "Any bad answer", body = Problem,
        content_type = "application/problem+json"),
))]
pub(super) async fn token_list(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
) -> Answered<Json<api::Tokens>> {
    let all = apart(control.clone(), |control| control.tokens.list()).await?;
    let is_administrator = control.quotas.is_administrator(&peer);
    let shown = all.into_iter().filter(|token| is_administrator || token.uid == peer.uid);
    Ok(Json(api::Tokens { tokens: shown.map(|token| facts(&control, token)).collect() }))
}

/// Make a token that acts as the asker, with less than he may where the request says so.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens", request_body = api::TokenMake,
    responses(
        (status = 201, description = "The token, which is shown this once", body = api::TokenMade),
        (status = 400, description = "It cannot say that", body = Problem,
            content_type = "application/problem+json"),
        (status = 409, description = "The asker has as many as he may have", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn token_make(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Body(request): Body<api::TokenMake>,
) -> Answered<Response> {
    let restrictions = restrictions(request)?;
    let made = apart(control.clone(), move |control| control.tokens.make(&peer, restrictions));
    let (token, kept) = made.await?;
    let made = api::TokenMade { token: token.reveal(), facts: facts(&control, kept) };
    let mut response = (StatusCode::CREATED, Json(made)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Revoke a token, and all that were narrowed from it: at once, and for connections that are open.
#[utoipa::path(delete, path = "/v1/tokens/{number}", tag = "tokens",
    params(("number" = u64, Path, description = "The number of the token")),
    responses(
        (status = 204, description = "It is good for nothing any more, durably"),
        (status = 403, description = "It is another user's", body = Problem,
            content_type = "application/problem+json"),
        (status = 404, description = "No token of this number is good", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn token_revoke(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Number(number): Number,
) -> Answered<StatusCode> {
    let revoked = apart(control, move |control| {
        control.tokens.revoke(number, |kept| {
            let owner = Peer { uid: kept.uid, ..peer.clone() };
            control.quotas.owns(&peer, &owner, &format!("token {number}"))
        })
    });
    revoked.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Does what waits for the disk that the list is on, in its turn. Once it has begun it is done, also
/// where the asker goes.
async fn apart<T: Send + 'static>(
    control: Control,
    work: impl FnOnce(&Control) -> Result<T, Box<Problem>> + Send + 'static,
) -> Result<T, Failure> {
    let tokens = Arc::clone(&control.tokens);
    let done = tokens.apart(move || work(&control)).await;
    Ok(done.map_err(|_| Failure::from(fault()))??)
}

fn facts(control: &Control, kept: Kept) -> api::TokenFacts {
    let Kept { number, uid, until: until_seconds, restrictions, .. } = kept;
    let user = control.quotas.user_name(uid);
    api::TokenFacts { number, user, restrictions, until_seconds }
}

/// What a request says, as a token says it.
fn restrictions(request: api::TokenMake) -> Result<Vec<Restriction>, Failure> {
    let api::TokenMake { volumes, prefixes, verbs, rate_max_bytes_per_second, until_seconds } =
        request;
    let bad = |what: String| Failure::from(Problem::new(Code::Invalid, what, NEXT));
    let names: Vec<Names> = volumes
        .into_iter()
        .map(Names::One)
        .chain(prefixes.into_iter().map(Names::Beginning))
        .collect();
    if let Some(unsound) = names.iter().find(|names| !names.is_sound()) {
        return Err(bad(format!("{unsound} is no name of a volume, nor does one begin so")));
    }
    if let Some(until) = until_seconds.filter(|&until| until > UNTIL_MAX) {
        return Err(bad(format!("a token cannot be good until second {until}")));
    }
    let verbs = Verbs::of(verbs.into_iter().map(|verb| match verb {
        api::TokenVerb::Read => Verb::Read,
        api::TokenVerb::Write => Verb::Write,
        api::TokenVerb::Create => Verb::Create,
        api::TokenVerb::Manage => Verb::Manage,
    }));
    let all = [
        (!names.is_empty()).then_some(Restriction::Volumes(names)),
        verbs.map(Restriction::Verbs),
        rate_max_bytes_per_second.map(Restriction::RateMax),
        until_seconds.map(Restriction::Until),
    ];
    Ok(all.into_iter().flatten().collect())
}

const NEXT: &str = "correct it; `slackline token make --help` says what a token can say";
