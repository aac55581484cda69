// Package linked is a doubly linked list whose elements hold their own places, so that nothing is allocated when one of them
// is put in or taken out, and each can be taken out without a search.
//
// It is not container/list, which allocates an element for each value. The main type is List; a Place is part of whatever is
// listed:
//
//	type waiter struct{ place linked.Place[waiter] }
//	line.PushBack(&w.place, w)
//
// Invariants:
//  1. A Place is in one list at most.
//  2. A Place that is in a list is not copied.
//
// Lists have no lock: the caller's guards them.
package linked
