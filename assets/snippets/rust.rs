use futures_util::TryStreamExt;
use lapin::{BasicProperties, Connection, ConnectionProperties, options::*, types::FieldTable};

#[tokio::main]
async fn main() -> Result<(), lapin::Error> {
    let url = std::env::var("AMQP_URL").unwrap_or("amqp://guest:guest@localhost".into());
    let connection = Connection::connect(&url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let (none, queue) = (FieldTable::default, QueueDeclareOptions::default());
    channel.queue_declare("greeter".into(), queue, none()).await?;
    channel.queue_bind("greeter".into(), "reactor.call".into(), "greeter.#".into(), Default::default(), none()).await?;
    let options = BasicConsumeOptions { no_ack: true, ..Default::default() };
    let mut calls = channel.basic_consume("greeter".into(), "".into(), options, none()).await?;
    while let Some(call) = calls.try_next().await? {
        let Some(reply_to) = call.properties.reply_to().clone() else { continue };
        let reply = format!("Hello, {}", call.routing_key.as_str().rsplit('.').next().unwrap_or_default());
        let id = call.properties.correlation_id().clone().unwrap_or_default();
        let properties = BasicProperties::default().with_correlation_id(id);
        channel.basic_publish("".into(), reply_to, Default::default(), reply.as_bytes(), properties).await?;
    }
    Ok(())
}
