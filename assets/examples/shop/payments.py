"""payments: charges cards, answering the call `payments.charge`. The one service of the shop with an OpenTelemetry SDK: its spans
and its metrics join what reactor records by itself. The SDK reads OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_SERVICE_NAME, which
reactor sets."""

import json
import logging
import os
import random
import signal
import sys
import time
import uuid

import pika
from opentelemetry import metrics, propagate, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

AMQP = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost")
# How much goes wrong: 1 is a few percent of all payments, 0 is nothing.
TROUBLE = float(os.environ.get("SHOP_TROUBLE", "1"))



class TraceContext(logging.Filter):
    """Names the current span in every line, so that the line is found from the trace."""

    def filter(self, record):
        context = trace.get_current_span().get_span_context()
        record.trace = f" [trace_id={context.trace_id:032x} span_id={context.span_id:016x}]" if context.is_valid else ""
        return True


handler = logging.StreamHandler(sys.stdout)
handler.addFilter(TraceContext())
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s%(trace)s", handlers=[handler])
logging.getLogger("pika").setLevel(logging.WARNING)
log = logging.getLogger("payments")

spans, meters = TracerProvider(), MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=5000)])
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=1000))
tracer, meter = spans.get_tracer("payments"), meters.get_meter("payments")
charged = meter.create_counter("shop.payments", unit="{payment}", description="Payments by outcome")
amounts = meter.create_histogram("shop.payment.amount", unit="EUR", description="Amount of accepted payments")
bank_time = meter.create_histogram("shop.bank.duration", unit="ms", description="Time the bank took")


class Declined(Exception):
    pass


def ask_bank(amount_cents):
    """The bank: mostly quick, sometimes slow, now and then unwilling."""
    with tracer.start_as_current_span("bank.authorize", kind=trace.SpanKind.CLIENT) as span:
        span.set_attribute("bank.amount_cents", amount_cents)
        span.set_attribute("server.address", "bank.example")
        luck = random.random() / TROUBLE if TROUBLE > 0 else 1.0
        started = time.monotonic()
        time.sleep(random.uniform(0.8, 1.6) if luck < 0.04 else random.uniform(0.01, 0.06))
        bank_time.record((time.monotonic() - started) * 1000)
        if 0.04 <= luck < 0.07:
            span.set_status(trace.StatusCode.ERROR, "declined")
            raise Declined("the bank declined the card")
        if 0.07 <= luck < 0.075:
            raise ConnectionError("the bank hung up")


def charge(request):
    amount_cents = int(request["amount_cents"])
    with tracer.start_as_current_span("check.fraud"):
        time.sleep(random.uniform(0.002, 0.01))
    ask_bank(amount_cents)
    amounts.record(amount_cents / 100)
    return {"receipt": uuid.uuid4().hex[:10], "amount_cents": amount_cents}


def answer(body):
    try:
        reply, status = charge(json.loads(body)), 200
        log.info("charged %s cents", reply["amount_cents"])
    except Declined as error:
        log.warning("%s", error)
        reply, status = {"title": str(error), "status": 402}, 402
    except Exception as error:
        log.exception("payment failed")
        trace.get_current_span().record_exception(error)
        reply, status = {"title": f"payment failed: {error}", "status": 500}, 500
    charged.add(1, {"outcome": {200: "accepted", 402: "declined"}.get(status, "failed")})
    return reply, status


def on_call(channel, call, properties, body):
    headers = {name: value for name, value in (properties.headers or {}).items() if isinstance(value, str)}
    with tracer.start_as_current_span("charge card", propagate.extract(headers), kind=trace.SpanKind.CONSUMER) as span:
        reply, status = answer(body)
        if status >= 500:
            span.set_status(trace.StatusCode.ERROR, reply["title"])
    if properties.reply_to:
        reply_properties = pika.BasicProperties(
            correlation_id=properties.correlation_id, content_type="application/json", headers={":status": status}
        )
        channel.basic_publish("", properties.reply_to, json.dumps(reply), reply_properties)
    channel.basic_ack(call.delivery_tag)


def serve():
    connection = pika.BlockingConnection(pika.URLParameters(AMQP))
    try:
        channel = connection.channel()
        channel.queue_declare("payments")
        # For the shop's own services only: the gateway knows no /payments.
        channel.queue_bind("payments", "reactor.call", "payments.#", {"x-reactor-http": False})
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume("payments", on_call)
        log.info("ready to charge")
        channel.start_consuming()
    finally:
        if connection.is_open:
            connection.close()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while True:
            try:
                serve()
            except pika.exceptions.AMQPError as error:
                log.error("bus: %r; trying again", error)
                time.sleep(1)
    finally:
        spans.shutdown()
        meters.shutdown()


if __name__ == "__main__":
    main()
