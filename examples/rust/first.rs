//! An array, a copy of it on another device, and a function that is called when the copy is there.
use purlin::{Buffer, Client, ClientOptions, StatusOr, host::HostBackend};
fn main() -> StatusOr<()> {
    let options = ClientOptions { device_count: 2, ..Default::default() };
    let client = Client::new(&options, std::sync::Arc::new(HostBackend::new()))?;
    let (here, there) = (&client.devices()[0], &client.devices()[1]);
    let array = Buffer::from_slice(&[-40.0_f32, 0.0, 37.0, 100.0], &[4], &here.default_memory_space())?;
    let copy = array.copy_to_device(there)?; // has begun; this thread goes on
    copy.ready_event().on_ready(|copied| println!("copied: {copied:?}"));
    println!("{copy:?} holds {:?}", copy.to_vec::<f32>()?); // waits for the copy
    Ok(())
}
