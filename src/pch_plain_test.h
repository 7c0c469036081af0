#pragma once

// Precompiled for the unit tests of the modules below the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pch_plain.h"
