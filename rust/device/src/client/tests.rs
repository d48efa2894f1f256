use super::*;
use crate::backend::{Memory, NullBackend};

fn client(device_count: usize, worker_count: usize) -> StatusOr<Arc<Client>> {
    Client::new(&ClientOptions { device_count, worker_count, ..Default::default() }, Arc::new(NullBackend::new()))
}

#[test]
fn counts_out_of_range_are_named() {
    for (device_count, worker_count, message) in [
        (0, 1, "device_count is 0; it must be in 1..1024"),
        (usize::MAX, 1, "device_count is 18446744073709551615; it must be in 1..1024"),
        (1025, 1, "device_count is 1025; it must be in 1..1024"),
        (1, usize::MAX, "worker_count is 18446744073709551615; it must be in 0..4096"),
        (1, 4097, "worker_count is 4097; it must be in 0..4096"),
    ] {
        let error = client(device_count, worker_count).unwrap_err();
        assert_eq!((error.code(), error.message()), (StatusCode::InvalidArgument, message));
    }
}

/// Two devices of hardware, which hold nothing.
struct TwoDevices(NullBackend);

impl Backend for TwoDevices {
    fn platform_name(&self) -> &'static str {
        "two"
    }

    fn device_count(&self) -> Option<usize> {
        Some(2)
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        self.0.memory_kinds()
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        self.0.open_memory(device, kind)
    }
}

#[test]
fn none_asked_for_are_all_of_the_hardware() {
    for (asked, there) in [(0, 2), (1, 1), (2, 2)] {
        let options = ClientOptions { device_count: asked, worker_count: 1, ..Default::default() };
        let client = Client::new(&options, Arc::new(TwoDevices(NullBackend::new()))).unwrap();
        assert_eq!(client.devices().len(), there);
    }
}

#[test]
fn devices_and_spaces_are_numbered_and_find_their_way_back() {
    let client = client(3, 1).unwrap();
    let devices = client.devices();
    assert_eq!(devices.len(), 3);
    let mut ids = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        assert_eq!(device.id() as usize, index);
        assert_eq!(client.lookup_device(device.id()).unwrap(), *device);
        assert_eq!(device.memory_spaces()[0], device.default_memory_space());
        for space in device.memory_spaces() {
            assert_eq!(space.device(), *device);
            assert_eq!(device.memory_space(space.kind()).unwrap(), space);
            assert_eq!(space.to_string(), format!("null:{index}/{}", space.kind()));
            ids.push(space.id());
        }
    }
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn what_does_not_exist_is_answered_with_what_does() {
    let client = client(2, 1).unwrap();
    for id in [-1, 2, i32::MIN, i32::MAX] {
        let error = client.lookup_device(id).unwrap_err();
        assert_eq!(error.code(), StatusCode::NotFound);
        assert_eq!(error.message(), format!("there is no device {id}: the client has 2, from 0"));
    }
    let error = client.devices()[1].memory_space("hbm").unwrap_err();
    assert_eq!(error.code(), StatusCode::NotFound);
    assert_eq!(error.message(), "null:1 has no memory space 'hbm'; it has device, pinned_host, unpinned_host");
}

#[test]
fn the_process_index_is_what_was_given_or_an_error() {
    let make = |process_index| {
        let options = ClientOptions { process_index, worker_count: 1, ..Default::default() };
        Client::new(&options, Arc::new(NullBackend::new()))
    };
    assert_eq!(make(Some(3)).unwrap().process_index(), Ok(3));
    assert_eq!(make(None).unwrap().process_index().unwrap_err().code(), StatusCode::FailedPrecondition);
    let error = make(Some(-1)).unwrap_err();
    assert_eq!(error.message(), "process_index is -1; it must not be negative");
}

#[test]
fn replicas_get_devices_in_their_order() {
    let client = client(6, 1).unwrap();
    assert_eq!(client.default_device_assignment(2, 3), Ok(vec![vec![0, 1, 2], vec![3, 4, 5]]));
    assert_eq!(client.default_device_assignment(1, 1), Ok(vec![vec![0]]));
    assert_eq!(client.default_device_assignment(6, 1).unwrap().concat(), [0, 1, 2, 3, 4, 5]);
    for (replicas, partitions) in [(0, 1), (1, 0), (7, 1), (2, 4), (usize::MAX, 2), (usize::MAX, usize::MAX)] {
        let error = client.default_device_assignment(replicas, partitions).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert!(error.message().contains(&format!("{replicas} replicas of {partitions} partitions")), "{error}");
    }
}

#[test]
fn devices_of_different_clients_differ() {
    let (a, b) = (client(1, 1).unwrap(), client(1, 1).unwrap());
    assert_ne!(a.devices()[0], b.devices()[0]);
    assert_ne!(a.devices()[0].default_memory_space(), b.devices()[0].default_memory_space());
}

#[test]
fn a_description_names_platform_memory_and_runner() {
    let client = client(2, 1).unwrap();
    let _buffers: Vec<_> = client
        .devices()
        .iter()
        .map(|device| crate::RawBuffer::allocate(&device.default_memory_space(), 100).unwrap())
        .collect();
    let description = client.describe();
    assert!(description.starts_with("platform null: 2 device(s)\n"), "{description}");
    assert!(
        description.contains("memory in use: 200 bytes in device, 0 bytes in pinned_host, 0 bytes in unpinned_host\n"),
        "{description}"
    );
    assert!(description.contains(&client.runner().describe()), "{description}");
}

/// A backend whose second device cannot be opened.
struct OneDevice;

impl Backend for OneDevice {
    fn platform_name(&self) -> &'static str {
        "one"
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device"]
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        if device > 0 {
            return Err(Error::unavailable(format!("device {device} fell off the bus")));
        }
        NullBackend::new().open_memory(device, kind)
    }
}

#[test]
fn a_device_that_does_not_open_is_an_error_of_the_client() {
    let options = ClientOptions { device_count: 2, worker_count: 1, ..Default::default() };
    let error = Client::new(&options, Arc::new(OneDevice)).unwrap_err();
    assert_eq!((error.code(), error.message()), (StatusCode::Unavailable, "device 1 fell off the bus"));
}

#[test]
fn a_backend_without_copies_says_so() {
    let client =
        Client::new(&ClientOptions { device_count: 1, worker_count: 1, ..Default::default() }, Arc::new(OneDevice))
            .unwrap();
    let error = crate::Buffer::from_slice(&[1_u8], &[1], &client.devices()[0].default_memory_space()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.message().contains("the backend one has no copy of 1 bytes from host to one:0/device"), "{error}");
}
