//! Integration tests: the real binary, one module an area. Everything they share is in `support`.

mod access;
mod amqp_lapin;
mod amqp_trace;
mod api_access;
mod api_broker;
mod api_document;
mod api_hostile;
mod api_live;
mod api_ui;
mod cli_commands;
mod cli_config;
mod cli_up;
mod client_patterns;
mod doors;
mod examples;
mod first_answer;
mod gateway_bus;
mod gateway_http;
mod hostile_amqp;
mod node_stop;
mod otlp;
mod schema;
mod snippets;
mod supervisor_process;
mod supervisor_up;
mod support;
