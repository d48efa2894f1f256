//! Handlers by name, and the reasons why a custom call cannot run.

use super::super::register_ffi_type;
use super::*;
use crate::check;

unsafe extern "C-unwind" fn of_another_major_version(frame: *mut c_void) -> Returned {
    entered_with(frame, 1, 0);
    ptr::null_mut()
}

unsafe extern "C-unwind" fn of_a_later_version(frame: *mut c_void) -> Returned {
    entered_with(frame, 0, 4);
    ptr::null_mut()
}

unsafe extern "C-unwind" fn without_a_version(_frame: *mut c_void) -> Returned {
    ptr::null_mut()
}

unsafe extern "C-unwind" fn refuses_the_question(frame: *mut c_void) -> Returned {
    // SAFETY: the host calls handlers with a frame.
    failed(unsafe { &*(*frame.cast::<CallFrame>()).api }, 9, c"its type is not registered")
}

unsafe extern "C-unwind" fn panics_at_the_question(_frame: *mut c_void) -> Returned {
    panic!("oh")
}

#[test]
fn handlers_are_asked_for_their_version() {
    let mut handlers = FfiHandlers::default();
    let mut register = |name: &str, bundle: FfiBundle| {
        // SAFETY: the functions are handlers of these tests, and have no owner.
        unsafe { handlers.register(name, bundle, Arc::new(())) }
    };
    register("a", FfiBundle::of(nothing)).unwrap();
    for (name, bundle, code, why) in [
        ("a", FfiBundle::of(nothing), StatusCode::AlreadyExists, "custom call target 'a' has a handler already"),
        (
            "b",
            FfiBundle::of(of_another_major_version),
            StatusCode::Unimplemented,
            "custom call target 'b', stage 'execute': it has version 1.0 of XLA's FFI, and Purlin 0.3",
        ),
        (
            "b",
            FfiBundle { prepare: Some(of_a_later_version), ..FfiBundle::of(nothing) },
            StatusCode::Unimplemented,
            "custom call target 'b', stage 'prepare': it has version 0.4 of XLA's FFI, and Purlin 0.3",
        ),
        (
            "b",
            FfiBundle::of(without_a_version),
            StatusCode::InvalidArgument,
            "custom call target 'b', stage 'execute': the function does not say which version of XLA's FFI it has",
        ),
        (
            "b",
            FfiBundle { instantiate: Some(refuses_the_question), ..FfiBundle::of(nothing) },
            StatusCode::FailedPrecondition,
            "custom call target 'b', stage 'instantiate': its type is not registered",
        ),
        (
            "b",
            FfiBundle::of(panics_at_the_question),
            StatusCode::Internal,
            "custom call target 'b', stage 'execute': the handler panicked: oh",
        ),
    ] {
        assert_eq!(message(register(name, bundle)), (code, why.to_owned()));
    }
    assert_eq!(format!("{handlers:?}"), r#"["a"]"#);
    assert_eq!(handlers.get("a").map(|handler| format!("{handler:?}").contains("traits: 1")), Some(true));
}

unsafe extern "C-unwind" fn deleter(_object: *mut c_void) {}

#[test]
fn types_have_one_id_one_name_and_one_deleter() {
    // SAFETY: no state has these types.
    let register = |name: &str, id, deleter| unsafe { register_ffi_type(name, id, deleter) };
    let id = register("type of a test", 0, Some(deleter)).unwrap();
    assert!(id >= 1 << 40);
    assert_eq!(register("type of a test", 0, Some(deleter)).unwrap(), id);
    assert_eq!(register("type of a test", id, Some(deleter)).unwrap(), id);
    assert_ne!(register("another type of a test", 0, None).unwrap(), id);
    for (name, id, deleter, code) in [
        ("type of a test", id + 1000, Some(deleter as _), StatusCode::InvalidArgument),
        ("third type of a test", -1, None, StatusCode::InvalidArgument),
        ("third type of a test", id, None, StatusCode::AlreadyExists),
        ("type of a test", id, None, StatusCode::AlreadyExists),
    ] {
        assert_eq!(message(register(name, id, deleter)).0, code, "{name}");
    }
}

#[test]
fn calls_that_cannot_run_are_reasons_and_nothing_is_loaded() {
    let reason = |version, attributes: &[u8], handlers: FfiHandlers| {
        let mut result = result(objects().remove(0));
        result.thunks = custom_call("lapack_spotrf_ffi", version, attributes);
        let bytes = plugin(&result);
        let options = LoadOptions { trust_code: true, handlers, ..Default::default() };
        let (code, text) = message(load_program(&bytes, &options));
        assert_eq!(code, StatusCode::Unimplemented);
        assert_eq!(check(&bytes).unwrap_err().code(), StatusCode::Unimplemented);
        text.strip_prefix("program 'sample' cannot run here: custom call target 'lapack_spotrf_ffi'")
            .unwrap()
            .to_owned()
    };
    assert_eq!(reason(4, b"", FfiHandlers::default()), " is not registered");
    let handlers = || registered("lapack_spotrf_ffi", FfiBundle::of(nothing));
    assert_eq!(reason(4, b"{x}", handlers()), ": attributes, byte 2: expected '='");
    assert_eq!(reason(1, b"", handlers()), " is of the original kind (API version 1), not typed FFI");
    assert_eq!(reason(2, b"", handlers()), " is of the kind that returns a status (API version 2), not typed FFI");
    assert_eq!(reason(9, b"", handlers()), " is of an unknown kind (API version 9), not typed FFI");
}
