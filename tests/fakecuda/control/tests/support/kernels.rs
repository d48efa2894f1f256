//! Kernels of tests, as PTX.

/// `add_one(to, from)`: 32-bit words, one a thread, of one block. `spin(flag)`: writes 1, and runs for ever. `stop()`:
/// traps. `count`: a variable that begins with 7. `bump()`: adds 1 to it, in each thread. `few()`: at most 8 threads, a
/// kilobyte of shared memory.
pub(crate) const TEXT: &str = r"
.version 8.2
.target sm_75
.address_size 64

.visible .global .align 4 .u32 count = 7;

.visible .entry add_one(.param .u64 to, .param .u64 from)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [from];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd6, %rd4, %rd5;
    ld.global.u32 %r2, [%rd6];
    add.s32 %r3, %r2, 1;
    add.s64 %rd7, %rd3, %rd5;
    st.global.u32 [%rd7], %r3;
    ret;
}

.visible .entry spin(.param .u64 flag)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [flag];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 1;
    st.global.u32 [%rd2], %r1;
$again:
    bra $again;
}

.visible .entry stop()
{
    trap;
}

.visible .entry bump()
{
    .reg .b32 %r<3>;
    ld.global.u32 %r1, [count];
    add.s32 %r2, %r1, 1;
    st.global.u32 [count], %r2;
    ret;
}

.visible .entry few() .maxntid 8, 1, 1
{
    .shared .align 4 .b8 place[1024];
    .reg .b32 %r<2>;
    mov.u32 %r1, 5;
    st.shared.u32 [place], %r1;
    ret;
}
";
