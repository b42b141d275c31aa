//! Taut: a DDS with a bound on latency. DomainParticipant, Topic, DataWriter, DataReader.
