//! Events: rules that say when something has happened, by what else has.

use super::Wrong;

/// An event, by index.
pub(super) type Moment = usize;

/// How an event ended; errors as text, `code:what`.
pub(super) type End = Result<(), String>;

#[derive(Clone, Debug)]
enum Rule {
    /// The owner of the promise says.
    Promise(Option<End>),
    /// After all of them, with the error of the lowest index.
    All(Vec<Moment>),
    /// After all of them, whatever they ended with.
    After(Vec<Moment>),
}

/// All events of a world.
#[derive(Clone)]
pub(super) struct Events {
    rules: Vec<Rule>,
    wrong: Option<Wrong>,
}

impl Events {
    pub(super) fn new(wrong: Option<Wrong>) -> Self {
        Self { rules: Vec::new(), wrong }
    }

    fn add(&mut self, rule: Rule) -> Moment {
        self.rules.push(rule);
        self.rules.len() - 1
    }

    pub(super) fn promise(&mut self) -> Moment {
        self.add(Rule::Promise(None))
    }

    pub(super) fn ended(&mut self, end: End) -> Moment {
        self.add(Rule::Promise(Some(end)))
    }

    pub(super) fn all(&mut self, of: Vec<Moment>) -> Moment {
        self.add(Rule::All(of))
    }

    pub(super) fn after(&mut self, of: Vec<Moment>) -> Moment {
        self.add(Rule::After(of))
    }

    /// False if it was set before.
    pub(super) fn set(&mut self, promise: Moment, end: End) -> bool {
        let wins = self.wrong == Some(Wrong::SecondSetWins);
        match &mut self.rules[promise] {
            Rule::Promise(old) if old.is_none() || wins => {
                *old = Some(end);
                true
            }
            _ => false,
        }
    }

    /// A promise is kept by what `others` say.
    pub(super) fn follow(&mut self, promise: Moment, other: Moment) {
        self.rules[promise] = Rule::All(vec![other]);
    }

    /// Whatever it waited for, it ends so.
    pub(super) fn force(&mut self, moment: Moment, end: End) {
        self.rules[moment] = Rule::Promise(Some(end));
    }

    /// The promise is dropped: what is pending fails.
    pub(super) fn abandon(&mut self, promise: Moment) {
        let end = if self.wrong == Some(Wrong::DroppedPromiseIsReady) { Ok(()) } else { Err("13:abandoned".into()) };
        if matches!(self.rules[promise], Rule::Promise(None)) {
            self.rules[promise] = Rule::Promise(Some(end));
        }
    }

    /// How it ended, if it has.
    pub(super) fn end(&self, moment: Moment) -> Option<End> {
        match &self.rules[moment] {
            Rule::Promise(end) => end.clone(),
            Rule::After(of) => of.iter().all(|&event| self.end(event).is_some()).then_some(Ok(())),
            Rule::All(of) => {
                let ends = of.iter().map(|&event| self.end(event)).collect::<Option<Vec<_>>>()?;
                let mut failed = ends.into_iter().filter(Result::is_err);
                let counts =
                    if self.wrong == Some(Wrong::LastErrorCounts) { failed.next_back() } else { failed.next() };
                Some(counts.unwrap_or(Ok(())))
            }
        }
    }

    /// Whether `moment` waits, also by way of others, for one of `promises`.
    pub(super) fn waits_for(&self, moment: Moment, promises: &[Moment]) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        let mut left = vec![moment];
        while let Some(moment) = left.pop() {
            if promises.contains(&moment) {
                return true;
            }
            if let (true, Rule::All(of) | Rule::After(of)) = (seen.insert(moment), &self.rules[moment]) {
                left.extend(of);
            }
        }
        false
    }

    pub(super) fn is_pending(&self, moment: Moment) -> bool {
        self.end(moment).is_none()
    }

    /// `p`, `r`, or the error.
    pub(super) fn text(&self, moment: Moment) -> String {
        match self.end(moment) {
            None => "p".into(),
            Some(Ok(())) => "r".into(),
            Some(Err(error)) => error,
        }
    }
}
