use std::collections::HashSet;
use std::fs;

use super::files;
use super::layout::Layout;
use super::read;
use super::table::{Role, Table};

fn table() -> Table {
    Table::of_this_crate()
}

#[test]
fn the_generated_files_are_what_the_table_says() {
    for file in files::all() {
        let there = fs::read_to_string(file.full_path()).unwrap_or_default();
        assert!(there == file.text, "{} is stale: `cargo run -p purlin-pjrt-abi` writes it", file.path);
    }
}

#[test]
fn the_table_of_functions_is_that_of_0_115() {
    assert_eq!(super::SLOTS, 138);
    assert_eq!(size_of::<super::Api>(), 1144);
    assert_eq!(super::NAMES[132], "PJRT_Error_ForEachPayload");
    let of_extensions: Vec<_> = table().extensions.iter().map(|of| (of.name.clone(), of.functions.len())).collect();
    let expected = [("Layouts", 7), ("FFI", 3), ("MemoryDescriptions", 2), ("Shardings", 2)];
    assert_eq!(of_extensions, expected.map(|(name, count)| (name.to_owned(), count)));
}

#[test]
fn names_are_unique_and_what_fields_refer_to_is_there() {
    let table = table();
    let mut names = HashSet::new();
    for of in table.all_structs() {
        assert!(names.insert(&of.name), "{} is there twice", of.name);
        let fields: HashSet<_> = of.fields.iter().map(|field| &field.name).collect();
        assert_eq!(fields.len(), of.fields.len(), "{} has a field twice", of.name);
        for field in &of.fields {
            for other in [&field.count, &field.by, &field.until].into_iter().flatten() {
                assert!(fields.contains(other), "{}.{} refers to {other}, which is not there", of.name, field.name);
            }
            assert!(field.since == 0 || field.since >= of.since, "{}.{} is older than its struct", of.name, field.name);
        }
    }
}

/// Roles are about pointers, and what one side gives the other must be something that can be given back.
#[test]
fn roles_fit_their_types() {
    let table = table();
    for of in table.all_structs() {
        for field in &of.fields {
            let place = format!("{}.{}", of.name, field.name);
            let is_pointer = field.c_type.ends_with('*');
            match field.role {
                Role::Handle | Role::Ends | Role::Takes | Role::Gives | Role::Lends | Role::Arg => {
                    assert!(is_pointer, "{place} is no pointer")
                }
                Role::Call => assert!(field.signature.is_some(), "{place} is no function"),
                Role::Union => assert!(field.members.len() > 1, "{place} is one of one"),
                Role::In | Role::Out | Role::InOut => {}
            }
            assert!(field.count.is_none() || is_pointer, "{place} is no array");
            assert!(field.by.is_none() || field.role == Role::Lends, "{place} is lent by nobody");
            assert!(!field.nullable || is_pointer || field.role == Role::Call, "{place} cannot be null");
        }
    }
}

/// A function that ends an object has nothing else to do; and each object that a function gives can be ended.
#[test]
fn objects_that_are_given_can_be_ended() {
    let table = table();
    let mut ended = HashSet::new();
    for (_, function) in table.all_functions() {
        for field in &function.arguments.fields {
            match field.role {
                Role::Ends | Role::Takes => _ = ended.insert(field.c_type.clone()),
                Role::Call => {
                    let signature = field.signature.iter().flat_map(|of| &of.parameters);
                    ended.extend(signature.map(|(c_type, _)| c_type.clone()));
                }
                _ => {}
            }
        }
    }
    for (_, function) in table.all_functions() {
        for field in function.arguments.fields.iter().filter(|field| field.role == Role::Gives) {
            let object = field.c_type.trim_end_matches("** const*").trim_end_matches('*').to_owned() + "*";
            assert!(ended.contains(&object), "{}: nothing ends {}", function.name, field.c_type);
        }
    }
}

/// Of what another side writes, any byte must be a value (`.ci/check/numbers` holds the other files to that).
#[test]
fn rust_sees_no_type_that_has_values_that_are_none() {
    let declarations = super::rust::declarations(&table());
    for word in [": bool", "enum ", "Box<", "NonNull"] {
        assert!(
            !declarations.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word)),
            "{word}"
        );
    }
    assert!(declarations.contains("pub is_ready: u8,") && declarations.contains("pub type BufferType = c_int;"));
}

#[test]
fn layouts_are_those_of_c() {
    let small = "plain Small: S.\n  in bool a: A.\n  in int b: B.\n  in bool c: C.\nsized Large: L.\n  in Small inner: I.\n  union: \
                 x int, y int64_t\n  in bool last since 7: L.\n";
    let table = read::table(small).unwrap();
    let [small, large] = table.structs.as_slice() else { panic!("two structs") };
    assert_eq!(table.placed(small).offsets, [0, 4, 8]);
    assert_eq!(table.placed(small).layout, Layout { size: 12, align: 4 });
    assert_eq!(table.placed(large).offsets, [0, 8, 24, 32]);
    assert_eq!(table.placed(large).struct_size(), 33);
    assert_eq!(table.placed(large).layout, Layout { size: 40, align: 8 });
    assert_eq!(table.struct_size_at(large, 6), 32);
}

#[test]
fn a_line_that_is_not_understood_is_named() {
    for (text, wrong) in [
        ("struct", "line 1: no name: struct"),
        ("room A: x", "line 1: no entry is a \"room\": room A: x"),
        ("# a\n\nplain A: x\n  borrows int a: y", "line 4: no role is \"borrows\": "),
        ("plain A: x\n  in int: y", "line 2: no name: "),
        ("handle A\n  in int a: y", "line 2: nothing belongs to a \"handle\": "),
        ("plain A since x: y", "line 1: no number follows since : \"x\": "),
        ("callback void A: y", "line 1: no parameters: "),
    ] {
        let answer = read::table(text).map(|_| ()).unwrap_err();
        assert!(answer.starts_with(wrong), "{answer:?}, not {wrong:?}");
    }
}
