//! Host memory that was announced to the backend.

use purlin_async::EventPromise;
use purlin_base::StatusCode;

use crate::fixture::{Fixture, assert_error};
use crate::host_copy::HostCopy;

pub(crate) fn mapped_memory_is_unmapped_when_nobody_uses_it(fixture: &Fixture) {
    let (bytes, gate) = (vec![1_u8; 4096], EventPromise::new(c"gate"));
    let (address, device) = (bytes.as_ptr(), fixture.allocate(4096));
    let mapping = fixture.client.dma_map(address, 4096).unwrap();
    assert_eq!((mapping.range(), mapping.in_flight()), ((address.addr(), 4096), 0));
    let copied = HostCopy::to_device(&device, 0, bytes, &[gate.event()]);
    assert_eq!(mapping.in_flight(), 1);
    let (error, mapping) = mapping.unmap().unwrap_err();
    assert_error(&error, StatusCode::FailedPrecondition, &["1 copies in flight", "4096 bytes"]);
    gate.set_ready();
    copied.wait().unwrap();
    assert_eq!(mapping.in_flight(), 0, "a use is over before its copy's event");
    mapping.unmap().map_err(|(error, _)| error).unwrap();
}

pub(crate) fn a_mapping_that_is_dropped_ends_with_its_last_use(fixture: &Fixture) {
    let (bytes, gate) = (vec![1_u8; 64], EventPromise::new(c"gate"));
    let (address, device) = (bytes.as_ptr(), fixture.allocate(64));
    drop(fixture.client.dma_map(address, 64).unwrap());
    let mapping = fixture.client.dma_map(address, 64).expect("the first has gone");
    let copied = HostCopy::to_device(&device, 0, bytes, &[gate.event()]);
    drop(mapping);
    let again = fixture.client.dma_map(address, 64).expect("new copies do not see the old mapping");
    assert_eq!(again.in_flight(), 0);
    drop(gate);
    copied.wait_error();
}

pub(crate) fn mappings_do_not_overlap(fixture: &Fixture) {
    let bytes = [0_u8; 100];
    let base = bytes.as_ptr();
    let mapping = fixture.client.dma_map(base.wrapping_add(10), 50).unwrap();
    for (offset, size_bytes) in [(10, 50), (0, 11), (59, 1), (20, 5), (0, 100)] {
        let error = fixture.client.dma_map(base.wrapping_add(offset), size_bytes).unwrap_err();
        assert_error(&error, StatusCode::AlreadyExists, &[&size_bytes.to_string(), "50 bytes"]);
    }
    let neighbours =
        [fixture.client.dma_map(base, 10).unwrap(), fixture.client.dma_map(base.wrapping_add(60), 40).unwrap()];
    let other_client = fixture.other_client.dma_map(base, 100).expect("each client has mappings of its own");
    drop((mapping, neighbours, other_client));
}

pub(crate) fn ranges_that_make_no_sense_are_named(fixture: &Fixture) {
    let byte = [0_u8];
    for (address, size_bytes) in [(std::ptr::null(), 10), (byte.as_ptr(), 0), (byte.as_ptr(), usize::MAX)] {
        let error = fixture.client.dma_map(address, size_bytes).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &[&size_bytes.to_string(), "DMA"]);
    }
}
