//! NumPy's names of element types, such as `<f4`: byte order, kind, width.

use purlin_array::DType;

/// What a file says of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descr {
    /// A type of NumPy's.
    Known(DType),
    /// So many bytes, 1 or 2, of a type that NumPy does not know.
    Opaque { width: usize },
}

/// NumPy's kinds and widths, without byte order.
const KNOWN: [(&str, DType); 14] = [
    ("b1", DType::Pred),
    ("i1", DType::S8),
    ("i2", DType::S16),
    ("i4", DType::S32),
    ("i8", DType::S64),
    ("u1", DType::U8),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::C64),
    ("c16", DType::C128),
];

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It names nothing.
    Nonsense,
    /// It is NumPy's, and no buffer's.
    Unsupported(&'static str),
}

impl Descr {
    /// What `text` names.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Refusal> {
        let (order, name) = match text {
            [order @ (b'<' | b'>' | b'|' | b'='), name @ ..] => (*order, name),
            _ => return Err(Refusal::Nonsense),
        };
        let name = std::str::from_utf8(name).map_err(|_| Refusal::Nonsense)?;
        let descr = match name {
            // ml_dtypes calls float8_e5m2 so; NumPy has no such type.
            "V1" | "f1" => Self::Opaque { width: 1 },
            "V2" => Self::Opaque { width: 2 },
            _ => match KNOWN.iter().find(|(known, _)| *known == name) {
                Some((_, dtype)) => Self::Known(*dtype),
                None => return Err(refusal(name)),
            },
        };
        match order {
            // Bytes have no order, and '=' is the writer's, which is not known here.
            _ if descr.width() == 1 => Ok(descr),
            b'<' => Ok(descr),
            b'>' => Err(Refusal::Unsupported("big-endian elements")),
            _ if descr == (Self::Opaque { width: 2 }) => Ok(descr),
            _ => Err(Refusal::Nonsense),
        }
    }

    /// How elements of that type are described; `None`: a token, which has none.
    pub(crate) fn of(dtype: DType) -> Option<Self> {
        if dtype == DType::Token {
            return None;
        }
        let known = KNOWN.iter().any(|(_, known)| *known == dtype);
        Some(if known { Self::Known(dtype) } else { Self::Opaque { width: dtype.host_byte_width() } })
    }

    /// As NumPy writes it.
    pub(crate) fn name(self) -> String {
        let name = match self {
            Self::Known(dtype) => {
                KNOWN.iter().find(|(_, known)| *known == dtype).map_or("", |(name, _)| *name).to_owned()
            }
            Self::Opaque { width } => format!("V{width}"),
        };
        format!("{}{name}", if self.width() == 1 { '|' } else { '<' })
    }

    fn width(self) -> usize {
        match self {
            Self::Known(dtype) => dtype.byte_width(),
            Self::Opaque { width } => width,
        }
    }
}

fn refusal(name: &str) -> Refusal {
    let mut letters = name.chars();
    let kind = letters.next();
    let is_width = letters.as_str().bytes().all(|byte| byte.is_ascii_digit());
    Refusal::Unsupported(match kind {
        Some('O') if is_width => "pickled objects",
        Some('S' | 'U' | 'a') if is_width => "text",
        Some('M' | 'm') => "dates and times",
        Some('V') if is_width => "opaque elements of more than 2 bytes",
        _ if ["f12", "f16", "c24", "c32"].contains(&name) => "floats wider than 64 bits",
        _ => return Refusal::Nonsense,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_but_token_has_a_name_that_is_read_back() {
        for dtype in DType::all() {
            let Some(descr) = Descr::of(dtype) else {
                assert_eq!(dtype, DType::Token);
                continue;
            };
            assert_eq!(descr.width(), dtype.host_byte_width(), "{dtype}");
            assert_eq!(Descr::parse(descr.name().as_bytes()), Ok(descr), "{dtype}");
        }
        assert_eq!(Descr::of(DType::F32).unwrap().name(), "<f4");
        assert_eq!(Descr::of(DType::Pred).unwrap().name(), "|b1");
        assert_eq!(Descr::of(DType::BF16).unwrap().name(), "<V2");
        assert_eq!(Descr::of(DType::S4).unwrap().name(), "|V1");
    }

    #[test]
    fn one_byte_has_no_order_and_more_have() {
        for order in ["<", ">", "|", "="] {
            assert_eq!(Descr::parse(format!("{order}u1").as_bytes()), Ok(Descr::Known(DType::U8)));
        }
        assert_eq!(Descr::parse(b"|V2"), Ok(Descr::Opaque { width: 2 }));
        assert_eq!(Descr::parse(b">f8"), Err(Refusal::Unsupported("big-endian elements")));
        assert_eq!(Descr::parse(b"|f8"), Err(Refusal::Nonsense));
        assert_eq!(Descr::parse(b"=f8"), Err(Refusal::Nonsense));
    }

    #[test]
    fn what_numpy_has_and_we_have_not_is_said_by_name() {
        for (text, what) in [
            ("|O", "pickled objects"),
            ("<U5", "text"),
            ("|S3", "text"),
            ("<M8[ns]", "dates and times"),
            ("|V16", "opaque elements of more than 2 bytes"),
            ("<f16", "floats wider than 64 bits"),
            ("<c32", "floats wider than 64 bits"),
        ] {
            assert_eq!(Descr::parse(text.as_bytes()), Err(Refusal::Unsupported(what)), "{text}");
        }
        for text in ["", "<", "f4", "<i3", "<f5", "<f4 ", "float32", "<F4", "<\u{e9}1", "<O8x"] {
            assert_eq!(Descr::parse(text.as_bytes()), Err(Refusal::Nonsense), "{text}");
        }
    }
}
