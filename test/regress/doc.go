// Command regress counts the costs of the hot paths, and compares the counts with the committed ones.
//
//	go run ./test/regress            # make bench-regress: compares, and fails if a count is worse by more than its tolerance
//	go run ./test/regress -update    # writes the counts of this tree into figures.txt
//
// It runs benchmarks of this repository for a fixed number of operations, three times each, and takes the least of each count:
// a disturbance of a run only adds to it. A benchmark with a count that is worse is run again for the same reason. The garbage
// collector is off meanwhile, so that pools keep their objects.
//
// Only counts that hardly depend on the speed and the load of the machine fail the run: allocations, bytes of rows and of
// flushed tables, messages, and calls to write and read. The number of calls depends on how many messages share one, so it has
// a wide tolerance: that finds a call that became two. Allocated bytes are compared, too, and fail nothing; times are only
// shown.
//
// figures.txt has a line for each count: name, count for one operation, and tolerance.
package main
