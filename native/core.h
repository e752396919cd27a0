// What the library offers to Python (moses_rnn/native.py loads it with ctypes). All functions are free of locks and of
// global state that changes: any number of threads may call them at once. They throw nothing.
#pragma once

#define MOSES_RNN_API extern "C" __attribute__((visibility("default")))
