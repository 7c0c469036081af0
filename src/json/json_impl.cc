// Boost.JSON itself, compiled once and with our flags: Debian's archive is larger and not built for size.
#include <boost/json/src.hpp>
