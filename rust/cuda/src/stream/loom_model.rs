//! Submissions that end while others ask for them, on a driver whose device is a thread of the model.

use std::sync::Arc;

use loom::sync::Arc as Watched;
use loom::thread;
use purlin_base::sync::atomic::{AtomicUsize, Ordering};
use purlin_base::sync::explore;

use super::{Content, Order, Role, Stream, SyncPoint};
use crate::gpu::Gpu;
use crate::model::{Flag, Output, gpu};
use crate::operation_name::OperationName;
use crate::uses::Point;

const ROLE: Role = Role::Within;

/// Its event, and how often its end was called.
fn submit(gpu: &Arc<Gpu>) -> (SyncPoint, Watched<AtomicUsize>) {
    let ends = Watched::new(AtomicUsize::new(0));
    let counted = ends.clone();
    let order =
        Order { role: ROLE, waits: &[], name: &OperationName::nothing(), other: None, content: Content::Nothing };
    // Relaxed: read after the threads are joined.
    let end = Box::new(move |_outcome, _place| _ = counted.fetch_add(1, Ordering::Relaxed));
    let point = Stream::submit(gpu, order, |_stream| 0, end);
    (point.unwrap_or_else(|error| unreachable!("the driver refuses nothing: {error}")), ends)
}

#[test]
fn what_a_submission_wrote_is_seen_by_whoever_sees_that_it_is_over() {
    explore("a look against a question whether it is over", None, || {
        let gpu = gpu();
        let (point, ends) = submit(&gpu);
        let output = Watched::new(Output::new());
        let (flag, of_device) = (Flag::of(point.submitted.event.handle()), output.clone());
        let device = thread::spawn(move || {
            of_device.write();
            flag.end();
        });
        let (asked, of_asker) = (point.clone(), output.clone());
        let asker = thread::spawn(move || {
            if asked.is_over() {
                assert_eq!(of_asker.read(), 1);
            }
        });
        gpu.stream(ROLE).look(&gpu, None);
        device.join().unwrap();
        asker.join().unwrap();
        gpu.stream(ROLE).look(&gpu, None);
        assert!(point.is_over() && !gpu.stream(ROLE).is_busy());
        assert_eq!(ends.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn each_submission_ends_once_and_the_watermark_never_falls() {
    explore("two look at two submissions", None, || {
        let gpu = gpu();
        let submitted = [submit(&gpu), submit(&gpu)];
        for (point, _) in &submitted {
            Flag::of(point.submitted.event.handle()).end();
        }
        let other = Arc::clone(&gpu);
        let caller = thread::spawn(move || other.stream(ROLE).look(&other, Some(1)));
        let looked = gpu.stream(ROLE).look(&gpu, None);
        assert!(caller.join().unwrap() && looked, "each look finds one that is over");
        for (point, ends) in &submitted {
            assert!(point.is_over());
            assert_eq!(ends.load(Ordering::Relaxed), 1);
        }
    });
}
