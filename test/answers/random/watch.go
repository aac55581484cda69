package main

import (
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// watchStream is one watch on a stream of its own, and what it said.
type watchStream struct {
	stream   pb.Watch_WatchClient
	said     strings.Builder
	events   int
	canceled bool
}

// receive takes messages until there were so many, or one that has an event of a revision.
func (w *watchStream) receive(messages int, until int64) error {
	for n := 0; !w.canceled && (messages == 0 || n < messages); n++ {
		m, err := w.stream.Recv()
		if err != nil {
			return err
		}
		if m.Created || m.Canceled {
			fmt.Fprintf(&w.said, "created %v canceled %v compacted %d %q\n",
				m.Created, m.Canceled, m.CompactRevision, m.CancelReason)
		}
		reached := false
		for _, e := range m.Events {
			w.events++
			fmt.Fprintf(&w.said, "%v\n", e)
			reached = reached || until > 0 && e.Kv.ModRevision >= until
		}
		if reached {
			return nil
		}
		w.canceled = m.Canceled
	}
	return nil
}

// firstDifference tells what was watched and the first line that differs.
func firstDifference(etcd, quorate string) string {
	a, b := strings.Split(etcd, "\n"), strings.Split(quorate, "\n")
	i := 0
	for i < min(len(a), len(b))-1 && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("%s\nline %d\n  etcd:    %s\n  quorate: %s\n", a[0], i, a[i], b[i])
}
