use axum::http::Request;
use proptest::prelude::*;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn verdict(lines: &[(&str, &str)]) -> Result<(), u16> {
    let guard = Guard::new(7433, Token::new(TOKEN));
    let mut request = Request::get("/api/status");
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    guard.check(&head).map_err(|problem| problem.status)
}

/// D1–D4: what is wrong first is what is told; the token is looked at last.
#[test]
fn d4_a_foreign_page_is_refused_before_the_token_is_looked_at() {
    let bearer = format!("Bearer {TOKEN}");
    let (host, token) = (("host", "127.0.0.1:7433"), ("authorization", bearer.as_str()));
    assert_eq!(verdict(&[host, token]), Ok(()));
    assert_eq!(verdict(&[token]), Err(400));
    assert_eq!(verdict(&[host]), Err(401));
    assert_eq!(verdict(&[("host", "evil.example")]), Err(403));
    assert_eq!(verdict(&[host, ("origin", "http://evil.example")]), Err(403));
    assert_eq!(verdict(&[host, ("sec-fetch-site", "cross-site")]), Err(403));
    assert_eq!(verdict(&[host, token, ("sec-fetch-site", "none")]), Ok(()));
    assert_eq!(
        verdict(&[host, token, ("transfer-encoding", "chunked")]),
        Err(411)
    );
}

proptest! {
    /// Only our own names pass, whatever stands there.
    #[test]
    fn no_other_host_passes(host in "[ -~]{0,30}", origin in "[ -~]{0,40}") {
        let bearer = format!("Bearer {TOKEN}");
        let ours = ["127.0.0.1:7433", "localhost:7433", "[::1]:7433"];
        let is_ours = |name: &str| ours.iter().any(|own| own.eq_ignore_ascii_case(name));
        let token = ("authorization", bearer.as_str());
        prop_assert_eq!(verdict(&[("host", &host), token]).is_ok(), is_ours(&host));
        let is_own = origin.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"))
            && is_ours(&origin[7..]);
        prop_assert_eq!(verdict(&[("host", ours[0]), ("origin", &origin), token]).is_ok(), is_own);
    }

    /// D8: only the token passes.
    #[test]
    fn d8_no_other_token_passes(told in "[ -~]{0,40}") {
        let header = format!("Bearer {told}");
        let passes = verdict(&[("host", "localhost:7433"), ("authorization", &header)]).is_ok();
        prop_assert_eq!(passes, told == TOKEN);
    }
}
