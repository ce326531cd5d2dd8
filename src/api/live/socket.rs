//! One socket of the feed from hello to close.

use super::console::Consoles;
use super::frame::{self, ClientFrame, ServerFrame};
use crate::api::context::ApiContext;
use crate::api::problem::Problem;
use crate::kernel::Instant;
use crate::telemetry::live::{Channel, Session, Subscribe, SubscribeError};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Duration;

/// A peer that takes no bytes for this long is gone.
const WRITE_LIMIT: Duration = Duration::from_secs(20);
/// Between two pings of ours; a peer that sent nothing, not even a pong, for four of them is gone.
const PING_EVERY: Duration = Duration::from_secs(5);
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Frames that cannot be understood, before the socket is closed: a program that sends rubbish does not learn from refusals.
const REFUSALS_MAX: u32 = 100;

struct Feed {
    socket: WebSocket,
    context: ApiContext,
    session: Session,
    consoles: Consoles,
    refusals: u32,
    heard: Instant,
}

/// Why the loop ends.
enum End {
    /// The peer closed, or the transport failed: nobody is left to tell.
    Gone,
    Close(u16, &'static str),
}

type Flow = ControlFlow<End>;

pub async fn run(socket: WebSocket, context: ApiContext) {
    let session = context.sources.telemetry.live().session();
    let heard = context.clock.now();
    let mut feed = Feed { socket, context, session, consoles: Consoles::default(), refusals: 0, heard };
    let ControlFlow::Break(end) = feed.talk().await else { return };
    if let End::Close(code, reason) = end {
        let close = Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }));
        let _ = tokio::time::timeout(Duration::from_secs(1), feed.socket.send(close)).await;
    }
}

impl Feed {
    async fn talk(&mut self) -> Flow {
        let epoch = self.context.epoch.clone();
        let now_us = self.context.clock.unix_nanos() / 1_000;
        self.send(&ServerFrame::Hello { epoch: &epoch, version: env!("CARGO_PKG_VERSION"), now_us }).await?;
        let drain = self.context.drain.clone();
        let mut ping = tokio::time::interval(PING_EVERY);
        ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.send_deltas().await?;
            tokio::select! {
                message = self.socket.recv() => self.on_message(message).await?,
                () = self.session.ready() => {}
                () = self.consoles.ready() => {}
                _ = ping.tick() => self.ping().await?,
                () = drain.begun() => return Flow::Break(End::Close(close_code::AWAY, "reactor is stopping")),
            }
        }
    }

    /// At most one delta a subscription can be due: each waits for its acknowledgement.
    async fn send_deltas(&mut self) -> Flow {
        while let Some(delta) = self.session.poll(self.context.clock.now()) {
            self.send(&delta).await?;
        }
        while let Some(rows) = self.consoles.poll() {
            self.send(&rows).await?;
        }
        Flow::Continue(())
    }

    async fn on_message(&mut self, message: Option<Result<Message, axum::Error>>) -> Flow {
        let message = match message {
            None => return Flow::Break(End::Gone),
            Some(Err(error)) => {
                tracing::debug!(%error, "live socket ended");
                return Flow::Break(failure(&error));
            }
            Some(Ok(message)) => message,
        };
        self.heard = self.context.clock.now();
        match message {
            Message::Text(text) => match frame::read(&text) {
                Ok(frame) => self.on_frame(frame).await,
                Err((id, problem)) => self.refuse(id, problem).await,
            },
            Message::Binary(_) => self.refuse(0, Problem::invalid("frames are text, this one is binary")).await,
            // Pings are answered by the library.
            Message::Ping(_) | Message::Pong(_) => Flow::Continue(()),
            Message::Close(_) => Flow::Break(End::Gone),
        }
    }

    async fn on_frame(&mut self, frame: ClientFrame) -> Flow {
        match frame {
            ClientFrame::Subscribe(wish) => {
                let id = wish.id;
                match self.subscribe(wish) {
                    Ok(()) => Flow::Continue(()),
                    Err(problem) => self.refuse(id, problem).await,
                }
            }
            ClientFrame::Ack { id, cursor } => {
                self.consoles.ack(id, cursor);
                self.session.ack(id, cursor);
                Flow::Continue(())
            }
            ClientFrame::Unsubscribe { id } => {
                if !self.consoles.unsubscribe(id) {
                    self.session.unsubscribe(id);
                }
                Flow::Continue(())
            }
            ClientFrame::Ping { at } => self.send(&ServerFrame::Pong { at }).await,
        }
    }

    /// An id that is taken is given to the new wish, whichever kind the old one was.
    fn subscribe(&mut self, wish: Subscribe) -> Result<(), Problem> {
        self.consoles.unsubscribe(wish.id);
        if wish.channel == Channel::Console {
            self.session.unsubscribe(wish.id);
            return self.consoles.subscribe(&wish, &self.context.sources);
        }
        let channel = wish.channel;
        self.session.subscribe(wish).map_err(|error| match error {
            SubscribeError::Query(error) => Problem::invalid(error.what).next(error.next).at(error.position),
            SubscribeError::Refused(refusal) => refusal.into(),
        })?;
        // Nobody made the values while nobody watched: the first delta must be whole all the same.
        self.context.sources.fill(channel);
        Ok(())
    }

    async fn refuse(&mut self, id: u64, problem: Problem) -> Flow {
        self.refusals += 1;
        self.send(&ServerFrame::Refused { id, problem }).await?;
        if self.refusals >= REFUSALS_MAX {
            return Flow::Break(End::Close(close_code::POLICY, "too many frames that cannot be understood"));
        }
        Flow::Continue(())
    }

    async fn ping(&mut self) -> Flow {
        if self.context.clock.now().since(self.heard) >= SILENCE_MAX {
            return Flow::Break(End::Close(close_code::AWAY, "no sign of life"));
        }
        self.write(Message::Ping(bytes::Bytes::new())).await
    }

    async fn send(&mut self, frame: &impl Serialize) -> Flow {
        let text = serde_json::to_string(frame).expect("frames are plain data with text keys");
        self.write(Message::Text(text.into())).await
    }

    async fn write(&mut self, message: Message) -> Flow {
        match tokio::time::timeout(WRITE_LIMIT, self.socket.send(message)).await {
            Ok(Ok(())) => Flow::Continue(()),
            Ok(Err(_)) | Err(_) => Flow::Break(End::Gone),
        }
    }
}

/// Too long a frame is said to the peer; other failures leave nobody to say it to.
fn failure(error: &axum::Error) -> End {
    let text = error.to_string().to_ascii_lowercase();
    if text.contains("too long") || text.contains("too big") {
        End::Close(close_code::SIZE, "frames are at most 64 KiB")
    } else {
        End::Gone
    }
}
