// Package validate checks what a request says by itself, as etcd does: keys, options, sizes, operations that overlap, URLs.
//
// It is pure: it knows no store and no member. Rules that depend on the store are checked when a command is applied
// (internal/kv/apply), those that depend on the cluster by the service or the leader.
//
// There is no main type; each function gives nil or the error that etcd gives.
//
// Invariants:
//  1. A request is accepted here if etcd accepts it, and refused with etcd's error otherwise; where we differ the comment says
//     so.
//
// Functions may be called concurrently.
package validate
