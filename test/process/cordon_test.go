package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestCordon_lasts cordons the leader of three members, kills those that lead after it, one after the other, and then all
// members at once. The cordoned one votes and serves, and does not lead, until it is uncordoned.
func TestCordon_lasts(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	marked := e.leader()
	e.quorate(0, e.member("cordon", marked.name, "--yes"), "cordon "+marked.name, "hand leadership from "+marked.name)
	e.ledByOthers(marked)
	begun := leaderships(marked)
	e.quorate(0, e.member("cordon", marked.name, "--yes"), "nothing to do")
	e.quorate(0, e.member("list"), "voter, cordoned")
	line := fmt.Sprintf("quorate_member_cordoned{peer=%q} 1\n", fmt.Sprintf("%x", e.status(marked).Header.MemberId))
	until(t, "the leader's metrics show the mark", func(context.Context) bool { return strings.Contains(e.metrics(e.leader()), line) })
	others := e.others(marked)
	e.quorate(1, e.member("cordon", others[0].name, others[1].name, "--yes"), "every voter would be cordoned")
	if err := e.moveLeader(marked); err == nil || !strings.Contains(err.Error(), "quorate member uncordon "+marked.name) {
		t.Errorf("leadership for the cordoned member: got %v", err)
	}
	const rounds = 4
	for range rounds {
		e.alike()
		dead := e.leader()
		dead.kill()
		e.nodes = e.others(dead)
		e.use()
		e.ledByOthers(marked)
		e.checkServes(marked)
		e.nodes = append(e.nodes, dead)
		e.use()
		e.launch(dead, "existing")
		e.waitReady(dead)
	}
	// A process that gets no processor for longer than the cordoned one waits could not lead: that may happen, not each time.
	if led := leaderships(marked) - begun; led >= rounds {
		t.Errorf("the cordoned member led %d times in %d rounds, and another could", led, rounds)
	}
	for _, n := range e.nodes {
		n.kill()
	}
	for _, n := range e.nodes {
		e.launch(n, "existing")
	}
	e.ledByOthers(marked)
	e.quorate(0, e.member("uncordon", marked.name, "--yes"), marked.name+" may lead")
	until(t, "leadership goes to the member that is not cordoned any more", func(context.Context) bool {
		return e.leader() == marked || e.moveLeader(marked) == nil
	})
}

// ledByOthers waits until another member than n leads.
func (e *elastic) ledByOthers(n *node) {
	e.t.Helper()
	until(e.t, "another member than "+n.name+" leads", func(context.Context) bool { return e.leader() != n })
}

// alike waits until every member holds the leader's log.
func (e *elastic) alike() {
	e.t.Helper()
	until(e.t, "all members have caught up", func(context.Context) bool {
		for _, m := range e.described().Members {
			if !m.Leader && (!m.Active || !m.CaughtUp || m.Lag > 0) {
				return false
			}
		}
		return true
	})
}

// checkServes writes through n.
func (e *elastic) checkServes(n *node) {
	e.t.Helper()
	client := e.quiet(n)
	defer client.Close()
	until(e.t, "a write through "+n.name, func(ctx context.Context) bool {
		_, err := client.Put(ctx, "served", n.name)
		return err == nil
	})
}

// metrics is what n shows of itself; empty if it does not answer.
func (e *elastic) metrics(n *node) string {
	e.t.Helper()
	answer, err := http.Get(n.client + "/metrics")
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		e.t.Fatal(err)
	}
	return string(text)
}

// moveLeader asks the leader to hand over to n, as `etcdctl move-leader` does.
func (e *elastic) moveLeader(n *node) error {
	e.t.Helper()
	to := e.status(n).Header.MemberId
	client := e.quiet(e.leader())
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := client.MoveLeader(clientv3.WithRequireLeader(ctx), to)
	return err
}

// leaderships counts how often n was elected, by its log.
func leaderships(n *node) int { return strings.Count(tail(n.log, 1<<24), "became leader") }
