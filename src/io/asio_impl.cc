// The compiled part of Asio (BOOST_ASIO_SEPARATE_COMPILATION), once for every executable that links io.
#include <boost/asio/impl/src.hpp>
