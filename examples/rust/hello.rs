//! Two devices, an array, and work that waits for a copy: `cargo run --example hello -p purlin-host`

use std::sync::{Arc, OnceLock};

use purlin::host::HostBackend;
use purlin::{AsyncWorkRunner, Buffer, Client, ClientOptions, EventPromise, StatusOr, Task};

fn main() -> StatusOr<()> {
    let options = ClientOptions { device_count: 2, worker_count: 2, ..Default::default() };
    let client = Client::new(&options, Arc::new(HostBackend::new()))?;
    println!("{}", client.describe());

    // An array on device 0, and a copy of it on device 1 that is made while this thread goes on.
    let devices = client.devices();
    let celsius = Buffer::from_slice(&[-40.0_f32, 0.0, 37.0, 100.0], &[2, 2], &devices[0].default_memory_space())?;
    let copy = celsius.copy_to_device(&devices[1])?;

    // A task that begins when the copy is there, and an event with its outcome.
    let result = Arc::new(OnceLock::new());
    let done = EventPromise::new(c"converted");
    let converted = done.event();
    let (input, output) = (copy.clone(), Arc::clone(&result));
    let task = Task::new(c"convert", move || {
        let made = to_fahrenheit(&input).map(|array| output.set(array).expect("the task runs once"));
        done.set(made);
    });
    client.runner().schedule_when_ready(&[copy.ready_event()], task)?;

    // The task's writes are visible to the thread that saw its event.
    converted.wait()?;
    let fahrenheit = result.get().expect("the task put it there");
    println!("{fahrenheit:?} holds {:?}", fahrenheit.to_vec::<f32>()?);
    Ok(())
}

/// Makes an array of degrees Fahrenheit beside one of degrees Celsius.
fn to_fahrenheit(celsius: &Buffer) -> StatusOr<Buffer> {
    let values: Vec<f32> = celsius.to_vec::<f32>()?.into_iter().map(|degrees| degrees * 1.8 + 32.0).collect();
    Buffer::from_slice(&values, celsius.dims(), &celsius.memory_space())
}
