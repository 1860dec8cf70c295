//! Permissions for players, which cannot show a token.

use super::extract::{Failure, Text};
use super::{Answered, Control};
use crate::limits::PLAYER_WITHIN;
use crate::player::{self, NotMade, Secret};
use crate::quotas::Peer;
use crate::scope::shown_name;
use crate::{seat, tokens};
use axum::Json;
use axum::extract::{ConnectInfo, Extension, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use node::Act;
use wire::control as api;
use wire::{Code, Problem};

/// Let a player in a browser read the bytes of a volume, and nothing else, for some minutes: with the
/// cookie of the answer in place of the token, which a player cannot show. On a unix socket, where
/// nothing is shown, there is none.
#[utoipa::path(post, path = "/v1/volumes/{name}/player", tag = "volumes",
    params(("name" = String, Path, description = "The name of the volume")),
    responses(
        (status = 200, description = "The player may read", body = api::PlayerLet),
        (status = 404, description = "No volume has this name", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Any other bad answer", body = Problem,
            content_type = "application/problem+json"),
    ))]
pub(super) async fn player(
    State(control): State<Control>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Text(name): Text,
    Extension(secret): Extension<Secret>,
    address: Uri,
    headers: HeaderMap,
) -> Answered<Response> {
    control.permit(&peer, &name, Act::Read)?;
    let mut answer = Json(api::PlayerLet { seconds: PLAYER_WITHIN.as_secs() }).into_response();
    if peer.scope.is_some() {
        let volume = shown_name(&*control.entry.0, &name);
        let made = player::made(seat::shown(&headers)?, &volume).map_err(not_made)?;
        let cookie =
            player::set(&made, address.path(), secret).ok_or_else(crate::problem::fault)?;
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    let kept = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(header::CACHE_CONTROL, kept);
    Ok(answer)
}

fn not_made(why: NotMade) -> Failure {
    match why {
        NotMade::Malformed(error) => Failure::from(tokens::not_good(error.to_string())),
        NotMade::TooLong(error) => {
            let next = "open the page with a token that was narrowed less often";
            Problem::new(Code::Invalid, error.to_string(), next).into()
        }
    }
}
