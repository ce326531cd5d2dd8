"""Sends one trace, one log record and four metrics with the OpenTelemetry SDK, then prints the trace id.

    python otlp_send.py grpc|http ENDPOINT
"""

import logging
import sys

from opentelemetry import metrics, trace
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

protocol, endpoint = sys.argv[1], sys.argv[2]

if protocol == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    def exporter(kind, _path):
        return kind(endpoint=endpoint, insecure=True)
else:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    def exporter(kind, path):
        return kind(endpoint=f"{endpoint}/v1/{path}", compression=Compression.Gzip)


resource = Resource.create({"service.name": f"py-{protocol}", "service.instance.id": "py-1"})

tracing = TracerProvider(resource=resource)
tracing.add_span_processor(SimpleSpanProcessor(exporter(OTLPSpanExporter, "traces")))
trace.set_tracer_provider(tracing)

logging_provider = LoggerProvider(resource=resource)
logging_provider.add_log_record_processor(SimpleLogRecordProcessor(exporter(OTLPLogExporter, "logs")))
logger = logging.getLogger("shop")
logger.addHandler(LoggingHandler(logger_provider=logging_provider))
logger.setLevel(logging.INFO)

reader = PeriodicExportingMetricReader(exporter(OTLPMetricExporter, "metrics"), export_interval_millis=600_000)
views = [
    View(instrument_type=Histogram, instrument_name="work.exponential", aggregation=ExponentialBucketHistogramAggregation()),
    View(instrument_type=Histogram, instrument_name="work.explicit", aggregation=ExplicitBucketHistogramAggregation([1, 10, 100])),
]
metering = MeterProvider(resource=resource, metric_readers=[reader], views=views)
metrics.set_meter_provider(metering)

tracer = trace.get_tracer("shop.py")
with tracer.start_as_current_span("place order", kind=trace.SpanKind.SERVER) as order:
    order.set_attribute("order.big", 9_007_199_254_740_993)
    order.set_attribute("order.paid", True)
    order.set_attribute("order.skus", ["a", "b"])
    order.set_attribute("http.response.status_code", 202)
    with tracer.start_as_current_span("charge card", kind=trace.SpanKind.CLIENT) as charge:
        charge.set_attribute("peer.service", "stripe")
        charge.add_event("retry", {"attempt": 2})
        try:
            raise ValueError("card declined")
        except ValueError as error:
            charge.record_exception(error)
            charge.set_status(trace.StatusCode.ERROR, "card declined")
        logger.warning("slow card", extra={"order.id": 77121})
    trace_id = format(order.get_span_context().trace_id, "032x")

meter = metrics.get_meter("shop.py")
meter.create_counter("orders.placed", unit="{order}").add(3, {"region": "eu"})
meter.create_up_down_counter("orders.open").add(-2)
for name in ("work.explicit", "work.exponential"):
    histogram = meter.create_histogram(name, unit="ms")
    for value in (0.5, 5, 5, 50):
        histogram.record(value)

for provider in (tracing, logging_provider, metering):
    assert provider.force_flush(), provider
    provider.shutdown()
print(trace_id)
