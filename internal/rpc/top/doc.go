// Package top counts which prefixes of keys, and which clients, a member works for most: by operations, by bytes and by
// processor time, in the last 10 seconds and in the last 5 minutes.
//
// The main type is Meter. It has sketches of package heavy, so its memory is fixed when it is made, whatever clients name their
// keys. Each window is three slots of them: the oldest one is emptied when the current one is full. A slot of the short window
// is folded into the current slot of the long one when it is full, so that a call is counted once.
//
// Errors, for m counters and n, the weight of all calls of the window: what is shown of an item is never more than it weighs,
// and less by at most n/m in the short window and 2n/m in the long one; an item that is not shown weighs at most n/m more
// than that. A caller that counts one call of several adds the error of its sample.
//
// Invariants:
//  1. Memory is at most Size, however many prefixes and clients there are, and however long they are.
//  2. A call waits for no answer that is being made for longer than it takes to fold a few sketches.
//  3. A prefix is at most MaxPrefix bytes, and a name of a client at most MaxName.
//
// The package knows no clock: callers tell the time. A Meter may be used by several goroutines at once.
package top
