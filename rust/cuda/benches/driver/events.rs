//! What is learnt of work that is over, and how soon.

use std::ffi::c_void;
use std::hint;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::bench::{Bench, done};
use crate::column::Column;
use crate::kernels::Kernel;
use crate::row::Row;

/// All rows of events.
pub(crate) fn rows(bench: &Bench, add: &mut dyn FnMut(Row<'_>)) {
    let kernel = Kernel::new(bench);
    told(bench, &kernel, add);
    over(bench, &kernel, add);
}

/// Where a callback writes when it ran.
struct Clock {
    begin: Instant,
    /// In ns, 0 until it has run.
    told: AtomicU64,
}

impl Clock {
    fn tell(&self) {
        // Release: the thread that waits goes on after all that came before.
        self.told.store(self.begin.elapsed().as_nanos() as u64, Ordering::Release);
    }

    /// From now until `enqueue` has had it told.
    fn until_told(&self, enqueue: impl FnOnce()) -> Duration {
        // Relaxed: between turns no other thread has the clock.
        self.told.store(0, Ordering::Relaxed);
        let begin = self.begin.elapsed();
        enqueue();
        loop {
            // Acquire: see tell().
            match self.told.load(Ordering::Acquire) {
                0 => hint::spin_loop(),
                told => return Duration::from_nanos(told) - begin,
            }
        }
    }
}

/// # Safety
/// `clock` is one, and stays until it was told.
unsafe extern "C" fn tell(clock: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { &*clock.cast::<Clock>() }.tell();
}

fn told(bench: &Bench, kernel: &Kernel, add: &mut dyn FnMut(Row<'_>)) {
    let bare = &bench.bare;
    let clock = Arc::new(Clock { begin: Instant::now(), told: AtomicU64::new(0) });
    let ours = Column::telling("purlin", 1, || {
        let callback = Arc::clone(&clock);
        clock.until_told(|| kernel.start(None).on_ready(move |_| callback.tell()))
    });
    let driver = Column::telling("driver, host function", 1, || {
        let took = clock.until_told(|| {
            kernel.start_bare(bare);
            // SAFETY: the clock stays until it was told, which is waited for.
            unsafe { bare.call_host(tell, ptr::from_ref(&*clock).cast()) };
        });
        bare.synchronize();
        took
    });
    let row = Row::new("launch until a callback is told", ours).goal(0.7).beside(driver);
    add(kernel.adds(bare, row, 1));
}

/// Asked again and again.
fn over(bench: &Bench, kernel: &Kernel, add: &mut dyn FnMut(Row<'_>)) {
    const COUNT: u32 = 1000;
    let bare = &bench.bare;
    let event = kernel.start(None);
    done(&event);
    kernel.start_bare(bare);
    bare.record(0);
    bare.spin(0);
    let ours = Column::of_many("purlin", COUNT, || assert!(hint::black_box(&event).is_ready()));
    let driver = Column::of_many("driver", COUNT, || assert!(bare.query(0)));
    add(Row::new("ask an event that is over", ours).beside(driver));
    let ours = Column::of_many("purlin", COUNT, || done(hint::black_box(&event)));
    let driver = Column::of_many("driver", COUNT, || bare.wait(0));
    add(Row::new("wait for an event that is over", ours).beside(driver));
}
