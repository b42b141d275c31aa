//! Which endpoints have which topic: who looks for a match looks at those of its topic and no others.

use std::collections::{BTreeMap, BTreeSet};

use taut_base::EntityId;

/// Endpoints of one participant by the names of their topics. *Cost*: each step O(log n).
#[derive(Default)]
pub(crate) struct Topics(BTreeMap<String, BTreeSet<EntityId>>);

impl Topics {
    /// Adds an endpoint.
    pub fn insert(&mut self, topic_name: &str, entity: EntityId) {
        match self.0.get_mut(topic_name) {
            Some(entities) => _ = entities.insert(entity),
            None => _ = self.0.insert(topic_name.to_owned(), BTreeSet::from([entity])),
        }
    }

    /// Removes an endpoint.
    pub fn remove(&mut self, topic_name: &str, entity: EntityId) {
        let Some(entities) = self.0.get_mut(topic_name) else { return };
        entities.remove(&entity);
        if entities.is_empty() {
            self.0.remove(topic_name);
        }
    }

    /// The endpoints of a topic.
    pub fn of(&self, topic_name: &str) -> impl Iterator<Item = EntityId> + '_ {
        self.0.get(topic_name).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_its_endpoints_and_is_gone_with_them() {
        let mut topics = Topics::default();
        let [writer, reader] = [true, false].map(|is_writer| EntityId::user(1, is_writer, false));
        for (name, entity) in [("Square", writer), ("Square", reader), ("Circle", writer)] {
            topics.insert(name, entity);
        }
        assert_eq!((topics.of("Square").count(), topics.of("Triangle").count()), (2, 0));
        topics.remove("Square", writer);
        topics.remove("Triangle", writer);
        assert_eq!(topics.of("Square").collect::<Vec<_>>(), [reader]);
        topics.remove("Square", reader);
        assert_eq!((topics.0.len(), topics.of("Circle").count()), (1, 1));
    }
}
