//! A caller that has a context of its own current, of another GPU, finds it current after each call.

use purlin::LaunchOptions;
use purlin_fakecuda::{Driver, Options, process};

use crate::graphs::{self, twenty};
use crate::launches::{fill, start};
use crate::stranger::{Stranger, Told, import};
use crate::support::*;

/// More than a chunk, and an extent of its own.
const LARGE: usize = 40 << 20;
const SMALL: usize = 4096;

/// Does everything with GPU 0, and asks for the context of GPU 1, which is the caller's, after each call. Where one GPU
/// is, the caller has its context, which Purlin uses, too.
fn each_verb_leaves_it() {
    let (caller, other) = (Stranger::on((1 % gpus()) as i32), Stranger::on(0));
    let foreign = other.allocate(SMALL);
    caller.enter();
    let check = |verb: &str| assert!(caller.is_here(), "after {verb}");
    macro_rules! after {
        ($verb:literal, $done:expr) => {{
            let done = $done;
            check($verb);
            done
        }};
    }

    let session = after!("a client is made", Session::new(2));
    let device = session.client.devices().swap_remove(0);
    let space = device.default_memory_space();
    let large = after!("memory is allocated", session.block(0, "device", LARGE));
    let pinned = after!("pinned memory is allocated", session.block(0, "pinned_host", LARGE));
    let block = after!("a block of an extent is allocated", session.block(0, "device", SMALL));
    let peer = session.block(1, "device", SMALL);
    let page = vec![0_u8; SMALL];
    for bytes in [SMALL, LARGE] {
        let sent = pattern(bytes, 1);
        let part = large.slice(0, bytes).unwrap();
        after!("a copy from pageable memory", write(&part, &sent).unwrap());
        assert!(after!("a copy to pageable memory", read(&part).unwrap()) == sent);
    }
    after!("a copy from pinned memory", outcome(&copy(&pinned, &large, &[])).unwrap());
    after!("a copy to pinned memory", outcome(&copy(&large, &pinned, &[])).unwrap());
    let small = large.slice(0, SMALL).unwrap();
    after!("a copy within a GPU", outcome(&copy(&small, &block, &[])).unwrap());
    after!("a copy to another GPU", outcome(&copy(&block, &peer, &[])).unwrap());
    after!("a copy from another GPU", outcome(&copy(&peer, &block, &[])).unwrap());
    let told = Told::default();
    let imported = after!("memory is imported", import(&session, (0, "device"), foreign, SMALL, &told).unwrap());
    after!("a copy to imported memory", outcome(&copy(&block, &imported, &[])).unwrap());
    after!("imported memory is dropped", drop(imported));
    let mapping = after!("memory is mapped", session.client.dma_map(page.as_ptr(), page.len()).unwrap());
    after!("memory is unmapped", mapping.unmap().map_err(|(error, _)| error).unwrap());
    let kernel = after!("a kernel is loaded", fill(&device, 7, SMALL).unwrap());
    let launched = after!("a launch", start(&kernel, &[&block], &LaunchOptions::default()).unwrap());
    outcome(&launched).unwrap();
    drop(launched);
    let list = twenty();
    // The second time as a graph.
    for _ in 0..3 {
        let launched = after!("a list is launched", graphs::launch(&session, &list, &block.slice(0, 80).unwrap(), &[]));
        outcome(&launched).unwrap();
    }
    after!("a list is dropped", drop(list));
    after!("a kernel is dropped", drop(kernel));

    let control = &session.driver.control;
    if control.is_fake() {
        for entry in ["cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuStreamSynchronize"] {
            control.reset_calls();
            control.set_faults(&format!("{entry}:1:1,cuMemcpyHtoDAsync_v2:1:1"));
            assert!(after!("a copy that fails", outcome(&copy(&pinned, &large, &[]))).is_err());
        }
        control.set_faults("");
    }
    assert!(after!("memory runs out", block_of(&session, 1 << 40)).is_err());
    after!("memory is dropped", drop((large, small)));
    after!("pinned memory is dropped", drop(pinned));
    after!("memory is trimmed", space.trim());
    drop((block, peer, space, device));

    let Session { driver, client } = session;
    after!("a client is shut down", shut_down(&client).unwrap());
    after!("a client is dropped", drop(client));
    caller.leave();
    other.free(foreign);
    drop((caller, other));
    nothing_is_left(&driver);
    driver.control.no_reports();
}

fn block_of(session: &Session, bytes: usize) -> Result<purlin::RawBuffer, purlin::Error> {
    block(&session.client, 0, "device", bytes)
}

#[test]
fn a_callers_own_context_is_current_after_each_call() {
    let name = "contexts::a_callers_own_context_is_current_after_each_call";
    for without_pools in [false, true] {
        process::run(name, &Options { devices: 2, without_pools, ..Options::default() }, || {
            each_verb_leaves_it();
            // The same process: the driver is warm, and the peers are connected.
            each_verb_leaves_it();
            assert_eq!(Driver::open().control.report_count(), 0);
        });
    }
}
