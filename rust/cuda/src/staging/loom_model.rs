//! The last chunk is given back while a copy finds none. A model's GPU has one.

use loom::sync::Arc as Watched;
use loom::thread;
use purlin_base::sync::atomic::{AtomicUsize, Ordering};
use purlin_base::sync::explore;

use super::{Chunk, Staging};
use crate::model::{Output, gpu, keepers};

#[test]
fn a_copy_that_finds_no_chunk_gets_the_one_that_comes_back() {
    explore("a chunk is given back against a copy that finds none", None, || {
        let staging = Staging::new(gpu(), keepers());
        let first = staging.take(1).unwrap().unwrap();
        let (memory, served) = (Watched::new(Output::new()), Watched::new(AtomicUsize::new(0)));
        memory.write();
        let (of_other, written, counted) = (std::sync::Arc::clone(&staging), memory.clone(), served.clone());
        let other = thread::spawn(move || {
            let copy = move |chunk: Chunk| {
                written.write();
                // Relaxed: read after the thread is joined.
                counted.fetch_add(1, Ordering::Relaxed);
                drop(chunk);
            };
            match of_other.take(1).unwrap() {
                Some(chunk) => copy(chunk),
                None => of_other.wait(1, copy),
            }
        });
        drop(first);
        other.join().unwrap();
        assert_eq!((served.load(Ordering::Relaxed), memory.read()), (1, 2));
        assert_eq!(staging.sizes[1].lock().idle.len(), 1);
    });
}
