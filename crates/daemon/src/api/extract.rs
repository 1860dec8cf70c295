//! What comes in from a request, and how a problem goes out: axum's own
//! rejections are turned into [`Problem`]s, so that there is one kind of error.

use crate::limits::CONTROL_BODY_WITHIN;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use node::{Op, Operation, Reply};
use serde::de::DeserializeOwned;
use wire::control::PROBLEM_TYPE;
use wire::{Code, Problem};

/// A bad answer.
pub struct Failure(Box<Problem>);

impl Failure {
    /// Of what kind it is.
    pub fn code(&self) -> Code {
        self.0.code
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<Box<Problem>> for Failure {
    fn from(problem: Box<Problem>) -> Self {
        Self(problem)
    }
}

impl From<node::Error> for Failure {
    fn from(error: node::Error) -> Self {
        crate::problem::of(&error).into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).expect("codes carry a valid status");
        let mut response = (status, Json(&*self.0)).into_response();
        let kind = HeaderValue::from_static(PROBLEM_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

/// A JSON body.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let read = Json::from_request(request, state);
        match tokio::time::timeout(CONTROL_BODY_WITHIN, read).await {
            Ok(read) => read.map(|Json(value)| Self(value)).map_err(bad_body),
            Err(_) => Err(late_body()),
        }
    }
}

fn late_body() -> Failure {
    let detail = format!("the body did not come within {} s", CONTROL_BODY_WITHIN.as_secs());
    Problem::new(Code::BadRequest, detail, "send as many bytes as content-length says").into()
}

fn bad_body(rejection: JsonRejection) -> Failure {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        _ => Code::BadRequest,
    };
    let next_step = match rejection {
        JsonRejection::MissingJsonContentType(_) => "send `content-type: application/json`",
        _ => "GET /v1/openapi.json tells what the request looks like",
    };
    Problem::new(code, rejection.body_text(), next_step).into()
}

/// The part of the path that is a name.
pub struct Text(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Text {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Path(text) = Path::from_request_parts(parts, state)
            .await
            .map_err(|rejection| bad_address(rejection.body_text()))?;
        Ok(Self(text))
    }
}

/// Whether a change is answered when everybody sees it, before it is durable: `?staged=true`.
#[derive(Clone, Copy, Default)]
pub struct Staged(bool);

impl Staged {
    /// The operation that is asked of the pool for it.
    pub fn op<O: Operation>(self, op: O) -> AsStaged<O> {
        AsStaged { op, is_staged: self.0 }
    }
}

/// An operation that may be [`Op::Staged`], answered as it is in any case.
pub struct AsStaged<O> {
    op: O,
    is_staged: bool,
}

impl<O: Operation> From<AsStaged<O>> for Op {
    fn from(AsStaged { op, is_staged }: AsStaged<O>) -> Self {
        if is_staged { Self::Staged(Box::new(op.into())) } else { op.into() }
    }
}

impl<O: Operation> Operation for AsStaged<O> {
    type Answer<B, R, W> = O::Answer<B, R, W>;

    fn answer<B, R, W>(reply: Reply<B, R, W>) -> Self::Answer<B, R, W> {
        O::answer(reply)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Staged {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        match parts.uri.query() {
            None | Some("" | "staged=false") => Ok(Self(false)),
            Some("staged=true") => Ok(Self(true)),
            Some(other) => Err(bad_address(format!("\"?{other}\" asks for nothing there is"))),
        }
    }
}

/// How a volume is removed: answered as [`Staged`], and, where a number is given, no other volume
/// than the one that has it.
pub struct Removal {
    /// When it is answered.
    pub staged: Staged,
    /// `only=NUMBER`.
    pub only: Option<u64>,
    /// `keep_directory=true`.
    pub keep_directory: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Removal {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let mut asked = Self { staged: Staged(false), only: None, keep_directory: false };
        let query = parts.uri.query().unwrap_or_default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("staged", is @ ("true" | "false"))) => asked.staged.0 = is == "true",
                Some(("keep_directory", is @ ("true" | "false"))) => {
                    asked.keep_directory = is == "true";
                }
                Some(("only", number)) if let Ok(number) = number.parse() => {
                    asked.only = Some(number);
                }
                _ => return Err(bad_address(format!("\"?{part}\" asks for nothing there is"))),
            }
        }
        Ok(asked)
    }
}

/// The part of the path that is a number.
pub struct Number(pub u64);

impl<S: Send + Sync> FromRequestParts<S> for Number {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Text(text) = Text::from_request_parts(parts, state).await?;
        let number = text.parse().map_err(|_| bad_address(format!("\"{text}\" is no number")))?;
        Ok(Self(number))
    }
}

/// The parts of the path that are a volume's name and the number of a handle on it.
pub struct VolumeAndHandle(pub String, pub u64);

impl<S: Send + Sync> FromRequestParts<S> for VolumeAndHandle {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Path((name, handle)) = Path::from_request_parts(parts, state)
            .await
            .map_err(|rejection| bad_address(rejection.body_text()))?;
        Ok(Self(name, handle))
    }
}

fn bad_address(detail: String) -> Failure {
    let next_step = "GET /v1/openapi.json tells what the address looks like";
    Problem::new(Code::BadRequest, detail, next_step).into()
}
