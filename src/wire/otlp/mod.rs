//! OTLP, protobuf and JSON, to `model::signal`. Pure: bytes in, signals out.
