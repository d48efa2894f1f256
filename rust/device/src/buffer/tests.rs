//! What conformance cannot see.

use std::sync::Arc;

use purlin_array::DType;
use purlin_base::status::{SourceLocation, called_from};

use super::*;
use crate::backend::NullBackend;
use crate::client::{Client, ClientOptions};
use crate::memory::AllocOptions;

#[test]
fn a_buffer_is_small() {
    // Bookkeeping of a live buffer: this, the block, and 8 bytes in the arena.
    assert!(size_of::<Array>() <= 224, "{}", size_of::<Array>());
    assert!(size_of::<crate::memory::MemoryBlock>() <= 136, "{}", size_of::<crate::memory::MemoryBlock>());
}

/// Of one client.
fn buffers() -> [Buffer; 2] {
    let client = Client::new(&ClientOptions::default(), Arc::new(NullBackend::new())).unwrap();
    let (shape, space) = (Shape::new(DType::U8, &[4]).unwrap(), client.devices()[0].default_memory_space());
    std::array::from_fn(|_| Buffer::uninitialized(&shape, None, &space, &AllocOptions::default()).unwrap())
}

type End = fn(&Buffer);

#[test]
fn the_end_of_a_buffer_is_known_by_the_place_that_is_stated_around_it() {
    let layer = SourceLocation::from_static(c"model/layer.cc", 12);
    let ends: [(&str, End); 5] = [
        ("deleted", Buffer::delete),
        ("released", |buffer| drop(buffer.release().unwrap())),
        ("donated", |buffer| drop(buffer.donate(c"a kernel").unwrap().confirm())),
        ("bitcast", |buffer| drop(buffer.bitcast(&Shape::new(DType::U32, &[1]).unwrap(), None).unwrap())),
        ("donated after an event", |buffer| drop(buffer.donate_after(&Event::ready()).unwrap())),
    ];
    for (how, end) in ends {
        let [here, there] = buffers();
        end(&here);
        called_from(layer, || end(&there));
        let [here, there] = [here, there].map(|buffer| buffer.usage_hold().unwrap_err().message().to_owned());
        assert!(there.contains("model/layer.cc:12"), "{how}: {there}");
        assert!(!here.contains("model/layer.cc"), "{how}: {here}");
    }
}

#[test]
fn what_is_made_of_a_buffer_is_known_by_the_place_that_is_stated_around_it() {
    let layer = SourceLocation::from_static(c"model/layer.cc", 34);
    let [source, target] = buffers();
    let copy = called_from(layer, || source.copy_to_memory_space(&source.memory_space())).unwrap();
    let report = source.memory_space().report().to_string();
    assert!(report.contains("'copy' from model/layer.cc:34"), "{report}");
    drop(copy);
    let _copy = called_from(layer, || source.copy_into(&target)).unwrap();
    let why = target.usage_hold().unwrap_err();
    assert!(why.message().contains("model/layer.cc:34"), "{why}");
}

#[test]
fn without_a_stated_place_it_is_the_line_that_calls() {
    let [source, target] = buffers();
    let (_copy, line) = (source.copy_into(&target).unwrap(), line!());
    let why = target.usage_hold().unwrap_err();
    assert!(why.message().contains(&format!("{}:{line}", file!())), "{why}");
}
