# A Ruby application on bunny. The broker is in AMQP_URL.

require "bunny"
require "timeout"

DEADLINE = 30

def check(name)
  Timeout.timeout(DEADLINE) { yield }
  puts "ok #{name}"
rescue Exception => error
  warn error.full_message(highlight: false)
  puts "not ok #{name} # #{error.class}: #{error.message}".gsub(/\s+/, " ")[0, 300]
ensure
  $stdout.flush
end

def same(expected, got)
  raise "expected #{expected.inspect}, got #{got.inspect}" unless expected == got
end

# The first true value.
def eventually
  value = nil
  sleep 0.05 until (value = yield)
  value
end

# The block closes its channel with this error, whose text has this part.
def refused(error, part)
  yield
rescue error => refusal
  raise "refused with #{refusal.message}" unless refusal.message.include?(part)
else
  raise "was not refused with #{error}"
end

connection = Bunny.new(ENV.fetch("AMQP_URL"), connection_name: "bunny", network_recovery_interval: 0.2, logger: Logger.new(File::NULL))
connection.start

check "publishers wait for confirms" do
  channel = connection.create_channel
  queue = channel.queue("", exclusive: true)
  channel.confirm_select
  200.times { |number| queue.publish(number.to_s, persistent: true) }
  same true, channel.wait_for_confirms
  same 200, queue.message_count
  channel.close
end

check "prefetch and manual acks" do
  channel = connection.create_channel
  channel.prefetch(2)
  queue = channel.queue("", exclusive: true)
  got = Queue.new
  5.times { |number| queue.publish(number.to_s) }
  queue.subscribe(manual_ack: true) do |delivery, _, body|
    got << body
    channel.ack(delivery.delivery_tag)
  end
  same %w[0 1 2 3 4], 5.times.map { got.pop }
  channel.close
end

check "nack gives back, reject drops" do
  channel = connection.create_channel
  queue = channel.queue("", exclusive: true)
  queue.publish("once")
  delivery, = eventually { (found = queue.pop(manual_ack: true))[0] && found }
  channel.nack(delivery.delivery_tag, false, true)
  delivery, _, body = eventually { (found = queue.pop(manual_ack: true))[0] && found }
  same [true, "once"], [delivery.redelivered?, body]
  channel.reject(delivery.delivery_tag)
  same 0, queue.message_count
  channel.close
end

check "an unroutable message comes back" do
  channel = connection.create_channel
  returned = Queue.new
  exchange = channel.default_exchange
  exchange.on_return { |info, _, body| returned << [info.reply_code, info.reply_text, body] }
  exchange.publish("lost", routing_key: "nowhere", mandatory: true)
  same [312, "NO_ROUTE", "lost"], returned.pop
  channel.close
end

check "headers of every type arrive" do
  channel = connection.create_channel
  queue = channel.queue("", exclusive: true)
  headers = { "text" => "grüße", "int" => 7, "big" => 5_000_000_000, "float" => 2.5, "yes" => true, "none" => nil, "list" => [1, "two"], "table" => { "deep" => 1 } }
  queue.publish("body", headers: headers, message_id: "m", correlation_id: "c", timestamp: Time.at(1_700_000_000).to_i, priority: 3, type: "t", app_id: "a")
  _, properties, body = eventually { (found = queue.pop)[0] && found }
  text = properties.headers.transform_values { |value| value.is_a?(String) ? value.dup.force_encoding("UTF-8") : value }
  same ["body", headers, "m", 1_700_000_000, 3], [body, text, properties.message_id, properties.timestamp.to_i, properties.priority]
  channel.close
end

check "a body larger than a frame arrives" do
  channel = connection.create_channel
  queue = channel.queue("", exclusive: true)
  sent = Random.bytes(3_000_000)
  queue.publish(sent)
  same sent, eventually { queue.pop[2] }
  channel.close
end

check "exchanges route by topic and headers" do
  channel = connection.create_channel
  queue = channel.queue("", exclusive: true)
  topic = channel.topic("ruby.topic", auto_delete: true)
  by_header = channel.headers("ruby.headers", auto_delete: true)
  queue.bind(topic, routing_key: "order.*")
  queue.bind(by_header, arguments: { "x-match" => "any", "kind" => "order" })
  topic.publish("a", routing_key: "order.new")
  topic.publish("-", routing_key: "invoice.new")
  by_header.publish("b", headers: { "kind" => "order" })
  same %w[a b], 2.times.map { eventually { queue.pop[2] } }
  same nil, queue.pop[2]
  channel.close
end

check "what expires is dead-lettered" do
  channel = connection.create_channel
  dead = channel.queue("", exclusive: true)
  queue = channel.queue("", exclusive: true, arguments: { "x-message-ttl" => 50, "x-dead-letter-exchange" => "", "x-dead-letter-routing-key" => dead.name })
  queue.publish("late")
  _, properties, = eventually { (found = dead.pop)[0] && found }
  same [queue.name, "expired", 1], properties.headers["x-death"][0].values_at("queue", "reason", "count")
  channel.close
end

check "calls over direct reply-to" do
  channel = connection.create_channel
  queue = channel.queue("", exclusive: true)
  replies = Queue.new
  queue.subscribe { |_, properties, body| channel.default_exchange.publish(body.upcase, routing_key: properties.reply_to, correlation_id: properties.correlation_id) }
  channel.basic_consume("amq.rabbitmq.reply-to", "", true) { |_, properties, body| replies << [properties.correlation_id, body] }
  queue.publish("call", reply_to: "amq.rabbitmq.reply-to", correlation_id: "7")
  same %w[7 CALL], replies.pop
  channel.close
end

check "a consumer is told that its queue is gone" do
  channel = connection.create_channel
  cancelled = Queue.new
  queue = channel.queue("ruby.gone")
  consumer = Bunny::Consumer.new(channel, queue)
  consumer.on_cancellation { |cancel| cancelled << cancel.consumer_tag }
  queue.subscribe_with(consumer)
  queue.delete
  same consumer.consumer_tag, cancelled.pop
  channel.close
end

check "errors are told apart" do
  refused(Bunny::NotFound, "NOT_FOUND - no queue 'ruby.none' in vhost '/'") { connection.create_channel.queue("ruby.none", passive: true) }
  connection.create_channel.queue("ruby.other", auto_delete: true)
  refused(Bunny::PreconditionFailed, "inequivalent arg 'durable' for queue 'ruby.other' in vhost '/'") { connection.create_channel.queue("ruby.other", durable: true, auto_delete: true) }
  refused(Bunny::AccessRefused, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'") { connection.create_channel.queue("amq.mine") }
  refused(Bunny::AuthenticationFailureError, "Authentication with RabbitMQ failed") { Bunny.new(ENV.fetch("AMQP_URL").sub(":guest@", ":wrong@"), logger: Logger.new(File::NULL)).start }
end

check "a transaction commits and rolls back" do
  channel = connection.create_channel
  queue = channel.queue("", exclusive: true)
  channel.tx_select
  queue.publish("kept")
  channel.tx_commit
  queue.publish("lost")
  channel.tx_rollback
  same 1, queue.message_count
  channel.close
end

connection.close
