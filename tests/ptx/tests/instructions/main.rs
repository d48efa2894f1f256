//! Each instruction by itself, in texts written by hand, beside what Rust makes of the same numbers or what the manual
//! of PTX says.

mod atomics;
mod barriers;
mod compares;
mod control;
mod conversions;
mod floats;
mod halves;
mod integers;
mod memory;
#[path = "../support/mod.rs"]
mod support;
mod warps;

use support::{Arguments, Device, line, module, run, text_of};

/// What `code` leaves in `d`, of the PTX type `ty`, with registers `a`, `b`, `c` and `e` of the given types and bits.
/// Predicates have the type pred; `p` and `q` are predicates, too.
fn eval(code: &str, ty: &str, sources: &[(&str, u64)]) -> u64 {
    let mut body = String::from(".reg .pred p, q;\n.reg .b32 word;\n.reg .b64 out;\n");
    body += &format!(".reg .{ty} d;\n");
    for (name, (ty, bits)) in ["a", "b", "c", "e"].iter().zip(sources) {
        match *ty {
            "pred" => body += &format!(".reg .pred {name};\nsetp.ne.u32 {name}, {bits}, 0;\n"),
            // A move has no 8 bits; their register has 16.
            ty => {
                let width = width(ty).max(16);
                let bits = bits & (u64::MAX >> (64 - width));
                body += &format!(".reg .b{width} {name};\nmov.b{width} {name}, {bits};\n");
            }
        }
    }
    body += &format!("ld.param.u64 out, [k_out];\n{code}\n");
    body += &match ty {
        "pred" => "selp.u32 word, 1, 0, d;\nst.global.u32 [out], word;\n".to_owned(),
        ty => format!("st.global.b{} [out], d;\n", width(ty).max(16)),
    };
    let module = module(&text_of("", ".param .u64 k_out", &body));
    let device = Device::default();
    let out = device.put(&[0; 8]);
    run(&module, "k", line(1, 1), &Arguments::default().pointer(out), &device);
    device.u64(out)[0]
}

fn width(ty: &str) -> u32 {
    if ty.ends_with("x2") {
        32
    } else {
        ty[ty.len() - ty.bytes().rev().take_while(u8::is_ascii_digit).count()..].parse().unwrap()
    }
}

fn f(value: f32) -> u64 {
    u64::from(value.to_bits())
}
