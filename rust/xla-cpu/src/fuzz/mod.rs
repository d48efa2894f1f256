//! Fuzzing from a seed: thousands of damaged executables and objects. The loader must not panic, every error of the
//! parser must name a byte, and every refusal for content must have a reason. No damaged code is run. Objects that the
//! linker accepts are mapped, and unmapped again; executables are only checked.
//!
//! `purlin_xla_proto::fuzz` makes the inputs. The executables are those of `sample.rs`, and, with `PURLIN_XLA_CORPUS`,
//! those that stock JAX has written to that folder.

pub(crate) mod sample;

use purlin_base::StatusCode;
use purlin_xla_proto::fuzz::fuzz;

use crate::fault::Reasons;
use crate::ffi::{self, Lowered, parse_attributes};
use crate::link::{Linkable, ObjectFile};
use crate::{LoadOptions, load_program};

#[test]
fn no_executable_breaks_the_reader() {
    let samples = sample::executables();
    for sample in &samples {
        crate::check(sample).unwrap();
    }
    let outcome = fuzz("executables", &samples, |bytes, outcome| match crate::check(bytes) {
        Ok(()) => outcome.accepted += 1,
        Err(error) => {
            let code = error.code();
            assert!(matches!(code, StatusCode::DataLoss | StatusCode::Unimplemented), "{error}");
            outcome.refused(error.message());
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused * 4 > outcome.accepted && outcome.kinds.len() >= 12);
}

#[test]
fn no_custom_call_breaks_the_loader() {
    let mut sound = sample::result(sample::objects().remove(0));
    sound.thunks = sample::custom_call("target", 4, br#"{a = 1 : i32, b = {c = "x"}}"#);
    let options =
        LoadOptions { trust_code: true, handlers: ffi::tests::handlers_of_nothing(), ..LoadOptions::default() };
    let samples = [sample::plugin(&sound)];
    load_program(&samples[0], &options).unwrap();
    let outcome = fuzz("custom calls", &samples, |bytes, outcome| match load_program(bytes, &options) {
        Ok(_) => outcome.accepted += 1,
        Err(error) => {
            let code = error.code();
            assert!(matches!(code, StatusCode::DataLoss | StatusCode::Unimplemented), "{error}");
            outcome.refused(error.message());
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused > 0 && outcome.kinds.len() >= 12);
}

#[test]
fn no_attributes_break_their_reader() {
    let samples = [
        &br#"{uplo = 76 : ui8, a = {b = "x\00\FF", "c d" = {}}, n = -1, f = 1.000000e-01 : f32, t = true}"#[..],
        br#"{a = array<i32: 1, -2>, b = dense<[[1, 2], [3, 4]]> : tensor<2x2xui64>, c = dense<7> : tensor<9xi8>}"#,
        br#"{h = 0x7FC00000 : f32, d = dense<"0x00FF"> : tensor<2xi8>, e = dense<> : tensor<0xf64>, g = 1.5 : bf16}"#,
    ];
    let samples = samples.map(<[u8]>::to_vec);
    let outcome = fuzz("attributes", &samples, |text, outcome| match parse_attributes(text) {
        Ok(attributes) => {
            outcome.accepted += 1;
            drop(Lowered::new(&attributes));
        }
        Err(why) => {
            let why = why.to_string();
            let at = why.strip_prefix("byte ").and_then(|rest| rest.split(':').next()).and_then(|at| at.parse().ok());
            assert!(at.is_some_and(|at: usize| at <= text.len()), "{why}");
            outcome.refused(&format!("XLA:CPU executable, {why}"));
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused > outcome.accepted && outcome.kinds.len() >= 12);
}

#[test]
fn no_object_breaks_the_linker() {
    let outcome = fuzz("objects", &sample::objects(), |bytes, outcome| {
        let mut reasons = Reasons::default();
        let file = match ObjectFile::read("fuzzed.o", bytes, &mut reasons) {
            Ok(file) => file,
            Err(fault) => {
                assert!(fault.offset <= bytes.len(), "{fault:?}");
                return outcome.refused(purlin_base::Error::from(fault).message());
            }
        };
        let linkable = Linkable::new(vec![file], &mut reasons);
        match (reasons.into_result("fuzzed"), linkable) {
            (Err(error), _) => outcome.refused(error.message()),
            // Maps the object and unmaps it: writing and protecting pages must not panic for any object that was
            // accepted.
            (Ok(()), Some(linkable)) => {
                outcome.accepted += 1;
                drop(linkable.load(false));
            }
            (Ok(()), None) => panic!("nothing was said"),
        }
    });
    assert!(outcome.accepted > 0 && outcome.refused > 0);
}
