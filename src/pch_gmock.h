#pragma once

// Precompiled for the unit tests of all others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
