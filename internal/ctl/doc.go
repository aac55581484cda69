// Package ctl is the command line beside the server: a cluster for development, a client, and tools. One file per
// noun; `quorate member` is package ctl/member, and what all subcommands share is package ctl/command.
//
// It is a client like any other: it speaks etcd's API through etcd's own Go client and knows nothing of the member
// behind it, so that it works against etcd as well; only changes of members go through the native API where there is one.
// The entry is Run, which returns the status to exit with.
//
// etcdctl's commands are beside ours (package ctl/etcdctl); IsEtcdctls says which of the two a line is for.
//
// Invariants:
//  1. Results go to the output, everything else to the error stream: output can be piped.
//  2. Every error is one message that says what failed and what to try; status 1 is a refusal by the cluster, 2 a
//     command line that makes no sense, 3 a cluster that cannot be reached or does not answer in time.
//     Lines of etcdctl's end as etcdctl does.
//  3. With -o json a command prints one JSON value per line.
package ctl
