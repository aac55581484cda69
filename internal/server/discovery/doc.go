// Package discovery lets the members of a new cluster find each other in a running one, by the protocol of etcd 3.7 (v3
// discovery): an operator writes the size of the new cluster under a token, each member writes its name and URLs beside it,
// and all wait until there are as many.
//
// It is used before a member has data, and decides nothing else: what it returns is what --initial-cluster would have said.
//
// Keys, below /_etcd/registry/TOKEN:
//
//	_config/size      how many members the cluster has
//	members/ID        NAME=URL,NAME=URL of the member that has this id, in hex
//
// Invariants:
//  1. The members are those that registered first, by the revision at which their key was made: all of them see the same ones.
//  2. A member that comes later is refused. One that is started again finds its own key.
//  3. Values that others wrote are not trusted: their size is bounded, and package config reads them.
//
// A Join is one call; nothing is kept.
package discovery
