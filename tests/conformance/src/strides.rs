//! Arrays whose elements stand in another order on the host, under what makes that hard: parts of bytes, and a source
//! that is freed when the call returns.

#![allow(unsafe_code, reason = "host memory is written by address")]

use purlin_array::{DType, HostArray, Layout, Shape};
use purlin_device::{Aliasing, AllocOptions, Buffer, FromHostOptions, HostBufferSemantics};

use crate::fixture::{Fixture, pattern};
use crate::from_host::{DoneOutcome, SEMANTICS, elements, make, read};

pub(crate) fn narrow_elements_go_any_way(fixture: &Fixture) {
    let memory: Vec<u8> = (0..64).collect();
    for dtype in [DType::S2, DType::U2, DType::S4, DType::U4] {
        // What a byte of the host is after its way through the device.
        let narrowed = |byte: u8| match dtype {
            DType::U2 => byte & 3,
            DType::U4 => byte & 15,
            DType::S2 => ((byte << 6) as i8 >> 6) as u8,
            _ => ((byte << 4) as i8 >> 4) as u8,
        };
        let shape = Shape::new(dtype, &[3, 5]).unwrap();
        for (origin, strides) in [(0, [5, 1]), (0, [1, 3]), (40, [-7, 2]), (60, [-1, -4]), (9, [0, 1])] {
            let array = HostArray::new(&shape, Some(&strides)).unwrap();
            let expected: Vec<u8> = elements(&memory, origin, &array).into_iter().map(narrowed).collect();
            for (layout, semantics) in
                [[1, 0], [0, 1]].iter().flat_map(|layout| SEMANTICS.map(|semantics| (layout, semantics)))
            {
                let options =
                    FromHostOptions { semantics, layout: Some(Layout::new(layout).unwrap()), ..Default::default() };
                let (buffer, aliasing) = make(memory[origin..].as_ptr(), &array, &fixture.space(), options).unwrap();
                assert_eq!((aliasing, read(&buffer)), (Aliasing::Copied, expected.clone()), "{dtype} {strides:?}");
                let transposed = HostArray::new(&shape, Some(&[1, 3])).unwrap();
                let mut host = vec![0xEE; 15];
                // SAFETY: the vector stays here until the wait.
                unsafe { buffer.copy_to_host_array(host.as_mut_ptr(), &transposed) }.wait().unwrap();
                assert_eq!(elements(&host, 0, &transposed), expected, "{dtype} {strides:?}, layout {layout:?}");
            }
        }
    }
}

pub(crate) fn strides_backwards_are_read_during_the_call(fixture: &Fixture) {
    for side in [6, 400] {
        let mut bytes = pattern((side * side * 2) as usize, 6);
        let array = HostArray::new(&Shape::new(DType::S16, &[side, side]).unwrap(), Some(&[-2 * side, -2])).unwrap();
        let origin = bytes.len() - 2;
        let expected = elements(&bytes, origin, &array);
        let occupied = fixture.occupy_runner();
        let (options, told) = DoneOutcome::options(HostBufferSemantics::ImmutableOnlyDuringCall);
        let (buffer, aliasing) = make(bytes[origin..].as_ptr(), &array, &fixture.space(), options).unwrap();
        assert_eq!((aliasing, told.once()), (Aliasing::Copied, Ok(())));
        bytes.fill(0);
        drop(bytes);
        drop(occupied);
        // And on, into memory that is given.
        let target = Buffer::uninitialized(array.shape(), None, &fixture.space(), &AllocOptions::default()).unwrap();
        assert_eq!(read(&buffer.copy_into(&target).unwrap()), expected, "{side}");
    }
}
