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
use crate::link::{Linkable, ObjectFile};

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
fn no_object_breaks_the_linker() {
    let outcome = fuzz("objects", &sample::objects(), |bytes, outcome| {
        let mut reasons = Reasons::default();
        let file = match ObjectFile::read("fuzzed.o", bytes, &mut reasons) {
            Ok(file) => file,
            Err(fault) => return outcome.refused(&format!("XLA:CPU executable, byte 0: {}", fault.what)),
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
