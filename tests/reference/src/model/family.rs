//! The programs that there are, and the bytes of their results.

/// A program that takes and returns arrays of one shape.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// As reports show it.
    pub name: &'static str,
    /// For each parameter, whether its memory becomes a result's.
    pub parameters: &'static [bool],
    /// In their order.
    pub outputs: &'static [Output],
    /// A temporary of one array's size.
    pub has_temporary: bool,
    /// The error of its kernel, as a look shows it.
    pub fails: Option<&'static str>,
    /// Where a device has memory and kernels of its own, it is the device's.
    pub is_of_device: bool,
}

/// A result of a program.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The parameter with whose memory it shares.
    pub alias: Option<usize>,
    /// Its bytes.
    pub formula: Formula,
}

/// Every byte of a result, by bytes of parameters.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// That of a parameter, and so much more.
    Plus(usize, u8),
    /// The sum of the first two.
    Sum,
}

impl Formula {
    pub(super) fn of(self, arguments: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Plus(parameter, by) => arguments[parameter].iter().map(|byte| byte.wrapping_add(by)).collect(),
            Self::Sum => arguments[0].iter().zip(arguments[1]).map(|(a, b)| a.wrapping_add(*b)).collect(),
        }
    }
}

const fn output(alias: Option<usize>, formula: Formula) -> Output {
    Output { alias, formula }
}

const ADD_ONE: Family = Family {
    name: "add_one",
    parameters: &[false],
    outputs: &[output(None, Formula::Plus(0, 1))],
    has_temporary: false,
    fails: None,
    is_of_device: false,
};

const INCREMENT: Family =
    Family { name: "increment", parameters: &[true], outputs: &[output(Some(0), Formula::Plus(0, 1))], ..ADD_ONE };

/// All of them.
pub const FAMILIES: [Family; 9] = [
    ADD_ONE,
    INCREMENT,
    Family {
        name: "two",
        parameters: &[false, false],
        outputs: &[output(None, Formula::Sum), output(None, Formula::Plus(0, 0))],
        has_temporary: true,
        ..ADD_ONE
    },
    Family { name: "step", parameters: &[true, false], outputs: &[output(Some(0), Formula::Sum)], ..ADD_ONE },
    Family {
        name: "both",
        parameters: &[true, true],
        outputs: &[output(Some(0), Formula::Plus(0, 1)), output(Some(1), Formula::Plus(1, 2))],
        ..ADD_ONE
    },
    Family { name: "fails", fails: Some("5:#7#"), ..INCREMENT },
    Family { name: "panics", fails: Some("13:panicked"), ..ADD_ONE },
    // Commands enough for a graph of the driver's.
    Family { name: "add_five", outputs: &[output(None, Formula::Plus(0, 5))], is_of_device: true, ..ADD_ONE },
    Family { name: "five_more", outputs: &[output(Some(0), Formula::Plus(0, 5))], is_of_device: true, ..INCREMENT },
];
