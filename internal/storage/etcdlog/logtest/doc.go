// Package logtest writes logs of etcd for tests: frames with padding, and a running checksum.
//
// It is used by tests only. Whatever goes wrong ends the test.
package logtest
