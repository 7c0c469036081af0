#pragma once

// Precompiled for the unit tests of those modules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pch.h"
