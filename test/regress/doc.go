// Command regress counts what the hot roads cost, and compares the counts with those that are committed.
//
//	go run ./test/regress            # make bench-regress: compares, and fails if a count is worse by more than its tolerance
//	go run ./test/regress -update    # writes the counts of this tree into figures.txt
//
// It runs benchmarks of this repository for a fixed number of operations, three times each, and takes the least of each
// count: whatever disturbs a run adds to it. The garbage collector is off meanwhile, so that pools keep what they have.
// Allocations and their bytes hardly depend on how fast the machine is, nor on what else runs on it. Calls to write and
// read, and the bytes that a watch allocates, depend on what meets in one call, so that they have a wide tolerance: it finds a
// call that became two. CPU time is shown and decides nothing.
//
// figures.txt has a line for each count: name, count for one operation, and by how much it may be worse.
package main
