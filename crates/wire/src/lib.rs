//! RTPS 2.5 bytes: header, submessages, parameter lists; checked views, no copies.
