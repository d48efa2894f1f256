//! Another library of this process that uses the same GPUs in its own way: nothing of it holds a client up, or changes
//! what its devices can do.

use purlin::LaunchOptions;
use purlin_fakecuda::{Driver, Options, process};

use crate::graphs::{self, twenty};
use crate::launches::{FILL, fill, start};
use crate::stranger::Stranger;
use crate::support::*;

const BYTES: usize = 4096;

/// The stranger's kernel does not end until this is dropped: also if a test fails meanwhile.
pub(crate) struct Endless<'a>(&'a Driver);

impl<'a> Endless<'a> {
    pub(crate) fn new(driver: &'a Driver) -> Self {
        driver.control.set_endless("fill_64");
        Self(driver)
    }
}

impl Drop for Endless<'_> {
    fn drop(&mut self) {
        self.0.control.set_endless("");
    }
}

/// Everything that blocking streams do waits for the legacy default stream.
#[test]
fn work_goes_on_beside_a_legacy_stream_that_does_not_end() {
    process::run("beside::work_goes_on_beside_a_legacy_stream_that_does_not_end", &Options::default(), || {
        Session::with(2, |session| {
            let stranger = Stranger::on(0);
            let theirs = stranger.allocate(8);
            let [block, other, list] = [0, 1, 2].map(|_| session.block(0, "device", BYTES));
            let (pinned, peer) = (session.block(0, "pinned_host", BYTES), session.block(1, "device", BYTES));
            let endless = Endless::new(&session.driver);
            let module = stranger.fill(FILL, theirs);
            let sent = pattern(BYTES, 1);
            write(&block, &sent).unwrap();
            // Memory of its own, which is allocated now.
            drop(session.block(0, "device", 40 << 20));
            for (from, to) in [(&block, &other), (&other, &peer), (&peer, &other), (&other, &pinned), (&pinned, &block)]
            {
                outcome(&copy(from, to, &[])).unwrap();
            }
            assert_eq!(read(&block).unwrap(), sent);
            let kernel = fill(&session.client.devices()[0], 7, BYTES).unwrap();
            for stream in 0..4 {
                let options = LaunchOptions { stream, ..LaunchOptions::default() };
                outcome(&start(&kernel, &[&block], &options).unwrap()).unwrap();
            }
            let (commands, list) = (twenty(), list.slice(0, 80).unwrap());
            (0..3).for_each(|_| outcome(&graphs::launch(session, &commands, &list, &[])).unwrap());
            assert!(!stranger.is_idle());
            drop(endless);
            stranger.unload(module);
            stranger.free(theirs);
        });
    });
}

/// Another GPU reaches only memory of a pool that was opened to it.
#[test]
fn a_kernel_reaches_memory_of_another_gpu_whatever_pool_is_current_there() {
    let name = "beside::a_kernel_reaches_memory_of_another_gpu_whatever_pool_is_current_there";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        for is_before in [true, false] {
            let strangers = [Stranger::on(0), Stranger::on(1)];
            let make_current = || strangers.each_ref().map(Stranger::make_pool_current);
            let before = is_before.then(make_current);
            let session = Session::new(2);
            let pools = before.unwrap_or_else(make_current);
            for (here, there) in [(0, 1), (1, 0)] {
                let kernel = fill(&session.client.devices()[here], 7, BYTES).unwrap();
                let block = session.block(there, "device", BYTES);
                outcome(&start(&kernel, &[&block], &LaunchOptions::default()).unwrap()).unwrap();
                assert_eq!(read(&block).unwrap(), 7_u32.to_le_bytes().repeat(BYTES / 4));
            }
            strangers.iter().zip(pools).for_each(|(stranger, pool)| stranger.destroy_pool(pool));
            drop(strangers);
            session.end();
        }
    });
}
