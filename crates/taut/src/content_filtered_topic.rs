//! ContentFilteredTopic: some of a topic's samples. DCPS 1.4 §2.2.2.3.3.

use std::sync::{Arc, PoisonError, RwLock};

use taut_base::Result;
use taut_cdr::DdsType;
use taut_dcps::{ContentFilter, Expression, Filter};

use crate::topic::ReaderQos;
use crate::{DataReader, Topic};

/// The samples of a topic for which an expression holds.
///
/// *Semantics*: a sample that does not pass is as if it was never written: it takes no place in a history
/// and wakes nobody. An instance's end is told whether or not its samples passed. A comparison with a member
/// that a sample has not (an optional one that is absent, an element behind the last) is false. *Cost*: the
/// reader decodes each sample once more.
///
/// The expression is that of DCPS 1.4 Annex B: members as `speed`, `position.x` or `ranges[2]`, compared by
/// `=`, `<>`, `<`, `<=`, `>`, `>=`, `LIKE` (`%` any characters, `_` one) and `BETWEEN low AND high`, joined by `AND`,
/// `OR`, `NOT` and parentheses. Texts and the literals of enumerations stand in apostrophes.
///
/// ```
/// use taut::{DdsType, Duration, Qos};
/// # use taut::{Config, DomainParticipant};
///
/// #[derive(DdsType)]
/// #[dds(final)]
/// struct Reading {
///     sensor: String,
///     celsius: f64,
/// }
/// # fn main() -> taut::Result<()> {
/// # let config = Config { domain_id: 81, interfaces: vec!["lo".into()], ..Config::default() };
/// # let participant = DomainParticipant::with_config(&config)?;
/// let topic = participant.topic::<Reading>("Reading")?;
/// let hot = topic.filtered("Hot", "sensor LIKE 'boiler%' AND celsius > %0", &["90"])?;
/// let (writer, reader) = (topic.writer(Qos::default())?, hot.reader(Qos::default())?);
/// writer.wait_matched(Duration::from_secs(1))?;
/// for celsius in [20.0, 95.0] {
///     writer.write(&Reading { sensor: "boiler 3".into(), celsius })?;
/// }
/// reader.wait(Duration::from_secs(1))?;
/// assert_eq!(reader.take_next()?.unwrap().data.unwrap().celsius, 95.0);
///
/// hot.set_expression_parameters(&["10"])?; // from now on
/// # Ok(())
/// # }
/// ```
pub struct ContentFilteredTopic<'t, T> {
    topic: &'t Topic<T>,
    name: String,
    expression: Expression,
    parameters: RwLock<Vec<String>>,
    filter: Arc<RwLock<Filter>>,
}

impl<'t, T: DdsType> ContentFilteredTopic<'t, T> {
    pub(crate) fn new(
        topic: &'t Topic<T>,
        name: &str,
        expression: &str,
        parameters: &[&str],
    ) -> Result<ContentFilteredTopic<'t, T>> {
        let expression = Expression::new(expression, T::field_kind)?;
        let filter = Arc::new(RwLock::new(expression.with(parameters)?));
        let parameters = RwLock::new(owned(parameters));
        Ok(ContentFilteredTopic { topic, name: name.to_owned(), expression, parameters, filter })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The topic that it selects from.
    pub fn related_topic(&self) -> &'t Topic<T> {
        self.topic
    }

    /// The expression.
    pub fn filter_expression(&self) -> &str {
        self.expression.text()
    }

    /// The parameters.
    pub fn expression_parameters(&self) -> Vec<String> {
        self.parameters.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other parameters, for all of its readers, from the samples on that they have not got yet.
    ///
    /// *Errors*: as [`Topic::filtered`]; the parameters then stay as they were.
    pub fn set_expression_parameters(&self, parameters: &[&str]) -> Result<()> {
        let filter = self.expression.with(parameters)?;
        *self.filter.write().unwrap_or_else(PoisonError::into_inner) = filter;
        *self.parameters.write().unwrap_or_else(PoisonError::into_inner) = owned(parameters);
        Ok(())
    }

    /// A reader of the samples that pass. *Errors*: as [`Topic::reader`].
    pub fn reader(&self, qos: impl Into<ReaderQos>) -> Result<DataReader<T>> {
        let filter = Arc::clone(&self.filter);
        let passes = move |payload: &[u8]| {
            let Ok(sample) = taut_cdr::from_payload::<T>(payload) else { return true };
            filter.read().unwrap_or_else(PoisonError::into_inner).passes(|path| sample.field(path))
        };
        self.topic.reader_of(qos, Some(ContentFilter::new(passes)))
    }
}

fn owned(parameters: &[&str]) -> Vec<String> {
    parameters.iter().map(|text| (*text).to_owned()).collect()
}
