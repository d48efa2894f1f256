//! Copies: what is read when, what blocks, and what is refused.

#[macro_use]
mod support;

use std::ptr;

use support::*;

#[test]
fn pageable_sources_are_read_at_the_call_and_pinned_ones_when_the_copy_runs() {
    let name = "pageable_sources_are_read_at_the_call_and_pinned_ones_when_the_copy_runs";
    process::run(name, &Options::default(), || {
        let gpu = Session::new();
        let (memory, stream, pinned) = (gpu.allocate(128), gpu.stream(NON_BLOCKING), gpu.pinned(64));
        let mut pageable = [1_u8; 64];
        pinned.set(1);
        gpu.control.hold(true);
        gpu.write(memory, &pageable, stream);
        pinned.to_device(memory + 64, stream);
        pageable.fill(2);
        pinned.set(2);
        gpu.control.hold(false);
        assert_eq!(gpu.read(memory, 128, stream), [[1; 64], [2; 64]].concat());
        gpu.free(memory);
        pinned.free();
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn a_free_of_a_pinned_source_waits_for_the_copy_and_is_reported() {
    process::run("a_free_of_a_pinned_source_waits_for_the_copy_and_is_reported", &Options::default(), || {
        let gpu = Session::new();
        let (memory, stream, pinned) = (gpu.allocate(64), gpu.stream(NON_BLOCKING), gpu.pinned(64));
        pinned.set(1);
        gpu.control.set_delays(1, 2000);
        pinned.to_device(memory, stream);
        pinned.free();
        assert_eq!(cu!(gpu, cuStreamQuery(stream)), 0, "it is over");
        assert_eq!(gpu.read(memory, 64, stream), [1; 64]);
        assert_eq!(gpu.control.take_reports().len(), 1);
    });
}

/// CUDA_MEMCPY2D.
#[repr(C)]
#[derive(Default)]
struct Copy2D {
    sides: [Side; 2],
    width: usize,
    height: usize,
}

#[repr(C)]
#[derive(Default)]
struct Side {
    x: usize,
    y: usize,
    kind: u32,
    host: usize,
    device: u64,
    array: usize,
    pitch: usize,
}

#[test]
fn rows_are_copied_with_their_pitches() {
    process::run("rows_are_copied_with_their_pitches", &Options::default(), || {
        let gpu = Session::new();
        let memory = gpu.allocate(64);
        gpu.fill(memory, 0, 64, 0);
        let bytes: Vec<u8> = (0..30).collect();
        let host = bytes.as_ptr().expose_provenance();
        let from = || Side { x: 1, y: 1, kind: 1, host, pitch: 10, ..Side::default() };
        let to = || Side { x: 2, kind: 2, device: memory, pitch: 16, ..Side::default() };
        let copy = |copy: &Copy2D| cu!(gpu, cuMemcpy2DAsync_v2(ptr::from_ref(copy).cast(), 0));
        assert_eq!(copy(&Copy2D { sides: [from(), to()], width: 3, height: 2 }), 0);
        let found = gpu.read(memory, 24, 0);
        assert_eq!((&found[2..5], &found[18..21]), ([11, 12, 13].as_slice(), [21, 22, 23].as_slice()));
        assert!([&found[..2], &found[5..18], &found[21..]].concat().iter().all(|byte| *byte == 0));
        let narrow = Side { pitch: 2, ..to() };
        assert_eq!(copy(&Copy2D { sides: [from(), narrow], width: 3, height: 2 }), 1);
        assert_eq!(copy(&Copy2D { sides: [from(), Side { kind: 9, ..to() }], width: 3, height: 2 }), 1);
        assert_eq!(copy(&Copy2D { sides: [from(), to()], width: 3, height: 0 }), 0);
        assert_eq!(copy(&Copy2D { sides: [from(), to()], width: 3, height: 20 }), 1, "it ends beyond the block");
        assert_eq!(gpu.control.take_reports().len(), 1);
        gpu.free(memory);
        gpu.end();
    });
}

#[test]
fn fills_have_words_pairs_and_bytes() {
    process::run("fills_have_words_pairs_and_bytes", &Options::default(), || {
        let gpu = Session::new();
        let memory = gpu.allocate(1 << 18);
        ok!(gpu, cuMemsetD32Async(memory, 0x0403_0201, 1 << 16, 0));
        gpu.fill(memory + 5, 9, 2, 0);
        let found = gpu.read(memory, 1 << 18, 0);
        assert_eq!(
            (&found[..9], &found[(1 << 18) - 4..]),
            ([1, 2, 3, 4, 1, 9, 9, 4, 1].as_slice(), [1, 2, 3, 4].as_slice())
        );
        assert_eq!(cu!(gpu, cuMemsetD32Async(memory + 2, 0, 1, 0)), 1);
        ok!(gpu, cuMemsetD16Async(memory + 2, 0x0605, 3, 0));
        assert_eq!(gpu.read(memory, 9, 0), [1, 2, 5, 6, 5, 6, 5, 6, 1]);
        assert_eq!(cu!(gpu, cuMemsetD16Async(memory + 1, 0, 1, 0)), 1);
        gpu.free(memory);
        gpu.end();
    });
}

#[test]
fn nothing_is_copied_from_anywhere() {
    process::run("nothing_is_copied_from_anywhere", &Options::default(), || {
        let gpu = Session::new();
        let memory = gpu.allocate(64);
        ok!(gpu, cuMemcpyHtoDAsync_v2(0, ptr::null(), 0, 0));
        ok!(gpu, cuMemcpyDtoHAsync_v2(ptr::null_mut(), 0, 0, 0));
        ok!(gpu, cuMemcpyDtoDAsync_v2(8, 8, 0, 0));
        ok!(gpu, cuMemsetD8Async(0, 1, 0, 0));
        assert_eq!(cu!(gpu, cuMemcpyHtoDAsync_v2(memory, ptr::null(), 8, 0)), 1);
        assert_eq!(cu!(gpu, cuMemcpyDtoHAsync_v2(ptr::null_mut(), memory, 8, 0)), 1);
        assert_eq!(cu!(gpu, cuMemcpyHtoDAsync_v2(memory, ptr::from_ref(&memory).cast(), 8, 0xBAD)), 400);
        gpu.free(memory);
        gpu.end();
    });
}

#[test]
fn copies_cross_devices() {
    process::run("copies_cross_devices", &Options { devices: 4, ..Options::default() }, || {
        let gpu = Session::new();
        let memory: Vec<u64> = (0..4)
            .map(|device| {
                gpu.make_current(device);
                gpu.allocate(256)
            })
            .collect();
        gpu.make_current(0);
        let stream = gpu.stream(NON_BLOCKING);
        gpu.write(memory[0], &[5; 256], stream);
        for to in 1..4 {
            let (contexts, from) = (&gpu.contexts, to - 1);
            ok!(gpu, cuMemcpyPeerAsync(memory[to], contexts[to], memory[from], contexts[from], 256, stream));
        }
        assert_eq!(gpu.read(memory[3], 256, stream), [5; 256]);
        assert_eq!(cu!(gpu, cuMemcpyPeerAsync(memory[1], 5, memory[0], gpu.contexts[0], 8, stream)), 201);
        // An event of one device is waited for on another.
        gpu.fill(memory[3], 6, 256, stream);
        let event = gpu.event();
        gpu.record(event, stream);
        gpu.make_current(3);
        let other = gpu.stream(NON_BLOCKING);
        gpu.wait(other, event);
        assert_eq!(gpu.read(memory[3], 256, other), [6; 256]);
        [stream, other].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        ok!(gpu, cuEventDestroy_v2(event));
        memory.into_iter().for_each(|memory| gpu.free(memory));
        gpu.end();
    });
}
