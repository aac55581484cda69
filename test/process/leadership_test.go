package process_test

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// TestLeadership_stopped stops leaders gracefully, by kill and by pause. Each time the cluster goes on with another
// one; a leader that goes in peace hands over within a term.
func TestLeadership_stopped(t *testing.T) {
	t.Parallel()
	e := startElastic(t)
	e.grow("m2")
	e.grow("m3")
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGSTOP} {
		old := e.leader()
		before, from := e.status(old).RaftTerm, logSize(old)
		var others []*node
		for _, n := range e.nodes {
			if n != old {
				others = append(others, n)
			}
		}
		client := e.quiet(others...)
		begun := time.Now()
		signal(t, old, how)
		until(t, "a write after "+how.String(), func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			status, err := client.Status(ctx, others[0].client)
			if err != nil || status.RaftTerm == before || status.Leader == 0 {
				return false
			}
			_, err = client.Put(ctx, "after", how.String())
			return err == nil
		})
		status := e.status(others[0])
		t.Logf("%v: a write in a new term after %v", how, time.Since(begun))
		if how == syscall.SIGTERM && status.RaftTerm != before+1 { // another election may have followed
			e.awaitLog(old, from, "handed leadership over")
		}
		_ = client.Close()
		if how == syscall.SIGSTOP {
			signal(t, old, syscall.SIGCONT)
		} else {
			<-old.exited
			e.launch(old, "existing")
		}
		e.waitReady(old)
	}
}
