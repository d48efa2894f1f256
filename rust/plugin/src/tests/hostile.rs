//! Null, wrong sizes, objects of other kinds: each is an error that names the function, and nothing else happens.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;

use purlin_base::StatusCode;
use purlin_pjrt::abi::{PjrtError, arguments};
use purlin_pjrt_abi::{self as abi, Api, NAMES, SLOTS, Versioned};

use super::{TestClient, call, destroy, integer, plugin, refusal, values};
use crate::GetPjrtApi;

type Function = unsafe extern "C" fn(args: *mut c_void) -> *mut PjrtError;

/// The functions that return an error, with their names.
fn functions() -> impl Iterator<Item = (&'static str, Function)> {
    let first = GetPjrtApi().cast::<u8>().wrapping_add(offset_of!(Api, error_destroy)).cast::<Option<Function>>();
    let is_void = |name: &str| matches!(name, "PJRT_Error_Destroy" | "PJRT_Error_Message");
    (0..SLOTS)
        .map(move |slot| {
            // SAFETY: the table has as many functions, which all take a pointer.
            (NAMES[slot], unsafe { *first.add(slot) }.expect("every slot answers"))
        })
        .filter(move |(name, _)| !is_void(name))
}

/// Calls `function` with whatever `args` are.
fn answer(function: Function, args: *mut c_void) -> Option<purlin_base::Error> {
    // SAFETY: the test gives null, or more bytes than any function looks at.
    plugin().taken(unsafe { function(args) })
}

/// The functions that make an object of nothing.
const MAKE: [&str; 3] = ["PJRT_Event_Create", "PJRT_ExecuteContext_Create", "PJRT_Client_Create"];

/// More room than any arguments need, all zeros but for the size.
#[repr(C, align(16))]
struct Zeroed {
    struct_size: usize,
    rest: [usize; 127],
}

#[test]
fn no_arguments_are_an_error_that_names_the_function() {
    for (name, function) in functions() {
        let error = answer(function, ptr::null_mut()).unwrap_or_else(|| panic!("{name} accepts nothing"));
        assert!(error.message().contains(name), "{name}: {error}");
        assert!(matches!(error.code(), StatusCode::InvalidArgument | StatusCode::Unimplemented), "{name}: {error}");
    }
}

#[test]
fn arguments_of_no_known_size_are_an_error_that_names_them() {
    for (name, function) in functions() {
        for size in [0, 8, 15, 4097, usize::MAX] {
            let mut args = Zeroed { struct_size: size, rest: [0; 127] };
            let error = answer(function, (&raw mut args).cast()).unwrap_or_else(|| panic!("{name} accepts {size}"));
            let told = error.message();
            assert!(told.contains(&format!("struct_size is {size}")) || told.contains("does not implement"), "{told}");
        }
    }
}

#[test]
fn as_many_functions_answer_as_the_page_for_users_says() {
    let refuses = |function: Function| {
        let mut args = Zeroed { struct_size: size_of::<Zeroed>(), rest: [0; 127] };
        answer(function, (&raw mut args).cast()).is_some_and(|error| error.message().contains("does not implement"))
    };
    // Only those that refuse null objects, so that nothing is made.
    let refused =
        functions().filter(|(name, _)| !MAKE.contains(name)).filter(|&(_, function)| refuses(function)).count();
    let page = std::fs::read_to_string("../../docs/jax.md").unwrap();
    assert!(page.contains(&format!("{} of the {SLOTS} functions", SLOTS - refused)), "{refused} are refused");
}

#[test]
fn null_objects_are_errors_and_what_needs_none_works() {
    for (name, function) in functions() {
        let mut args = Zeroed { struct_size: size_of::<Zeroed>(), rest: [0; 127] };
        let error = answer(function, (&raw mut args).cast());
        let needs_none = name.ends_with("_Destroy") && name != "PJRT_AsyncTrackingEvent_Destroy"
            || name.starts_with("PJRT_Plugin")
            || MAKE.contains(&name);
        match error {
            None => assert!(needs_none, "{name} accepts nothing"),
            Some(error) => {
                assert!(!needs_none || error.code() == StatusCode::Unimplemented, "{name}: {error}");
                assert!(error.message().contains(name) || error.message().contains("null"), "{name}: {error}");
            }
        }
        end(name, args.rest[1..].iter().copied().find(|&word| word != 0));
    }
}

/// Ends what a function gave that needs no arguments.
fn end(name: &str, given: Option<usize>) {
    let Some(address) = given.filter(|_| !name.starts_with("PJRT_Plugin")) else { return };
    let ended = match name {
        "PJRT_Event_Create" => {
            call(&mut abi::EventDestroyArgs { event: ptr::with_exposed_provenance_mut(address), ..arguments() })
        }
        "PJRT_ExecuteContext_Create" => {
            let context = ptr::with_exposed_provenance_mut(address);
            call(&mut abi::ExecuteContextDestroyArgs { context, ..arguments() })
        }
        "PJRT_Client_Create" => {
            call(&mut abi::ClientDestroyArgs { client: ptr::with_exposed_provenance_mut(address), ..arguments() })
        }
        _ => Ok(()),
    };
    ended.unwrap();
}

#[test]
fn an_object_of_another_kind_is_an_error_that_names_both() {
    let client = TestClient::new(1);
    let wrong = client.client.cast::<abi::Buffer>();
    let (code, text) = refusal(&mut abi::BufferDimensionsArgs { buffer: wrong, ..arguments() });
    assert_eq!(code, StatusCode::InvalidArgument);
    assert_eq!(
        text,
        format!("PJRT_Buffer_Dimensions: what is at {wrong:p} is no PJRT_Buffer of this plugin, or was destroyed")
    );
    let odd = wrong.wrapping_byte_add(1);
    assert!(refusal(&mut abi::BufferDimensionsArgs { buffer: odd, ..arguments() }).1.contains("is no PJRT_Buffer"));
    let memory = client.memory(0).cast::<abi::Device>();
    assert!(refusal(&mut abi::DeviceDefaultMemoryArgs { device: memory, ..arguments() }).1.contains("no PJRT_Device"));
}

/// Arguments of `T` of which the caller knows only the first `size` bytes; what lies behind is not touched.
fn of_older_callers<T: Versioned + abi::Slot + Copy>(whole: T, size: usize, check: impl Fn(&T)) {
    let mut args = [whole; 2];
    // SAFETY: the first field is the size.
    unsafe { (&raw mut args[0]).cast::<usize>().write(size) };
    let before = args[0];
    call(&mut args[0]).unwrap();
    check(&args[0]);
    // SAFETY: two structs of the same type, compared byte by byte behind what the caller knows.
    let (after, before) = unsafe {
        let bytes = |args: *const T| std::slice::from_raw_parts(args.cast::<u8>(), T::STRUCT_SIZE);
        (bytes(&raw const args[0]), bytes(&raw const before))
    };
    assert_eq!(after[size..], before[size..], "{} writes behind what the caller has", T::NAME);
    assert_eq!(after[..8], before[..8], "{} writes the size", T::NAME);
}

#[test]
fn older_callers_get_what_they_know() {
    let client = TestClient::new(1);
    // Without the fields for try-get, which came with 0.61.
    let create = arguments::<abi::ClientCreateArgs>();
    const { assert!(abi::ClientCreateArgs::FIRST_SIZE < abi::ClientCreateArgs::STRUCT_SIZE) };
    of_older_callers(create, abi::ClientCreateArgs::FIRST_SIZE, |args| {
        call(&mut abi::ClientDestroyArgs { client: args.client, ..arguments() }).unwrap();
    });
    // Without payloads, which came with 0.103.
    let message = "broken";
    let error = abi::ClientCreateErrorBufferArgs {
        client: client.client,
        error_code: abi::error_code::DATA_LOSS,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
        shape_element_type: super::F32,
        memory: client.memory(0),
        payload: ptr::dangling(),
        num_payload: usize::MAX,
        ..arguments()
    };
    of_older_callers(error, abi::ClientCreateErrorBufferArgs::FIRST_SIZE, |args| {
        assert_eq!(values(args.buffer, 1).unwrap_err().message(), "broken");
        destroy(args.buffer);
    });
}

#[test]
fn newer_callers_may_know_more() {
    let client = TestClient::new(1);
    let mut args = abi::ClientDevicesArgs { client: client.client, ..arguments() };
    args.struct_size = 4096;
    call(&mut args).unwrap();
    assert_eq!((args.num_devices, args.struct_size), (1, 4096));
}

#[test]
fn options_that_are_none_are_named() {
    for (option, text) in [
        (integer("devices", 2), "there is no option 'devices'; there are device_count, cpu_device_count"),
        (integer("device_count", -1), "the option 'device_count' is -1; it must not be negative"),
        (integer("device_count", 0), "device_count is 0; it must be in 1..1024"),
        (integer("mode", 0), "the option 'mode' is a value of PJRT_NamedValue_Type 1, not a text"),
    ] {
        let (code, told) =
            refusal(&mut abi::ClientCreateArgs { create_options: &raw const option, num_options: 1, ..arguments() });
        assert_eq!(code, StatusCode::InvalidArgument);
        assert!(told.starts_with(text), "{told}");
    }
}

#[test]
fn without_a_compiler_a_program_is_refused_with_the_way_to_one() {
    let path = "/nonexistent/plugin.so";
    let option = abi::NamedValue {
        r#type: abi::named_value_type::STRING,
        value: abi::NamedValueValue { string_value: path.as_ptr().cast() },
        value_size: path.len(),
        ..integer("compiler", 0)
    };
    let mut made = abi::ClientCreateArgs { create_options: &raw const option, num_options: 1, ..arguments() };
    call(&mut made).unwrap();
    let (code, text) = refusal(&mut abi::ClientCompileArgs { client: made.client, ..arguments() });
    assert_eq!(code, StatusCode::FailedPrecondition);
    assert!(text.starts_with("the plugin that compiles, /nonexistent/plugin.so: "), "{text}");
    call(&mut abi::ClientDestroyArgs { client: made.client, ..arguments() }).unwrap();
}
