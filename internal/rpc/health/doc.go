// Package health says whether this member is alive and ready: to HTTP probes, as etcd does under /health, /livez and
// /readyz, and to gRPC's health service.
//
// It asks a member questions, each with a name. It repairs nothing, and what follows from an answer is the prober's.
//
// The main type is Checker; Watcher keeps gRPC's health service, and the log, at what Checker would say.
//
// Invariants:
//  1. A check does not wait for a member that hangs: whether it hangs is asked first, and that asks nothing of the member.
//  2. /livez fails only for what a new start may cure, and so not for a slow disk.
//
// All methods may be called concurrently.
package health
