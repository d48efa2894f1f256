use super::*;
use purlin_base::status::StatusCode;

fn bytes(dtype: DType, dims: &[i64]) -> usize {
    Shape::new(dtype, dims).unwrap().size_bytes()
}

#[test]
fn sizes_are_products() {
    assert_eq!(bytes(DType::F32, &[]), 4);
    assert_eq!(bytes(DType::F32, &[2, 3]), 24);
    assert_eq!(bytes(DType::C128, &[1, 1, 5]), 80);
    assert_eq!(Shape::new(DType::U8, &[7, 2]).unwrap().element_count(), 14);
    assert_eq!(Shape::new(DType::U8, &[]).unwrap().element_count(), 1);
}

#[test]
fn narrow_elements_share_bytes_on_a_device_only() {
    for (dtype, dims, packed) in [
        (DType::S4, &[][..], 1),
        (DType::S4, &[3, 3], 5),
        (DType::F4E2M1FN, &[8], 4),
        (DType::U2, &[3, 3], 3),
        (DType::S2, &[4], 1),
        (DType::U4, &[0], 0),
    ] {
        let shape = Shape::new(dtype, dims).unwrap();
        assert_eq!(shape.size_bytes(), packed, "{shape}");
        assert_eq!(shape.host_size_bytes() as i64, shape.element_count(), "{shape}");
    }
    assert_eq!(Shape::new(DType::F64, &[3]).unwrap().host_size_bytes(), 24);
}

#[test]
fn a_zero_dimension_empties_the_array_wherever_it_stands() {
    assert_eq!(bytes(DType::F64, &[0]), 0);
    assert_eq!(bytes(DType::F64, &[0, i64::MAX, i64::MAX]), 0);
    assert_eq!(bytes(DType::F64, &[i64::MAX, i64::MAX, 0]), 0);
}

#[test]
fn the_largest_shape_is_sound_and_one_more_element_is_not() {
    let most = i64::try_from(usize::MAX / 16).unwrap();
    assert_eq!(bytes(DType::C128, &[most]), usize::MAX / 16 * 16);
    // i64::MAX elements fit, their bits would not.
    assert_eq!(bytes(DType::S4, &[i64::MAX]), i64::MAX as usize / 2 + 1);
    assert_eq!(Shape::new(DType::U2, &[1, i64::MAX]).unwrap().element_count(), i64::MAX);
    for (dtype, dims) in [
        (DType::C128, vec![most + 1]),
        (DType::U16, vec![i64::MAX, 2]),
        (DType::U8, vec![i64::MAX, 3]),
        (DType::U8, vec![i64::MAX, 2]),
        (DType::S4, vec![1 << 32, 1 << 31]),
        (DType::U8, vec![1 << 32, 1 << 32]),
        (DType::S2, vec![1 << 32, 1 << 32]),
    ] {
        let error = Shape::new(dtype, &dims).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
        assert!(error.message().starts_with(&Written { dtype, dims: &dims, dynamic: &[] }.to_string()), "{error}");
    }
}

#[test]
fn a_negative_dimension_is_named() {
    let error = Shape::new(DType::F32, &[2, -3]).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert_eq!(error.message(), "dimension 1 of f32[2,-3] is negative: -3");
    assert!(Shape::new(DType::F32, &[i64::MIN, 0]).is_err());
}

#[test]
fn a_shape_is_written_as_xla_writes_it() {
    assert_eq!(Shape::new(DType::BF16, &[4, 0, 2]).unwrap().to_string(), "bf16[4,0,2]");
    assert_eq!(Shape::new(DType::Pred, &[]).unwrap().to_string(), "pred[]");
    assert_eq!(Shape::with_dynamic(DType::F32, &[5, 3], &[true, false]).unwrap().to_string(), "f32[<=5,3]");
    assert_eq!(Shape::token().to_string(), "token[]");
}

#[test]
fn a_token_has_no_elements_and_no_dimensions() {
    let token = Shape::new(DType::Token, &[]).unwrap();
    assert_eq!(token, Shape::token());
    assert_eq!((token.element_count(), token.size_bytes(), token.host_size_bytes()), (0, 0, 0));
    let error = Shape::new(DType::Token, &[2]).unwrap_err();
    assert_eq!(error.message(), "a token has no dimensions, unlike token[2]");
    assert!(Shape::with_dynamic(DType::Token, &[2], &[true]).is_err());
}

#[test]
fn dynamic_dimensions_are_bounded_and_their_sizes_follow_the_elements() {
    let shape = Shape::with_dynamic(DType::U8, &[5, 3], &[true, false]).unwrap();
    assert!(shape.is_dynamic());
    assert_eq!([0, 1, 2].map(|axis| shape.dynamic_dimension(axis)), [true, false, false]);
    assert_eq!((shape.element_count(), shape.size_bytes(), shape.on_device_size_bytes()), (15, 15, 15 + 8));
    let fixed = Shape::new(DType::U8, &[5, 3]).unwrap();
    assert_ne!(shape, fixed);
    assert_eq!(fixed.on_device_size_bytes(), 15);
    assert_eq!(Shape::with_dynamic(DType::U8, &[5, 3], &[false, false]).unwrap(), fixed);
}

#[test]
fn dynamic_shapes_are_refused_for_what_is_wrong_with_them() {
    let error = Shape::with_dynamic(DType::F32, &[5, 3], &[true]).unwrap_err();
    assert_eq!(error.message(), "f32[5,3] has 2 dimensions, but 1 were said to be dynamic or not");
    let error = Shape::with_dynamic(DType::F32, &[5, -3], &[true, true]).unwrap_err();
    assert_eq!(error.message(), "dimension 1 of f32[<=5,<=-3] is negative: -3");
    // The elements fit, the sizes behind them do not.
    let dims = [1, i64::MAX];
    assert_eq!(bytes(DType::U16, &dims), usize::MAX - 1);
    let error = Shape::with_dynamic(DType::U16, &dims, &[false, true]).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
}

#[test]
fn shapes_up_to_rank_four_live_where_they_stand() {
    let few = Shape::new(DType::F32, &[1, 2, 3, 4]).unwrap();
    assert!(matches!(few.dims, Dims::Few(_)));
    assert_eq!(few.dims(), [1, 2, 3, 4]);
    assert_eq!(Shape::new(DType::F32, &[1; 40]).unwrap().rank(), 40);
    // Each buffer has one.
    assert_eq!(size_of::<Shape>(), 48);
}
