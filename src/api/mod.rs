//! Floor 5: HTTP API, live feed and the embedded dashboard.
