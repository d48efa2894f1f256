//! What `tracing` calls. Between recordings it answers that nothing is of interest, and `tracing` stops calling.

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Metadata};

use super::fields::Fields;
use super::is_recording;
use super::session::{self, local};

/// Passes everything on to the session that records, if one does.
pub(super) struct Recorder;

impl Subscriber for Recorder {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        if is_recording() { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        is_recording()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if is_recording() { LevelFilter::TRACE } else { LevelFilter::OFF })
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = session::next_id();
        if let Some(local) = local() {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            local.session().add_span(id, attributes.metadata(), fields);
        }
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(local) = local() {
            let mut fields = Fields::default();
            values.record(&mut fields);
            local.session().add_fields(span.into_u64(), fields);
        }
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if let Some(local) = local() {
            let mut fields = Fields::default();
            event.record(&mut fields);
            local.event(event.metadata(), fields);
        }
    }

    fn enter(&self, span: &Id) {
        if let Some(local) = local() {
            local.enter(span.into_u64());
        }
    }

    fn exit(&self, span: &Id) {
        if let Some(local) = local() {
            local.exit(span.into_u64());
        }
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(local) = local() {
            local.session().retain_span(span.into_u64());
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        local().is_some_and(|local| local.session().release_span(span.into_u64()))
    }
}
