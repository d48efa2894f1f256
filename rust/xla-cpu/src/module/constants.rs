//! Literals, converted to the bytes of a constant.

use purlin_array::DType;

use super::shapes::Array;
use crate::proto::LiteralProto;

/// The bytes of a literal, or the reason why it is refused.
pub(crate) fn bytes(literal: &LiteralProto) -> Result<Vec<u8>, String> {
    let shape = literal.shape.as_ref().ok_or("a literal has no shape")?;
    let array = Array::new(shape)?;
    let bytes = match array.shape.dtype() {
        DType::Pred => literal.preds.iter().map(|&is| u8::from(is)).collect(),
        DType::S8 => literal.s8s.clone(),
        DType::S16 => literal.s16s.clone(),
        DType::S32 => literal.s32s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::S64 => literal.s64s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::U8 => literal.u8s.clone(),
        DType::U16 => literal.u16s.clone(),
        DType::U32 => literal.u32s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::U64 => literal.u64s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::F16 => literal.f16s.clone(),
        DType::BF16 => literal.bf16s.clone(),
        DType::F32 => literal.f32s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::F64 => literal.f64s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::C64 => literal.c64s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::C128 => literal.c128s.iter().flat_map(|number| number.to_le_bytes()).collect(),
        DType::F8E5M2 => literal.f8e5m2s.clone(),
        DType::F8E4M3FN => literal.f8e4m3fns.clone(),
        DType::F8E4M3B11FNUZ => literal.f8e4m3b11fnuzs.clone(),
        DType::F8E5M2FNUZ => literal.f8e5m2fnuzs.clone(),
        DType::F8E4M3FNUZ => literal.f8e4m3fnuzs.clone(),
        DType::F8E4M3 => literal.f8e4m3s.clone(),
        DType::F8E3M4 => literal.f8e3m4s.clone(),
        DType::F8E8M0FNU => literal.f8e8m0fnus.clone(),
        DType::S4 => literal.s4s.clone(),
        DType::U4 => literal.u4s.clone(),
        DType::S2 => literal.s2s.clone(),
        DType::U2 => literal.u2s.clone(),
        DType::F4E2M1FN => literal.f4e2m1fns.clone(),
        other => return Err(format!("a constant of {}", other.name())),
    };
    if bytes.len() != array.size_bytes() {
        return Err(format!("a constant of {} has {} bytes", array.shape, bytes.len()));
    }
    Ok(bytes)
}
