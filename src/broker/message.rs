//! A publisher's run: consecutive messages with one route, on their way into queues, and what rare messages carry beside their
//! record.

use super::call::CallState;
use super::record::Record;
use super::trace::Beside;
use crate::kernel::Instant;
use bytes::Bytes;
use std::sync::Arc;

/// Where one message of a run lies in the run's segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    pub at: u32,
    pub len: u32,
    pub key_len: u16,
    /// An [`Extra`] of the run belongs to it.
    pub extra: bool,
}

/// What most messages do not have.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    /// A large body, by reference.
    pub body: Option<Bytes>,
    pub expires_at: Option<Instant>,
    /// The trace it belongs to, if that is recorded.
    pub trace: Option<Beside>,
    /// The call that waits for its reply.
    pub call: Option<Arc<CallState>>,
    /// How often it was returned to its quorum queue.
    pub returns: u32,
}

impl Extra {
    // HOT
    #[inline]
    pub fn is_something(&self) -> bool {
        self.body.is_some() || self.expires_at.is_some() || self.trace.is_some() || self.call.is_some() || self.returns > 0
    }

    pub fn body_len(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.len() as u64)
    }
}

/// Messages that go to the same queues, in order.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub segment: &'a Bytes,
    pub metas: &'a [Meta],
    /// By index into `metas`, ascending.
    pub extras: &'a [(u32, Extra)],
    /// Index of `metas[0]` as `extras` counts.
    pub first: u32,
    pub now: Instant,
}

impl Run<'_> {
    pub fn extras(&self) -> impl Iterator<Item = (usize, &Extra)> {
        let (first, end) = (self.first, self.first + self.metas.len() as u32);
        let start = self.extras.partition_point(|(at, _)| *at < first);
        self.extras[start..].iter().take_while(move |(at, _)| *at < end).map(move |(at, extra)| ((at - first) as usize, extra))
    }

    /// Where its records lie.
    pub fn addresses(&self) -> impl Iterator<Item = usize> + '_ {
        self.metas.iter().map(|meta| self.segment[meta.at as usize..].as_ptr() as usize)
    }

    /// Its bodies, in bytes.
    pub fn body_bytes(&self) -> u64 {
        let inline = |meta: &Meta| {
            let record = &self.segment[meta.at as usize..(meta.at + meta.len) as usize];
            Record::new(record, meta.key_len).inline_body().len() as u64
        };
        self.metas.iter().map(inline).sum::<u64>() + self.extras().map(|(_, extra)| extra.body_len()).sum::<u64>()
    }

    /// One message of it.
    pub fn one(&self, at: usize) -> Self {
        Run { metas: &self.metas[at..=at], first: self.first + at as u32, ..*self }
    }

    /// Bytes it will occupy in one queue.
    pub fn weight(&self) -> u64 {
        let records: u64 = self.metas.iter().map(|meta| u64::from(meta.len)).sum();
        records + self.extras().map(|(_, extra)| extra.body_len()).sum::<u64>()
    }
}
