// Package member holds the subcommands of `quorate member`: they list the members of a cluster, and change them while it
// works. One file per verb; the verbs that only name members are in verbs.go.
//
// A change is a plan, a question, a job that the cluster holds, and a stream that shows how far the job is: the command
// that started it may end at any time. The package is a client of the native membership API; what etcd's API can say also
// works on a server without it. It decides nothing about members: the cluster plans, and refuses.
//
// The entry is New. The main types are changer, which plans, asks and starts a job, and session, which makes the requests.
//
// Invariants:
//  1. Nothing changes before a plan was shown and a person, or --yes, agreed to that very plan.
//  2. The same command given again finds the same job.
//  3. With -o json or yaml the output is one object of the API for each answer.
//
// One goroutine runs a command; the stream of events has one of its own.
package member
