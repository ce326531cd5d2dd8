//! The frames of the feed as JSON (`ClientFrame` and `ServerFrame` of `ui/src/api/types/live.ts`).

use crate::api::problem::Problem;
use crate::telemetry::live::Subscribe;
use serde::{Deserialize, Serialize};
use serde_json::Number;

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum ClientFrame {
    Subscribe(Subscribe),
    Ack { id: u64, cursor: u64 },
    Unsubscribe { id: u64 },
    Ping { at: Number },
}

/// Frames besides the deltas, which `telemetry::live` shapes.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ServerFrame<'a> {
    Hello { epoch: &'a str, version: &'a str, now_us: u64 },
    Refused { id: u64, problem: Problem },
    Pong { at: Number },
}

/// Reads a frame. What cannot be read is refused under the id it names, or 0.
pub fn read(text: &str) -> Result<ClientFrame, (u64, Problem)> {
    serde_json::from_str(text).map_err(|error| {
        #[derive(Deserialize)]
        struct Named {
            id: u64,
        }
        let id = serde_json::from_str::<Named>(text).map_or(0, |named| named.id);
        let problem = Problem::invalid(format!("the frame cannot be read: {error}"));
        (id, problem.next("frames are JSON objects with op: subscribe, ack, unsubscribe or ping"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::live::Channel;

    #[test]
    fn frames_are_read_as_the_browser_writes_them() {
        let frame = read(r#"{"op":"subscribe","id":3,"channel":"logs","query":"severity>=warn","cursor":null,"backfill":200}"#);
        let Ok(ClientFrame::Subscribe(wish)) = frame else { panic!("{frame:?}") };
        assert_eq!((wish.id, wish.channel, wish.backfill, wish.cursor), (3, Channel::Logs, Some(200), None));
        assert!(matches!(read(r#"{"op":"ack","id":3,"cursor":17}"#), Ok(ClientFrame::Ack { id: 3, cursor: 17 })));
        assert!(matches!(read(r#"{"op":"unsubscribe","id":3}"#), Ok(ClientFrame::Unsubscribe { id: 3 })));
        let Ok(ClientFrame::Ping { at }) = read(r#"{"op":"ping","at":1732978000123.5}"#) else { panic!("a ping") };
        let pong = serde_json::to_string(&ServerFrame::Pong { at }).expect("plain data");
        assert_eq!(pong, r#"{"kind":"pong","at":1732978000123.5}"#);
    }

    #[test]
    fn a_frame_that_cannot_be_read_is_refused_under_its_id() {
        for (text, id) in [
            ("", 0),
            ("[]", 0),
            ("{\"op\":\"dance\",\"id\":4}", 4),
            (r#"{"op":"subscribe","id":5,"channel":"weather"}"#, 5),
            (r#"{"op":"ack","id":6,"cursor":-1}"#, 6),
            (r#"{"op":"ack","id":"7","cursor":1}"#, 0),
        ] {
            let (named, problem) = read(text).expect_err(text);
            assert_eq!((named, problem.status), (id, 400), "{text}");
        }
    }
}
