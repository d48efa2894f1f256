use super::*;
use crate::dtype::DType;
use purlin_base::status::StatusCode;

fn array(dtype: DType, dims: &[i64], strides: &[i64]) -> HostArray {
    HostArray::new(&Shape::new(dtype, dims).unwrap(), Some(strides)).unwrap()
}

#[test]
fn without_strides_an_array_is_dense_and_row_major() {
    let shape = Shape::new(DType::F32, &[2, 3, 5]).unwrap();
    let dense = HostArray::new(&shape, None).unwrap();
    assert_eq!(dense.byte_strides(), [60, 20, 4]);
    assert_eq!(dense.extent(), 0..120);
    assert!(dense.is_dense(&Layout::row_major(3)));
    let narrow = HostArray::new(&Shape::new(DType::S4, &[2, 3]).unwrap(), None).unwrap();
    assert_eq!((narrow.byte_strides(), narrow.extent()), (&[3, 1][..], 0..6));
    assert_eq!(HostArray::new(&Shape::token(), None).unwrap().extent(), 0..0);
}

#[test]
fn the_extent_is_from_the_lowest_byte_to_the_highest() {
    assert_eq!(array(DType::F32, &[], &[]).extent(), 0..4);
    assert_eq!(array(DType::F32, &[2, 3], &[100, 8]).extent(), 0..120);
    assert_eq!(array(DType::F32, &[2, 3], &[-100, 8]).extent(), -100..20);
    assert_eq!(array(DType::U8, &[5], &[-1]).extent(), -4..1);
    assert_eq!(array(DType::C128, &[1 << 40, 2], &[0, -3]).extent(), -3..16);
    assert_eq!(array(DType::U4, &[3], &[7]).extent(), 0..15);
}

#[test]
fn strides_that_lead_nowhere_are_any() {
    let lone = array(DType::F32, &[1, 2, 1], &[i64::MIN, 4, i64::MAX]);
    assert_eq!(lone.extent(), 0..8);
    assert!(lone.is_dense(&Layout::row_major(3)));
    assert!(lone.is_dense(&Layout::new(&[0, 1, 2]).unwrap()));
    lone.check_writable().unwrap();
    let empty = array(DType::F32, &[0, i64::MAX], &[i64::MIN, i64::MIN]);
    assert_eq!(empty.extent(), 0..0);
    assert!(empty.is_dense(&Layout::row_major(2)));
    empty.check_writable().unwrap();
}

#[test]
fn a_reach_over_more_than_any_memory_is_refused() {
    for (dims, strides) in [
        (&[2][..], &[i64::MAX][..]),
        (&[2], &[i64::MIN]),
        (&[3], &[i64::MAX]),
        (&[i64::MAX], &[i64::MIN]),
        (&[2, 2], &[i64::MAX, i64::MIN]),
        (&[2, 2, 2, 2], &[1 << 61, 1 << 61, 1 << 61, -(1 << 61)]),
        (&[i64::MAX / 2, 2], &[2, 4]),
    ] {
        let shape = Shape::new(DType::U8, dims).unwrap();
        let error = HostArray::new(&shape, Some(strides)).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
        assert!(error.message().starts_with(&format!("{shape} with byte strides {strides:?} reaches")), "{error}");
    }
    assert_eq!(array(DType::U8, &[2], &[i64::MAX - 1]).extent(), 0..isize::MAX);
    assert_eq!(array(DType::U8, &[2], &[-i64::MAX + 1]).extent(), -isize::MAX + 1..1);
}

#[test]
fn a_dense_array_too_large_for_memory_is_refused_without_strides_too() {
    for (dtype, dims) in [(DType::F64, &[1 << 60][..]), (DType::U16, &[i64::MAX]), (DType::U16, &[1 << 31, 1 << 31])] {
        let error = HostArray::new(&Shape::new(dtype, dims).unwrap(), None).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
    }
    let most = HostArray::new(&Shape::new(DType::U8, &[1, i64::MAX]).unwrap(), None).unwrap();
    assert!(most.is_dense(&Layout::row_major(2)));
}

#[test]
fn other_numbers_of_strides_and_dynamic_shapes_are_refused() {
    let shape = Shape::new(DType::F32, &[2, 3]).unwrap();
    let error = HostArray::new(&shape, Some(&[4])).unwrap_err();
    assert_eq!(error.message(), "f32[2,3] has 2 dimensions, but there are 1 byte strides: [4]");
    let dynamic = Shape::with_dynamic(DType::F32, &[2], &[true]).unwrap();
    let error = HostArray::new(&dynamic, None).unwrap_err();
    assert_eq!(error.message(), "an array in host memory has the dimensions that it has, so f32[<=2] describes none");
}

#[test]
fn dense_is_a_question_of_the_layout() {
    let (row, column) = (Layout::row_major(2), Layout::new(&[0, 1]).unwrap());
    let transposed = array(DType::F32, &[2, 3], &[4, 8]);
    assert!(!transposed.is_dense(&row) && transposed.is_dense(&column));
    assert!(!array(DType::F32, &[2, 3], &[16, 4]).is_dense(&row));
    assert!(!array(DType::F32, &[2, 3], &[12, 0]).is_dense(&row));
    assert!(!array(DType::F32, &[2], &[-4]).is_dense(&Layout::row_major(1)));
    assert!(!array(DType::S4, &[2, 3], &[3, 1]).is_dense(&row));
    assert!(array(DType::S4, &[0, 3], &[3, 1]).is_dense(&row));
    assert!(!array(DType::F32, &[2, 3], &[12, 4]).is_dense(&Layout::row_major(3)));
    // One element, broadcast to more bytes than memory has.
    assert!(!array(DType::C128, &[1 << 59], &[0]).is_dense(&Layout::row_major(1)));
}

#[test]
fn descriptions_up_to_rank_eight_live_where_they_stand() {
    let dense = HostArray::new(&Shape::new(DType::F32, &[2; 8]).unwrap(), None).unwrap();
    assert!(!dense.byte_strides.spilled());
    assert_eq!(HostArray::new(&Shape::new(DType::F32, &[2; 9]).unwrap(), None).unwrap().extent(), 0..2048);
}

#[test]
fn elements_over_each_other_cannot_be_written() {
    for (dims, strides) in [(&[2][..], &[0][..]), (&[4], &[3]), (&[2, 3], &[4, 4]), (&[2, 3], &[-8, 4])] {
        let error = array(DType::F32, dims, strides).check_writable().unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
        assert!(error.message().contains("written over each other"), "{error}");
    }
    for (dims, strides) in [(&[4][..], &[-4][..]), (&[2, 3], &[4, 8]), (&[2, 3], &[-12, 4]), (&[2, 3], &[13, -4])] {
        array(DType::F32, dims, strides).check_writable().unwrap();
    }
    let error = array(DType::F32, &[2, 3], &[12, 0]).check_writable().unwrap_err();
    assert_eq!(
        error.message(),
        "elements of f32[2,3] with byte strides [12, 0] would be written over each other: dimension 1 steps by 0 \
         bytes, and what it steps over has 4"
    );
}
