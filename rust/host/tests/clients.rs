//! What clients leave behind when they have ended: nothing that grows. A process of its own, because it looks at the
//! whole process's memory.

use std::sync::Arc;

use purlin_async::{ShutdownOptions, dump_stalls};
use purlin_device::{Buffer, Client, ClientOptions};
use purlin_host::HostBackend;

/// A number of `/proc/self/statm`, in bytes: 0 is the address space, 1 what is in memory.
fn bytes_of_process(field: usize) -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = pages.split(' ').nth(field).and_then(|text| text.parse().ok()).expect("a number");
    pages * 4096
}

fn make_and_end(number: usize) {
    let options = ClientOptions { device_count: 2, worker_count: 2, ..Default::default() };
    let client = Client::new(&options, Arc::new(HostBackend::new())).unwrap();
    let values = vec![1_u8; 100_000];
    let buffer = Buffer::from_slice(&values, &[100_000], &client.devices()[0].default_memory_space()).unwrap();
    let copy = buffer.copy_to_device(&client.devices()[1]).unwrap();
    assert_eq!(copy.to_vec::<u8>().unwrap(), values);
    if number.is_multiple_of(50) {
        assert!(dump_stalls(std::time::Duration::ZERO).contains("client of 'host'"));
    }
    match number % 3 {
        0 => client.shutdown(ShutdownOptions::default()).unwrap(),
        // Ends with its last buffer.
        1 => drop(client),
        _ => drop((buffer, copy)),
    }
}

#[test]
fn memory_stays_as_it_is_however_many_clients_are_made_and_ended() {
    (0..100).for_each(make_and_end);
    let warm = [0, 1].map(bytes_of_process);
    (0..400).for_each(make_and_end);
    let grown = [0, 1].map(|field| bytes_of_process(field).saturating_sub(warm[field]));
    // A client is threads, maps and lists: 400 of them would be more if each left a page of each. An arena of the
    // system's allocator more or less counts for address space.
    assert!(grown[1] < 4 << 20, "{grown:?} bytes more in memory");
    assert!(grown[0] < 512 << 20, "{grown:?} bytes more of address space");
}
