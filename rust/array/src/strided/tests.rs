//! Plans against an oracle that finds every element by itself, in memory of just the bytes that the description names.

#![allow(unsafe_code, reason = "elements are moved by address")]

use std::ops::Range;

use super::{HostArray, StridedPlan};
use crate::dtype::DType;
use crate::layout::Layout;
use crate::shape::Shape;

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn signed(&mut self, most: i64) -> i64 {
        self.below(2 * most as u64 + 1) as i64 - most
    }

    fn bytes(&mut self, count: usize) -> Box<[u8]> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }

    fn permutation(&mut self, rank: usize) -> Vec<i64> {
        let mut entries: Vec<i64> = (0..rank as i64).collect();
        (1..rank).for_each(|last| entries.swap(last, self.below(last as u64 + 1) as usize));
        entries
    }

    fn dims(&mut self) -> Vec<i64> {
        let (rank, most) = match self.below(5) {
            0 => (self.below(9), 4),
            1 => (self.below(4), 24),
            2 => (2, 180),
            _ => (self.below(6), 7),
        };
        let may_be_empty = self.below(16) == 0;
        (0..rank).map(|_| if may_be_empty { self.below(most) as i64 } else { 1 + self.below(most) as i64 }).collect()
    }

    /// Strides of an array that can be written: any order of the dimensions, gaps, and both signs.
    fn nested_strides(&mut self, dims: &[i64], width: i64) -> Vec<i64> {
        let mut strides = vec![0; dims.len()];
        let mut span = width;
        for axis in self.permutation(dims.len()) {
            let gap = if self.below(4) == 0 { self.below(9) as i64 } else { 0 };
            let stride = span + gap;
            strides[axis as usize] = if self.below(4) == 0 { -stride } else { stride };
            span = stride * dims[axis as usize].max(1);
        }
        strides
    }

    /// Strides that can be read: as above, with broadcasts, or small numbers without any order.
    fn strides(&mut self, dims: &[i64], width: i64) -> Vec<i64> {
        if self.below(4) == 0 {
            return dims.iter().map(|_| self.signed(20)).collect();
        }
        let mut strides = self.nested_strides(dims, width);
        strides.iter_mut().for_each(|stride| *stride *= i64::from(self.below(6) != 0));
        strides
    }
}

/// For every element: its byte on the host, from the start of the extent, and its number on the device.
fn places(array: &HostArray, layout: &Layout) -> Vec<(usize, usize)> {
    let dims = array.shape().dims();
    let mut index = vec![0_i64; dims.len()];
    let mut places = Vec::new();
    for _ in 0..array.shape().element_count() {
        let offset: i64 = index.iter().zip(array.byte_strides()).map(|(&i, &stride)| i * stride).sum();
        let (mut number, mut step) = (0, 1);
        for &axis in layout.minor_to_major() {
            number += index[axis as usize] * step;
            step *= dims[axis as usize];
        }
        places.push((usize::try_from(offset as isize - array.extent().start).unwrap(), number as usize));
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            if index[axis] < dims[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    places
}

fn gathered_by_oracle(array: &HostArray, layout: &Layout, host: &[u8]) -> Vec<u8> {
    let dtype = array.shape().dtype();
    let mut device = vec![0; array.shape().size_bytes()];
    for (byte, number) in places(array, layout) {
        if dtype.is_sub_byte() {
            let bit = number * dtype.bits();
            device[bit / 8] |= (host[byte] & ((1 << dtype.bits()) - 1)) << (bit % 8);
        } else {
            let width = dtype.byte_width();
            device[number * width..][..width].copy_from_slice(&host[byte..][..width]);
        }
    }
    device
}

fn scattered_by_oracle(array: &HostArray, layout: &Layout, device: &[u8], host: &mut [u8]) {
    let dtype = array.shape().dtype();
    for (byte, number) in places(array, layout) {
        if dtype.is_sub_byte() {
            let bit = number * dtype.bits();
            let value = device[bit / 8] >> (bit % 8) & ((1 << dtype.bits()) - 1);
            let negative = dtype.is_signed_integer() && value >> (dtype.bits() - 1) == 1;
            host[byte] = if negative { value | !((1 << dtype.bits()) - 1) } else { value };
        } else {
            let width = dtype.byte_width();
            host[byte..][..width].copy_from_slice(&device[number * width..][..width]);
        }
    }
}

/// Pieces of one plan, sometimes cut anywhere, in any order.
fn ranges(plan: &StridedPlan, dtype: DType, numbers: &mut Numbers) -> Vec<std::ops::Range<usize>> {
    let count = plan.elements().end;
    let mut ranges: Vec<_> = match numbers.below(3) {
        0 => std::iter::once(0..count).collect(),
        1 => plan.pieces(1 + numbers.below(300) as usize).collect(),
        _ => {
            let per_byte = if dtype.is_sub_byte() { 8 / dtype.bits() } else { 1 };
            let mut cuts: Vec<_> =
                (0..3).map(|_| numbers.below(count as u64 + 1) as usize / per_byte * per_byte).collect();
            cuts.extend([0, count]);
            cuts.sort_unstable();
            cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
        }
    };
    let order = numbers.permutation(ranges.len());
    ranges = order.iter().map(|&index| ranges[index as usize].clone()).collect();
    ranges
}

fn gather(plan: &StridedPlan, array: &HostArray, host: &[u8], ranges: &[std::ops::Range<usize>]) -> Box<[u8]> {
    let mut device = vec![0xa5; array.shape().size_bytes()].into_boxed_slice();
    assert_eq!(host.len(), array.extent().len());
    for range in ranges {
        let to = &mut device[plan.device_bytes(range)];
        // SAFETY: `host` is the extent, `to` the bytes of the range; both are ours.
        unsafe { plan.gather(host.as_ptr().wrapping_offset(-array.extent().start), to.as_mut_ptr(), range.clone()) };
    }
    device
}

fn scatter(plan: &StridedPlan, array: &HostArray, device: &[u8], host: &mut [u8], ranges: &[std::ops::Range<usize>]) {
    array.check_writable().unwrap();
    assert_eq!(host.len(), array.extent().len());
    for range in ranges {
        let from = &device[plan.device_bytes(range)];
        // SAFETY: `host` is the extent of a writable array, `from` the bytes of the range; both are ours.
        unsafe { plan.scatter(from.as_ptr(), host.as_mut_ptr().wrapping_offset(-array.extent().start), range.clone()) };
    }
}

/// Random cases; fewer where each takes long.
const CASES: usize = if cfg!(miri) { 60 } else { 800 };

#[test]
fn any_array_is_gathered_as_element_by_element() {
    let mut numbers = Numbers(0x5eed_0001);
    let types: Vec<_> = DType::all().filter(|&dtype| dtype != DType::Token).collect();
    for case in 0..CASES {
        let dtype = types[numbers.below(types.len() as u64) as usize];
        let shape = Shape::new(dtype, &numbers.dims()).unwrap();
        let strides = numbers.strides(shape.dims(), dtype.host_byte_width() as i64);
        let array = HostArray::new(&shape, Some(&strides)).unwrap();
        let layout = Layout::new(&numbers.permutation(shape.rank())).unwrap();
        let host = numbers.bytes(array.extent().len());
        let plan = StridedPlan::new(&array, &layout).unwrap();
        let ranges = ranges(&plan, dtype, &mut numbers);
        let device = gather(&plan, &array, &host, &ranges);
        let expected = gathered_by_oracle(&array, &layout, &host);
        assert!(*device == *expected, "case {case}: {array}, {layout}, {ranges:?}");
        if array.is_dense(&layout) {
            assert!(*device == *host, "case {case}: {array} is not dense in {layout}");
        }
    }
}

#[test]
fn any_writable_array_is_scattered_as_element_by_element() {
    let mut numbers = Numbers(0x5eed_0002);
    let types: Vec<_> = DType::all().filter(|&dtype| dtype != DType::Token).collect();
    for case in 0..CASES {
        let dtype = types[numbers.below(types.len() as u64) as usize];
        let shape = Shape::new(dtype, &numbers.dims()).unwrap();
        let strides = numbers.nested_strides(shape.dims(), dtype.host_byte_width() as i64);
        let array = HostArray::new(&shape, Some(&strides)).unwrap();
        let layout = Layout::new(&numbers.permutation(shape.rank())).unwrap();
        let device = numbers.bytes(shape.size_bytes());
        let mut host = numbers.bytes(array.extent().len());
        let mut expected = host.clone();
        let plan = StridedPlan::new(&array, &layout).unwrap();
        let ranges = ranges(&plan, dtype, &mut numbers);
        scatter(&plan, &array, &device, &mut host, &ranges);
        scattered_by_oracle(&array, &layout, &device, &mut expected);
        assert!(*host == *expected, "case {case}: {array}, {layout}, {ranges:?}");
    }
}

/// All sections of a plan, moved through a block of `most_bytes`.
fn through_blocks(plan: &StridedPlan, most_bytes: usize, mut body: impl FnMut(&super::Section, &[Range<usize>])) {
    for section in plan.sections(most_bytes) {
        let runs: Vec<_> = section.runs().map(|run| plan.device_bytes(&run)).collect();
        assert!(runs.iter().map(Range::len).sum::<usize>() <= most_bytes, "{section:?} of {most_bytes}");
        body(&section, &runs);
    }
}

/// Every byte of the block is written but those of no run, which stay.
fn gather_through(plan: &StridedPlan, most_bytes: usize, array: &HostArray, host: &[u8]) -> Vec<u8> {
    let mut device = vec![0xcc; array.shape().size_bytes()];
    let first = host.as_ptr().wrapping_offset(-array.extent().start);
    through_blocks(plan, most_bytes, |section, runs| {
        let mut block = vec![0xaa; runs.iter().map(Range::len).sum()].into_boxed_slice();
        // SAFETY: `host` is the extent, and the block as long as the runs.
        unsafe { plan.gather_section(first, block.as_mut_ptr(), section) };
        let mut begin = 0;
        for run in runs {
            device[run.clone()].copy_from_slice(&block[begin..begin + run.len()]);
            begin += run.len();
        }
    });
    device
}

fn scatter_through(plan: &StridedPlan, most_bytes: usize, array: &HostArray, device: &[u8], host: &mut [u8]) {
    let first = host.as_mut_ptr().wrapping_offset(-array.extent().start);
    through_blocks(plan, most_bytes, |section, runs| {
        let block: Box<[u8]> = runs.iter().flat_map(|run| &device[run.clone()]).copied().collect();
        // SAFETY: `host` is the extent of a writable array, and the block as long as the runs.
        unsafe { plan.scatter_section(block.as_ptr(), first, section) };
    });
}

#[test]
fn any_array_goes_through_blocks_as_element_by_element() {
    let mut numbers = Numbers(0x5eed_0005);
    let types: Vec<_> = DType::all().filter(|&dtype| dtype != DType::Token).collect();
    let mut of_several_runs = 0;
    for case in 0..CASES {
        let dtype = types[numbers.below(types.len() as u64) as usize];
        let shape = Shape::new(dtype, &numbers.dims()).unwrap();
        let width = dtype.host_byte_width() as i64;
        let layout = Layout::new(&numbers.permutation(shape.rank())).unwrap();
        let most_bytes = 16 + numbers.below(if case % 2 == 0 { 64 } else { 5000 }) as usize;
        let readable = HostArray::new(&shape, Some(&numbers.strides(shape.dims(), width))).unwrap();
        let (plan, host) = (StridedPlan::new(&readable, &layout).unwrap(), numbers.bytes(readable.extent().len()));
        let device = gather_through(&plan, most_bytes, &readable, &host);
        assert!(*device == *gathered_by_oracle(&readable, &layout, &host), "case {case}: {readable}, {layout}");

        let writable = HostArray::new(&shape, Some(&numbers.nested_strides(shape.dims(), width))).unwrap();
        let plan = StridedPlan::new(&writable, &layout).unwrap();
        let (device, mut host) = (numbers.bytes(shape.size_bytes()), numbers.bytes(writable.extent().len()));
        let mut expected = host.clone();
        scatter_through(&plan, most_bytes, &writable, &device, &mut host);
        scattered_by_oracle(&writable, &layout, &device, &mut expected);
        assert!(*host == *expected, "case {case}: {writable}, {layout}, {most_bytes}");
        of_several_runs += plan.sections(most_bytes).filter(|section| section.runs().len() > 1).count();
    }
    assert!(of_several_runs > CASES / 10, "only {of_several_runs} parts have several runs");
}

#[test]
fn parts_of_a_tall_transposition_are_whole_cache_lines() {
    // 64 columns of 2^20 rows, stored by columns: a block of 4 MiB would be one element of each line.
    let array = HostArray::new(&Shape::new(DType::F32, &[1 << 20, 64]).unwrap(), None).unwrap();
    let plan = StridedPlan::new(&array, &Layout::new(&[0, 1]).unwrap()).unwrap();
    let sections: Vec<_> = plan.sections(4 << 20).collect();
    assert_eq!(sections.len(), 64);
    for section in &sections {
        assert_eq!(section.runs().map(|run| run.len()).collect::<Vec<_>>(), vec![32 << 10; 32]);
    }
    // Less tall, and a part is one run of whole tiles.
    let array = HostArray::new(&Shape::new(DType::F32, &[10_000, 1000]).unwrap(), None).unwrap();
    let plan = StridedPlan::new(&array, &Layout::new(&[0, 1]).unwrap()).unwrap();
    let runs: Vec<_> = plan.sections(4 << 20).flat_map(|section| section.runs()).collect();
    assert_eq!((runs[0].clone(), runs.len()), (0..960_000, 11));
}

#[test]
fn dense_bytes_are_cut_where_blocks_end() {
    let plan = StridedPlan::dense(100);
    let runs: Vec<_> = plan.sections(48).flat_map(|section| section.runs()).collect();
    assert_eq!(runs, [0..48, 48..96, 96..100]);
    assert_eq!((StridedPlan::dense(0).sections(16).len(), StridedPlan::dense(1).sections(16).len()), (0, 1));
    let shape = Shape::new(DType::U8, &[100]).unwrap();
    let array = HostArray::new(&shape, None).unwrap();
    let host = Numbers(7).bytes(100);
    assert_eq!(gather_through(&plan, 48, &array, &host), *host);
}

#[test]
fn a_part_of_another_array_panics_before_anything_is_moved() {
    let plan = |dims: &[i64]| {
        let array = HostArray::new(&Shape::new(DType::U8, dims).unwrap(), None).unwrap();
        StridedPlan::new(&array, &Layout::new(&[0, 1]).unwrap()).unwrap()
    };
    let section = plan(&[4096, 4]).sections(1024).next().unwrap();
    for other in [plan(&[4096, 3]), plan(&[2048, 16]), plan(&[16384, 1]), StridedPlan::dense(100)] {
        let moved = purlin_base::panics::caught(|| {
            // SAFETY: nothing is moved.
            unsafe { other.gather_section(std::ptr::null(), std::ptr::null_mut(), &section) }
        });
        assert!(moved.is_err(), "{other:?}");
    }
}

#[test]
fn large_transpositions_of_every_width_come_out_right_both_ways() {
    for dtype in [DType::U8, DType::S4, DType::U2, DType::BF16, DType::F32, DType::F64, DType::C128] {
        let mut numbers = Numbers(0x5eed_0003);
        for (order, wide) in [([0, 2, 1], 144), ([0, 1, 2], 141), ([1, 0, 2], 260), ([1, 2, 0], 141)] {
            // Of narrow types, rows of 144 and 260 begin on bytes, those of 141 and 3 do not.
            let shape = Shape::new(dtype, &[wide, if wide == 260 { 4 } else { 3 }, 133]).unwrap();
            let (array, layout) = (HostArray::new(&shape, None).unwrap(), Layout::new(&order).unwrap());
            let mut host = numbers.bytes(array.extent().len());
            if dtype.is_sub_byte() {
                // As they are read back: nothing above the low bits but the sign.
                host.iter_mut().for_each(|byte| *byte &= 1);
            }
            let plan = StridedPlan::new(&array, &layout).unwrap();
            let pieces: Vec<_> = plan.pieces(16 * 1024).collect();
            assert!(pieces.len() > 1, "{dtype} {layout}");
            let device = gather(&plan, &array, &host, &pieces);
            assert!(*device == *gathered_by_oracle(&array, &layout, &host), "{dtype} {layout}");
            let mut back = vec![0; host.len()];
            scatter(&plan, &array, &device, &mut back, &pieces);
            assert!(*back == *host, "{dtype} {layout}");
            // And through blocks of a third of them.
            let block_bytes = device.len() / 3;
            assert!(gather_through(&plan, block_bytes, &array, &host) == *device, "{dtype} {layout}");
            back.fill(0);
            scatter_through(&plan, block_bytes, &array, &device, &mut back);
            assert!(*back == *host, "{dtype} {layout}");
        }
    }
}

#[test]
fn a_scalar_and_an_empty_array_have_one_element_and_none() {
    for (dims, count) in [(&[][..], 1), (&[0][..], 0), (&[3, 0, 2], 0)] {
        let array = HostArray::new(&Shape::new(DType::S4, dims).unwrap(), None).unwrap();
        let plan = StridedPlan::new(&array, &Layout::row_major(dims.len())).unwrap();
        assert_eq!((plan.element_count(), plan.pieces(1).len()), (count as i64, count));
        let all = plan.elements();
        let device = gather(&plan, &array, &[0x1f, 0x1f][..count], std::slice::from_ref(&all));
        assert_eq!(&*device, &[0x0f, 0x0f][..count]);
        // SAFETY: nothing is read or written.
        unsafe { plan.gather(std::ptr::null(), std::ptr::null_mut(), all.end..all.end) };
    }
    let token = StridedPlan::new(&HostArray::new(&Shape::token(), None).unwrap(), &Layout::row_major(0)).unwrap();
    assert_eq!((token.element_count(), token.pieces(0).len()), (0, 0));
    // SAFETY: nothing is read or written.
    unsafe { token.gather(std::ptr::null(), std::ptr::null_mut(), 0..0) };
}

#[test]
fn a_dense_array_is_one_loop_and_a_broadcast_scalar_too() {
    let shape = Shape::new(DType::F32, &[2, 3, 1, 5]).unwrap();
    for strides in [&[60, 20, 7, 4][..], &[0, 0, 0, 0], &[-60, -20, 7, -4]] {
        let array = HostArray::new(&shape, Some(strides)).unwrap();
        let plan = StridedPlan::new(&array, &Layout::row_major(4)).unwrap();
        // Any range of one loop is one box, which a piece of one element per byte shows.
        assert_eq!(plan.pieces(4).len(), 30, "{strides:?}");
        assert!(plan.pieces(1000).eq(std::iter::once(0..30)));
    }
}

#[test]
fn pieces_are_the_array_one_after_another_and_share_no_byte() {
    let mut numbers = Numbers(0x5eed_0004);
    for _ in 0..400 {
        let dtype = [DType::S4, DType::U2, DType::U8, DType::C64][numbers.below(4) as usize];
        let shape = Shape::new(dtype, &numbers.dims()).unwrap();
        let strides = numbers.strides(shape.dims(), dtype.host_byte_width() as i64);
        let array = HostArray::new(&shape, Some(&strides)).unwrap();
        let plan = StridedPlan::new(&array, &Layout::new(&numbers.permutation(shape.rank())).unwrap()).unwrap();
        let (mut elements, mut bytes) = (0, 0);
        for piece in plan.pieces(numbers.below(200) as usize) {
            assert_eq!((piece.start, plan.device_bytes(&piece).start), (elements, bytes));
            assert!(!piece.is_empty());
            (elements, bytes) = (piece.end, plan.device_bytes(&piece).end);
        }
        assert_eq!((elements as i64, bytes), (shape.element_count(), shape.size_bytes()));
    }
}

#[test]
fn enormous_strides_counts_and_targets_do_not_overflow() {
    let far = Shape::new(DType::U8, &[3, 2]).unwrap();
    let array = HostArray::new(&far, Some(&[0, i64::MAX - 1])).unwrap();
    let plan = StridedPlan::new(&array, &Layout::row_major(2)).unwrap();
    assert_eq!(plan.pieces(usize::MAX).len(), 1);
    let many = Shape::new(DType::U2, &[2, i64::MAX / 2]).unwrap();
    let array = HostArray::new(&many, Some(&[0, 0])).unwrap();
    let plan = StridedPlan::new(&array, &Layout::row_major(2)).unwrap();
    assert!(plan.pieces(usize::MAX).eq(std::iter::once(plan.elements())));
    assert_eq!(plan.device_bytes(&plan.elements()), 0..many.size_bytes());
    // The far end of a broadcast that fills no memory.
    let mut last = [0_u8];
    let end = plan.elements().end;
    // SAFETY: one readable element, and the byte for the last two of the array.
    unsafe { plan.gather(&0xfe, last.as_mut_ptr(), end - 2..end) };
    assert_eq!(last, [0b1010]);
}

#[test]
fn plans_up_to_rank_eight_live_where_they_stand() {
    let shape = Shape::new(DType::F32, &[2; 8]).unwrap();
    let array = HostArray::new(&shape, None).unwrap();
    let plan = StridedPlan::new(&array, &Layout::new(&[0, 1, 2, 3, 4, 5, 6, 7]).unwrap()).unwrap();
    assert!(!plan.allocates());
}

#[test]
fn a_transposition_is_cut_between_tiles() {
    let array = HostArray::new(&Shape::new(DType::F32, &[1000, 100]).unwrap(), None).unwrap();
    let plan = StridedPlan::new(&array, &Layout::new(&[0, 1]).unwrap()).unwrap();
    // 32 columns of f32 are a side of a tile; each has 1000 elements.
    assert_eq!(plan.pieces(4).next(), Some(0..32_000));
    assert_eq!(plan.pieces(200_000).collect::<Vec<_>>(), [0..64_000, 64_000..100_000]);
}

#[test]
fn a_layout_of_another_rank_is_refused() {
    let array = HostArray::new(&Shape::new(DType::F32, &[2, 3]).unwrap(), None).unwrap();
    let error = StridedPlan::new(&array, &Layout::row_major(1)).unwrap_err();
    assert_eq!(error.message(), "layout {0} is for arrays of rank 1, and f32[2,3] is of rank 2");
}

#[test]
fn a_range_that_is_none_or_begins_inside_a_byte_panics_before_anything_is_moved() {
    let array = HostArray::new(&Shape::new(DType::S4, &[5]).unwrap(), None).unwrap();
    let plan = StridedPlan::new(&array, &Layout::row_major(1)).unwrap();
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    for range in [1..2, 0..3, 0..6, 4..2] {
        let moved = purlin_base::panics::caught(|| {
            // SAFETY: nothing is moved.
            unsafe { plan.gather(std::ptr::null(), std::ptr::null_mut(), range.clone()) }
        });
        assert!(moved.is_err(), "{range:?}");
    }
}
