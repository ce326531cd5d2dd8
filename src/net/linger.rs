//! The end of an HTTP connection whose peer may still be sending: an unread byte at close resets the connection, and the reset
//! takes away the answer that the peer has not read yet. So our side ends first, and what still comes is read away for a while.

use crate::kernel::limit::{HTTP_LINGER_BYTES_MAX, HTTP_LINGER_MS_MAX};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Shuts a stream down, once.
#[derive(Debug, Default)]
pub struct Linger(State);

#[derive(Debug, Default)]
enum State {
    #[default]
    Open,
    Draining {
        bytes: usize,
        until: Pin<Box<Sleep>>,
    },
    Done,
}

impl Linger {
    pub fn poll_shutdown<S>(&mut self, stream: &mut S, may_be_sending: bool, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if let State::Open = self.0 {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
            self.0 = match may_be_sending {
                true => {
                    let until = Box::pin(tokio::time::sleep(Duration::from_millis(HTTP_LINGER_MS_MAX)));
                    State::Draining { bytes: 0, until }
                }
                false => State::Done,
            };
        }
        let mut space = [0; 8 * 1024];
        while let State::Draining { bytes, until } = &mut self.0 {
            if *bytes > HTTP_LINGER_BYTES_MAX || until.as_mut().poll(cx).is_ready() {
                self.0 = State::Done;
                break;
            }
            let mut rest = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut *stream).poll_read(cx, &mut rest)) {
                Ok(()) if !rest.filled().is_empty() => *bytes += rest.filled().len(),
                Ok(()) | Err(_) => self.0 = State::Done,
            }
        }
        Poll::Ready(Ok(()))
    }
}
