// Package history records what etcd clients ask and are told, and checks it: registers are linearizable with their
// revisions (Porcupine), lists take each appended element once, in an order that all readers agree on.
//
// It knows nothing of servers or faults. An operation that failed or timed out may have happened, at any later time: only an
// error that proves that nothing happened lets an operation out of the history. Recorders and lists are safe for concurrent
// use.
package history
