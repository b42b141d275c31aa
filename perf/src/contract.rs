//! What an adapter says: `info`, and the events of a role. `peers/README.md` is the contract.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The answer to `info`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Info {
    /// The adapter's name.
    pub peer: String,
    /// The version of the middleware.
    pub version: String,
    /// The ways that it has.
    pub transports: Vec<String>,
    /// The roles that it plays.
    pub roles: Vec<String>,
    /// The types that it knows.
    pub types: Vec<String>,
    /// How it can wait, besides `block`.
    pub waits: Vec<String>,
    /// Other set-ups of the same product.
    pub variants: Vec<String>,
    /// Can data go by multicast?
    pub multicast: bool,
    /// Can samples be borrowed?
    pub loan: bool,
    /// Must a broker run first?
    pub daemon: bool,
    /// Libraries in it that the product does without.
    pub built_with: Vec<String>,
    /// What a reader of the result must know.
    pub note: String,
}

/// A line of an adapter.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Its entities exist; how it waits.
    Ready(String),
    /// The last sample is out.
    Stop,
    /// The end, with the role's figures.
    Done(Map<String, Value>),
    /// It has no such thing.
    Absent(String),
    /// It should have worked.
    Failed(String),
    /// `entities`: so many of these were made.
    Step(String, u64),
    /// `node`: matched with all, at this time.
    Matched(u64),
}

impl Event {
    /// Reads a line; `Err` says what is wrong with it.
    pub fn parse(line: &str) -> Result<Event, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Value::Object(fields) = value else { return Err("not an object".to_string()) };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
        let number = |name: &str| fields.get(name).and_then(Value::as_u64);
        match text("event").as_str() {
            "ready" => Ok(Event::Ready(text("wait"))),
            "stop" => Ok(Event::Stop),
            "absent" => Ok(Event::Absent(text("reason"))),
            "failed" => Ok(Event::Failed(text("reason"))),
            "step" => Ok(Event::Step(text("name"), number("count").ok_or("a step without a count")?)),
            "matched" => Ok(Event::Matched(number("ns").ok_or("a match without its ns")?)),
            "done" => Ok(Event::Done(fields)),
            "" => Err("an object without an event".to_string()),
            other => Err(format!("the unknown event {other:?}")),
        }
    }

    /// Its name in the contract.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Ready(_) => "ready",
            Event::Stop => "stop",
            Event::Done(_) => "done",
            Event::Absent(_) => "absent",
            Event::Failed(_) => "failed",
            Event::Step(..) => "step",
            Event::Matched(_) => "matched",
        }
    }
}

/// A figure of a `done` line; what is left out is 0.
pub fn figure(done: &Map<String, Value>, name: &str) -> u64 {
    done.get(name).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_events_or_say_what_is_wrong() {
        assert_eq!(
            Event::parse(r#"{"event":"ready","wait":"listener"}"#),
            Ok(Event::Ready("listener".to_string()))
        );
        assert_eq!(
            Event::parse(r#"{"event":"step","name":"writer","count":100}"#),
            Ok(Event::Step("writer".to_string(), 100))
        );
        let Ok(Event::Done(done)) = Event::parse(r#"{"event":"done","sent":7,"lost":-1}"#) else { panic!() };
        assert_eq!((figure(&done, "sent"), figure(&done, "lost"), figure(&done, "none")), (7, 0, 0));
        for wrong in ["{", "[]", "{}", r#"{"event":"party"}"#, r#"{"event":"step","name":"writer"}"#] {
            assert!(Event::parse(wrong).is_err(), "{wrong}");
        }
    }
}
