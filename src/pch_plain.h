#pragma once

// Precompiled for every module below the network: the standard library, and nothing that lives higher.
#include <algorithm>
#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
