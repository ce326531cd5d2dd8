// Sends one trace, one log record and two metrics with the OpenTelemetry SDK, then prints the trace id.
//
//     node otlp_send.js json|proto ENDPOINT
//
// Traces go as JSON or protobuf; logs and metrics as JSON, which is what the `-otlp-http` exporters of this SDK write.

const { context, trace, SpanKind, SpanStatusCode } = require("@opentelemetry/api");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { NodeTracerProvider, SimpleSpanProcessor } = require("@opentelemetry/sdk-trace-node");
const { LoggerProvider, SimpleLogRecordProcessor } = require("@opentelemetry/sdk-logs");
const { MeterProvider, PeriodicExportingMetricReader } = require("@opentelemetry/sdk-metrics");
const { OTLPLogExporter } = require("@opentelemetry/exporter-logs-otlp-http");
const { OTLPMetricExporter } = require("@opentelemetry/exporter-metrics-otlp-http");
const traces = { json: "@opentelemetry/exporter-trace-otlp-http", proto: "@opentelemetry/exporter-trace-otlp-proto" };

const [protocol, endpoint] = process.argv.slice(2);
const { OTLPTraceExporter } = require(traces[protocol]);

async function main() {
  const resource = resourceFromAttributes({ "service.name": `node-${protocol}`, "service.instance.id": "node-1" });
  const tracing = new NodeTracerProvider({
    resource,
    spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }))],
  });
  tracing.register();
  const logging = new LoggerProvider({
    resource,
    processors: [new SimpleLogRecordProcessor(new OTLPLogExporter({ url: `${endpoint}/v1/logs`, compression: "gzip" }))],
  });
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: `${endpoint}/v1/metrics` }),
    exportIntervalMillis: 600_000,
  });
  const metering = new MeterProvider({ resource, readers: [reader] });

  const tracer = tracing.getTracer("shop.js");
  const order = tracer.startSpan("place order", { kind: SpanKind.SERVER, attributes: { "order.id": 77121, "order.total": 42.8 } });
  const inside = trace.setSpan(context.active(), order);
  const charge = tracer.startSpan("charge card", { kind: SpanKind.CLIENT, links: [{ context: order.spanContext() }] }, inside);
  charge.recordException(new Error("card declined"));
  charge.setStatus({ code: SpanStatusCode.ERROR, message: "card declined" });
  charge.end();
  order.end();
  logging.getLogger("shop.js").emit({
    severityNumber: 17,
    body: { reason: "card declined", attempt: 2 },
    attributes: { "order.id": 77121, empty: [], missing: null },
    context: inside,
  });
  const meter = metering.getMeter("shop.js");
  meter.createCounter("orders.placed").add(3, { region: "eu" });
  meter.createHistogram("work", { unit: "ms" }).record(5);

  for (const provider of [tracing, logging, metering]) {
    await provider.forceFlush();
    await provider.shutdown();
  }
  console.log(order.spanContext().traceId);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
