//! Who may ask at all: decided on a request's head alone, before anything else is done with it.
//!
//! In this order: what HTTP forbids or what may be read in two ways (400, 411), a foreign `Host` or `Origin` (403), the
//! token (401). A page in a browser that was led here by a name of its own shows in both `Host` and `Origin`.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};

use super::super::Token;
use crate::wire::{Problem, ProblemKind};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Checks heads of requests.
pub(super) struct Guard {
    /// `host:port` of ours.
    authorities: Vec<String>,
    token: Token,
}

impl Guard {
    pub(super) fn new(port: u16, token: Token) -> Self {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        Self {
            authorities: names.map(|name| format!("{name}:{port}")).to_vec(),
            token,
        }
    }

    /// Whether the request may pass.
    pub(super) fn check(&self, head: &Parts) -> Result<(), Box<Problem>> {
        if head.uri.authority().is_some() || head.uri.scheme().is_some() {
            let words = "the request names a host in its target: write its path alone";
            return Err(problem(ProblemKind::BadRequest, words));
        }
        let host = one(&head.headers, &header::HOST)?;
        let Some(host) = host else {
            let words = "the request has no `Host`: write one";
            return Err(problem(ProblemKind::BadRequest, words));
        };
        if !self.is_ours(host) {
            let words =
                "`Host` is not this gateway's own: ask it by 127.0.0.1, localhost or [::1] and its port";
            return Err(problem(ProblemKind::Forbidden, words));
        }
        let origin = one(&head.headers, &header::ORIGIN).map_err(|_| foreign())?;
        if origin.is_some_and(|origin| !self.is_our_origin(origin)) {
            return Err(foreign());
        }
        // A browser says so itself: a page of another site asks.
        let mut sites = head.headers.get_all(SEC_FETCH_SITE).iter();
        if sites.any(|site| site != "same-origin" && site != "none") {
            return Err(foreign());
        }
        if !self.has_token(&head.headers) {
            let words = "write the token into the one header `Authorization: Bearer …`";
            return Err(problem(ProblemKind::Unauthorized, words));
        }
        // With a length besides it may be read in two ways, and hyper shows but one of both.
        if head.headers.contains_key(header::TRANSFER_ENCODING) {
            let words = "the body has no length: write `Content-Length`";
            return Err(problem(ProblemKind::LengthRequired, words));
        }
        Ok(())
    }

    fn is_ours(&self, host: &[u8]) -> bool {
        self.authorities
            .iter()
            .any(|ours| ours.as_bytes().eq_ignore_ascii_case(host))
    }

    fn is_our_origin(&self, origin: &[u8]) -> bool {
        let scheme = origin.get(..7).unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"http://") && self.is_ours(&origin[7..])
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let mut told = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(only), None) = (told.next(), told.next()) else {
            return false;
        };
        only.as_bytes()
            .split_at_checked(7)
            .is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case(b"Bearer ") && self.token.is(token))
    }
}

fn problem(kind: ProblemKind, words: impl Into<String>) -> Box<Problem> {
    Box::new(kind.document(words))
}

fn foreign() -> Box<Problem> {
    let words = "`Origin` is not this gateway's own: pages of other sites may not ask it";
    problem(ProblemKind::Forbidden, words)
}

/// The value of a header that is there once at most.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Box<Problem>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        let words = format!("the request has more than one `{name}`: write it once");
        return Err(problem(ProblemKind::BadRequest, words));
    }
    Ok(first.map(|value| value.as_bytes()))
}

#[cfg(test)]
mod tests;
