//! A stranger: the crate cudarc, unmodified, by its own loading and all of its layers.

mod support;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use support::*;

#[test]
fn cudarc_finds_the_fake_and_runs_on_it() {
    process::run("cudarc_finds_the_fake_and_runs_on_it", &Options::default(), || {
        // SAFETY: it only looks for the library.
        assert!(unsafe { sys::is_culib_present() });
        let driver = Driver::open();
        {
            let context = CudaContext::new(0).unwrap();
            assert_eq!(context.name().unwrap(), "Purlin fake GPU");
            let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
            let from = stream.clone_htod(&[1_u32, 2, 3, 4]).unwrap();
            let mut to = stream.alloc_zeros::<u32>(4).unwrap();
            let module = context.load_module(Ptx::from_src(TEXT)).unwrap();
            let add_one = module.load_function("add_one").unwrap();
            let mut launch = other.launch_builder(&add_one);
            launch.arg(&mut to).arg(&from);
            // SAFETY: the kernel takes these two, of four words each, with a word a thread.
            unsafe { launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (4, 1, 1), shared_mem_bytes: 0 }) }
                .unwrap();
            assert_eq!(other.clone_dtoh(&to).unwrap(), [2, 3, 4, 5]);
            driver.control.no_reports();
        }
        assert_eq!(driver.left(), []);
    });
}

#[test]
fn its_table_of_symbols_has_all_of_ours() {
    for name in purlin_fakecuda::Cuda::NAMES {
        let symbol = [name.as_bytes(), b"\0"].concat();
        // SAFETY: the symbol is looked up and not called.
        let found = unsafe { sys::culib().get::<unsafe extern "C" fn()>(symbol.as_slice()) };
        assert!(found.is_ok(), "{name}");
    }
}
