// Package linked is an intrusive doubly linked list: elements contain their own links, so that adding and removing allocate
// nothing, and removing needs no search.
//
// Unlike container/list it does not allocate an element for each value. The main type is List. An element contains a Place:
//
//	type waiter struct{ place linked.Place[waiter] }
//	line.PushBack(&w.place, w)
//
// Invariants:
//  1. A Place is in one list at most.
//  2. A Place that is in a list is not copied.
//
// Lists have no lock: the caller must have one.
package linked
