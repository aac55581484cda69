// Command regress counts what the hot roads cost, and compares the counts with those that are committed.
//
//	go run ./test/regress            # make bench-regress: compares, and fails if a count is worse by more than its tolerance
//	go run ./test/regress -update    # writes the counts of this tree into figures.txt
//
// It runs benchmarks of this repository for a fixed number of operations, three times each, and takes the least of each
// count: whatever disturbs a run adds to it. A benchmark with a count that is worse is run again for the same reason. The
// garbage collector is off meanwhile, so that pools keep what they have.
//
// Only what hardly depends on the speed and the load of the machine fails the run: allocations, bytes of rows and of
// flushed tables, messages, and calls to write and read. How many calls there are depends on what meets in one of them,
// so that they have a wide tolerance: it finds a call that became two. Bytes that are allocated are compared, too, and fail
// nothing; times are only shown.
//
// figures.txt has a line for each count: name, count for one operation, and by how much it may be worse.
package main
