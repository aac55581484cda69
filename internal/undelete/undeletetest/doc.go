// Package undeletetest is a member in memory for tests of what restores deleted keys: as much of etcd's KV service and of
// quorate.v1.History as that needs, with faults that a test chooses.
//
// It is simple rather than fast: a list of versions for each key. The main type is Member, whose methods may be called at any
// time.
package undeletetest
