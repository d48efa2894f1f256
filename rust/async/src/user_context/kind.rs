//! What contexts are made of, and how they read: `text (in PARENT)`, `OUTER -> INNER`, `fused(A | B)`.

use std::borrow::Cow;
use std::fmt;

use super::UserContext;
use purlin_base::panics::caught;

/// Contexts share parts, so a text can be longer than the memory that they take. It ends after so many parts.
const MOST_PARTS: usize = 1000;

/// A text, or a closure that makes it when it is asked for.
///
/// ```
/// use purlin::UserContext;
/// use purlin::user_context::Origin;
///
/// let layer = 7;
/// let context = UserContext::new(Origin::lazy(move || format!("layer {layer}")));
/// assert!(context.debug_string().contains("layer 7"));
/// ```
#[non_exhaustive]
pub enum Origin {
    /// A text that exists already.
    Text(Cow<'static, str>),
    /// A text that is made each time it is asked for.
    Lazy(Box<dyn Fn() -> String + Send + Sync>),
}

impl Origin {
    /// A text that is made each time it is asked for, on any thread, under no lock of Purlin's.
    #[must_use]
    pub fn lazy(render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self::Lazy(Box::new(render))
    }

    fn render(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Lazy(render) => {
                caught(render).map_or(Cow::Borrowed("(the closure that renders this context panicked)"), Cow::Owned)
            }
        }
    }
}

impl From<&'static str> for Origin {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Origin {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Debug for Origin {
    /// Renders nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => fmt::Debug::fmt(text, f),
            Self::Lazy(_) => f.write_str("Lazy"),
        }
    }
}

#[derive(Debug)]
pub(super) enum Kind {
    Basic(Origin),
    Annotated(UserContext, Origin),
    /// The outer one, then the inner one.
    Chained([UserContext; 2]),
    Fused(Vec<UserContext>),
    /// On its way out: its parts have been taken.
    Ended,
}

impl Kind {
    /// For the end of a context.
    pub(super) fn take_parts(&mut self) -> Vec<UserContext> {
        match std::mem::replace(self, Self::Ended) {
            Self::Basic(_) | Self::Ended => Vec::new(),
            Self::Annotated(parent, _) => vec![parent],
            Self::Chained(parts) => parts.into(),
            Self::Fused(parts) => parts,
        }
    }
}

/// The text of `context`. A list of what is left to write, so that depth costs no stack.
pub(super) fn render(context: &UserContext) -> String {
    enum Left<'a> {
        Context(&'a UserContext),
        Text(&'static str),
    }
    let mut text = String::new();
    let mut parts = 0;
    // The context that is pushed last is taken next.
    let mut left = vec![Left::Context(context)];
    while let Some(next) = left.pop() {
        let context = match next {
            Left::Context(context) => context,
            Left::Text(more) => {
                text.push_str(more);
                continue;
            }
        };
        parts += 1;
        if parts > MOST_PARTS {
            text.push_str("...");
            break;
        }
        match &context.0.kind {
            Kind::Basic(origin) => text.push_str(&origin.render()),
            Kind::Annotated(parent, origin) => {
                text.push_str(&origin.render());
                text.push_str(" (in ");
                left.extend([Left::Text(")"), Left::Context(parent)]);
            }
            Kind::Chained([outer, inner]) => {
                left.extend([Left::Context(inner), Left::Text(" -> "), Left::Context(outer)]);
            }
            Kind::Fused(all) => {
                text.push_str("fused(");
                left.push(Left::Text(")"));
                for (index, one) in all.iter().enumerate().rev() {
                    left.push(Left::Context(one));
                    if index > 0 {
                        left.push(Left::Text(" | "));
                    }
                }
            }
            Kind::Ended => {}
        }
    }
    text
}

/// The numbers under which errors know `context`: those of a chain, the outermost first, or its own.
pub(super) fn chain_ids(context: &UserContext) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut left = vec![context];
    while let Some(context) = left.pop() {
        match &context.0.kind {
            // Beyond the limit, a chain is represented by its own number: it can still be looked up whole.
            Kind::Chained([outer, inner]) if ids.len() + left.len() < MOST_IDS => left.extend([inner, outer]),
            _ => ids.push(context.id()),
        }
    }
    ids
}

/// The most numbers that an error carries, about.
const MOST_IDS: usize = 64;
