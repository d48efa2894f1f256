//! The host backend under conformance. It has no gaps.

use std::sync::Arc;

use purlin_host::HostBackend;

purlin_conformance::suite!(|| Arc::new(HostBackend::new()));
