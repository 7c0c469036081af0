#pragma once

// Precompiled for the unit tests of those modules.
#include "pch.h"
#include "pch_gmock.h"
