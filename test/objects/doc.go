// Package objects_test tries places for objects against servers of S3: versitygw as a process, on a directory, and gofakes3.
// Between client and server is a proxy that injects every fault: asked to slow down, answers lost before and after the work was
// done, bodies cut and changed both ways, lists out of order, conditions ignored and refused, clocks that differ.
//
// TestShips and its like let three members that are processes ship a continuous backup there (`make ships`).
//
// It is a module of its own, since a server has dependencies that the product has not. The first run builds versitygw, which
// takes some minutes; `make objects` runs it.
package objects_test
