/* Participant, topics, writers and readers, set up from the command line alone:
 * every QoS that differs from the product's defaults is set in entities.cpp. */
#ifndef PERF_FASTDDS_ENTITIES_H
#define PERF_FASTDDS_ENTITIES_H

#include <string>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>

#include "types.h"

/* The variant whose writers put samples into memory that readers map. */
bool data_sharing(const kit_options &o);

/* Keeps settings of the user's environment out of the measurement. Before all. */
void ignore_surroundings();

class Entities {
public:
    explicit Entities(const kit_options &o) : options_(o) {}

    /* Each in its turn; the first three are made when they are needed, if not before. */
    void make_participant();
    void make_publisher();
    void make_subscriber();
    eprosima::fastdds::dds::Topic *topic(const std::string &name, const SampleType &type);
    eprosima::fastdds::dds::DataWriter *writer(const std::string &topic_name, const SampleType &type);
    /* One that keeps all for readers to come. */
    eprosima::fastdds::dds::DataWriter *holding_writer(const std::string &topic_name, const SampleType &type);
    /* Without a listener the reader is polled or waited for. */
    eprosima::fastdds::dds::DataReader *reader(const std::string &topic_name, const SampleType &type,
                                               eprosima::fastdds::dds::DataReaderListener *listener);
    void remove();

private:
    const kit_options &options_;
    eprosima::fastdds::dds::DomainParticipant *participant_ = nullptr;
    eprosima::fastdds::dds::Publisher *publisher_ = nullptr;
    eprosima::fastdds::dds::Subscriber *subscriber_ = nullptr;
};

/* How many others match. */
uint32_t matched(eprosima::fastdds::dds::DataWriter *writer);
uint32_t matched(eprosima::fastdds::dds::DataReader *reader);

#endif
