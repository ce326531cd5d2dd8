//! AMQP 0-9-1: frames, methods, properties, the server session and what it writes.
