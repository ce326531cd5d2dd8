//! From a method to the broker, and from its answer to a method. What is refused becomes a reply code here, once.

use crate::broker::{Client, Consume, DeleteRule, Failed, Got, Refused, Settle, Verdict};
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeKind, ExchangeSpec, QueueSpec};
use crate::wire::amqp::encode::method;
use crate::wire::amqp::method::*;
use crate::wire::amqp::{Encode, Reply, ReplyCode};

/// RabbitMQ's codes for what the broker refuses.
pub(super) fn reply(refused: &Refused) -> Reply {
    let code = match refused {
        Refused::NotFound(_) => ReplyCode::NotFound,
        Refused::AccessRefused(_) => ReplyCode::AccessRefused,
        Refused::Locked(_) => ReplyCode::ResourceLocked,
        Refused::Precondition(_) => ReplyCode::PreconditionFailed,
        Refused::TooLarge(_) => ReplyCode::ContentTooLarge,
        Refused::NotImplemented(_) => ReplyCode::NotImplemented,
        Refused::NotAllowed(_) => ReplyCode::NotAllowed,
        Refused::CommandInvalid(_) => ReplyCode::CommandInvalid,
    };
    Reply::new(code, refused.text())
}

/// Where a method's answer goes.
pub(super) struct Caller<'a> {
    pub client: &'a mut Client,
    pub channel: u16,
    pub out: &'a mut Vec<u8>,
}

impl Caller<'_> {
    // HOT: basic.ack passes here.
    pub fn handle(&mut self, asked: Method<'_>) -> Result<(), Failed> {
        match asked {
            Method::BasicAck(ack) => {
                let BasicAck { delivery_tag: tag, multiple } = ack;
                self.settle(Settle { tag, multiple, verdict: Verdict::Ack, by: BasicAck::ID })
            }
            Method::BasicNack(BasicNack { delivery_tag: tag, multiple, requeue }) => {
                self.settle(Settle { tag, multiple, verdict: back(requeue), by: BasicNack::ID })
            }
            Method::BasicReject(BasicReject { delivery_tag: tag, requeue }) => {
                self.settle(Settle { tag, multiple: false, verdict: back(requeue), by: BasicReject::ID })
            }
            other => self.handle_rare(other),
        }
    }

    fn handle_rare(&mut self, asked: Method<'_>) -> Result<(), Failed> {
        match asked {
            Method::QueueDeclare(declare) => self.declare_queue(declare),
            Method::QueueBind(bind) => self.bind(bind),
            Method::QueueUnbind(unbind) => self.unbind(unbind),
            Method::QueuePurge(purge) => self.purge(purge),
            Method::QueueDelete(delete) => self.delete_queue(delete),
            Method::ExchangeDeclare(declare) => self.declare_exchange(declare),
            Method::ExchangeDelete(delete) => self.delete_exchange(delete),
            Method::ExchangeBind(bind) => self.bind_exchange(bind),
            Method::ExchangeUnbind(unbind) => self.unbind_exchange(unbind),
            Method::BasicQos(qos) => self.limit_prefetch(qos),
            Method::BasicConsume(consume) => self.consume(consume),
            Method::BasicCancel(cancel) => self.cancel(cancel),
            Method::BasicGet(get) => self.get(get),
            Method::BasicRecover(BasicRecover { requeue }) => self.recover(requeue, true),
            Method::BasicRecoverAsync(BasicRecoverAsync { requeue }) => self.recover(requeue, false),
            Method::ConfirmSelect(select) => self.select_confirms(select),
            Method::ChannelFlow(ChannelFlow { active: true }) => self.answer(false, &ChannelFlowOk { active: true }),
            Method::ChannelFlow(ChannelFlow { active: false }) => self.refuse(Refused::NotImplemented("active=false".into())),
            // The answers to what we never ask for, and to consumers cancelled by us.
            Method::ChannelFlowOk(_) | Method::BasicCancelOk(_) => Ok(()),
            Method::AccessRequest(_) => self.answer(false, &AccessRequestOk { ticket: 1 }),
            Method::TxSelect(_) => self.client.select_tx(self.channel).and_then(|()| self.answer(false, &TxSelectOk {})),
            Method::TxCommit(_) => self.client.commit(self.channel).and_then(|()| self.answer(false, &TxCommitOk {})),
            Method::TxRollback(_) => self.client.roll_back(self.channel).and_then(|()| self.answer(false, &TxRollbackOk {})),
            other => self.refuse(Refused::CommandInvalid(format!("{} is not for a client to send", other.name()))),
        }
    }

    fn answer(&mut self, no_wait: bool, answer: &impl Encode) -> Result<(), Failed> {
        if !no_wait {
            method(self.out, self.channel, answer);
        }
        Ok(())
    }

    fn refuse(&self, refused: Refused) -> Result<(), Failed> {
        Err(Failed::new(self.channel, refused))
    }

    // HOT
    fn settle(&mut self, settle: Settle) -> Result<(), Failed> {
        self.client.settle(self.channel, settle);
        Ok(())
    }

    fn declare_queue(&mut self, asked: QueueDeclare<'_>) -> Result<(), Failed> {
        let declared = if asked.passive {
            self.client.declare_queue_passively(self.channel, asked.queue)?
        } else {
            let spec = QueueSpec {
                name: asked.queue.to_owned(),
                durable: asked.durable,
                exclusive: asked.exclusive,
                auto_delete: asked.auto_delete,
                arguments: asked.arguments.to_table(),
            };
            self.client.declare_queue(self.channel, spec)?
        };
        let (message_count, consumer_count) = (count(declared.ready), count(declared.consumers));
        self.answer(asked.no_wait, &QueueDeclareOk { queue: &declared.name, message_count, consumer_count })
    }

    fn bind(&mut self, asked: QueueBind<'_>) -> Result<(), Failed> {
        let spec = BindingSpec {
            source: asked.exchange.to_owned(),
            destination: asked.queue.to_owned(),
            destination_kind: DestinationKind::Queue,
            routing_key: asked.routing_key.to_owned(),
            arguments: asked.arguments.to_table(),
        };
        self.client.bind(self.channel, spec)?;
        self.answer(asked.no_wait, &QueueBindOk {})
    }

    fn unbind(&mut self, asked: QueueUnbind<'_>) -> Result<(), Failed> {
        let spec = BindingSpec {
            source: asked.exchange.to_owned(),
            destination: asked.queue.to_owned(),
            destination_kind: DestinationKind::Queue,
            routing_key: asked.routing_key.to_owned(),
            arguments: asked.arguments.to_table(),
        };
        self.client.unbind(self.channel, spec)?;
        self.answer(false, &QueueUnbindOk {})
    }

    fn bind_exchange(&mut self, asked: ExchangeBind<'_>) -> Result<(), Failed> {
        let spec = BindingSpec {
            source: asked.source.to_owned(),
            destination: asked.destination.to_owned(),
            destination_kind: DestinationKind::Exchange,
            routing_key: asked.routing_key.to_owned(),
            arguments: asked.arguments.to_table(),
        };
        self.client.bind(self.channel, spec)?;
        self.answer(asked.no_wait, &ExchangeBindOk {})
    }

    fn unbind_exchange(&mut self, asked: ExchangeUnbind<'_>) -> Result<(), Failed> {
        let spec = BindingSpec {
            source: asked.source.to_owned(),
            destination: asked.destination.to_owned(),
            destination_kind: DestinationKind::Exchange,
            routing_key: asked.routing_key.to_owned(),
            arguments: asked.arguments.to_table(),
        };
        self.client.unbind(self.channel, spec)?;
        self.answer(asked.no_wait, &ExchangeUnbindOk {})
    }

    fn purge(&mut self, asked: QueuePurge<'_>) -> Result<(), Failed> {
        let message_count = count(self.client.purge_queue(self.channel, asked.queue)?);
        self.answer(asked.no_wait, &QueuePurgeOk { message_count })
    }

    fn delete_queue(&mut self, asked: QueueDelete<'_>) -> Result<(), Failed> {
        let rule = DeleteRule { if_unused: asked.if_unused, if_empty: asked.if_empty };
        let message_count = count(self.client.delete_queue(self.channel, asked.queue, rule)?);
        self.answer(asked.no_wait, &QueueDeleteOk { message_count })
    }

    fn declare_exchange(&mut self, asked: ExchangeDeclare<'_>) -> Result<(), Failed> {
        if asked.passive {
            self.client.declare_exchange_passively(self.channel, asked.exchange)?;
            return self.answer(asked.no_wait, &ExchangeDeclareOk {});
        }
        let Some(kind) = ExchangeKind::parse(asked.kind) else {
            return self.refuse(Refused::Precondition(format!("unknown exchange type '{}'", asked.kind)));
        };
        let spec = ExchangeSpec {
            name: asked.exchange.to_owned(),
            kind,
            durable: asked.durable,
            auto_delete: asked.auto_delete,
            internal: asked.internal,
            arguments: asked.arguments.to_table(),
        };
        self.client.declare_exchange(self.channel, &spec)?;
        self.answer(asked.no_wait, &ExchangeDeclareOk {})
    }

    fn delete_exchange(&mut self, asked: ExchangeDelete<'_>) -> Result<(), Failed> {
        self.client.delete_exchange(self.channel, asked.exchange, asked.if_unused)?;
        self.answer(asked.no_wait, &ExchangeDeleteOk {})
    }

    fn limit_prefetch(&mut self, asked: BasicQos) -> Result<(), Failed> {
        if asked.prefetch_size != 0 {
            return self.refuse(Refused::NotImplemented(format!("prefetch_size!=0 ({})", asked.prefetch_size)));
        }
        self.client.limit_prefetch(self.channel, asked.prefetch_count, asked.global)?;
        self.answer(false, &BasicQosOk {})
    }

    /// The broker writes `consume-ok`, since it must stand before the first delivery.
    fn consume(&mut self, asked: BasicConsume<'_>) -> Result<(), Failed> {
        let consume = Consume {
            queue: asked.queue.to_owned(),
            tag: asked.consumer_tag.to_owned(),
            no_ack: asked.no_ack,
            exclusive: asked.exclusive,
            no_wait: asked.no_wait,
            arguments: asked.arguments.to_table(),
        };
        self.client.consume(self.channel, consume).map(drop)
    }

    fn cancel(&mut self, asked: BasicCancel<'_>) -> Result<(), Failed> {
        self.client.cancel(self.channel, asked.consumer_tag)?;
        self.answer(asked.no_wait, &BasicCancelOk { consumer_tag: asked.consumer_tag })
    }

    fn get(&mut self, asked: BasicGet<'_>) -> Result<(), Failed> {
        match self.client.get(self.channel, asked.queue, asked.no_ack)? {
            Got::Message => Ok(()),
            Got::Empty => self.answer(false, &BasicGetEmpty::default()),
        }
    }

    fn recover(&mut self, requeue: bool, answered: bool) -> Result<(), Failed> {
        if !requeue {
            return self.refuse(Refused::NotImplemented("requeue=false".into()));
        }
        self.client.recover(self.channel)?;
        self.answer(!answered, &BasicRecoverOk {})
    }

    fn select_confirms(&mut self, asked: ConfirmSelect) -> Result<(), Failed> {
        self.client.select_confirms(self.channel)?;
        self.answer(asked.no_wait, &ConfirmSelectOk {})
    }
}

fn back(requeue: bool) -> Verdict {
    if requeue { Verdict::Requeue } else { Verdict::Discard }
}

/// Counts on the wire have 32 bits.
fn count(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
